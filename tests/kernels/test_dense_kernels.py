"""One conformance suite that every kernel must pass, then each kernel against its formula."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances

from saccade._core import limits
from saccade._core.errors import InvalidInput, InvalidParameter, SaccadeError
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
    Power,
    Product,
    Scaled,
    Sum,
    Weights,
    distances,
)
from saccade.kernels import base as kernel_base
from saccade.kernels.distances import symmetric
from tests.tolerances import assert_close, assert_positive_semidefinite

Array = kernel_base.Array
D = 5

KERNELS: dict[str, Kernel] = {
    "HIK": HIK(scale=1.0),
    "HIK auto": HIK(),
    "HIK power": HIK(Power(0.5), scale=1.0),
    "HIK exponential": HIK(Exponential(2.0), scale=1.0),
    "HIK multiple": 2.0 * HIK(Power(0.5)),
    "HIK sum": HIK(Power(0.5)) + 2.0 * HIK(Exponential(1.0)) + HIK(scale=0.3),
    "RBF": RBF(length_scale=0.7, amplitude=2.5),
    "Matern 1/2": Matern(length_scale=0.7, nu=0.5, amplitude=2.5),
    "Matern 3/2": Matern(length_scale=0.7),
    "Matern 5/2": Matern(length_scale=0.7, nu=2.5),
    "Laplacian": Laplacian(gamma=0.8),
    "Linear": Linear(),
    "Chi2": Chi2(gamma=1.3),
    "generalised HIK": GeneralizedRBF(HIK(scale=1.0), beta=0.6),
    "generalised auto HIK": GeneralizedRBF(HIK()),
    "generalised RBF": GeneralizedRBF(RBF(length_scale=2.0), beta=0.5),
    "Sum": Sum(RBF(length_scale=2.0), Linear()),
    "Product": Product(RBF(length_scale=2.0), Linear()),
    "Scaled": Scaled(Chi2(), 3.0),
    "nested": 0.5 * (HIK(scale=1.0) + 2.0 * Laplacian()) + GeneralizedRBF(Linear()) * HIK(),
}
FIXED_WIDTH: dict[str, Kernel] = {  # parameters of shape (D,)
    "RBF relevance": RBF(length_scale=np.linspace(0.5, 2.0, D)),
    "Matern relevance": Matern(length_scale=np.linspace(0.5, 2.0, D), nu=2.5),
    "HIK sum of weights": HIK(Weights(np.linspace(0.0, 2.0, D))) + HIK([Power(0.5), Weights(np.ones(D))], scale=2.0),
    "HIK weights": HIK([Power(0.5), Weights(np.linspace(0.0, 2.0, D))], scale=1.0),
}
ALL = KERNELS | FIXED_WIDTH
every_kernel = pytest.mark.parametrize("kernel", ALL.values(), ids=ALL.keys())
every_width = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
sparse_class = pytest.mark.parametrize("sparse", [sp.csr_matrix, sp.csr_array])


@st.composite
def histograms(draw: st.DrawFn) -> Array:
    """Non-negative rows rich in ties, zeros, empty rows and single dimensions."""
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 6)))
    tied = st.sampled_from([0.0, 0.0, 0.125, 0.5, 1.0])
    free = st.floats(0.0, 1.0, allow_subnormal=False)
    X: Array = draw(hnp.arrays(np.float64, shape, elements=st.one_of(tied, free)))
    empty = draw(hnp.arrays(np.bool_, shape[0]))
    return np.where(empty[:, None], 0.0, X)


@pytest.fixture
def X() -> Array:
    """Twenty sparse histograms, with an empty row and a repeated one."""
    rng = np.random.default_rng(0)
    X = rng.random((20, D)) * (rng.random((20, D)) < 0.6)
    X[3] = 0.0
    X[7] = X[8]
    return X


def parameters(kernel: Kernel) -> dict[str, str]:
    """The parameters as text: kernels and lists of transforms have no equality of their own."""
    return {name: repr(value) for name, value in kernel.get_params().items()}


# ---------------------------------------------------------------- conformance


@every_kernel
def test_block_is_symmetric_positive_and_has_its_diagonal(kernel: Kernel, X: Array) -> None:
    fitted = kernel.resolved(X)
    K = fitted(X)
    assert K.dtype == np.float64
    assert K.shape == (20, 20)
    np.testing.assert_array_equal(K, K.T)
    assert_positive_semidefinite(K)
    assert_close(fitted.diag(X), np.diag(K))


@every_kernel
def test_cross_block_is_a_block_of_the_whole(kernel: Kernel, X: Array) -> None:
    fitted = kernel.resolved(X)
    K = fitted(X)
    assert_close(fitted(X[:6], X[4:]), K[:6, 4:])
    assert_close(fitted(X, X), K)
    assert fitted(X[:1], X).shape == (1, 20)


@every_kernel
@sparse_class
def test_sparse_equals_dense(kernel: Kernel, sparse: Callable[[Array], Any], X: Array) -> None:
    K, S = kernel.resolved(X)(X), sparse(X)
    fitted = kernel.resolved(S)
    whole = fitted(S)
    assert isinstance(whole, np.ndarray)
    np.testing.assert_array_equal(whole, whole.T)
    assert_close(whole, K)
    assert_close(fitted.diag(S), np.diag(K))
    for left, right in [(S[:6], S), (X[:6], S), (S[:6], X)]:
        assert_close(fitted(left, right), K[:6])


@every_kernel
def test_unsorted_and_repeated_indices_count_once(kernel: Kernel, X: Array) -> None:
    """Two entries at one place add up; nothing is sorted in the caller's matrix."""
    S = sp.csr_array(X)
    data = np.repeat(S.data[::-1], 2) / 2
    indices = np.repeat(S.indices[::-1], 2).astype(np.int64)
    indptr = (2 * np.append(0, np.cumsum(np.diff(S.indptr)[::-1]))).astype(np.int64)
    messy = sp.csr_array((data, indices, indptr), shape=S.shape)
    messy.indices, messy.indptr = indices, indptr  # scipy would shrink them to int32
    before = messy.data.copy(), messy.indices.copy(), messy.indptr.copy()
    fitted = kernel.resolved(X)
    assert_close(fitted(messy), fitted(X[::-1]))
    assert_close(fitted(messy, messy), fitted(X[::-1]))
    assert_close(fitted.diag(messy), fitted.diag(X[::-1]))
    for old, new in zip(before, (messy.data, messy.indices, messy.indptr), strict=True):
        np.testing.assert_array_equal(old, new)
        assert old.dtype == new.dtype


