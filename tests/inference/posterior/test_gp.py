"""The fitted GP against textbook algebra: every question, with further examples, and as tables."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from saccade import GPClassifier, GPRegressor, OneClassGP
from saccade._core import limits
from saccade._core.errors import InvalidInput
from saccade.estimators.calibration import Decisions
from saccade.inference.approximations.by_name import APPROXIMATIONS, Approximating
from saccade.inference.posterior.gp import GP
from saccade.inference.solving.regression import Solving
from saccade.kernels import HIK, RBF, Kernel

Array = np.ndarray[Any, np.dtype[Any]]
rng = np.random.default_rng(0)
X, NEW = rng.random((40, 5)), rng.random((9, 5)) * 1.3
Y, NOISE = rng.standard_normal((40, 2)), rng.uniform(0.05, 0.2, (40, 1))
DIGITS = load_digits(return_X_y=True)
kernels = pytest.mark.parametrize("kernel", [HIK(scale=0.3), RBF(0.8)], ids=["HIK", "RBF"])


def textbook(kernel: Kernel, X: Array, Y: Array, noise: Array) -> tuple[Array, Array, Array]:
    K, k_star = kernel(X) + np.diag(noise[:, 0]), kernel(X, NEW)
    covariance = kernel(NEW) - k_star.T @ np.linalg.solve(K, k_star)
    log_p = [-0.5 * (y @ np.linalg.solve(K, y) + np.linalg.slogdet(2 * np.pi * K)[1]) for y in Y.T]
    return k_star.T @ np.linalg.solve(K, Y), covariance, np.sum(log_p)


@kernels
@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_every_question(kernel: Kernel, solver: Any) -> None:
    gp = GP.fit(
        kernel.gram(X), Y, NOISE, solving=Solving(solver, tol=1e-10), approximation=Approximating(variance="exact")
    )
    mean, covariance, log_p = textbook(kernel, X, Y, NOISE)
    np.testing.assert_allclose(gp.mean(NEW), mean, atol=1e-8)
    np.testing.assert_allclose(gp.variance(NEW)[:, 0], covariance.diagonal(), atol=1e-8)
    np.testing.assert_allclose(gp.covariance(NEW)[0], covariance, atol=1e-8)
    both = gp.mean_and_variance(NEW)
    np.testing.assert_allclose(both[0], mean, atol=1e-8)
    np.testing.assert_allclose(both[1][:, 0], covariance.diagonal(), atol=1e-8)
    assert gp.evidence().value == pytest.approx(log_p, abs=1e-6)
    draws = gp.sample(NEW, 4000, np.random.default_rng(1))
    np.testing.assert_allclose(draws.mean(axis=2), mean, atol=0.08)
    np.testing.assert_allclose(np.cov(draws[:, 1]), covariance, atol=0.08)


@kernels
def test_left_out_is_training_without(kernel: Kernel) -> None:
    gp = GP.fit(kernel.gram(X), Y, NOISE, approximation=Approximating(variance="exact"))
    mean, variance = gp.left_out(np.array([3, 20]))
    for j, i in enumerate((3, 20)):
        rest = np.delete(np.arange(40), i)
        without = GP.fit(kernel.gram(X[rest]), Y[rest], NOISE[rest], approximation=Approximating(variance="exact"))
        np.testing.assert_allclose(mean[j], without.mean(X[[i]])[0], atol=1e-9)
        np.testing.assert_allclose(variance[j], without.variance(X[[i]])[0], atol=1e-9)
    np.testing.assert_allclose(gp.leave_one_out()[0][[3, 20]], mean, atol=1e-9)


@kernels
@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_extended_answers_as_if_all_had_been_there(kernel: Kernel, solver: Any) -> None:
    solving = Solving(solver, tol=1e-10)
    approximation = Approximating(variance="exact")
    gp = GP.fit(kernel.gram(X[:25]), Y[:25], NOISE[:25], solving=solving, approximation=approximation)
    for end in (26, 40):  # one, then many
        gp = gp.extended(X[gp.gram.shape[0] : end], Y[:end], NOISE[:end])
    whole = GP.fit(kernel.gram(X), Y, NOISE, solving=solving, approximation=approximation)
    np.testing.assert_allclose(gp.mean(NEW), whole.mean(NEW), atol=1e-8)
    np.testing.assert_allclose(gp.variance(NEW), whole.variance(NEW), atol=1e-8)
    assert gp.evidence().value == pytest.approx(whole.evidence().value, abs=1e-6)
    if solver == "cholesky":
        np.testing.assert_allclose(gp.solution.inverse_diagonal, whole.solution.inverse_diagonal, rtol=1e-8)
        np.testing.assert_allclose(gp.leave_one_out()[1], whole.leave_one_out()[1], atol=1e-9)


def test_a_factor_grows_and_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    gp = GP.fit(HIK(scale=0.3).gram(X[:30]), Y[:30], NOISE[:30])

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("solved from the start")

    monkeypatch.setattr("saccade.inference.posterior.gp.solve", refuse)
    assert gp.extended(X[30:], Y, NOISE).solution.factors[0].L.shape == (40, 40)
    with pytest.raises(AssertionError, match="from the start"):  # other noise, other factor
        gp.extended(X[30:], Y, 2.0 * NOISE)
    with pytest.raises(AssertionError, match="from the start"):  # another kernel
        gp.extended(X[30:], Y, NOISE, kernel=HIK(scale=0.4))


def test_a_noise_for_each_output_grows_too() -> None:
    noise = rng.uniform(0.05, 0.2, (40, 2))
    gp = GP.fit(RBF(0.8).gram(X[:30]), Y[:30], noise[:30]).extended(X[30:], Y, noise)
    whole = GP.fit(RBF(0.8).gram(X), Y, noise)
    assert len(gp.solution.factors) == 2
    np.testing.assert_allclose(gp.mean(NEW), whole.mean(NEW), atol=1e-9)
    np.testing.assert_allclose(gp.variance(NEW), whole.variance(NEW), atol=1e-9)


def test_conjugate_gradients_start_warm() -> None:
    data, y = DIGITS
    Y = np.where(y[:600, None] == np.arange(10), 1.0, -1.0)
    noise, kernel, solving = np.full((600, 1), 0.1), HIK(scale=1 / 300), Solving("cg")
    gp = GP.fit(kernel.gram(data[:590]), Y[:590], noise[:590], solving=solving)
    cold = GP.fit(kernel.gram(data[:600]), Y, noise, solving=solving)
    assert gp.extended(data[590:600], Y, noise).solution.iterations < cold.solution.iterations


def test_compressed_answers_alike_and_says_what_it_cannot_know() -> None:
    gp = GP.fit(HIK().gram(X), Y, NOISE, approximation=Approximating(variance="lowrank", rank=10))
    tables = gp.compressed()
    np.testing.assert_array_equal(tables.mean(NEW), gp.mean(NEW))
    np.testing.assert_array_equal(tables.variance(NEW), gp.variance(NEW))
    np.testing.assert_array_equal(tables.quantized(64).mean(NEW), gp.quantized(64).mean(NEW))
    assert tables.compressed() is tables
    asks = [
        lambda: tables.covariance(NEW),
        lambda: tables.left_out(np.arange(3)),
        lambda: tables.sample(NEW, 1, rng),
        lambda: tables.evidence(),
        lambda: tables.extended(X, Y, NOISE),
        lambda: tables.relevance,
    ]
    for ask in asks:
        with pytest.raises(InvalidInput, match="holds no training examples"):
            ask()


def test_of_two_outputs_the_approximation_of_the_mean_is_its_own() -> None:
    """A mean by FITC with an exact variance: each left out by its own method."""
    approximation = Approximating(mean="fitc", variance="exact", inducing=np.arange(0, 40, 2))
    gp = GP.fit(RBF(0.8).gram(X), Y, NOISE, approximation=approximation)
    rows = np.arange(1, 40, 6)
    fitc = GP.fit(RBF(0.8).gram(X), Y, NOISE, approximation=Approximating("fitc", "fitc", inducing=np.arange(0, 40, 2)))
    exact = GP.fit(RBF(0.8).gram(X), Y, NOISE, approximation=Approximating(variance="exact"))
    np.testing.assert_allclose(gp.left_out(rows)[0], fitc.left_out(rows)[0])
    np.testing.assert_allclose(gp.left_out(rows)[1], exact.left_out(rows)[1], atol=1e-9)


# ---------------------------------------------------------------- the same list for every estimator


@pytest.mark.parametrize("method", [m for m in APPROXIMATIONS if not m.startswith("optimized")])
@pytest.mark.parametrize("kernel", [None, RBF(20.0)], ids=["HIK", "RBF"])
@pytest.mark.parametrize("inference", ["regression", "laplace"])
def test_every_approximation_serves_every_estimator(method: Any, kernel: Any, inference: Any) -> None:
    data, y = DIGITS
    train, new, two = slice(0, 150), slice(150, 200), y < 5
    options: dict[str, Any] = {"approximation": method, "random_state": 0}
    classifier = GPClassifier(kernel, inference=inference, **options).fit(data[train], two[train])
    assert classifier.variance_method_ == method
    assert classifier.score(data[new], two[new]) > 0.5
    assert classifier.leave_one_out_decision_.shape == (150,)
    p, novelty = classifier.predict_proba(data[new]), classifier.novelty(data[new])
    assert np.isfinite(p).all()
    assert ((novelty >= 0) & (novelty <= 1)).all()
    one = OneClassGP(kernel, inference=inference, **options).fit(data[train])
    assert one.variance_method_ == method
    assert np.isfinite(one.score_samples(data[new])).all()
    if inference == "regression":
        regressor = GPRegressor(kernel, **options).fit(data[train], y[train])
        mean, std = regressor.predict(data[new], return_std=True)
        assert regressor.variance_method_ == method
        assert np.isfinite(mean).all()
        assert (std >= 0).all()


def test_an_approximate_mean_is_that_of_dense_algebra() -> None:
    """SoD is the GP of the subset; FA is D⁻¹Y."""
    data, y = DIGITS
    some = np.arange(0, 200, 4)
    kernel = RBF(20.0)
    model = GPClassifier(kernel, approximation="sod", inducing=some).fit(data[:200], y[:200])
    subset = GPClassifier(kernel).fit(data[some], y[some])
    assert subset.classes_.size == 10
    np.testing.assert_allclose(model.decision_function(data[200:]), subset.decision_function(data[200:]), atol=1e-8)
    sums = GPClassifier(kernel, approximation="diagonal").fit(data[:200], y[:200])
    Y = np.where(y[:200, None] == np.arange(10), 1.0, -1.0)
    weights = Y / (kernel(data[:200]).sum(axis=1) + 0.1)[:, None]
    np.testing.assert_allclose(sums.decision_function(data[200:]), kernel(data[200:], data[:200]) @ weights, atol=1e-9)


def test_a_sample_of_many_examples_calibrates_an_approximate_mean() -> None:
    data, y = DIGITS
    many = np.tile(np.arange(1500), 2)[:2500]
    model = GPClassifier(approximation="sod", inducing=0.1, random_state=0).fit(data[many], y[many])
    known = ~np.isnan(model.leave_one_out_decision_).any(axis=1)
    assert known.sum() == 2048
    assert model.score(data[1500:], y[1500:]) > 0.8


@pytest.mark.parametrize("method", ["exact", "lowrank", "diagonal", "fitc", "sod", "parzen"])
@pytest.mark.parametrize("variance", [None, "fine"])
def test_calibration_of_an_approximate_mean_takes_no_variance(method: Any, variance: Any) -> None:
    data, y = DIGITS
    options: dict[str, Any] = {"approximation": method, "inducing": 0.5, "random_state": 0}
    model = GPClassifier(variance=variance, **options).fit(data[:150], y[:150])
    whole = GPClassifier(**options).fit(data[:150], y[:150])
    assert model.variance_method_ == variance
    np.testing.assert_array_equal(model.predict_proba(data[150:]), whole.predict_proba(data[150:]))
    np.testing.assert_array_equal(model.leave_one_out_decision_, whole.leave_one_out_decision_)


def test_examples_that_calibrate_a_file_have_means() -> None:
    """The file's variance leaves out other examples than those that fit has left-out means of."""
    data, label = rng.random((2100, 3)), np.arange(2100) % 2
    data[label == 1, 0] += 0.3
    options: dict[str, Any] = {"approximation": "sod", "inducing": 0.02, "inference": "laplace"}
    model = GPClassifier(**options).fit(data, label)
    assert isinstance(model.gp_, GP)
    gp = model.gp_.with_variance("lowrank")
    rows, targets = gp.left_out_variance(None, limits.EXAMPLES_COMPARED)[0], model.targets_
    found = model.calibration_.sharpened(gp, targets.label, targets.weight, Decisions(True, model.noise_))
    assert rows.size == 525
    assert found.decision is not None
    assert np.isfinite(found.decision[rows]).all()


