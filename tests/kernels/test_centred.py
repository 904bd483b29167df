"""The centred kernel against centred features, and the Mahalanobis distance that the variance becomes with it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning
from sklearn.base import clone

from saccade import GPRegressor
from saccade._core.errors import InvalidParameter
from saccade.kernels import HIK, RBF, Centred, Kernel, Linear, Power
from tests.operators.histograms import histograms
from tests.tolerances import assert_close, assert_positive_semidefinite

Array = np.ndarray[Any, np.dtype[Any]]
BASES = [Linear(), RBF(0.7), HIK(), HIK(Power(0.5), scale=2.0), HIK(scale=1.0) + Linear()]
every_base = pytest.mark.parametrize("base", BASES, ids=str)


@pytest.fixture
def X() -> Array:
    rng = np.random.default_rng(0)
    return np.asarray(rng.random((20, 4)) * (rng.random((20, 4)) < 0.7))


@pytest.fixture
def Z() -> Array:
    return np.random.default_rng(1).random((7, 4)) - 0.2


def to_dense(base: Kernel, X: Array, A: Array, B: Array) -> Array:
    """The formula, term by term."""
    k = base.resolved(X)
    return np.asarray(k(A, B) - k(A, X).mean(axis=1)[:, None] - k(X, B).mean(axis=0)[None, :] + k(X, X).mean())


def test_centred_linear_is_linear_on_centred_features(X: Array, Z: Array) -> None:
    kernel = Centred(Linear()).resolved(X)
    mean = X.mean(axis=0)
    assert_close(kernel(X), Linear()(X - mean))
    assert_close(kernel(Z, X), Linear()(Z - mean, X - mean))
    assert_close(kernel.diag(Z), Linear().diag(Z - mean))


@every_base
def test_formula_symmetry_and_diagonal(base: Kernel, X: Array, Z: Array) -> None:
    kernel = Centred(base).resolved(X)
    assert_close(kernel(Z, X), to_dense(base, X, Z, X))
    K = kernel(X)
    assert_close(K, to_dense(base, X, X, X))
    np.testing.assert_array_equal(K, K.T)
    assert_close(kernel.diag(X), K.diagonal())
    assert_positive_semidefinite(kernel(Z))
    np.testing.assert_allclose(K.sum(axis=0), 0.0, atol=1e-12 * len(X))  # the mean is the origin
    for sparse in (sp.csr_matrix, sp.csr_array):
        assert_close(Centred(base).resolved(sparse(X))(sparse(Z), sparse(X)), kernel(Z, X))
        assert_close(kernel.diag(sparse(Z)), kernel.diag(Z))


@settings(max_examples=50)
@given(X=histograms(), signed=st.booleans())
def test_awkward_histograms(X: Array, signed: bool) -> None:
    X = X - 0.25 * (X > 0) if signed else X
    for base in (HIK(), HIK(scale=1.0), RBF()):
        kernel = Centred(base).resolved(X)
        np.testing.assert_allclose(kernel(X), to_dense(base, X, X, X), atol=1e-12 * max(1.0, base.diag(X).max()))
        assert (kernel.diag(X) >= 0).all()


def test_distances_are_those_of_the_base(X: Array, Z: Array) -> None:
    plain, moved = HIK(scale=1.0), Centred(HIK(scale=1.0)).resolved(X)

    def distance(kernel: Kernel) -> Array:
        return np.asarray(kernel.diag(X)[:, None] + kernel.diag(Z)[None, :] - 2.0 * kernel(X, Z))

    assert_close(distance(moved), distance(plain))


@pytest.mark.parametrize("noise", [0.03, 1.0])
def test_variance_is_a_mahalanobis_distance(X: Array, Z: Array, noise: float) -> None:
    """O (8): σ² φᵀ(Φ Φᵀ + σ²I)⁻¹φ = k̃** − k̃*ᵀ(K̃ + σ²I)⁻¹k̃*, with φ and Φ less the mean; the factor is σ²."""
    mean = X.mean(axis=0)
    scatter = (X - mean).T @ (X - mean) + noise * np.eye(X.shape[1])
    mahalanobis = np.einsum("ij,jk,ik->i", Z - mean, np.linalg.inv(scatter), Z - mean)
    y = np.where(np.arange(len(X)) % 2, 1.0, -1.0)  # of mean 0 and variance 1, so that nothing is scaled
    model = GPRegressor(Centred(Linear()), noise=noise, variance="exact").fit(X, y)
    np.testing.assert_allclose(model.latent_mean_and_variance(Z)[1], noise * mahalanobis, rtol=1e-9)


@every_base
def test_clone_parameters_and_state(base: Kernel, X: Array, Z: Array) -> None:
    kernel = Centred(base)
    before = repr(vars(kernel))
    fitted = kernel.resolved(X)
    assert repr(vars(kernel)) == before
    assert isinstance(fitted, Centred)
    assert_close(fitted.resolved(X)(Z, X), fitted(Z, X))
    assert repr(clone(kernel)) == repr(kernel)
    assert_close(clone(fitted).resolved(X)(Z, X), fitted(Z, X))
    assert_close(kernel(X), fitted(X))  # not fitted: centred on what it is called with
    moved = X.copy()
    held = kernel.resolved(moved)
    moved[:] = 7.0
    assert_close(held(Z), fitted(Z))


def test_nested_parameters_and_bad_ones(X: Array) -> None:
    kernel = Centred(RBF(0.5)).set_params(base__length_scale=2.0)
    assert kernel.base.length_scale == 2.0
    for bad, message in (
        (Centred("rbf"), r"`base` must be a kernel such as HIK\(\), got 'rbf'"),
        (Centred(RBF(-1.0)), "length_scale"),
    ):  # type: ignore[arg-type]
        for use in (bad.resolved, bad, bad.diag):
            with pytest.raises(InvalidParameter, match=message):
                use(X)


def test_batches_of_rows(X: Array, Z: Array) -> None:
    kernel = Centred(RBF()).resolved(X)
    assert len(Z) > 3
    assert_close(kernel._to_mean(Z, at_once=3 * len(X)), kernel._to_mean(Z))


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e7, 1e9])
def test_rows_far_from_zero_keep_their_digits(offset: float) -> None:
    """‖x‖² of 1e14 has no digits left for differences of 1; rows less their mean have them all."""
    rng = np.random.default_rng(0)
    X, Z = (rng.integers(-8, 8, (n, 4)) / 8.0 for n in (30, 7))  # an offset rounds none of these
    weight = rng.integers(1, 4, 30).astype(float)
    near, far = (Centred(Linear()).resolved(rows, weight) for rows in (X, X + offset))
    tolerance = 64 * np.finfo(np.float64).eps * offset  # of the mean of the rows, which is no eighth
    np.testing.assert_allclose(far(Z + offset, X + offset), near(Z, X), atol=1e-12 + tolerance)
    np.testing.assert_allclose(far.diag(Z + offset), near.diag(Z), atol=1e-12 + tolerance)


def test_a_base_that_loses_its_digits_is_told() -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.warns(LinAlgWarning, match="Subtract the mean of each column"):
        Centred(Linear() + RBF()).resolved(X + 1e7)
    with pytest.warns(LinAlgWarning, match="Subtract the mean of each column"):
        Centred(Linear()).resolved(sp.csr_matrix(X + 1e7))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Centred(Linear() + RBF()).resolved(X)
        Centred(Linear() + RBF()).resolved(np.full((5, 2), 7.0))  # equal rows: all values are 0
        Centred(Linear()).resolved(X + 1e7)
