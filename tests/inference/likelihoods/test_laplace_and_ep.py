"""Laplace and EP against the textbook: a general optimiser, sites one at a time, and integrals done numerically."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from saccade import GPClassifier, load
from saccade._core.errors import InvalidParameter
from saccade.inference.likelihoods.ep import ep
from saccade.inference.likelihoods.laplace import laplace
from saccade.inference.likelihoods.probit import log_average
from saccade.inference.likelihoods.sites import Regression
from saccade.inference.solving.regression import Solution, Solving, solve
from saccade.kernels import HIK, RBF
from saccade.operators.codes import encode
from tests.inference.likelihoods.textbook import answered, evidence, infer, one_at_a_time, variances
from tests.operators.histograms import histograms

Array = np.ndarray[Any, np.dtype[Any]]


def problem(n: int = 12, seed: int = 0, amplitude: float = 3.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(n) > 0.5, 1.0, -1.0)
    return RBF(0.4, amplitude=amplitude)(X) + 1e-6 * np.eye(n), y[:, None]


@given(st.floats(-30, 30), st.floats(1e-3, 1e3), st.sampled_from([-1.0, 1.0]))
def test_slopes_of_the_averaged_likelihood(mean: float, variance: float, y: float) -> None:
    step = 1e-4 * np.sqrt(variance)

    def value(m: float) -> tuple[float, float, float]:
        return tuple(float(v[0]) for v in log_average(np.array([y]), np.array([m]), np.array([variance])))

    (low, down, _), (v, slope, curvature), (high, up, _) = value(mean - step), value(mean), value(mean + step)
    assert v == pytest.approx(log_ndtr(y * mean / np.sqrt(variance)), rel=1e-12)
    scale = 1.0 / np.sqrt(variance)
    assert slope == pytest.approx((high - low) / (2 * step), rel=1e-4, abs=1e-6 * scale * (1 + abs(v)))
    assert curvature == pytest.approx((down - up) / (2 * step), rel=1e-4, abs=1e-6 * scale**2)
    assert 0.0 <= curvature <= 1.0 / variance * (1 + 1e-9)


def test_far_on_the_wrong_side_nothing_overflows() -> None:
    z = np.array([-1e8, -1e4, 1e4, 1e8])
    for part in log_average(np.ones(4), z, np.ones(4)):
        assert np.isfinite(part).all()


@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_laplace_finds_the_mode_and_the_textbook_evidence(noise: float) -> None:
    K, Y = problem()
    sites, posterior = infer(laplace, K, Y, noise)
    L = np.linalg.cholesky(K)

    def loss(v: Array) -> float:
        return -float(log_ndtr(Y[:, 0] * (L @ v) / np.sqrt(noise)).sum()) + 0.5 * float(v @ v)

    f = L @ minimize(loss, np.zeros(len(Y)), options={"gtol": 1e-9}).x
    np.testing.assert_allclose((K @ posterior.alpha)[:, 0], f, atol=1e-5)
    r = norm.pdf(f / noise**0.5) / ndtr(Y[:, 0] * f / noise**0.5)
    W = r * (Y[:, 0] * f / noise**0.5 + r) / noise
    B = np.eye(len(Y)) + np.sqrt(W)[:, None] * K * np.sqrt(W)
    textbook = -0.5 * f @ np.linalg.solve(K, f) + log_ndtr(Y[:, 0] * f / noise**0.5).sum()
    textbook -= 0.5 * np.linalg.slogdet(B)[1]
    assert evidence(K, sites) == pytest.approx(textbook, abs=1e-5)
    assert sites.converged
    assert sites.changes[-1] < sites.changes[0]


@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_ep_is_that_of_textbooks(noise: float) -> None:
    K, Y = problem()
    sites, posterior = infer(ep, K, Y, noise)
    mu, variance, log_z = one_at_a_time(K, Y[:, 0], noise)
    np.testing.assert_allclose((K @ posterior.alpha)[:, 0], mu, atol=1e-4)
    np.testing.assert_allclose(variances(K, sites), variance, rtol=1e-4)
    assert evidence(K, sites) == pytest.approx(log_z, abs=1e-6)
    assert sites.converged


def test_one_example_is_exact_with_ep() -> None:
    K, y = np.array([[2.0]]), np.array([[1.0]])
    sites, posterior = infer(ep, K, y)
    assert evidence(K, sites) == pytest.approx(np.log(0.5), abs=1e-12)
    f = np.linspace(-12, 12, 20001)
    p = norm.pdf(f, scale=np.sqrt(2.0)) * ndtr(f)
    p /= p.sum()
    assert K[0, 0] * posterior.alpha[0, 0] == pytest.approx(p @ f, abs=1e-6)
    assert 2.0 - 4.0 / (2.0 + sites.noise[0, 0]) == pytest.approx(p @ f**2 - (p @ f) ** 2, abs=1e-6)


@pytest.mark.parametrize(("find", "near"), [(ep, 5e-3), (laplace, 0.1)])
def test_two_examples_against_the_integral(find: Any, near: float) -> None:
    K, Y = np.array([[2.0, 1.2], [1.2, 2.0]]), np.array([[1.0], [-1.0]])
    sites, _ = infer(find, K, Y)
    x, w = np.polynomial.hermite_e.hermegauss(80)
    L = np.linalg.cholesky(K)
    a, b = np.meshgrid(x, x, indexing="ij")
    f = np.tensordot(L, np.stack([a, b]), axes=1)
    truth = np.log((np.outer(w, w) * ndtr(f[0]) * ndtr(-f[1])).sum() / (2 * np.pi))
    assert evidence(K, sites) == pytest.approx(truth, abs=near)


@pytest.mark.parametrize("find", [laplace, ep])
def test_a_weight_is_as_good_as_copies(find: Any) -> None:
    K, Y = problem(8)
    copies = np.array([1, 3, 1, 2, 1, 1, 4, 1])
    again = np.repeat(np.arange(8), copies)
    one, first = infer(find, K, Y, weight=copies.astype(float))
    other, second = infer(find, K[np.ix_(again, again)], Y[again])
    np.testing.assert_allclose(K @ first.alpha, (K[:, again] @ second.alpha), atol=1e-8)
    assert evidence(K, one) == pytest.approx(evidence(K[np.ix_(again, again)], other), abs=1e-8)


@pytest.mark.parametrize("find", [laplace, ep])
def test_only_the_ratio_of_kernel_and_noise_counts(find: Any) -> None:
    K, Y = problem()
    one, other = infer(find, K, Y, 1.0), infer(find, 7.0 * K, Y, 7.0)
    assert evidence(K, one[0]) == pytest.approx(evidence(7.0 * K, other[0]), abs=1e-4)


@pytest.mark.parametrize("find", [laplace, ep])
def test_columns_are_separate_problems(find: Any) -> None:
    K, Y = problem()
    both = np.hstack([Y, np.ones_like(Y)])
    _, together = infer(find, K, both)
    for j in range(2):
        _, alone = infer(find, K, both[:, [j]])
        np.testing.assert_allclose(together.alpha[:, [j]], alone.alpha, atol=1e-4)


@settings(max_examples=25)
@given(X=histograms(), find=st.sampled_from([laplace, ep]), scale=st.sampled_from([1e-3, 1.0, 1e4]))
def test_awkward_histograms_of_one_class(X: Array, find: Any, scale: float) -> None:
    K = HIK(scale=scale)(X)
    sites, posterior = infer(find, K, np.ones((len(X), 1)))
    assert np.isfinite(sites.targets).all()
    assert (sites.noise > 0).all()
    assert np.isfinite(posterior.alpha).all()
    assert (K @ posterior.alpha >= -1e-6 * scale).all()
    assert sites.converged


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e4])
@pytest.mark.parametrize("n", [1, 8, 30, 100])
def test_ep_agrees_with_itself_on_equal_examples(n: int, scale: float) -> None:
    """All sites move at once, and here each of them wants what all need together: long steps never end."""
    sites, posterior = infer(ep, np.full((n, n), scale), np.ones((n, 1)), 0.1)
    assert sites.converged
    assert len(sites.changes) <= 100
    assert np.ptp(posterior.alpha) < 1e-6 * posterior.alpha.max()


def test_conjugate_gradients_find_the_same_mode() -> None:
    X, y = load_digits(return_X_y=True)
    X, Y = X[:400] / 16.0, np.where(y[:400] % 2, 1.0, -1.0)[:, None]
    kernel = HIK().resolved(X)
    operator = kernel.operator(encode(X))

    def solved(asked: Regression) -> Solution:
        solving = Solving("cg", tol=1e-7, leave_one_out=True, start=asked.guess)
        return solve(operator, asked.noise, asked.targets, solving)

    K = kernel(X)
    _, fast = answered(laplace(operator.diag(), Y, np.full((400, 1), 0.1)), solved)
    _, slow = infer(laplace, K, Y, 0.1)
    np.testing.assert_allclose(K @ fast.alpha, K @ slow.alpha, atol=1e-4)


def test_ep_that_is_stopped_warns_and_keeps_what_it_has() -> None:
    K, Y = problem()
    with pytest.warns(ConvergenceWarning, match="after 2 sweeps.*Raise `noise`"):
        sites, posterior = infer(ep, K, Y, 0.1, sweeps=2)
    assert not sites.converged
    assert np.isfinite(posterior.alpha).all()
    with pytest.warns(ConvergenceWarning, match="after 1 steps"):
        infer(laplace, K, Y, 0.1, steps=1)


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_the_classifier_decides_with_doubt(inference: str) -> None:
    X, y = load_digits(return_X_y=True)
    model = GPClassifier(inference=inference).fit(X[:300], y[:300])
    assert model.score(X[300:900], y[300:900]) > GPClassifier().fit(X[:300], y[:300]).score(X[300:900], y[300:900])
    mean, variance = model.latent_mean_and_variance(X[300:310])
    np.testing.assert_allclose(model.decision_function(X[300:310]), mean / np.sqrt(variance + 0.1))
    assert (np.sort(model.predict_proba(X[300:900]).argmax(1)) == np.sort(model.predict(X[300:900]))).all()
    assert model.changes_[-1] < model.changes_[0]
    draws = model.sample_latent(X[300:303], 400, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=2), mean[:3], atol=0.25)


def test_the_classifier_s_evidence_is_the_textbook_s() -> None:
    X, y = load_digits(n_class=2, return_X_y=True)
    model = GPClassifier(RBF(30.0), inference="ep", noise=1.0).fit(X[:12], y[:12])
    K = RBF(30.0)(X[:12])
    assert model.log_marginal_likelihood().value == pytest.approx(
        one_at_a_time(K, np.where(y[:12] == 1, 1.0, -1.0), 1.0)[2], abs=1e-4
    )


def test_what_does_not_go_together_is_told() -> None:
    X, y = load_digits(n_class=2, return_X_y=True)
    with pytest.raises(InvalidParameter, match="`tune` learns from label regression"):
        GPClassifier(inference="ep", tune="gradient").fit(X, y)
    with pytest.raises(InvalidParameter, match="need the variance"):
        GPClassifier(inference="laplace", variance=None).fit(X, y)
    with pytest.raises(InvalidParameter, match="`inference` must be one of"):
        GPClassifier(inference="vb").fit(X, y)


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_many_classes_without_a_factor(inference: str) -> None:
    """Conjugate gradients with a noise for every example and class decide as factors do, or say that they may not."""
    X, y = load_digits(return_X_y=True)
    fast, slow = (GPClassifier(inference=inference, solver=solver, random_state=0) for solver in ("cg", "cholesky"))
    with warnings.catch_warnings(record=True) as told:
        fast.set_params(variance_rank=400).fit(X[:400], y[:400])
    slow.fit(X[:400], y[:400])
    assert fast.converged_ == (not told)
    assert fast.converged_ or inference == "ep"
    mean, expected = (model.latent_mean_and_variance(X[400:600])[0] for model in (fast, slow))
    if inference == "laplace":
        np.testing.assert_allclose(mean, expected, atol=0.01)
    else:  # single means jump with the estimates: 2 to 5 % on average
        assert np.square(mean - expected).mean() < 0.1**2 * np.square(expected).mean()
    assert (fast.predict(X[400:]) == slow.predict(X[400:])).mean() > 0.97


@pytest.mark.parametrize(
    ("variance", "inference"), [*((v, "laplace") for v in ("lowrank", "diagonal", "fine", "sod")), ("sod", "ep")]
)
def test_probabilities_are_calibrated_with_the_variance_that_decides(
    variance: str, inference: str, tmp_path: Path
) -> None:
    """A bound of the variance is larger than it, so decisions shrink and the sharpness has to make up for it."""
    X, y = load_digits(return_X_y=True)
    model = GPClassifier(inference=inference, variance=variance, random_state=0).fit(X[:400], y[:400])
    model.save(tmp_path / "model.saccade")
    exact = GPClassifier(inference=inference, variance="exact").fit(X[:400], y[:400])
    exact.save(tmp_path / "exact.saccade")
    models = (exact, model, load(tmp_path / "model.saccade"), load(tmp_path / "exact.saccade"))
    best, *others = (log_loss(y[400:], some.predict_proba(X[400:])) for some in models)
    assert max(others) < 1.04 * best


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_balanced_classes_count_copies(inference: str) -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    weight = np.random.default_rng(0).integers(1, 4, 40)
    weighted = GPClassifier(inference=inference, balanced=True).fit(X[:40], y[:40], sample_weight=weight)
    copied = GPClassifier(inference=inference, balanced=True).fit(
        np.repeat(X[:40], weight, 0), np.repeat(y[:40], weight)
    )
    np.testing.assert_allclose(weighted.predict_proba(X[40:]), copied.predict_proba(X[40:]), atol=1e-6)
