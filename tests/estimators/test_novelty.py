"""One model, two jobs: a classifier that also says which examples are of none of its classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from saccade import GPClassifier, load
from saccade._core.errors import InvalidInput
from saccade.kernels import HIK, GeneralizedRBF

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
X, y = X[order], y[order]
known, new = X[y < 6], X[y >= 6]
train, label, normal = known[:500], y[y < 6][:500], known[500:]
truth = np.r_[np.zeros(len(normal)), np.ones(len(new))]


@pytest.mark.parametrize(
    "options",
    [{}, {"inference": "laplace"}, {"variance": "lowrank"}, {"variance": "diagonal"}, {"balanced": True}],
    ids=str,
)
def test_new_classes_score_higher(options: dict[str, Any], tmp_path: Path) -> None:
    model = GPClassifier(random_state=0, **options).fit(train, label)
    scores = model.novelty(np.vstack([normal, new]))
    assert ((scores >= 0) & (scores <= 1)).all()
    assert roc_auc_score(truth, scores) > 0.87
    assert (scores[truth == 0] > 0.95).mean() < 0.1  # a twentieth, but for chance
    model.save(tmp_path / "model.saccade")
    back = load(tmp_path / "model.saccade").novelty(np.vstack([normal, new]))
    assert roc_auc_score(truth, back) > 0.87
    assert (back[truth == 0] > 0.95).mean() < 0.1


def test_two_classes_and_other_kernels() -> None:
    some = label < 2
    model = GPClassifier(GeneralizedRBF(HIK(), "auto")).fit(train[some], label[some])
    scores = model.novelty(np.vstack([known[500:][y[y < 6][500:] < 2], new]))
    assert scores[-len(new) :].mean() > 0.9 > scores[: -len(new)].mean()


def test_two_signs_find_more_than_one() -> None:
    found = []
    for first in range(0, 10, 2):  # other classes are new each time
        novel = np.isin(y, np.arange(first, first + 4) % 10)
        model = GPClassifier(random_state=0).fit(X[~novel][:500], y[~novel][:500])
        both, new_ones = X[900:], novel[900:]
        signs = (model.novelty(both), model.latent_mean_and_variance(both)[1], -model.predict_proba(both).max(axis=1))
        found.append([roc_auc_score(new_ones, sign) for sign in signs])
    joint, variance, confidence = np.mean(found, axis=0)
    assert joint > max(variance, confidence)


def test_it_goes_with_the_fit() -> None:
    model = GPClassifier(random_state=0).fit(train, label)
    before = model.novelty(new)
    model.partial_fit(new[:300], np.full(300, 9))
    assert model.novelty(new[300:]).mean() < before[300:].mean()


@pytest.mark.parametrize(("variance", "message"), [(None, "variance=None"), ("fine", "cannot leave examples out")])
def test_without_a_variance_there_is_none(variance: str | None, message: str) -> None:
    model = GPClassifier(variance=variance).fit(train, label)
    with pytest.raises(InvalidInput, match=message):
        model.novelty(new)


def test_an_example_without_features_is_new() -> None:
    model = GPClassifier(random_state=0).fit(train, label)
    assert model.novelty(np.zeros((1, 64)))[0] > 0.9