@every_kernel
def test_clone_and_parameters_round_trip(kernel: Kernel, X: Array) -> None:
    twin = clone(kernel)
    assert twin is not kernel
    assert parameters(twin) == parameters(kernel)
    twin.set_params(**kernel.get_params(deep=False))
    assert parameters(twin) == parameters(kernel)
    np.testing.assert_equal(twin.resolved(X)(X), kernel.resolved(X)(X))


@every_kernel
def test_fit_returns_a_settled_kernel_and_changes_nothing(kernel: Kernel, X: Array) -> None:
    before, data = copy.deepcopy(vars(kernel)), X.copy()
    fitted = kernel.resolved(X)
    assert isinstance(fitted, type(kernel))
    assert repr(vars(kernel)) == repr(before)
    np.testing.assert_array_equal(fitted.resolved(X)(X), fitted(X))
    np.testing.assert_array_equal(X, data)


@every_kernel
def test_read_only_and_fortran_input(kernel: Kernel, X: Array) -> None:
    fitted = kernel.resolved(X)
    frozen = X.copy()
    frozen.setflags(write=False)
    Z = np.asfortranarray(X[:4])
    assert_close(fitted(frozen), fitted(X))
    assert_close(fitted(frozen, Z), fitted(X, X[:4]))
    assert_close(fitted(Z, frozen), fitted(X[:4], X))


