"""Units of the targets: evidence and records of tuning, targets at the ends of float64, kernel values made once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from saccade import GPRegressor
from saccade._core.errors import InvalidInput
from saccade.inference.tuning.options import Tune
from saccade.kernels import RBF

Array = np.ndarray[Any, np.dtype[Any]]


def problem(n: int = 25) -> tuple[Array, Array]:
    X = np.random.default_rng(0).random((n, 2))
    return X, 3.0 + 40.0 * np.sin(4.0 * X[:, 0]) + X[:, 1]


def test_tuning_records_are_in_units_of_the_targets() -> None:
    """Nats per example: a density of targets a thousand times as large is a thousandth."""
    X, y = problem()
    found, grid = [], {"length_scale": [0.3, 0.6], "noise": [0.05, 0.1]}
    for unit in (1.0, 1000.0):
        model = GPRegressor(RBF(0.5), tune=Tune("grid", "evidence", grid=grid)).fit(X, unit * y)
        found.append(np.array([e.value for e in model.tuning_.evaluations]))
    assert found[0].size == 4
    np.testing.assert_allclose(found[1] - found[0], np.log(1000.0), rtol=1e-6)


def test_the_evidence_counts_every_copy() -> None:
    X, y = problem(8)
    weight = np.array([1.0, 3, 2, 1, 1, 4, 1, 2])
    model = GPRegressor(RBF(0.5), noise=0.2).fit(X, y, sample_weight=weight)
    copies = np.repeat(np.arange(8), weight.astype(int))
    spread = y[copies].std()
    K = spread**2 * (RBF(0.5)(X[copies]) + 0.2 * np.eye(copies.size))
    dense = multivariate_normal(np.full(copies.size, y[copies].mean()), K).logpdf(y[copies])
    assert model.log_marginal_likelihood().value == pytest.approx(dense, rel=1e-8)


@pytest.mark.parametrize("equal", [False, True])
def test_targets_whose_squares_float64_does_not_have(equal: bool) -> None:
    X = np.arange(10.0)[:, None] // (2.0 if equal else 1.0)
    huge = np.where(np.arange(10) % 2, 1e308, -1e308)
    with pytest.raises(InvalidInput, match=r"`y` is too large for float64 squares, up to 1e\+308"):
        GPRegressor().fit(X, huge)
    with pytest.raises(InvalidInput, match="too large"):
        GPRegressor().fit(X, huge / 1e308).partial_fit(X, huge)
    with pytest.raises(InvalidInput, match=r"`y` is too small for float64 squares: it differs by .*e-16[23]"):
        GPRegressor().fit(X, np.sin(X[:, 0]) * 1e-162)
    assert GPRegressor().fit(X, np.full(10, 1e-300)).predict(X[:1])[0] == pytest.approx(1e-300)  # a constant is one


@pytest.mark.parametrize("unit", [1e-140, 1e140])
def test_targets_of_any_other_unit(unit: float) -> None:
    X, y = problem()
    plain, scaled = (GPRegressor(RBF(0.5)).fit(X, y * factor).predict(X, return_std=True) for factor in (1.0, unit))
    for one, other in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(other / unit, one, rtol=1e-9)


class Counting(RBF):
    """Counts how often values between two sets of rows are computed."""

    calls: list[tuple[int, int]] = []  # noqa: RUF012

    def __call__(self, X: Any, Z: Any = None) -> Array:
        if Z is not None:
            self.calls.append((X.shape[0], Z.shape[0]))
        return super().__call__(X, Z)


def test_mean_and_deviation_take_the_same_kernel_values() -> None:
    X, y = problem()
    model = GPRegressor(Counting(0.5)).fit(X, y)
    plain = GPRegressor(RBF(0.5)).fit(X, y).predict(X[:3], return_std=True)
    Counting.calls.clear()
    found = model.predict(X[:3], return_std=True)
    assert Counting.calls == [(25, 3)]
    np.testing.assert_allclose(found, plain, rtol=1e-9)
