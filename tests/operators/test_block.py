"""Blocks of the intersection kernel, and the way to sparse rows, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from saccade.kernels import HIK
from saccade.operators import block
from saccade.operators.compress import compressed
from tests.operators.histograms import Array, histograms, intersections, sparse_rows
from tests.tolerances import assert_close


@given(data=st.data())
def test_block_of_awkward_histograms(data: st.DataObject) -> None:
    A, B = data.draw(histograms(dims=4)), data.draw(histograms(dims=4))
    assert_close(block.intersections(sp.csr_matrix(A), sp.csr_matrix(B)), intersections(A, B))
    assert_close(np.triu(block.intersections(sp.csr_matrix(A))), np.triu(intersections(A)))


@pytest.mark.parametrize("panel_dims", [1, 7, 1024])
@pytest.mark.parametrize(
    ("n", "m", "D"), [(1, 1, 1), (4, 3, 8), (70, 4, 30), (70, 5, 30), (5, 33, 20), (70, 64, 30), (100, 31, 9)]
)
def test_block_crosses_its_panels(n: int, m: int, D: int, panel_dims: int) -> None:
    A, B = sparse_rows(n, D), sparse_rows(m, D, seed=1)
    left, right = sp.csr_matrix(A), sp.csr_matrix(B)
    assert_close(block.intersections(left, right, panel_dims=panel_dims), intersections(A, B))
    assert_close(np.triu(block.intersections(left, panel_dims=panel_dims)), np.triu(intersections(A)))


def test_block_of_nothing() -> None:
    empty, some = sp.csr_matrix((3, 4)), sp.csr_matrix(np.ones((2, 4)))
    for A, B in [(empty, some), (some, empty), (empty, empty), (some[:0], some), (some, some[:0])]:
        np.testing.assert_array_equal(block.intersections(A, B), np.zeros((A.shape[0], B.shape[0])))
    np.testing.assert_array_equal(block.intersections(sp.csr_matrix((3, 0))), np.zeros((3, 3)))


def test_unordered_rows_come_back_as_they_were() -> None:
    """Split signs are out of order, and one side may have a part that the other has not."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(40, 9)), rng.random((35, 9))
    A, B = (HIK(scale=1.0).features(rows) for rows in (X, Z))
    assert not A.has_sorted_indices
    expected = intersections(np.maximum(X, 0)) + intersections(np.maximum(-X, 0))
    for panel_dims in (4, 1024):
        assert_close(block.intersections(A, B, panel_dims), intersections(np.maximum(X, 0), Z))
        assert_close(np.triu(block.intersections(A, panel_dims=panel_dims)), np.triu(expected))
    assert_close(HIK(scale=1.0)(X, Z), intersections(np.maximum(X, 0), Z))
    assert_close(HIK(scale=1.0)(X), expected)
    A = sp.csr_matrix((np.array([1.0, 2.0]), np.array([3, 0]), np.array([0, 2])), shape=(1, 4))
    block.intersections(A)
    np.testing.assert_array_equal(A.indices, [3, 0])


def test_threads_share_the_triangle_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    A = sparse_rows(150, 12)
    for threads in (1, 2, 3):
        monkeypatch.setenv("SACCADE_NUM_THREADS", str(threads))
        assert_close(HIK(scale=1.0)(A), intersections(A))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
@pytest.mark.parametrize("order", ["C", "F"])
def test_compressed_is_what_scipy_makes(dtype: type, order: str) -> None:
    X = np.asarray(9.0 * (sparse_rows(20, 7) - 0.2), dtype=dtype, order=order)  # type: ignore[call-overload]
    for dense in (X, X[::2, ::3], X[:0], X[:, :0]):
        found, expected = compressed(dense), sp.csr_matrix(dense)
        np.testing.assert_array_equal(found.toarray(), expected.toarray())
        np.testing.assert_array_equal(found.indices, expected.indices)
        assert found.has_canonical_format


@given(X=histograms(np.float32))
def test_compressed_keeps_every_number(X: Array) -> None:
    X = X.copy()
    X.flat[0] = np.nan
    X.flat[-1] = -0.0
    np.testing.assert_array_equal(compressed(X).toarray(), X)
