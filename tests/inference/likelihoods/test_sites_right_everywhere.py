"""Laplace and EP where they used to stop early: equal rows, opposite labels, other scales; and integrals as judges."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from saccade import GPClassifier, OneClassGP
from saccade._core.errors import InvalidInput
from saccade.inference.likelihoods.ep import ep
from saccade.inference.likelihoods.infer import _for_cavities
from saccade.inference.likelihoods.laplace import laplace
from saccade.inference.likelihoods.newton import Labels
from saccade.inference.likelihoods.probit import hazard, log_average
from saccade.inference.likelihoods.sites import Regression, Sites
from saccade.inference.solving.regression import Solution
from saccade.kernels import HIK, RBF, Linear
from saccade.operators.base import Dense
from saccade.operators.codes import encode
from tests.inference.likelihoods.textbook import (
    answered,
    estimated,
    evidence,
    infer,
    infer_regression,
    integral,
    one_at_a_time,
    variances,
)

Array = np.ndarray[Any, np.dtype[Any]]
SCALES = (1e-16, 1e-8, 1e8, 1e16)


def few_places(n: int, places: int, seed: int) -> tuple[Array, Array]:
    """Examples at few places, so that many are equal, with labels of both kinds everywhere."""
    rng = np.random.default_rng(seed)
    K, at = RBF(0.5)(rng.random((places, 2))), rng.integers(0, places, n)
    return K[np.ix_(at, at)], rng.choice([-1.0, 1.0], (n, 1))


def test_equal_rows_with_opposite_labels() -> None:
    """All means are 0 after one sweep: only the variances tell that it is not the end."""
    X, y = np.repeat(np.eye(4), 10, axis=0), np.tile([0, 1], 20)
    model = GPClassifier(inference="ep").fit(X, y)
    log_p, _, variance = integral(np.eye(1), np.array([5.0]), np.array([5.0]), 0.1)
    assert model.latent_mean_and_variance(X[:1])[1][0] == pytest.approx(variance[0], rel=2e-3)
    assert model.log_marginal_likelihood().value == pytest.approx(4 * log_p, abs=1e-3)
    assert model.converged_


def test_pairs_of_opposite_labels_and_little_noise() -> None:
    X, y = np.repeat(np.eye(3), 2, axis=0), np.tile([0, 1], 3)
    model = GPClassifier(inference="ep", noise=1e-4).fit(X, y)
    log_p, _, variance = integral(np.eye(1), np.ones(1), np.ones(1), 1e-4)
    assert model.latent_mean_and_variance(X[:1])[1][0] == pytest.approx(variance[0], rel=0.03)
    assert model.log_marginal_likelihood().value == pytest.approx(3 * log_p, abs=0.02)


@pytest.mark.parametrize("noise", [1.0, 0.01, 1e-4])
@pytest.mark.parametrize("seed", [0, 1])
def test_ep_on_equal_rows_is_that_of_textbooks(noise: float, seed: int) -> None:
    K, Y = few_places(20, 6, seed)
    sites, posterior = infer(ep, K, Y, noise)
    mean, variance, log_z = one_at_a_time(K, Y[:, 0], noise, 40)
    assert sites.converged
    np.testing.assert_allclose((K @ posterior.alpha)[:, 0], mean, atol=1e-4 * np.sqrt(variance.max()))
    np.testing.assert_allclose(variances(K, sites), variance, rtol=1e-4)
    assert evidence(K, sites) == pytest.approx(log_z, abs=1e-6)


@pytest.mark.parametrize(("find", "near"), [(ep, 0.03), (laplace, 0.4)])
@pytest.mark.parametrize(
    ("right", "wrong"),
    [((1, 2, 0), (1, 0, 1)), ((4, 1, 0), (0, 2, 3)), ((9, 0, 5), (0, 7, 5)), ((2.5, 1.5, 0), (0, 0, 3.2))],
)
def test_weighted_evidence_against_the_integral(find: Any, near: float, right: Any, wrong: Any) -> None:
    """Each of three places has as many examples of either label; both are counted by weights."""
    K, noise = RBF(0.5)(np.array([[0.0], [0.3], [1.0]])), 0.5
    count = np.append(right, wrong).astype(float)
    at, some = np.tile(np.arange(3), 2), count > 0
    Y = np.repeat([1.0, -1.0], 3)[:, None]
    at, Y, count = at[some], Y[some], count[some]
    sites, posterior = infer(find, K[np.ix_(at, at)], Y, noise, weight=count)
    log_p, mean, variance = integral(K, np.array(right, float), np.array(wrong, float), noise)
    assert evidence(K[np.ix_(at, at)], sites) == pytest.approx(log_p, abs=near)
    np.testing.assert_allclose(K[:, at] @ posterior.alpha[:, 0], mean, atol=near)
    if find is ep:
        np.testing.assert_allclose(variances(K[np.ix_(at, at)], sites), variance[at], rtol=0.06)


@pytest.mark.parametrize("find", [laplace, ep])
@pytest.mark.parametrize("c", SCALES)
def test_scale_of_kernel_and_noise_changes_nothing(find: Any, c: float) -> None:
    """f has the prior cK and the noise cσ²: it is √c times what it was, and labels are its sign."""
    K, Y = few_places(15, 6, 2)
    (one, first), (other, second) = infer(find, K, Y, 0.1), infer(find, c * K, Y, c * 0.1)
    assert one.converged
    assert other.converged
    np.testing.assert_allclose(other.noise, c * one.noise, rtol=1e-9)
    np.testing.assert_allclose(second.alpha * np.sqrt(c), first.alpha, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variances(c * K, other), c * variances(K, one), rtol=1e-9)
    gauss = -0.5 * len(K) * np.log(c)  # of the density of the targets
    assert other.log_norm + gauss == pytest.approx(one.log_norm, abs=1e-9)


@pytest.mark.parametrize("inference", ["laplace", "ep"])
@pytest.mark.parametrize("solver", ["auto", "cg"])
@pytest.mark.parametrize("c", SCALES)
def test_scale_of_an_estimator_changes_nothing(inference: str, solver: str, c: float) -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    some = {
        "inference": inference,
        "solver": solver,
        "random_state": 0,
        "variance": "exact" if solver == "auto" else "diagonal",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # EP's estimates are said to be estimates
        one = GPClassifier(HIK(scale=1 / 300), noise=0.1, **some).fit(X[:60], y[:60])
        other = GPClassifier(HIK(scale=c / 300), noise=c * 0.1, **some).fit(X[:60], y[:60])
    close = 1e-7 if solver == "auto" else 0.02
    np.testing.assert_allclose(other.decision_function(X[60:90]), one.decision_function(X[60:90]), atol=close)
    assert other.log_marginal_likelihood().value == pytest.approx(one.log_marginal_likelihood().value, rel=close)


@pytest.mark.parametrize("inference", ["regression", "laplace", "ep"])
@pytest.mark.parametrize("c", SCALES)
def test_ratio_of_one_class_ranks_alike_at_any_scale(inference: str, c: float) -> None:
    """Regression explains labels 1 whatever the scale, so its ratio grows by 1/√c; that of the others stays."""
    X = load_digits(return_X_y=True)[0]
    one, other = (
        OneClassGP(HIK(scale=s / 300), noise=0.01 * s, inference=inference, measure="ratio")
        .fit(X[:50])
        .score_samples(X)
        for s in (1.0, c)
    )
    np.testing.assert_allclose(other * (np.sqrt(c) if inference == "regression" else 1.0), one, rtol=1e-6)


def test_the_floor_of_the_ratio_follows_the_kernel() -> None:
    X = np.eye(3)
    for c in (1e-20, 1.0, 1e20):
        model = OneClassGP(HIK(scale=c), noise=1e-15 * c, measure="ratio").fit(X)
        np.testing.assert_allclose(model.score_samples(X) * np.sqrt(c), 1e6, rtol=0.1)
        with pytest.warns(UserWarning, match="nothing to compare"):
            assert model.score_samples(np.zeros((1, 3))) == np.median(model.normal_scores_)


def test_ep_keeps_the_calmest_sweep() -> None:
    """With variances from new random probes at every step, sweeps never agree; the last is not the best of them."""
    K, Y = few_places(40, 30, 3)

    def found(sweeps: int) -> Sites:
        rng = np.random.default_rng(1)

        def solved(asked: Regression) -> Solution:
            posterior, width = infer_regression(K, asked.noise, asked.targets), asked.noise
            Z = rng.choice([-1.0, 1.0], (len(K), 3))
            diagonal = (Z * posterior.factors[0].solve(Z)).mean(axis=1, keepdims=True)
            return estimated(posterior, np.clip(diagonal, 0.5 / (width + 1.0), 1.0 / width))

        with pytest.warns(ConvergenceWarning, match="the sites of the calmest sweep"):
            return answered(ep(K.diagonal().copy(), Y, np.full((40, 1), 0.1), sweeps=sweeps), solved)[0]

    every = found(8)
    calmest = int(np.argmin(every.changes)) + 1
    assert calmest < len(every.changes)
    assert not every.converged
    np.testing.assert_array_equal(every.noise, found(calmest).noise)
    np.testing.assert_array_equal(every.targets, found(calmest).targets)


def test_estimated_variances_are_told_with_their_error() -> None:
    """Variances v of the cavities that are always a fifth too large agree with each other, and are off by v/5."""
    K, Y = few_places(40, 30, 4)

    def solved(asked: Regression) -> Solution:
        posterior, width = infer_regression(K, asked.noise, asked.targets), asked.noise
        v = 1.0 / posterior.inverse_diagonal - width
        return estimated(posterior, 1.0 / (np.minimum(1.2 * v, 1.0) + width))

    with pytest.warns(ConvergenceWarning, match=r"estimates with 40 examples, [\d.]+ % off") as told:
        sites, _ = answered(ep(np.ones(40), Y, np.full((40, 1), 0.1)), solved)
    assert not sites.converged
    assert sites.changes[-1] < 0.01
    v = 1.0 / infer_regression(K, sites.noise, sites.targets).inverse_diagonal - sites.noise
    some = np.linspace(0, 39, 32).astype(int)
    off = np.sqrt(np.square((np.minimum(1.2 * v, 1.0) - v) / (v + 0.1))[some].mean())
    assert f", {100 * off:.2g} % off" in str(told[0].message)


def test_flat_sites_are_flat_at_any_scale() -> None:
    """Beside an example of immense weight, another like it has nothing to say, and its site as much noise as may be."""
    K, Y, weight = np.ones((2, 2)), np.ones((2, 1)), np.array([1e12, 1.0])
    for find in (laplace, ep):
        one, first = infer(find, K, Y, 0.1, weight=weight)
        assert one.noise[1] == pytest.approx(1.1e8)
        for c in SCALES:
            other, second = infer(find, c * K, Y, c * 0.1, weight=weight)
            np.testing.assert_allclose(other.noise, c * one.noise, rtol=1e-6)
            np.testing.assert_allclose(second.alpha.sum() * np.sqrt(c), first.alpha.sum(), rtol=1e-6)


@pytest.mark.parametrize("noise", [1e-2, 1e-6, 1e-9])
def test_pairs_and_hardly_any_noise(noise: float) -> None:
    """p(one label 1, the other −1) is that of two normal variables of correlation 1/(1 + σ²): arccos of it by 2π."""
    K, Y = np.ones((2, 2)), np.array([[1.0], [-1.0]])
    sites, _ = infer(ep, K, Y, noise)
    assert evidence(K, sites) == pytest.approx(np.log(np.arccos(1.0 / (1.0 + noise)) / (2.0 * np.pi)), abs=0.01)


def test_ep_takes_factors_while_they_are_affordable() -> None:
    rng = np.random.default_rng(0)
    for n, columns, dense in ((2100, 1, True), (2100, 70, False), (4097, 1, False)):
        K = HIK(scale=1.0).operator(encode(rng.random((n, 1)), 8))
        assert isinstance(_for_cavities(K, columns, "auto"), Dense) == dense


def of_size(size: float) -> tuple[Array, Array]:
    X = size * np.random.default_rng(0).random((9, 12))
    return X, X[:, 0] > size / 2


@pytest.mark.parametrize("inference", ["laplace", "ep"])
@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-20, 1.0, 1e5])
def test_features_of_any_affordable_size_give_numbers(inference: str, size: float) -> None:
    X, y = of_size(size)
    model = GPClassifier(Linear(), inference=inference).fit(X, y)
    assert model.converged_
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()
    assert np.isfinite(model.log_marginal_likelihood().value)


def test_ep_with_hardly_any_noise_finds_the_limit() -> None:
    """Steps are tiny beside the prior there: they are rest only if they are tiny beside the sites, too."""
    values = []
    for size in (1e3, 1e5, 1e8):
        model = GPClassifier(Linear(), inference="ep").fit(*of_size(size))
        assert model.converged_
        values.append(model.log_marginal_likelihood().value)
    np.testing.assert_allclose(values, values[1], rtol=1e-4)


@pytest.mark.parametrize("inference", ["laplace", "ep"])
@pytest.mark.parametrize("size", [1e151, 1e200, 1e300])
@pytest.mark.filterwarnings("ignore:overflow encountered in matmul")  # in scikit-learn's product
def test_features_that_are_too_large_are_told_of(inference: str, size: float) -> None:
    with pytest.raises(InvalidInput, match="Scale the features to"):
        GPClassifier(Linear(), inference=inference).fit(*of_size(size))


@given(st.floats(0.5, 7.0))
def test_hazard_far_on_the_wrong_side(power: float) -> None:
    """1 − q is the variance of a normal variable that exceeds x: by quadrature over s = x t, with weights e⁻ˢ."""
    x = 10.0**power
    s, w = np.polynomial.laguerre.laggauss(60)
    w = w * np.exp(-np.square(s / x) / 2)
    mean = w @ s / w.sum()
    r, q, straight = hazard(np.array([-x]))
    assert straight[0] == pytest.approx(w @ np.square(s - mean) / w.sum() / x**2, rel=1e-8 + 3e-15 * min(x, 100.0) ** 4)
    assert r[0] - x == pytest.approx(mean / x, rel=1e-8 + 1e-15 * x**2)
    assert q[0] + straight[0] == 1.0


@given(st.floats(-30, 30), st.floats(0, 1e6), st.sampled_from([0.05, 0.5, 1.0, 1.5, 7.0]), st.sampled_from([-1.0, 1.0]))
def test_sites_have_the_cavity_that_goes_with_the_mean(f: float, v: float, w: float, y: float) -> None:
    """Put beside its cavity, a site at f gives back the mean f, and α is what the labels ask for."""
    one = np.ones((1, 1))
    labels = Labels(y * one, one, v * one, w * one, np.inf)
    targets, noise = labels.sites(f * one)
    alpha = (targets - f) / noise  # of all copies
    np.testing.assert_allclose(labels.pull(f * one), alpha, rtol=1e-5, atol=1e-9)
    cavity = f - v * alpha / max(w, 1.0)  # without one copy, or without all of less than one
    _, slope, curvature = log_average(y * one, cavity, (v + 1.0) * one)
    matched = cavity + slope / curvature, 1.0 / curvature - v
    tail = 1e-6 * (1.0 + v)  # where rounding of the cavity's mean counts
    np.testing.assert_allclose(noise * w, matched[1], rtol=1e-4, atol=tail)
    np.testing.assert_allclose(targets, matched[0], rtol=1e-4, atol=tail)