def test_draws_are_exact_whatever_approximates_the_mean() -> None:
    """Of a kernel without tables, as of one with them."""
    gp = GP.fit(RBF(0.8).gram(X), Y, NOISE, approximation=Approximating("sod", inducing=np.arange(5)))
    mean = textbook(RBF(0.8), X, Y, NOISE)[0]
    assert np.abs(gp.mean(NEW) - mean).max() > 0.3
    np.testing.assert_allclose(gp.sample(NEW, 4000, np.random.default_rng(1)).mean(axis=2), mean, atol=0.08)


def test_it_says_what_it_is_in_one_line() -> None:
    """And it is equal to itself alone: arrays have no one answer."""
    gp = GP.fit(HIK(scale=0.3).gram(X), Y, NOISE)
    assert repr(gp) == "GP(HIK(scale=0.3), examples=40, outputs=2, variance='exact')"
    assert repr(gp.compressed()) == "Compressed(HIK(scale=0.3), outputs=2, variance='lowrank')"
    assert len({gp, gp, gp.quantized(8), gp.compressed()}) == 3


def test_a_copy_keeps_the_approximation_of_its_mean() -> None:
    gp = GP.fit(HIK().gram(X), Y, NOISE, approximation=Approximating("fitc"))
    assert gp.with_variance("exact").inverse.mean is gp.quantized(16).inverse.mean is gp.inverse.mean


