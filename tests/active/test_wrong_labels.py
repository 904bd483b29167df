"""Suspects among the training labels: found by what the other examples say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

import saccade
from saccade import GPClassifier, GPRegressor
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.active import LabelIssues, label_issues

Array = np.ndarray[Any, np.dtype[Any]]
DIGITS, TRUE = load_digits(return_X_y=True)
DIGITS = DIGITS / 16.0


def wrongly_labelled(n: int, wrong: int, classes: int = 10) -> tuple[Array, Array, Array]:
    """Digits below `classes`, labels of which the first `wrong` are those of the next digit, and true labels."""
    kept = np.flatnonzero(classes > TRUE)[:n]
    true = TRUE[kept]
    y = true.copy()
    y[:wrong] = (y[:wrong] + 1) % classes
    return DIGITS[kept], y, true


@pytest.mark.parametrize("inference", ["regression", "laplace", "ep"])
@pytest.mark.parametrize("classes", [2, 4])
def test_wrong_labels_come_first_with_the_right_ones_proposed(classes: int, inference: Any) -> None:
    X, y, true = wrongly_labelled(150, 10, classes)
    found = label_issues(GPClassifier(noise=1.0, inference=inference).fit(X, y))
    assert sorted(found.index[:10]) == list(range(10))
    np.testing.assert_array_equal(found.given, y[found.index])
    np.testing.assert_array_equal(found.proposed[:10], true[found.index[:10]])
    assert (found.probability[:10] < 0.5).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_each_example_is_judged_by_a_model_without_it(classes: int) -> None:
    """Score and proposal against refitting: the log of two probabilities at the same sharpness."""
    X, y, _ = wrongly_labelled(40, 4, classes)
    model = GPClassifier(noise=1.0).fit(X, y)
    found = label_issues(model, everything=True)
    assert sorted(found.index) == list(range(40))
    for index, given, proposed, probability, score in zip(
        found.index, found.given, found.proposed, found.probability, found.score, strict=True
    ):
        rest = np.arange(40) != index
        without = clone(model).set_params(kernel=model.kernel_).fit(X[rest], y[rest])
        without.sharpness_ = model.sharpness_
        p = without.predict_proba(X[[index]])[0]
        others = np.where(np.arange(classes) == given, 0.0, p)
        assert proposed == others.argmax()
        assert probability == pytest.approx(p[given], abs=1e-8)
        assert score == pytest.approx(np.log(p[given] / others.max()), abs=1e-8)


def test_suspects_are_the_examples_whose_label_is_not_the_most_probable_one() -> None:
    X, y, _ = wrongly_labelled(200, 20)
    model = GPClassifier().fit(X, y)
    found, ranked = label_issues(model), label_issues(model, everything=True)
    best = model.leave_one_out_proba_.argmax(axis=1)
    assert set(found.index) == set(np.flatnonzero(best != y))
    assert 0 < len(found) < len(ranked) == 200
    np.testing.assert_array_equal(found.proposed, best[found.index])
    np.testing.assert_array_equal(found.index, ranked.head(len(found)).index)
    assert (np.diff(ranked.score) >= -1e-9).all()


def test_head_cuts_every_array() -> None:
    X, y, _ = wrongly_labelled(100, 10)
    found = label_issues(GPClassifier().fit(X, y))
    first = found.head(3)
    assert isinstance(first, LabelIssues)
    assert [len(getattr(first, name)) for name in ("index", "given", "proposed", "probability", "score")] == [3] * 5
    assert len(found.head(0)) == len(found.head(-1)) == 0
    assert len(found.head(10**6)) == len(found)


def test_equal_examples_with_different_labels_are_equally_suspicious() -> None:
    """Rounding decides neither who is a suspect nor the order: both copies score alike, the first comes first."""
    X = np.repeat(np.eye(2), 4, axis=0)
    y = np.array([0, 0, 0, 1, 1, 1, 1, 0])
    found = label_issues(GPClassifier().fit(X, y))
    assert found.index.tolist() == [3, 7]
    # with as many of one label as of the other, one left out is outvoted by one: all are suspects, in their order
    found = label_issues(GPClassifier().fit(X, np.array([0, 1] * 4)))
    assert found.index.tolist() == list(range(8))


def test_of_equally_probable_labels_the_first_is_proposed() -> None:
    """Examples between two classes: rounding does not decide which of them is proposed."""
    for seed in range(5):
        part = np.random.default_rng(seed).random((6, 7))
        zero, one = np.hstack([part, np.zeros_like(part)]), np.hstack([np.zeros_like(part), part])
        X, y = np.vstack([zero, one, 0.5 * (zero + one)]), np.repeat([0, 1, 2], 6)
        X[12] = (zero.sum(axis=0) + one.sum(axis=0)) / 6.0
        found = label_issues(GPClassifier().fit(X, y), everything=True)
        assert (found.proposed[found.given == 2] == 0).all()


def test_labels_are_those_of_the_user() -> None:
    X, y, _ = wrongly_labelled(120, 6, 3)
    names = np.array(["zero", "one", "two"])
    by_name = label_issues(GPClassifier(noise=1.0).fit(X, names[y]))
    by_number = label_issues(GPClassifier(noise=1.0).fit(X, y))
    np.testing.assert_array_equal(by_name.index, by_number.index)
    np.testing.assert_array_equal(by_name.proposed, names[by_number.proposed])
    np.testing.assert_array_equal(by_name.given, names[y[by_name.index]])


def test_examples_added_later_are_checked_too() -> None:
    X, y, _ = wrongly_labelled(150, 8)
    last = np.r_[8:150, 0:8]
    model = GPClassifier(noise=1.0).fit(X[last[:100]], y[last[:100]]).partial_fit(X[last[100:]], y[last[100:]])
    whole = label_issues(GPClassifier(noise=1.0).fit(X[last], y[last]))
    found = label_issues(model)
    np.testing.assert_array_equal(found.index, whole.index)
    assert set(found.index[:8]) == set(range(142, 150))


def test_without_wrong_labels_and_far_apart_there_is_no_suspect() -> None:
    X, y = np.repeat(np.eye(3), 5, axis=0), np.repeat([0, 1, 2], 5)
    found = label_issues(GPClassifier().fit(X, y))
    assert len(found) == 0
    assert found.proposed.dtype == y.dtype


def test_what_cannot_be_judged_is_refused(tmp_path: Path) -> None:
    X, y, _ = wrongly_labelled(60, 3)
    with pytest.raises(NotFittedError):
        label_issues(GPClassifier())
    with pytest.raises(InvalidInput, match="GPClassifier, which has labels to check, got a GPRegressor"):
        label_issues(GPRegressor().fit(X, y))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="got a ndarray"):
        label_issues(X)  # type: ignore[arg-type]
    model = GPClassifier().fit(X, y)
    with pytest.raises(InvalidParameter, match="everything"):
        label_issues(model, everything="yes")  # type: ignore[arg-type]
    model.save(tmp_path / "digits.saccade")
    with pytest.raises(InvalidInput, match="loaded model holds no training examples"):
        label_issues(saccade.load(tmp_path / "digits.saccade"))


def test_an_approximate_mean_that_knows_some_examples_only_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade._core.limits.EXAMPLES_COMPARED", 20)
    X, y, _ = wrongly_labelled(60, 3)
    model = GPClassifier(approximation="fitc").fit(X, y)
    assert np.isnan(model.leave_one_out_proba_).any(axis=1).sum() >= 40
    with pytest.raises(InvalidInput, match=r'of 60 examples have no leave-one-out.*approximation="fitc"'):
        label_issues(model)


def test_example_of_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text("utf-8")
    (code,) = re.findall(r"## Wrong labels\n```python\n(.*?)```", guide, re.S)
    X, y, true = wrongly_labelled(150, 1, 4)
    exec(compile(code, "guide.md", "exec"), {"X": X, "y": y})
    assert capsys.readouterr().out.startswith(f"example 0 is labelled {y[0]}; the others say {true[0]}\n")


def test_an_example_that_nobody_speaks_for_or_against_is_no_suspect() -> None:
    """A row of zeros is like no other: both classes are as likely."""
    rows = np.vstack([np.zeros((1, 64)), load_digits().data[:60]])
    labels = np.r_[0, np.arange(60) % 2]
    model = GPClassifier(noise=1.0).fit(rows, labels)
    assert 0 not in label_issues(model).index
    every = label_issues(model, everything=True)
    assert abs(every.score[every.index == 0][0]) < 1e-9
