"""The prior mean and the support of a fitted process, against dense algebra and by counting kernel values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from saccade import GPClassifier, GPRegressor, OneClassGP
from saccade._core.arrays import Array
from saccade._core.errors import InvalidParameter
from saccade.inference.approximations.by_name import APPROXIMATIONS, Approximating
from saccade.inference.likelihoods.prior_mean import PriorMean
from saccade.inference.posterior.gp import GP
from saccade.inference.solving.regression import Solving
from saccade.kernels import HIK, RBF, Kernel
from tests.tolerances import assert_close

rng = np.random.default_rng(0)
N, R = 40, 7
X, NEW = rng.random((N, 5)), rng.random((9, 5)) * 1.3
NOISE = rng.uniform(0.05, 0.2, (N, 1))
SLOPES = np.array([[3.0, -1.0], [0.0, 2.0], [1.0, 0.0], [-4.0, 1.0], [0.5, 0.5]])
POINTS = np.sort(rng.permutation(N)[:R])
INDUCING = ("fitc", "dtc", "sor", "sod")
kernels = pytest.mark.parametrize("kernel", [HIK(scale=0.3), RBF(0.8)], ids=["HIK", "RBF"])


def line(rows: Any) -> Array:
    return np.asarray(rows @ SLOPES + np.array([5.0, -2.0]))


Y = line(X) + rng.standard_normal((N, 2))
MEAN = PriorMean(line, line(X))


def dense(kernel: Kernel, rows: Array, new: Array) -> tuple[Array, Array, float]:
    """Mean and covariance at new rows given some of the training rows, and log p of these."""
    K, k_star, left = kernel(X[rows]) + np.diag(NOISE[rows, 0]), kernel(X[rows], new), (Y - line(X))[rows]
    covariance = kernel(new) - k_star.T @ np.linalg.solve(K, k_star)
    log_p = sum(multivariate_normal(line(X[rows])[:, j], K).logpdf(Y[rows, j]) for j in range(2))
    return line(new) + k_star.T @ np.linalg.solve(K, left), covariance, float(log_p)


# ---------------------------------------------------------------- mean


@kernels
@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_every_question_with_a_prior_mean(kernel: Kernel, solver: Any) -> None:
    solving, approximation = Solving(solver, tol=1e-10), Approximating(variance="exact")
    gp = GP.fit(kernel.gram(X), Y, NOISE, mean=MEAN, solving=solving, approximation=approximation)
    mean, covariance, log_p = dense(kernel, np.arange(N), NEW)
    for found, variance in ((gp.mean(NEW), gp.variance(NEW)), gp.mean_and_variance(NEW)):
        np.testing.assert_allclose(found, mean, atol=1e-8)
        np.testing.assert_allclose(variance[:, 0], covariance.diagonal(), atol=1e-8)
    np.testing.assert_allclose(gp.covariance(NEW)[0], covariance, atol=1e-8)
    assert gp.evidence().value == pytest.approx(log_p, abs=1e-6)
    draws = gp.sample(NEW, 4000, np.random.default_rng(1))
    np.testing.assert_allclose(draws.mean(axis=2), mean, atol=0.08)
    np.testing.assert_allclose(np.cov(draws[:, 1]), covariance, atol=0.08)
    left, left_variance = gp.left_out(np.array([3, 20]))
    for j, i in enumerate((3, 20)):
        mean, covariance, _ = dense(kernel, np.delete(np.arange(N), i), X[[i]])
        np.testing.assert_allclose(left[j], mean[0], atol=1e-7)
        np.testing.assert_allclose(left_variance[j], covariance[0], atol=1e-7)
    if solver == "cholesky":
        np.testing.assert_allclose(gp.leave_one_out()[0][[3, 20]], left, atol=1e-9)
        np.testing.assert_allclose(gp.left_out_mean(np.array([3, 20])), left, atol=1e-9)


@kernels
@pytest.mark.parametrize("noise", [1.0, 2.0], ids=["grown", "made anew"])
def test_further_examples_with_a_prior_mean(kernel: Kernel, noise: float) -> None:
    """The function is asked for their values; or another prior mean of all examples is given."""
    before = GP.fit(kernel.gram(X[:25]), Y[:25], NOISE[:25], mean=PriorMean(line, line(X[:25])))
    wanted = GP.fit(kernel.gram(X), Y, noise * NOISE, mean=MEAN)
    for mean in (None, MEAN):
        found = before.extended(X[25:], Y, noise * NOISE, mean=mean)
        np.testing.assert_allclose(found.mean(NEW), wanted.mean(NEW), atol=1e-9)
        np.testing.assert_allclose(found.leave_one_out()[0], wanted.leave_one_out()[0], atol=1e-9)


@pytest.mark.parametrize("method", APPROXIMATIONS)
@kernels
@pytest.mark.parametrize("levels", [None, 8])
def test_a_prior_mean_is_subtracted_and_added_again(kernel: Kernel, method: Any, levels: int | None) -> None:
    approximation = Approximating(method, method, rank=6, inducing=POINTS)
    options: dict[str, Any] = {"levels": levels} if isinstance(kernel, HIK) else {}
    gram, rows = kernel.gram(X, **options), np.arange(0, N, 3)
    with_mean = GP.fit(gram, Y, NOISE, mean=MEAN, approximation=approximation)
    without = GP.fit(gram, Y - line(X), NOISE, approximation=approximation)
    np.testing.assert_allclose(with_mean.mean(NEW), line(NEW) + without.mean(NEW), atol=1e-9)
    found, expected = with_mean.left_out(rows, X[rows]), without.left_out(rows, X[rows])
    np.testing.assert_allclose(found[0], line(X)[rows] + expected[0], atol=1e-9)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-9)


def test_tables_have_the_prior_mean_too() -> None:
    gp = GP.fit(HIK(scale=0.3).gram(X), Y, NOISE, mean=MEAN, approximation=Approximating(variance="lowrank", rank=10))
    mean = dense(HIK(scale=0.3), np.arange(N), NEW)[0]
    for found in (gp, gp.compressed()):
        np.testing.assert_allclose(found.mean(NEW), mean, atol=1e-8)
        np.testing.assert_allclose(found.mean_and_variance(NEW)[0], mean, atol=1e-8)
        np.testing.assert_allclose(found.quantized(4096).mean(NEW), mean, atol=1e-2)


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_labels_with_a_prior_mean(inference: Any) -> None:
    """Laplace: α is the slope of the log likelihood at f = Kα + m. EP: as if m were a further, certain part of f."""
    labels, m = np.where(X[:, :1] > 0.5, 1.0, -1.0), line(X)[:, :1] / 4.0
    mean = PriorMean(lambda rows: line(rows)[:, :1] / 4.0, m)
    kernel, noise = RBF(0.8), np.full((N, 1), 0.3)
    gp = GP.fit(kernel.gram(X), labels, noise, mean=mean, inference=inference, solving=Solving("cholesky"))
    f = gp.mean(X)
    np.testing.assert_allclose(f, kernel(X) @ gp.solution.alpha + m, atol=1e-9)
    if inference == "laplace":
        z = labels * f / np.sqrt(0.3)
        slope = labels * np.exp(norm.logpdf(z) - norm.logcdf(z)) / np.sqrt(0.3)
        np.testing.assert_allclose(gp.solution.alpha, slope, atol=1e-4)
    else:  # each cavity with its label has the moments of the posterior
        left, v = gp.leave_one_out()
        z = labels * left / np.sqrt(v + 0.3)
        tilted = left + v * labels * np.exp(norm.logpdf(z) - norm.logcdf(z)) / np.sqrt(v + 0.3)
        np.testing.assert_allclose(f, tilted, atol=1e-4)
    with pytest.raises(InvalidParameter, match="takes one output"):
        GP.fit(kernel.gram(X), np.hstack([labels, -labels]), noise, mean=MEAN, inference=inference)


def test_a_regressor_leaves_its_mean_to_the_process() -> None:
    for kernel, given in ((RBF(0.8), lambda rows: line(rows)[:, 0]), (HIK(), 7.0), (HIK(), None)):
        model = GPRegressor(kernel, mean=given, noise=0.1).fit(X, Y[:, 0])
        predicted, mean = model.predict(NEW), model.gp_.mean(NEW)[:, 0]
        np.testing.assert_allclose(predicted * mean[0], mean * predicted[0], atol=1e-9)  # in other units, no more
        far = 1e6 * np.ones((1, 5)) if isinstance(kernel, RBF) else np.zeros((1, 5))
        wanted = line(far)[:, 0] if callable(given) else given
        assert_close(model.predict(far), np.ravel(Y[:, 0].mean() if wanted is None else wanted))


# ---------------------------------------------------------------- support


class Counted(RBF):
    """Notes between how many rows it was asked for."""

    asked: list[tuple[int, int]] = []  # noqa: RUF012  # shared: estimators clone their kernel

    def __call__(self, X: Any, Z: Any = None) -> Array:
        self.asked.append((X.shape[0], X.shape[0] if Z is None else Z.shape[0]))
        return super().__call__(X, Z)


@pytest.fixture
def asked() -> Iterator[list[tuple[int, int]]]:
    Counted.asked.clear()
    yield Counted.asked
    Counted.asked.clear()


@pytest.mark.parametrize("method", INDUCING)
def test_new_rows_are_compared_with_the_support_alone(method: Any, asked: list[tuple[int, int]]) -> None:
    approximation = Approximating(method, method, inducing=POINTS)
    gp = GP.fit(Counted(0.8).gram(X, held=False), Y, NOISE, mean=MEAN, approximation=approximation)
    assert sum(a * b for a, b in asked) == (R * R if method == "sod" else N * R)
    assert gp.support is not None
    np.testing.assert_array_equal(gp.support, POINTS)
    for question in (gp.mean, gp.variance, gp.mean_and_variance):
        asked.clear()
        question(NEW)
        assert asked == [(R, len(NEW))]
    asked.clear()
    gp.left_out(np.arange(N))
    assert sum(a * b for a, b in asked) == (R * N if method == "sod" else 0)


@pytest.mark.parametrize("mean", INDUCING)
@pytest.mark.parametrize("variance", [*INDUCING, "exact", "diagonal", None])
def test_answers_are_those_of_all_rows(mean: Any, variance: Any) -> None:
    """The support of a pair, in any order: against approximations that are handed every kernel value."""
    kernel, approximation = RBF(0.8), Approximating(mean, variance, inducing=POINTS)
    gp = GP.fit(kernel.gram(X), Y, NOISE, approximation=approximation)
    k_star = kernel(X, NEW)
    np.testing.assert_allclose(gp.mean(NEW), k_star.T @ gp.inverse.mean.weights(Y), atol=1e-10)
    np.testing.assert_array_equal(np.flatnonzero(gp.solution.alpha.any(axis=1)), POINTS)
    if variance is None:
        assert np.array_equal(gp.support, POINTS)  # type: ignore[arg-type]
        return
    assert (gp.support is None) == (variance in ("exact", "diagonal"))
    made = gp.inverse.variance
    wanted = made.variance(made.supported(k_star), kernel.diag(NEW))
    np.testing.assert_allclose(gp.variance(NEW), wanted, atol=1e-10)
    np.testing.assert_allclose(gp.mean_and_variance(NEW)[1], wanted, atol=1e-10)
    np.testing.assert_allclose(gp.mean_and_variance(NEW)[0], gp.mean(NEW), atol=1e-12)


def test_a_subset_is_the_exact_process_of_its_rows() -> None:
    gp = GP.fit(RBF(0.8).gram(X), Y, NOISE, mean=MEAN, approximation=Approximating("sod", inducing=POINTS))
    mean, covariance, _ = dense(RBF(0.8), POINTS, NEW)
    np.testing.assert_allclose(gp.mean(NEW), mean, atol=1e-9)
    np.testing.assert_allclose(gp.variance(NEW)[:, 0], covariance.diagonal(), atol=1e-9)
    others = np.setdiff1d(np.arange(N), POINTS)
    np.testing.assert_allclose(gp.left_out(others)[0], dense(RBF(0.8), POINTS, X[others])[0], atol=1e-9)


def test_an_exact_process_needs_every_row() -> None:
    assert GP.fit(RBF(0.8).gram(X), Y, NOISE).support is None


@pytest.mark.parametrize("method", INDUCING)
@pytest.mark.parametrize("estimator", [GPClassifier, OneClassGP, GPRegressor])
def test_estimators_compare_with_the_support_alone(estimator: Any, method: Any, asked: list[tuple[int, int]]) -> None:
    options: dict[str, Any] = {"approximation": method, "inducing": POINTS, "noise": 0.1}
    model = estimator(Counted(0.8), **options).fit(X, X[:, 0] > 0.5)
    asked.clear()
    model.predict(NEW)
    model.latent_mean_and_variance(NEW) if hasattr(model, "latent_mean_and_variance") else model.score_samples(NEW)
    assert asked
    assert set(asked) == {(R, len(NEW))}