def test_the_example_of_the_guide_runs() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guide.md").read_text("utf-8")
    (code,) = re.findall(r"## The fitted process\n.*?```python\n(.*?)```", guide, re.S)
    names: dict[str, Any] = {"GPClassifier": GPClassifier, "np": np, "X": X, "y": Y[:, 0] > 0, "X_new": NEW}
    names |= {"rows": np.arange(3), "X_more": NEW}
    names |= {"Y_all": np.ones((49, 1)), "noise_all": np.full((49, 1), 0.1)}
    exec(compile(code, "guide.md", "exec"), names)
    assert isinstance(names["gp"], GP)


def test_rows_that_change_the_levels_of_all_are_solved_anew() -> None:
    """The first negative value brings a dimension, and four levels per dimension are chosen again."""
    more = rng.random((9, 5))
    more[0, 0] = -0.5
    targets, noise = rng.standard_normal((49, 1)), np.full((49, 1), 0.1)
    for rows in (more, np.abs(more) * 3.0):
        gp = GP.fit(HIK(scale=0.3).gram(X, levels=4), targets[:40], noise[:40]).extended(rows, targets, noise)
        left = targets - gp.gram.matmul(gp.solution.alpha) - noise * gp.solution.alpha
        assert np.abs(left).max() < 1e-9
