"""Calibration: without a factor as with one, within the error that is reported; and from left-out predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

import saccade
from saccade import GPClassifier
from saccade.inference.posterior.gp import GP
from saccade.scores.probability import probabilities

Array = np.ndarray[Any, np.dtype[Any]]
X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
X, y = X[order] / 16.0, y[order]
train, test = slice(0, 900), slice(900, 1400)


def rms(difference: Array) -> float:
    return float(np.sqrt(np.square(difference).mean()))


def bags_of_words(n: int, classes: int) -> tuple[Array, Array]:
    """Counts of 40 words; every class has words of its own, and they share some."""
    rng = np.random.default_rng(0)
    profiles = rng.dirichlet(np.full(200, 0.3), classes)
    label = rng.permutation(np.arange(n) % classes)
    return np.array([rng.multinomial(40, 0.6 * profiles[k] + 0.4 / 200) for k in label]) / 40.0, label


@pytest.mark.parametrize("noise", [0.1, 0.01, 0.001])
def test_digits_with_and_without_a_factor(noise: float) -> None:
    options: dict[str, Any] = {"noise": noise, "variance": "lowrank", "tol": 1e-4, "random_state": 0}
    exact, found = (GPClassifier(solver=s, **options).fit(X[train], y[train]) for s in ("cholesky", "cg"))
    assert exact.leave_one_out_error_ == 0.0
    assert 0.0 <= found.leave_one_out_error_ < (0.15 if noise < 0.01 else 0.051)  # 0: decisions hung on it
    error = found.leave_one_out_error_ or 1e-2  # of α, by `tol`
    assert found.sharpness_ == pytest.approx(exact.sharpness_, rel=error)
    labels = np.where(y[train, None] == np.arange(10), 1.0, -1.0)
    off, true = labels - found.leave_one_out_decision_, labels - exact.leave_one_out_decision_
    assert rms(off - true) < 1.1 * error * rms(true)
    right = [(m.leave_one_out_decision_.argmax(axis=1) == y[train]).mean() for m in (exact, found)]
    assert right[1] == pytest.approx(right[0], abs=0.02)
    assert np.abs(found.predict_proba(X[test]) - exact.predict_proba(X[test])).max() < error
    assert rms(found.novelty(X[test]) - exact.novelty(X[test])) < error


def test_a_hundred_balanced_classes_with_and_without_factors() -> None:
    """Examples of a column's own class have a hundredth of the noise there: as if all columns were alike, 0.94."""
    Z, label = bags_of_words(800, 100)
    exact, found = (
        GPClassifier(balanced=True, solver=s, tol=1e-4, random_state=0).fit(Z[:700], label[:700])
        for s in ("cholesky", "cg")
    )
    error = found.leave_one_out_error_
    assert 0.0 < error < 0.25
    right = [(m.leave_one_out_decision_.argmax(axis=1) == label[:700]).mean() for m in (exact, found)]
    assert right[1] == pytest.approx(right[0], abs=0.05)
    assert found.sharpness_ == pytest.approx(exact.sharpness_, rel=error)
    assert rms(found.predict_proba(Z[700:]) - exact.predict_proba(Z[700:])) < error


def test_fewer_examples_of_them_have_a_factor_per_class_after_conjugate_gradients_too() -> None:
    Z, label = bags_of_words(300, 40)
    exact, found = (
        GPClassifier(balanced=True, solver=s, tol=1e-8, random_state=0).fit(Z, label) for s in ("cholesky", "cg")
    )
    assert found.leave_one_out_error_ == 0.0
    assert found.converged_
    np.testing.assert_allclose(found.leave_one_out_decision_, exact.leave_one_out_decision_, atol=1e-6)


def test_up_to_2048_examples_are_exact_with_many_balanced_classes() -> None:
    """More factors than are kept: 70 of 700 × 700 numbers."""
    Z, label = bags_of_words(700, 70)
    model = GPClassifier(balanced=True, random_state=0).fit(Z, label)
    assert model.leave_one_out_error_ == 0.0
    assert model.residual_ < 1e-9
    for i in (0, 300, 699):
        rest = np.arange(700) != i
        column = label[i]
        noise = model.targets_.noise_diagonal(model.noise_)[:, column]
        K = model.kernel_(Z)
        A = K[np.ix_(rest, rest)] + np.diag(noise[rest])
        mean = K[i, rest] @ np.linalg.solve(A, model.targets_.columns()[rest, column])
        assert model.leave_one_out_decision_[i, column] == pytest.approx(mean, abs=1e-9)


