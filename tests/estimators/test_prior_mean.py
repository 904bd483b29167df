"""The mean of a regression before any example, against dense algebra, and draws from the prior."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from saccade import GPRegressor, load
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels import HIK, RBF, Matern
from saccade.localize.priors.box_prior import BoxPrior
from saccade.localize.priors.densities import Normals
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
rng = np.random.default_rng(3)
X, NEW = rng.random((40, 2)), rng.random((7, 2))
y = np.sin(5.0 * X[:, 0]) + 4.0 + 0.1 * rng.standard_normal(40)
KERNEL = RBF([0.3, 0.6], amplitude=0.7)


def slope(rows: Any) -> Array:
    return np.asarray(2.0 + 3.0 * np.asarray(rows[:, 0]))


def dense(mean: Any, unit: float, noise: float = 0.05) -> tuple[Array, Array, float]:
    """S §9: μ* = μ(X*) + K*ᵀK̂⁻¹(y − μ(X)), Σ* = K** − K*ᵀK̂⁻¹K*, and log N(y; μ(X), K̂)."""
    K, k = unit**2 * (KERNEL(X) + noise * np.eye(40)), unit**2 * KERNEL(X, NEW)
    covariance = unit**2 * KERNEL(NEW) - k.T @ np.linalg.solve(K, k)
    evidence = multivariate_normal.logpdf(y, mean(X), K)
    return mean(NEW) + k.T @ np.linalg.solve(K, y - mean(X)), covariance, float(evidence)


def constant(rows: Array) -> Array:
    return np.full(len(rows), 2.5)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("given", [2.5, slope])
def test_a_mean_is_that_of_dense_algebra(given: Any, normalize: bool) -> None:
    function = given if callable(given) else constant
    unit = float(np.sqrt(np.mean((y - function(X)) ** 2))) if normalize else 1.0
    mean, covariance, evidence = dense(function, unit)
    model = GPRegressor(KERNEL, noise=0.05, mean=given, normalize_y=normalize).fit(X, y)
    found, std = model.predict(NEW, return_std=True)
    assert_close(found, mean)
    np.testing.assert_allclose(std, np.sqrt(covariance.diagonal()), rtol=1e-8)
    np.testing.assert_allclose(model.predict(NEW, return_cov=True)[1], covariance, atol=1e-10)
    assert model.log_marginal_likelihood().value == pytest.approx(evidence, rel=1e-9)
    drawn = model.sample_y(NEW, 4000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=5.0 * std.max() / np.sqrt(4000))
    parts = GPRegressor(KERNEL, noise=0.05, mean=given, normalize_y=normalize)
    parts.partial_fit(X[:25], y[:25]).partial_fit(X[25:], y[25:])
    assert_close(parts.predict(NEW), mean)


@pytest.mark.parametrize("given", [-3.0, slope])
def test_far_from_all_examples_the_mean_returns(given: Any) -> None:
    far = X + 50.0
    expected = given(far) if callable(given) else np.full(40, given)
    assert_close(GPRegressor(KERNEL, mean=given).fit(X, y).predict(far), expected)


def test_many_targets_have_means_of_their_own_or_share_one() -> None:
    Y = np.column_stack([y, -2.0 * y])
    both = GPRegressor(KERNEL, mean=lambda rows: np.column_stack([slope(rows), -2.0 * slope(rows)])).fit(X, Y)
    alone = GPRegressor(KERNEL, mean=slope).fit(X, y).predict(NEW)
    assert_close(both.predict(NEW), np.column_stack([alone, -2.0 * alone]))
    assert both.sample_prior(NEW, 3).shape == both.sample_y(NEW, 3).shape == (7, 2, 3)
    shared = GPRegressor(KERNEL, mean=slope).fit(X, Y)
    assert_close(shared.predict(NEW)[:, 0], alone)
    assert_close(shared.predict(NEW + 50.0)[:, 1], slope(NEW + 50.0))


def test_weights_are_copies_under_a_mean_too() -> None:
    weight = np.arange(40) % 3
    weighed = GPRegressor(KERNEL, mean=slope).fit(X, y, sample_weight=weight)
    copied = GPRegressor(KERNEL, mean=slope).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_close(weighed.predict(NEW), copied.predict(NEW))


def test_sparse_rows_come_to_the_function_sparse() -> None:
    model = GPRegressor(HIK(), mean=lambda rows: rows.sum(axis=1).A1 if sp.issparse(rows) else rows.sum(axis=1))
    assert_close(model.fit(sp.csr_matrix(X), y).predict(NEW), model.fit(X, y).predict(sp.csr_matrix(NEW)))


def test_the_log_density_of_boxes_is_a_mean() -> None:
    """A search that has seen nothing near a box thinks of it as the situation does; the estimator knows no boxes."""
    density = Normals(np.ones(1), np.array([[0.3, 0.5, -2.0, 0.0]]), 0.05 * np.eye(4)[None])
    prior = BoxPrior(np.array([0.0, 0.0, 100.0, 100.0]), density)

    def likely(boxes: Array) -> Array:
        return np.maximum(prior.log_density(boxes), -20.0) / 20.0

    looks, far = prior.sample(20, rng), np.array([[60.0, 60.0, 95.0, 90.0], [1.0, 2.0, 9.0, 8.0]])
    scores = likely(looks) + 0.1
    model = GPRegressor(Matern(15.0, nu=2.5), mean=likely, noise=0.0, normalize_y=False).fit(looks, scores)
    np.testing.assert_allclose(model.predict(looks), scores, rtol=1e-9)
    outlook = GPRegressor(Matern(1e-3, nu=2.5), mean=likely, noise=0.0, normalize_y=False).fit(looks, scores)
    assert_close(outlook.predict(far), likely(far))


@pytest.mark.parametrize(
    ("mean", "error", "words"),
    [
        ("zero", InvalidParameter, "`mean` must be None, a number, or a function of X that gives .*, got 'zero'"),
        (np.nan, InvalidParameter, "got nan"),
        (lambda rows: rows, InvalidInput, r"must give shape \(40,\) for 40 rows of X, got shape \(40, 2\)"),
        (lambda rows: 1.0, InvalidInput, r"got shape \(\)"),
        (lambda rows: ["a"] * len(rows), InvalidInput, "must give a number for each row"),
        (lambda rows: np.where(np.arange(len(rows)) == 3, -np.inf, 0.0), InvalidInput, r"got \[-inf\] at row 3 of X"),
    ],
)
def test_a_bad_mean_is_explained(mean: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        GPRegressor(KERNEL, mean=mean).fit(X, y)


def test_another_function_cannot_take_over() -> None:
    model = GPRegressor(KERNEL, mean=slope).fit(X, y)
    with pytest.raises(InvalidParameter, match="must stay as in the first call"):
        model.set_params(mean=constant).partial_fit(X, y)
    with pytest.raises(InvalidParameter, match="must stay as in the first call"):
        model.set_params(mean=None).partial_fit(X, y)
    assert_close(model.predict(NEW), clone(model).set_params(mean=slope).fit(X, y).predict(NEW))


def test_a_file_keeps_a_number_and_refuses_a_function(tmp_path: Any) -> None:
    model = GPRegressor(HIK(), mean=2.5).fit(X, y)
    model.save(tmp_path / "m.saccade")
    again = load(tmp_path / "m.saccade")
    assert again.mean == 2.5
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(again.sample_prior(NEW, 2, 0), model.sample_prior(NEW, 2, 0))
    with pytest.raises(InvalidParameter, match="`mean` is a function cannot be saved: a file holds no code"):
        GPRegressor(HIK(), mean=slope).fit(X, y).save(tmp_path / "f.saccade")
    assert not (tmp_path / "f.saccade").exists()


@pytest.mark.parametrize("kernel", [KERNEL, HIK(scale=0.4)], ids=["RBF", "HIK"])
@pytest.mark.parametrize("fitted", [False, True])
def test_draws_from_the_prior_have_its_mean_and_covariance(kernel: Any, fitted: bool) -> None:
    model = GPRegressor(kernel, mean=slope)
    unit = 1.0
    if fitted:
        model.fit(X, y)
        unit = float(np.sqrt(np.mean((y - slope(X)) ** 2)))
    drawn, count = model.sample_prior(NEW, 20_000, random_state=0), 20_000
    K = unit**2 * kernel(NEW)
    assert drawn.shape == (7, count)
    spread = np.sqrt(K.diagonal())
    np.testing.assert_allclose(drawn.mean(axis=1), slope(NEW), atol=5.0 * spread.max() / np.sqrt(count))
    np.testing.assert_allclose(np.cov(drawn), K, atol=5.0 * np.sqrt(2.0) * spread.max() ** 2 / np.sqrt(count))
    np.testing.assert_array_equal(drawn, model.sample_prior(NEW, 20_000, random_state=0))
    if not fitted:
        assert not hasattr(model, "n_features_in_")
        with pytest.raises(NotFittedError):
            model.predict(NEW)


def test_a_prior_without_a_mean_or_with_a_number() -> None:
    plain, raised = (GPRegressor(KERNEL, mean=m).sample_prior(NEW, 2, random_state=0) for m in (None, 10.0))
    assert_close(raised, plain + 10.0)
    fitted = GPRegressor(KERNEL).fit(X, y).sample_prior(NEW, 2, random_state=0)
    assert_close(fitted, plain * y.std() + y.mean())
    with pytest.raises(ValueError, match="2 features"):
        GPRegressor(KERNEL).fit(X, y).sample_prior(NEW[:, :1])
