"""A weight of w is w copies: for every kernel, inference and coding, and for novelty."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from saccade import GPClassifier, GPRegressor
from saccade._core import limits
from saccade.inference.approximations.by_name import APPROXIMATIONS
from saccade.kernels import HIK, RBF, Centred, GeneralizedRBF, Kernel, Linear, Power
from saccade.kernels.generalized import typical_beta
from saccade.operators.codes import encode
from saccade.scores.novelty import repeated

Array = np.ndarray[Any, np.dtype[Any]]
KERNELS: list[Kernel] = [
    HIK(),
    HIK(Power(0.5)),
    GeneralizedRBF(HIK(), "auto"),
    GeneralizedRBF(Linear(), "auto"),
    2.0 * GeneralizedRBF(HIK(), "auto") + 0.5 * RBF(0.7),
    HIK() + Linear(),
    Centred(HIK()),
    Centred(RBF(0.5)) + RBF(2.0),
    Centred(GeneralizedRBF(HIK(), "auto")),
]
some = settings(max_examples=3, deadline=None)


def problem(seed: int) -> tuple[Array, Array, Array, Array]:
    """Rows, labels, whole weights (a zero among them) and new rows; ties and zeros among the values."""
    rng = np.random.default_rng(seed)
    X = np.maximum(0.0, np.round(rng.random((14, 3)) * 12.0 - 2.0) / 8.0)
    X[:, 2] *= rng.random(14)
    y = np.append([0, 1, 2], rng.integers(0, 3, 11))
    weight = np.append([2.0, 1.0, 3.0], rng.integers(0, 4, 11).astype(float))
    return X, y, weight, np.maximum(0.0, rng.random((6, 3)) * 2.0 - 0.2)


def both(model: Any, X: Array, y: Array, weight: Array) -> tuple[Any, Any]:
    copies = np.repeat(np.arange(len(X)), weight.astype(int))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).fit(X, y, sample_weight=weight), clone(model).fit(X[copies], y[copies])


CODED = [(kernel, levels) for kernel in KERNELS for levels in ((None, 2, 4) if isinstance(kernel, HIK) else (None,))]


@pytest.mark.parametrize("inference", ["regression", "laplace", "ep"])
@pytest.mark.parametrize(("kernel", "levels"), CODED, ids=repr)
@some
@given(seed=st.integers(0, 10**6))
def test_whole_weights_are_copies(kernel: Kernel, levels: int | None, inference: str, seed: int) -> None:
    X, y, weight, new = problem(seed)
    close = {"rtol": 1e-6, "atol": 1e-7} if inference == "regression" else {"rtol": 1e-5, "atol": 1e-6}
    once, copied = both(GPClassifier(kernel, inference=inference, levels=levels), X, y, weight)
    np.testing.assert_allclose(once.decision_function(new), copied.decision_function(new), **close)
    for one, other in zip(once.latent_mean_and_variance(new), copied.latent_mean_and_variance(new), strict=True):
        np.testing.assert_allclose(one, other, **close)
    first = np.cumsum(weight).astype(int)[weight > 0] - 1
    np.testing.assert_allclose(once.leave_one_out_decision_, copied.leave_one_out_decision_[first], **close)
    np.testing.assert_allclose(once.predict_proba(new), copied.predict_proba(new), rtol=0.0, atol=10 * close["rtol"])
    np.testing.assert_allclose(
        once.log_marginal_likelihood().value, copied.log_marginal_likelihood().value, rtol=close["rtol"]
    )


@pytest.mark.parametrize(
    ("kernel", "levels"), [(HIK(), None), (HIK(), 3), (GeneralizedRBF(HIK(), "auto"), None)], ids=repr
)
@pytest.mark.parametrize("balanced", [False, True])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_novelty_with_whole_weights_is_that_of_copies(
    kernel: Kernel, levels: int | None, balanced: bool, seed: int
) -> None:
    """As many known examples as there are copies, each left out with one copy, and their scores as often as copies."""
    X, y, weight, new = problem(seed)
    once, copied = both(GPClassifier(kernel, levels=levels, balanced=balanced), X, y, weight)
    one, other = once.novelty(new), copied.novelty(new)
    np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-9)
    assert once.novelty_reference_.known == copied.novelty_reference_.known == weight.sum()
    for name in ("explained", "confidence", "both"):
        scores, others = (getattr(model.novelty_reference_, name) for model in (once, copied))
        np.testing.assert_allclose(scores, others, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("levels", [None, 3])
def test_regression_and_added_examples(levels: int | None) -> None:
    X, y, weight, new = problem(7)
    X[:7] = np.abs(X[:7])
    X[10, 1] = -0.7  # the first negative value comes late: its dimension is new then
    model = GPRegressor(levels=levels)
    once, copied = both(model, X, y, weight)
    np.testing.assert_allclose(once.predict(new), copied.predict(new), rtol=1e-6, atol=1e-7)
    added = clone(model).fit(X[:7], y[:7], sample_weight=weight[:7])
    added.partial_fit(X[7:], y[7:], sample_weight=weight[7:])
    copies = [np.repeat(np.arange(len(w)), w.astype(int)) for w in (weight[:7], weight[7:])]
    others = clone(model).fit(X[:7][copies[0]], y[:7][copies[0]])
    others.partial_fit(X[7:][copies[1]], y[7:][copies[1]])
    np.testing.assert_allclose(added.predict(new), others.predict(new), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_fractions_are_continuous(kernel: Kernel) -> None:
    """A little more weight changes little, and next to none is none."""
    X, y, weight, new = problem(3)
    weight = np.maximum(weight, 1.0)

    def decision(w: Array) -> Array:
        return np.asarray(GPClassifier(kernel).fit(X, y, sample_weight=w).decision_function(new))

    whole = decision(weight)
    np.testing.assert_allclose(decision(weight * (1.0 + 1e-9)), whole, rtol=1e-6, atol=1e-7)
    none, hardly = (decision(np.append(weight[:-1], last)) for last in (0.0, 1e-9))
    np.testing.assert_allclose(hardly, none, rtol=1e-6, atol=1e-6)
    assert np.isfinite(decision(1e-4 * weight)).all()  # less than one example in all


def test_beta_of_many_copies() -> None:
    """More copies than are looked at: those at even places among them."""
    rng = np.random.default_rng(0)
    X = rng.random((900, 2))
    weight = rng.integers(0, 6, 900).astype(float)
    assert weight.sum() > limits.MEAN_DISTANCE_EXAMPLES
    assert typical_beta(HIK(scale=1.0), X, weight) == pytest.approx(
        typical_beta(HIK(scale=1.0), np.repeat(X, weight.astype(int), axis=0)), rel=1e-12
    )
    light = typical_beta(HIK(scale=1.0), np.repeat(X, 3, axis=0), np.full(2700, 1e-3))  # many rows, few examples
    assert light == pytest.approx(typical_beta(HIK(scale=1.0), X), rel=0.02)


@settings(max_examples=30, deadline=None)
@example(seed=3024, levels=2)  # rounding put the largest value beyond the last place
@given(seed=st.integers(0, 10**6), levels=st.integers(2, 9))
def test_levels_of_weighted_rows_are_those_of_copies(seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.maximum(0.0, np.round(rng.random((40, 3)) * 30.0 - 5.0))
    X[:, 2] = rng.random(40)
    weight = rng.integers(1, 5, 40).astype(float)
    ours, theirs = encode(X, levels, weight=weight), encode(np.repeat(X, weight.astype(int), axis=0), levels)
    np.testing.assert_array_equal(ours.values, theirs.values)
    light, heavy = (encode(X, levels, weight=factor * weight).values for factor in (1e-6, 1e6))
    assert light[-1] == heavy[-1] == X[:, 2].max()


def test_scores_as_often_as_their_weights_say() -> None:
    scores = np.array([0.3, 0.1, 0.2])
    np.testing.assert_array_equal(repeated(scores, None), [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(repeated(scores, np.array([1.0, 0.0, 3.0])), [0.2, 0.2, 0.2, 0.3])
    np.testing.assert_array_equal(repeated(scores, np.array([0.9, 1.2, 1.9])), [0.1, 0.2, 0.2, 0.3])
    np.testing.assert_array_equal(repeated(scores, np.full(3, 1e-9)), [0.2])
    assert repeated(scores, np.full(3, 1e12)).size <= 1 << 20


@pytest.mark.parametrize("method", APPROXIMATIONS)
@pytest.mark.parametrize("balanced", [False, True])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_every_approximation_takes_weights_for_copies(method: str, balanced: bool, seed: int) -> None:
    """Of mean and variance, for new rows and for training examples without one copy; all directions for "lowrank"."""
    X, y, weight, new = problem(seed)
    X, y, weight = X[weight > 0] + 0.01, y[weight > 0], weight[weight > 0]
    copies = np.repeat(np.arange(len(X)), weight.astype(int))
    points = np.flatnonzero(weight == 1.0)[:3]  # an inducing point leaves with its only copy
    options: dict[str, Any] = {"noise": 0.1, "balanced": balanced, "approximation": method}
    once = GPClassifier(HIK(scale=1.0), inducing=points, **options).fit(X, y, sample_weight=weight)
    copied = GPClassifier(HIK(scale=1.0), inducing=np.flatnonzero(np.isin(copies, points)), **options).fit(
        X[copies], y[copies]
    )
    close = {"rtol": 1e-6, "atol": 1e-7} if method != "lowrank" else {"rtol": 1e-4, "atol": 1e-5}  # float32 tables
    for one, other in zip(once.latent_mean_and_variance(new), copied.latent_mean_and_variance(new), strict=True):
        np.testing.assert_allclose(one, other, **close)
    first = np.cumsum(weight).astype(int) - 1
    rows = np.setdiff1d(np.arange(len(X)), points if method == "fitc" else [])
    left, left_of_copies = once.gp_.left_out(rows), copied.gp_.left_out(first[rows])
    for one, other in zip(left, left_of_copies, strict=True):
        np.testing.assert_allclose(one, other, **close)
