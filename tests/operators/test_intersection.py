"""The operator against dense algebra: K V with K_ij = Σ_d min(x_id, x_jd) written out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade._core import limits
from saccade.kernels import HIK, Exponential, Power, Weights
from saccade.operators.append import append
from saccade.operators.base import Dense, Operator
from saccade.operators.binned_intersection import BinnedIntersection
from saccade.operators.codes import Codes, SortedColumns, encode, split_signs
from saccade.operators.decode import decode
from saccade.operators.intersection import intersection
from saccade.operators.intersection_base import Intersection
from saccade.operators.sorted_intersection import SortedIntersection
from tests.operators.histograms import LAYOUTS, Array, columns, encoded, histograms, intersections, sparse_rows
from tests.tolerances import assert_close, assert_positive_semidefinite

few = settings(max_examples=30)
by_layout = pytest.mark.parametrize("layout", LAYOUTS)
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def plain(codes: Codes) -> Intersection:
    """The products of the plain kernel, whose levels are the values themselves."""
    return intersection(codes, codes.values)


def to_dense(operator: Intersection) -> Array:
    return operator.matmul(np.eye(operator.shape[0]))


# ---------------------------------------------------------------- products


@by_layout
@by_dtype
@pytest.mark.parametrize("m", [1, 2, 3, 5, 10, 16, 17, 33])
def test_product(layout: str, dtype: type, m: int) -> None:
    X = sparse_rows(60, 9)
    operator = plain(encoded(X, layout))
    V = columns(60, m, dtype)
    product = operator.matmul(V)
    assert product.dtype == dtype
    assert product.shape == V.shape
    assert_close(product, intersections(X) @ V.astype(np.float64), dtype)
    np.testing.assert_array_equal(V, columns(60, m, dtype))


@by_layout
@by_dtype
@few
@given(data=st.data(), m=st.sampled_from([1, 4]))
def test_product_and_diagonal_of_awkward_histograms(layout: str, dtype: type, data: st.DataObject, m: int) -> None:
    X = data.draw(histograms(dtype))
    operator = plain(encoded(X, layout))
    assert operator.shape == (len(X), len(X))
    assert_close(operator.matmul(columns(len(X), m, dtype)), intersections(X) @ columns(len(X), m, dtype), dtype)
    assert_close(operator.diag(), X.astype(np.float64).sum(axis=1))
    assert_close(operator.squared_parts(), np.square(X.astype(np.float64)).sum(axis=1))


@by_layout
def test_columns_may_come_in_any_memory_order(layout: str) -> None:
    X = sparse_rows(20, 5)
    operator = plain(encoded(X, layout))
    V = columns(20, 12)
    frozen = V.copy()
    frozen.setflags(write=False)
    for each in (np.asfortranarray(V), np.repeat(V, 2, axis=1)[:, ::2], V[::-1][::-1], frozen):
        assert_close(operator.matmul(each), intersections(X) @ V)
    assert operator.matmul(V[:, :0]).shape == (20, 0)


@by_layout
def test_symmetric_and_positive_semidefinite_also_with_signs(layout: str) -> None:
    X = sparse_rows(40, 6) * np.sign(np.random.default_rng(1).normal(size=(40, 6)))
    K = to_dense(plain(encoded(split_signs(X), layout)))
    assert_close(K, K.T)
    assert_positive_semidefinite(K)
    assert_close(K, HIK(scale=1.0)(X))


@pytest.mark.parametrize("layout", LAYOUTS[1:])
@pytest.mark.parametrize("binning", ["quantile", "width"])
@few
@given(X=histograms(), levels=st.integers(1, 4))
def test_binned_operator_is_exact_for_the_binned_rows(layout: str, binning: str, X: Array, levels: int) -> None:
    c = encoded(X, layout, levels, binning)
    operator = plain(c)
    K = to_dense(operator)
    assert_close(K, intersections(decode(c).toarray()))
    assert_close(operator.diag(), np.diag(K))
    assert_positive_semidefinite(K)


# ---------------------------------------------------------------- the layouts for real


@by_dtype
def test_sorted_operator_is_what_many_values_get(dtype: type) -> None:
    X = np.random.default_rng(0).random((400, 7)).astype(dtype)
    X[X < 0.3] = 0
    for c in (encode(X), encode(sp.csr_matrix(X))):
        operator = plain(c)
        assert isinstance(operator, SortedIntersection)
        assert operator.work == np.count_nonzero(X)
        for m in (1, 6):
            V = columns(400, m, dtype)
            assert_close(operator.matmul(V), intersections(X) @ V.astype(np.float64), dtype)
        assert_close(operator.diag(), X.astype(np.float64).sum(axis=1))


def test_blocks_for_real_and_the_edge_between_them() -> None:
    """More rows than one block, whatever the number of threads; a sum formula stands in for the dense matrix."""
    n = limits.BLOCK_ROWS + 700
    x = np.arange(n) % 200 * (np.arange(n) % 3 == 0) / 4
    X = np.stack([x, x[::-1], np.zeros(n)], axis=1)
    v = columns(n, 1)
    levels, inverse = np.unique(x, return_inverse=True)
    weight = [np.bincount(inverse, v[:, 0]), np.bincount(inverse[::-1], v[:, 0])]
    table = [np.minimum.outer(levels, levels) @ w for w in weight]
    expected = table[0][inverse] + table[1][inverse[::-1]]
    operator = plain(encode(X))
    assert isinstance(operator, BinnedIntersection)
    assert operator.codes.bases.size > 2
    assert_close(operator.matmul(v)[:, 0], expected)
    assert_close(operator.diag(), X.sum(axis=1))


@by_layout
@by_dtype
def test_any_number_of_threads_gives_the_same(layout: str, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    X = sparse_rows(50, 7)
    V = columns(50, 5, dtype)
    expected = intersections(X) @ V.astype(np.float64)
    elsewhere = plain(encoded(X, layout))
    for threads in ("1", "2", "3", "64"):
        monkeypatch.setenv("SACCADE_NUM_THREADS", threads)
        for operator in (elsewhere, plain(encoded(X, layout))):
            assert_close(operator.matmul(V), expected, dtype)
            assert_close(operator.matmul(V[:, :1]), expected[:, :1], dtype)
            assert_close(operator.diag(), X.sum(axis=1))


@by_layout
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3, 2)])
def test_nothing_times_anything_is_nothing(layout: str, shape: tuple[int, int]) -> None:
    operator = plain(encoded(np.zeros(shape), layout))
    for m in (1, 5):
        np.testing.assert_array_equal(operator.matmul(columns(shape[0], m)), np.zeros((shape[0], m)))
        assert (
            operator.tables(columns(shape[0], m)).walk(sp.csr_matrix(np.ones((2, shape[1])))).tolist()
            == [[0.0] * m] * 2
        )
    np.testing.assert_array_equal(operator.diag(), np.zeros(shape[0]))


@by_layout
def test_huge_and_tiny_values(layout: str) -> None:
    X = sparse_rows(20, 6) * np.array([1e300, 1e-300, 1.0, 0.0, 1e150, 5e-324])
    operator = plain(encoded(X, layout))
    V = columns(20, 2)
    scale = np.abs(X).sum()
    assert_close(operator.matmul(V / scale), intersections(X) @ (V / scale))
    only_tiny = plain(encoded(X[:, 1:2], layout))
    assert_close(only_tiny.matmul(V) * 1e300, intersections(X[:, 1:2]) @ V * 1e300)


# ---------------------------------------------------------------- other kernels, other operators

KERNELS = {
    "power": HIK(Power(0.5), scale=1.0),
    "square": HIK(Power(2.0), scale=1.0),
    "exponential": HIK(Exponential(1.5), scale=1.0),
    "bent the other way": HIK(Exponential(-2.0), scale=1.0),
    "weights": HIK(Weights(np.linspace(0.0, 2.0, 6)), scale=1.0),
    "composed": HIK([Power(0.7), Weights(np.linspace(3.0, 0.0, 6)), Exponential(0.5)], scale=1.0),
    "scaled": HIK(Power(0.5), scale=2.5),
    "auto": HIK(),
}


@by_layout
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_other_kernels_share_the_codes(layout: str, signed: bool, kernel: HIK) -> None:
    X, V = sparse_rows(30, 6), columns(30, 3)
    if signed:
        X *= np.sign(np.random.default_rng(1).normal(size=X.shape))
    c = encoded(split_signs(X), layout)
    values = c.values.copy()
    fitted = kernel.resolved(X)
    operator, K = fitted.operator(c), fitted(X)
    assert_close(operator.matmul(V), K @ V)
    assert_close(operator.diag(), np.diag(K))
    np.testing.assert_array_equal(c.values, values)


@by_layout
def test_appended_codes_make_the_longer_matrix(layout: str) -> None:
    X = sparse_rows(30, 6)
    c = append(encoded(X[:19], layout), X[19:])
    assert_close(to_dense(plain(c)), intersections(X))


def test_a_limit_of_few_levels_leads_to_the_same_products() -> None:
    X, V = sparse_rows(40, 5), columns(40, 3)
    c = encode(X, most_levels=4)
    assert isinstance(c, SortedColumns)
    assert_close(plain(c).matmul(V), plain(encode(X)).matmul(V))


@by_dtype
def test_dense_and_intersection_keep_the_same_protocol(dtype: type) -> None:
    X, V = sparse_rows(25, 6), columns(25, 4, dtype)
    K = intersections(X)
    operators: list[Operator] = [Dense(K), *(plain(encoded(X, layout)) for layout in LAYOUTS)]
    for operator in operators:
        assert operator.shape == (25, 25)
        assert operator.work > 0
        assert operator.diag().dtype == np.float64
        assert operator.matmul(V).dtype == dtype
        assert_close(operator.matmul(V), K @ V.astype(np.float64), dtype)
        assert_close(operator.diag(), np.diag(K))
        operator.diag()[:] = 0.0  # a copy: the matrix stays
        assert_close(operator.diag(), np.diag(K))