@pytest.mark.parametrize("value", [1e-250, 1e-307, 2.2e-308, 1e-310, 5e-324])
@pytest.mark.parametrize(
    "kernel",
    [
        HIK(),
        3.0 * HIK(),
        HIK() + 2.0 * HIK(),
        HIK(Power(2.0)) + 4.0 * HIK(Power(0.5)),
        GeneralizedRBF(HIK()),
        GeneralizedRBF(HIK(scale=1.0)),
        GeneralizedRBF(Linear()),
        Centred(HIK() + 2.0 * HIK()),
        RBF(1.0) + 2.0 * HIK(),
    ],
    ids=repr,
)
def test_auto_on_the_smallest_numbers_is_finite_or_refused_by_what_the_data_are(kernel: Kernel, value: float) -> None:
    X = np.array([[value], [0.0]])
    try:
        fitted = kernel.resolved(X)
    except InvalidInput:  # no other error
        assert value <= np.finfo(np.float64).tiny
        return
    assert np.isfinite(fitted(X)).all()
    assert_close(kernel.gram(X).block(np.arange(2)), fitted(X))


@every_width
@settings(deadline=None)
@given(X=histograms())
def test_conformance_on_awkward_histograms(kernel: Kernel, X: Array) -> None:
    try:
        fitted = kernel.resolved(X)
    except InvalidInput:  # HIK(scale="auto") refuses a mean that float64 cannot invert, and nothing else
        assert 0.0 < X.max() < 1e-300
        return
    K = fitted(X)
    np.testing.assert_array_equal(K, K.T)
    assert_positive_semidefinite(K)
    assert_close(fitted.diag(X), np.diag(K))
    assert_close(fitted(X, X[::-1]), K[:, ::-1])
    S = sp.csr_matrix(X)
    assert_close(kernel.resolved(S)(S), K)
    assert_close(fitted(X, S), K)


# ---------------------------------------------------------------- formulas


def differences(X: Array) -> Array:
    """x_i − x_j for all pairs, (n, n, d)."""
    return X[:, None, :] - X[None, :, :]


def chi2(X: Array) -> Array:
    total = X[:, None, :] + X[None, :, :]
    return np.sum(differences(X) ** 2 / np.where(total > 0, total, 1.0), axis=2)


def length(X: Array, scale: Any) -> Array:
    return np.sqrt(((differences(X) / scale) ** 2).sum(axis=2))


SCALES = np.linspace(0.5, 2.0, D)
FORMULAS: list[tuple[Kernel, Callable[[Array], Array]]] = [
    (RBF(0.7, 2.5), lambda X: 2.5 * np.exp(-0.5 * (differences(X) ** 2).sum(2) / 0.7**2)),
    (RBF(SCALES), lambda X: np.exp(-0.5 * ((differences(X) / SCALES) ** 2).sum(2))),
    (Matern(0.7, 0.5, 2.5), lambda X: 2.5 * np.exp(-length(X, 0.7))),
    (Matern(SCALES, 0.5), lambda X: np.exp(-length(X, SCALES))),
    (Matern(0.7), lambda X: (1.0 + 3**0.5 * length(X, 0.7)) * np.exp(-(3**0.5) * length(X, 0.7))),
    (
        Matern(SCALES, 2.5),
        lambda X: (
            (1.0 + 5**0.5 * length(X, SCALES) + 5 / 3 * length(X, SCALES) ** 2) * np.exp(-(5**0.5) * length(X, SCALES))
        ),
    ),
    (Laplacian(0.8), lambda X: np.exp(-0.8 * abs(differences(X)).sum(2))),
    (Linear(), lambda X: X @ X.T),
    (Chi2(1.3), lambda X: np.exp(-1.3 * chi2(X))),
    (GeneralizedRBF(Linear(), 0.3), lambda X: np.exp(-0.3 * (differences(X) ** 2).sum(2))),
    (RBF() + Linear(), lambda X: RBF()(X) + X @ X.T),
    (3.0 * Linear(), lambda X: 3.0 * (X @ X.T)),
    (Chi2() * Linear(), lambda X: np.exp(-chi2(X)) * (X @ X.T)),
]


