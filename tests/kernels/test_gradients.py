"""Closed-form derivatives of every kernel against central differences of its matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from saccade._core import limits
from saccade.kernels import (
    HIK,
    RBF,
    Centred,
    Chi2,
    Exponential,
    GeneralizedRBF,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Monotone,
    Power,
    Product,
    Scaled,
    Sum,
    TransformSum,
    Weights,
)
from saccade.kernels.learned import is_log, learned
from tests.operators.histograms import sparse_rows

Array = np.ndarray[Any, np.dtype[Any]]
D = 4
SCALES = np.linspace(0.5, 2.0, D)
W = np.linspace(0.2, 2.0, D)
KNOTS = np.tile([0.2, 0.5, 1.0], (D, 1))
SIMPLE: list[Kernel] = [
    Linear(),
    RBF(0.7, 2.5),
    RBF(SCALES, 0.5),
    *[Matern(0.7, nu, 2.5) for nu in (0.5, 1.5, 2.5)],
    *[Matern(SCALES, nu, 0.5) for nu in (0.5, 1.5, 2.5)],
    Laplacian(0.8),
    Chi2(1.3),
    HIK(scale=0.7),
    HIK(Power(0.6)),
    HIK(Exponential(1.4), factor=2.0),
    HIK(Weights(W), scale=2.0, factor=0.5),
    HIK(Weights([0.5, 2.0], blocks=[1, 3])),
    HIK(Monotone(KNOTS, KNOTS + 0.3)),
    HIK([Power(0.5), Weights(W)], scale=2.0),
    HIK([Power(0.5), Exponential(-0.8), TransformSum([HIK(Weights(W)), HIK(Power(2.0), scale=0.3)])]),
    HIK(Power(0.6)) + 2.0 * HIK(Exponential(1.4)) + HIK(Weights(W), scale=0.3),
    HIK(TransformSum([HIK(Power(0.6)), HIK(TransformSum([HIK(Power(2.0))]), factor=3.0)])),
]
COMPOSITE: list[Kernel] = [
    Sum(RBF(0.7), HIK(Power(0.6))),
    Scaled(Matern(0.7), 3.0),
    Product(RBF(SCALES), Laplacian(0.3)),
    Product(HIK(Power(0.6)), HIK(scale=0.4)),
    Product(RBF(0.7), HIK()),
    Centred(RBF(0.7, 2.0)),
    Centred(HIK(Weights(W))),
    GeneralizedRBF(HIK(Power(0.6), scale=0.5), 0.7),
    GeneralizedRBF(HIK(Power(0.6)) + HIK(), 0.7),
    GeneralizedRBF(RBF(0.7), "auto"),
    GeneralizedRBF(HIK(Power(0.6)) + 2.0 * HIK(), "auto"),
    GeneralizedRBF(Linear() + 0.5 * HIK(scale=2.0), 0.7),
    GeneralizedRBF(Centred(Product(RBF(0.7), Linear())), "auto"),
    Centred(GeneralizedRBF(HIK(Power(0.6)), "auto")) + 2.0 * Chi2(0.4),
    0.5 * (HIK(Power(0.6)) * RBF(SCALES) + Centred(2.0 * Laplacian(0.3))) * GeneralizedRBF(HIK(scale=0.3)),
]
every_kernel = pytest.mark.parametrize("kernel", SIMPLE + COMPOSITE, ids=repr)


def setting(seed: int, n: int = 12) -> tuple[Array, Array, Array]:
    """Rows with ties between them, a symmetric matrix of both signs, and copies of each row."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    return sparse_rows(n, D, seed, density=0.8), A + A.T, rng.uniform(0.3, 3.0, n)


def by_differences(kernel: Kernel, X: Any, A: Array, weight: Array | None, step: float = 1e-5) -> dict[str, Array]:
    found = {}
    for name, value in learned(kernel).items():
        slopes = np.empty(value.size)
        for k in range(value.size):
            nudge = step * np.eye(value.size)[k].reshape(value.shape)
            log = is_log(kernel, name)
            up, down = (value * np.exp(by) if log else value + by for by in (nudge, -nudge))
            K = [
                clone(kernel).set_params(**{name: at if at.ndim else float(at)}).resolved(X, weight)(X)
                for at in (up, down)
            ]
            slopes[k] = (A * (K[0] - K[1])).sum() / (2.0 * step)
        found[name] = slopes
    return found


