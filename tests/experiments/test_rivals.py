"""Noise and C are chosen on training pictures alone, and as dense algebra would choose them."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saccade._core.arrays import Array

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture
def common(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module("common")


def problem(classes: int = 4, each: int = 9) -> tuple[Array, Array]:
    """Rows of overlapping classes and their labels."""
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(classes), each)
    X = rng.gamma(0.5, size=(len(y), 8)) + 0.8 * np.eye(classes, 8)[y]
    return X / X.sum(axis=1, keepdims=True), y


def test_noise_is_the_one_of_the_best_leave_one_out_rate(common: Any) -> None:
    X, y = problem()
    K, _ = common.kernel_matrices(X, X)
    rates = []
    for noise in common.NOISES:
        answers = []
        for i in range(len(y)):  # each example left out, and everything solved again
            rest = np.delete(np.arange(len(y)), i)
            answers.append(common.gp_answers(K[np.ix_(rest, rest)], K[[i]][:, rest], y[rest], noise)[0])
        rates.append(common.class_rate(y, np.array(answers)))
    best = np.flatnonzero(np.isclose(rates, max(rates), rtol=0, atol=1e-12))
    assert 0 < len(best) < len(rates)
    assert common.learned_noise(K, y) == common.NOISES[best[len(best) // 2]]


def test_one_against_rest_is_scikit_learns(common: Any) -> None:
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import SVC

    X, y = problem()
    K, K_test = common.kernel_matrices(X[:24], X[24:])
    theirs = OneVsRestClassifier(SVC(C=10.0, kernel="precomputed")).fit(K, y[:24]).predict(K_test)
    np.testing.assert_array_equal(common.svm_rest_answers(K, K_test, y[:24], 10.0), theirs)


def test_cost_is_the_one_of_the_best_cross_validated_rate(common: Any) -> None:
    from sklearn.metrics import balanced_accuracy_score
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import SVC

    X, y = problem(each=12)
    K, _ = common.kernel_matrices(X, X)
    folds = StratifiedKFold(common.FOLDS, shuffle=True, random_state=0)

    def judge(model: Any, K: Array, y: Array) -> float:
        return float(balanced_accuracy_score(y, model.predict(K)))

    rates = [
        cross_val_score(OneVsRestClassifier(SVC(C=cost, kernel="precomputed")), K, y, cv=folds, scoring=judge).mean()
        for cost in common.COSTS
    ]
    assert common.learned_cost(K, y) == common.COSTS[int(np.argmax(rates))]


def test_the_choice_of_descriptors_never_opens_a_test_picture(
    common: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no test folder at all."""
    import json
    import shutil
    import sys

    from tests.experiments.tiny_data import write_all

    write_all(tmp_path)
    shutil.rmtree(tmp_path / "scenes15" / "test")
    monkeypatch.setenv("SACCADE_DATA", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["choose", "--words", "10", "--out", str(tmp_path)])
    script = importlib.import_module("choose_descriptors")
    few = {"root": ((False, True), script.CHAINS)}
    monkeypatch.setattr(script, "CHOICES", {name: few.get(name, (v[:1], c)) for name, (v, c) in script.CHOICES.items()})
    monkeypatch.setattr(script, "ALSO", {})
    script.main()
    record = json.loads((tmp_path / "results" / "choose_descriptors.json").read_text())
    assert set(record["chosen"]) == set(script.CHOICES)
    assert len(record["trials"]) == 2
    first, second = script.halves(np.repeat(["a", "b"], 6))
    assert not np.intersect1d(first, second).size
    assert np.bincount(first // 6).tolist() == np.bincount(second // 6).tolist() == [3, 3]


def test_defaults_are_the_chosen_ones(common: Any) -> None:
    """What the committed record says is what `DenseSIFT` does."""
    import json

    from saccade.features import DenseSIFT, bins, descriptors, pyramid_match

    path = EXPERIMENTS / "results" / "choose_descriptors.json"
    chosen = json.loads(path.read_text())["chosen"]
    sift = DenseSIFT()
    assert (sift.root, list(sift.scales), sift.contrast) == (chosen["root"], chosen["scales"], chosen["contrast"])
    assert (chosen["blur"], chosen["fall"]) == (descriptors.NO_BLUR, bins.FALL)
    assert pyramid_match.DEPTH["vocabulary"] == chosen["depth"]