@pytest.mark.parametrize(("kernel", "formula"), FORMULAS, ids=[repr(k) for k, _ in FORMULAS])
def test_formula(kernel: Kernel, formula: Callable[[Array], Array], X: Array) -> None:
    assert_close(kernel(X), formula(X))


@settings(deadline=None)
@given(X=histograms(), beta=st.floats(0.01, 100.0))
def test_generalised_rbf_of_the_intersection_is_the_laplacian(X: Array, beta: float) -> None:
    """A §7.1: min(a, b) = (a + b − |a − b|)/2, an independent oracle for the HIK."""
    assert_close(GeneralizedRBF(HIK(scale=1.0), beta=beta)(X), Laplacian(gamma=beta)(X))


def test_rbf_keeps_its_digits_far_from_the_origin(X: Array) -> None:
    """‖a‖² + ‖b‖² − 2aᵀb alone would lose eight of them here."""
    moved = X + 2.0**20
    assert_close(RBF(0.7)(moved), RBF(0.7)(moved - 2.0**20))
    assert_close(RBF(0.7)(moved[:4], moved), RBF(0.7)(moved)[:4])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_keeps_its_digits_between_equal_and_near_rows(kind: Callable[[Array], Any], nu: float, X: Array) -> None:
    """√ of a rounding error of 1e-16 would be 1e-8."""
    X = np.vstack([X + 3.0, X + 3.0, X + 3.0 + 1e-7])
    K = Matern(0.7, nu)(kind(X))
    np.testing.assert_array_equal(np.diag(K, 20)[:20], 1.0)
    expected = {0.5: lambda t: np.exp(-t), 1.5: lambda t: (1 + t) * np.exp(-t)}
    expected[2.5] = lambda t: (1 + t + t * t / 3) * np.exp(-t)
    assert_close(K, expected[nu]((2.0 * nu) ** 0.5 * length(X, 0.7)))
    assert_close(Matern(0.7, nu)(kind(X), kind(X[:30])), K[:, :30])


def test_refined_distances_cross_their_batches(X: Array) -> None:
    X = np.vstack([X, X + 1e-7])
    rough = euclidean_distances(X, squared=True)
    assert np.count_nonzero(rough < 1e-9) > 3  # near rows, three to a batch
    whole = distances.refined(rough.copy(), X, None)
    np.testing.assert_array_equal(distances.refined(rough, X, None, numbers_at_once=3 * D), whole)


def test_chi2_of_wide_sparse_data_crosses_its_column_batches() -> None:
    rng = np.random.default_rng(1)
    X = rng.random((6, 700)) * (rng.random((6, 700)) < 0.05)
    assert_close(Chi2(0.1)(sp.csr_array(X)), Chi2(0.1)(X))


def test_symmetric_crosses_its_row_batches() -> None:
    n = 2 * limits.MIRRORED_ROWS + 3
    K = np.random.default_rng(2).random((n, n))
    expected = np.triu(K, 1) + np.triu(K, 1).T
    np.testing.assert_array_equal(symmetric(K, 0.0), expected)


# ---------------------------------------------------------------- algebra and errors


