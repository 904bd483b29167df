"""Draws from the posterior: mean and covariance are those of dense algebra."""

from typing import Any

import numpy as np
import pytest

from saccade import GPClassifier, GPRegressor
from saccade.inference.posterior.sampling import _brownian
from saccade.kernels import HIK, RBF, Power
from tests.operators.histograms import LAYOUTS, encoded, sparse_rows

Array = np.ndarray[Any, np.dtype[Any]]
COUNT = 4000


def assert_moments(drawn: Array, mean: Array, covariance: Array) -> None:
    """Within five standard errors, (b, count) against (b,) and (b, b)."""
    deviation = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    assert (np.abs(drawn.mean(axis=1) - mean) <= 5 * deviation / np.sqrt(COUNT) + 1e-9).all()
    spread = np.sqrt(np.outer(deviation**2, deviation**2) + covariance**2) / np.sqrt(COUNT)
    assert (np.abs(np.cov(drawn) - covariance) <= 5 * spread + 1e-9).all()


def new_rows() -> Array:
    """Between and beyond the training values, equal rows, an empty row, and negative parts never seen."""
    X = sparse_rows(9, 5, seed=1) * 1.3
    X[4] = X[3]
    X[5] = 0.0
    X[6] = -X[6]
    return X


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_prior_is_that_of_the_kernel(layout: str) -> None:
    kernel, X, new = HIK(Power(0.5), scale=1.0), sparse_rows(8, 5), np.abs(new_rows())
    operator = kernel.operator(encoded(X, layout))
    levels = operator.tables(np.zeros((len(X), 1)))
    tables, at_new = _brownian(levels, kernel.features(new), COUNT, np.random.default_rng(0))
    drawn = np.vstack([tables.walk(kernel.features(X)), at_new])
    both = np.vstack([X, new])
    assert_moments(drawn, np.zeros(len(both)), kernel(both))
    np.testing.assert_allclose(at_new[3], at_new[4])
    assert not at_new[5].any()


@pytest.mark.parametrize("kernel", [HIK(), HIK(Power(0.5)), RBF(0.7)], ids=str)
@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_samples_of_a_regressor(kernel: Any, solver: str) -> None:
    X, new = sparse_rows(40, 5), new_rows()
    y = X @ np.arange(5.0) + 3.0
    model = GPRegressor(kernel, noise=0.2, solver=solver, tol=1e-9, random_state=0).fit(X, y)
    mean, covariance = model.predict(new, return_cov=True)
    drawn = model.sample_y(new, COUNT, random_state=0)
    assert drawn.shape == (9, COUNT)
    assert_moments(drawn, mean, covariance)
    np.testing.assert_array_equal(model.sample_y(new, 3, random_state=5), model.sample_y(new, 3, random_state=5))
    assert np.abs(np.diff(model.sample_y(new, 2, random_state=5))).max() > 0


@pytest.mark.parametrize("kernel", [HIK(), RBF(0.7)], ids=str)
def test_samples_of_a_classifier_with_a_noise_for_each_class(kernel: Any) -> None:
    X, new = sparse_rows(40, 5), new_rows()
    y = np.where(X[:, 0] > 0.3, 2, (X[:, 1] > 0.3).astype(int))
    model = GPClassifier(kernel, noise=0.2, balanced=True, variance="exact").fit(X, y)
    mean, variance = model.latent_mean_and_variance(new)
    drawn = model.sample_latent(new, COUNT, random_state=0)
    assert drawn.shape == (9, 3, COUNT)
    for k in range(3):
        np.testing.assert_allclose(drawn[:, k].var(axis=1), variance[:, k], rtol=5 * np.sqrt(2 / COUNT), atol=1e-9)
        assert (np.abs(drawn[:, k].mean(axis=1) - mean[:, k]) <= 5 * np.sqrt(variance[:, k] / COUNT) + 1e-9).all()
    assert abs(np.corrcoef(drawn[0, 0], drawn[0, 1])[0, 1]) < 5 / np.sqrt(COUNT)  # classes are independent
    two = GPClassifier(kernel).fit(X, y > 0)
    assert two.sample_latent(new, 7).shape == (9, 7)