def test_weights_below_one_keep_probabilities_sure() -> None:
    """Half the weight everywhere is twice the noise; examples that count for less than one are left out whole."""
    half = GPClassifier(noise=0.1).fit(X[train], y[train], np.full(900, 0.5))
    twice = GPClassifier(noise=0.2).fit(X[train], y[train])
    np.testing.assert_allclose(half.leave_one_out_decision_, twice.leave_one_out_decision_, atol=1e-9)
    assert half.sharpness_ == pytest.approx(twice.sharpness_, rel=0.05)  # by half the observations
    faint = GPClassifier(noise=0.01).fit(X[train], y[train], np.full(900, 0.05))
    assert faint.predict_proba(X[test]).max(axis=1).mean() > 0.8


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("classes", [2, 5])
def test_left_out_probabilities_are_those_of_a_model_without_the_example(classes: int, balanced: bool) -> None:
    """Refitted without it, judged with the same sharpness; `balanced` has the noise of all examples."""
    some = np.flatnonzero(y < classes)[:60]
    A, b = X[some], y[some]
    model = GPClassifier(balanced=balanced).fit(A, b)
    assert model.leave_one_out_proba_.shape == (60, classes)
    noise = model.targets_.noise_diagonal(model.noise_)
    for i in range(0, 60, 7):
        rest = np.arange(60) != i
        gram = model.kernel_.gram(A[rest])
        mean = GP.fit(gram, model.targets_.columns()[rest], noise[rest]).mean(A[[i]])
        expected = probabilities(mean, model.sharpness_)
        np.testing.assert_allclose(model.leave_one_out_proba_[[i]], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("inference", ["laplace", "ep"])
@pytest.mark.parametrize("classes", [2, 5])
def test_left_out_probabilities_of_a_likelihood_of_signs(classes: int, inference: Any) -> None:
    """Their closed form keeps the sites of the other examples, and is close to refitting."""
    some = np.flatnonzero(y < classes)[:60]
    A, b = X[some], y[some]
    model = GPClassifier(inference=inference, noise=0.5).fit(A, b)
    p = model.leave_one_out_proba_
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    off = []
    for i in range(0, 60, 5):
        rest = np.arange(60) != i
        without = GPClassifier(model.kernel_, inference=inference, noise=0.5).fit(A[rest], b[rest])
        without.sharpness_ = model.sharpness_
        off.append(np.abs(p[i] - without.predict_proba(A[[i]])[0]).max())
    assert max(off) < 0.03


def test_left_out_probabilities_after_partial_fit_and_with_weights() -> None:
    whole = GPClassifier().fit(X[:80], y[:80])
    grown = GPClassifier().fit(X[:50], y[:50]).partial_fit(X[50:80], y[50:80])
    np.testing.assert_allclose(grown.leave_one_out_proba_, whole.leave_one_out_proba_, atol=1e-8)
    weight = np.tile([2, 1], 40)
    once = GPClassifier().fit(X[:80], y[:80], weight)
    copies = np.repeat(np.arange(80), weight)
    copied = GPClassifier().fit(X[copies], y[copies])
    first = np.flatnonzero(np.diff(copies, prepend=-1))
    np.testing.assert_allclose(once.leave_one_out_proba_, copied.leave_one_out_proba_[first], atol=1e-7)


def test_left_out_probabilities_are_unknown_where_decisions_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade._core.limits.EXAMPLES_COMPARED", 20)
    model = GPClassifier(approximation="fitc").fit(X[:60], y[:60])
    unknown = np.isnan(model.leave_one_out_decision_).any(axis=1)
    assert 0 < unknown.sum() < 60
    np.testing.assert_array_equal(np.isnan(model.leave_one_out_proba_).all(axis=1), unknown)
    assert np.isfinite(model.leave_one_out_proba_[~unknown]).all()


def test_a_model_without_examples_says_that_it_has_no_left_out_probabilities(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        _ = GPClassifier().leave_one_out_proba_
    GPClassifier().fit(X[:60], y[:60]).save(tmp_path / "digits.saccade")
    with pytest.raises(AttributeError, match="loaded model has no leave_one_out_proba_"):
        _ = saccade.load(tmp_path / "digits.saccade").leave_one_out_proba_