def test_operators_build_sums_and_multiples() -> None:
    kernel = 2 * RBF() + Linear() * np.float64(0.5)
    assert isinstance(kernel, Sum)
    assert isinstance(np.float64(2.0) * RBF(), Scaled)
    assert isinstance(RBF() * Linear(), Product)
    assert isinstance(HIK() + RBF(), Sum)
    assert isinstance(RBF() + HIK(), Sum)
    assert isinstance(HIK() * HIK(), Product)
    assert kernel.get_params()["left__factor"] == 2.0
    kernel.set_params(left__base__length_scale=9.0)
    assert kernel.left.base.length_scale == 9.0
    for wrong in ("x", None, True):
        for fine in (RBF(), HIK()):
            with pytest.raises(TypeError):
                fine * wrong
            with pytest.raises(TypeError):
                fine + wrong


BAD: list[tuple[Kernel, str]] = [
    (RBF(length_scale=0.0), "`length_scale` must be positive, got 0.0. "),
    (RBF(length_scale=np.array([1.0, 2.0, -3.0, 1.0, 1.0])), "must be positive, got -3.0. "),
    (RBF(length_scale=np.ones(3)), r"`length_scale` must .* got shape \(3,\). "),
    (RBF(amplitude=-1.0), "`amplitude` must be positive, got -1.0. "),
    (Laplacian(gamma=np.float64(-1.0)), "`gamma` must be positive, got -1.0. "),
    (Laplacian(gamma=np.nan), "`gamma` must be positive, got nan. "),
    (Chi2(gamma=np.inf), "`gamma` must be positive, got inf. "),
    (Chi2(gamma="a"), "`gamma` must be positive, got 'a'. "),  # type: ignore[arg-type]
    (GeneralizedRBF(Linear(), beta=0), "`beta` must be positive, got 0. "),
    (GeneralizedRBF("rbf"), r"`base` must be a kernel such as HIK\(\), got 'rbf'. "),  # type: ignore[arg-type]
    (GeneralizedRBF(Laplacian(-1.0)), "`gamma` must be positive, got -1.0. "),
    (-2.0 * Linear(), "`factor` must be positive, got -2.0. "),
    (-2.0 * HIK(), "`factor` must be positive, got -2.0. "),
    (HIK() + 0.0 * HIK(), "`factor` must be positive, got 0.0. "),
    (HIK(scale=-1.0) + HIK(), "`scale` must be positive, got -1.0. "),
    (HIK() + HIK(Weights(np.ones(3))), "Weights must have one weight or row of knots per dimension, got 3 for 5"),
    (Matern(nu=2.0), "`nu` must be 0.5, 1.5 or 2.5, got 2.0. "),
    (Matern(nu="a"), "`nu` must be 0.5, 1.5 or 2.5, got 'a'. "),  # type: ignore[arg-type]
    (Matern(length_scale=0.0), "`length_scale` must be positive, got 0.0. "),
    (Product(Linear(), None), r"`right` must be a kernel such as HIK\(\), got None. "),  # type: ignore[arg-type]
    (Sum(Linear(), None), r"`right` must be a kernel such as HIK\(\), got None. "),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("kernel", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_parameters_are_named_with_their_value(kernel: Kernel, message: str, X: Array) -> None:
    for use in (kernel.resolved, kernel):
        with pytest.raises(InvalidParameter, match=message):
            use(X)
    assert issubclass(InvalidParameter, ValueError)
    assert issubclass(InvalidParameter, SaccadeError)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_chi2_names_a_negative_value(container: Callable[[Array], Any], X: Array) -> None:
    bad = X.copy()
    bad[2, 1] = -0.25
    with pytest.raises(InvalidInput, match=r"`X` must be non-negative for Chi2, got -0.25. "):
        Chi2().resolved(container(bad))
    with pytest.raises(InvalidInput, match=r"`Z` must be non-negative for Chi2, got -0.25. "):
        Chi2()(container(X), container(bad))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_overflow_is_an_error_and_not_a_nan() -> None:
    X = np.array([[1.0e200], [1.1e200], [-2.0e200]])
    for kernel in (RBF(), Matern(), GeneralizedRBF(Linear())):
        with pytest.raises(InvalidInput, match="overflow"):
            kernel(X)