def assert_right(kernel: Kernel, X: Any, A: Array, weight: Array | None) -> None:
    found, expected = kernel.gradient(X, A, weight), by_differences(kernel, X, A, weight)
    assert set(found) >= set(expected)
    size = float(np.abs(A * kernel.resolved(X, weight)(X)).sum())
    for name, slopes in expected.items():
        np.testing.assert_allclose(np.ravel(found[name]), slopes, rtol=1e-6, atol=1e-8 * max(1.0, size), err_msg=name)


@every_kernel
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 1000), weighted=st.booleans())
def test_gradient_is_that_of_differences(kernel: Kernel, seed: int, weighted: bool) -> None:
    X, A, weight = setting(seed)
    assert_right(kernel, X, A, weight if weighted else None)


@every_kernel
def test_gradient_of_sparse_and_of_few_rows(kernel: Kernel) -> None:
    X, A, weight = setting(0)
    dense, sparse = (kernel.gradient(M, A, weight) for M in (X, sp.csr_matrix(X)))
    for name in dense:
        np.testing.assert_allclose(sparse[name], dense[name], rtol=1e-9, atol=1e-10)
    assert_right(kernel, X[:1], A[:1, :1], None)
    assert_right(kernel, X[:2], A[:2, :2], None)


@every_kernel
def test_gradient_changes_nothing(kernel: Kernel) -> None:
    X, A, weight = setting(0)
    before, parts = repr(kernel.get_params()), [part.copy() for part in (X, A, weight)]
    kernel.gradient(X, A, weight)
    assert repr(kernel.get_params()) == before
    for part, copy in zip((X, A, weight), parts, strict=True):
        np.testing.assert_array_equal(part, copy)


def test_every_kernel_of_this_package_has_a_closed_form() -> None:
    for kernel in SIMPLE + COMPOSITE:
        assert type(kernel).gradient is not Kernel.gradient, kernel


def test_auto_beta_of_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the mean distance is that of some of the rows."""
    monkeypatch.setattr(limits, "MEAN_DISTANCE_EXAMPLES", 5)
    X, A, weight = setting(3)
    for copies in (None, weight):
        assert_right(GeneralizedRBF(HIK(Power(0.6)), "auto"), X, A, copies)


def test_equal_rows_have_no_distance_to_learn_from() -> None:
    X, A = np.full((5, D), 0.3), np.ones((5, 5))
    for kernel in (RBF(SCALES), Matern(SCALES, 0.5), Matern(0.7), GeneralizedRBF(HIK(Power(0.6)), "auto"), Chi2()):
        for name, slope in kernel.gradient(X, A).items():
            if name != "amplitude":
                np.testing.assert_allclose(slope, 0.0, atol=1e-12, err_msg=name)


class Periodic(Kernel):
    """A user's own kernel."""

    def __init__(self, period: float = 1.0, pieces: int = 3) -> None:
        self.period = period
        self.pieces = pieces

    def __call__(self, X: Any, Z: Any = None) -> Array:
        Z = X if Z is None else Z
        angle = 2.0 * np.pi * (X[:, None, :] - Z[None, :, :]) / self.period
        return np.asarray(np.exp(np.cos(angle).sum(axis=2) - X.shape[1]))

    def diag(self, X: Any) -> Array:
        return np.ones(X.shape[0])


class Softer(RBF):
    """Its values are its own, and so its gradient cannot be that of RBF."""

    def __call__(self, X: Any, Z: Any = None) -> Array:
        return np.sqrt(super().__call__(X, Z))

    def diag(self, X: Any) -> Array:
        return np.sqrt(super().diag(X))


@pytest.mark.parametrize(
    "kernel", [Periodic(2.0), Softer(0.7, 2.0), 2.0 * Periodic(2.0) + RBF(SCALES), Centred(Softer(0.7))], ids=repr
)
def test_a_kernel_without_a_gradient_takes_differences(kernel: Kernel) -> None:
    X, A, weight = setting(0)
    assert_right(kernel, X, A, weight)
    assert "pieces" not in kernel.gradient(X, A)
