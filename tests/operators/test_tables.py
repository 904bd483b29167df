"""A table walk is k(X*, X) V for points never seen; a grid walk is the same up to half a step."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.kernels import HIK, Exponential, Power, Weights
from saccade.operators.codes import Codes
from saccade.operators.intersection import intersection
from saccade.operators.intersection_base import Intersection
from saccade.operators.tables import PiecewiseTables, lane_tuple, padded, quantize
from tests.operators.histograms import LAYOUTS, Array, columns, encoded, histograms, intersections, sparse_rows
from tests.tolerances import TOL, assert_close

few = settings(max_examples=30)
by_layout = pytest.mark.parametrize("layout", LAYOUTS)
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def plain(codes: Codes) -> Intersection:
    """The products of the plain kernel, whose levels are the values themselves."""
    return intersection(codes, codes.values)


def tables_of(X: Array, V: Array, layout: str = "sorted") -> PiecewiseTables:
    return plain(encoded(X, layout)).tables(V)


# ---------------------------------------------------------------- piecewise linear


@by_layout
@by_dtype
@few
@given(data=st.data(), m=st.sampled_from([1, 3]))
def test_walk_is_the_kernel_of_unseen_points(layout: str, dtype: type, data: st.DataObject, m: int) -> None:
    """Between levels, on them, beyond the largest, and in dimensions where the training data had only zeros."""
    X, new = data.draw(histograms(dims=4)), data.draw(histograms(dtype, dims=4, top=1.5))
    V = columns(len(X), m)
    tables = tables_of(X, V, layout)
    assert tables.T.shape == (tables.levels.size, m)
    for a, b in pairwise(tables.level_starts):
        assert tables.levels[a] == 0
        assert not tables.T[a].any()
        assert (np.diff(tables.levels[a:b]) >= 0).all()
    assert_close(tables.walk(sp.csr_matrix(new)), intersections(new, X) @ V)
    assert_close(tables.walk(sp.csr_matrix(X)), intersections(X) @ V)


@by_layout
@pytest.mark.parametrize("m", [1, 2, 5, 10, 16, 17, 33])
def test_walk_of_many_columns(layout: str, m: int) -> None:
    X, new = sparse_rows(40, 6), sparse_rows(15, 6, seed=1)
    V = columns(40, m)
    assert_close(tables_of(X, V, layout).walk(sp.csr_matrix(new)), intersections(new, X) @ V)


def test_walk_of_real_valued_data_with_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, new, V = rng.random((300, 5)), 1.2 * rng.random((31, 5)), columns(300, 3)
    expected = intersections(new, X) @ V
    for threads in ("1", "2", "3", "64"):
        monkeypatch.setenv("SACCADE_NUM_THREADS", threads)
        assert_close(tables_of(X, V).walk(sp.csr_matrix(new)), expected)


def test_narrower_and_wider_rows_leave_out_what_the_other_does_not_know() -> None:
    X, V = sparse_rows(20, 4), columns(20, 2)
    tables = tables_of(X, V)
    narrow, wide = sparse_rows(6, 3, seed=1), sparse_rows(6, 8, seed=2)
    assert_close(tables.walk(sp.csr_matrix(narrow)), intersections(narrow, X[:, :3]) @ V)
    assert_close(tables.walk(sp.csr_matrix(wide)), intersections(wide[:, :4], X) @ V)


def test_no_rows_unsorted_rows_and_stored_zeros() -> None:
    X, V = sparse_rows(20, 4), columns(20, 2)
    tables = tables_of(X, V)
    assert tables.walk(sp.csr_matrix((0, 4))).shape == (0, 2)
    rows = sp.csr_matrix((np.array([0.3, 0.0, 0.7]), np.array([3, 1, 0]), np.array([0, 2, 3])), shape=(2, 4))
    assert_close(tables.walk(rows), intersections(rows.toarray(), X) @ V)


@by_layout
@pytest.mark.parametrize(
    "kernel",
    [
        HIK(Power(0.4), scale=1.0),
        HIK([Exponential(1.5), Weights([1.0, 0.0, 2.0, 3.0, 0.5, 1.0])], scale=0.7),
    ],
    ids=["power", "weights"],
)
@pytest.mark.parametrize("signed", [False, True])
def test_walk_of_another_kernel(layout: str, kernel: HIK, signed: bool) -> None:
    X, new = sparse_rows(40, 6), 1.3 * sparse_rows(15, 6, seed=1)
    if signed:
        rng = np.random.default_rng(2)
        X, new = X * np.sign(rng.normal(size=X.shape)), new * np.sign(rng.normal(size=new.shape))
    V = columns(40, 3)
    split = np.hstack([np.maximum(X, 0), np.maximum(-X, 0)]) if signed else X
    tables = kernel.operator(encoded(split, layout)).tables(V)
    assert_close(tables.walk(kernel.features(new)), kernel(new, X) @ V)


def test_float32_right_hand_sides() -> None:
    X, V = sparse_rows(40, 6), columns(40, 3, np.float32)
    new = sparse_rows(15, 6, seed=1)
    for layout in LAYOUTS:
        walked = tables_of(X, V, layout).walk(sp.csr_matrix(new))
        assert_close(walked, intersections(new, X) @ V.astype(np.float64), np.float32)


# ---------------------------------------------------------------- the even grid


def steepest(tables: PiecewiseTables) -> Array:
    """The largest |slope| of each dimension's table, (D, m)."""
    slopes = []
    for a, b in pairwise(tables.level_starts):
        rises = np.append(True, np.diff(tables.levels[a:b]) > 0)  # ties have one value
        slope = np.diff(tables.T[a:b][rises], axis=0) / np.diff(tables.levels[a:b][rises])[:, None]
        slopes.append(np.abs(slope).max(axis=0, initial=0.0))
    return np.array(slopes)


def unchanged(X: sp.csr_matrix) -> sp.csr_matrix:
    return X


@pytest.mark.parametrize("m", [1, 5, 17])
def test_grid_is_exact_at_its_nodes(m: int) -> None:
    X, V = sparse_rows(40, 6), columns(40, m)
    tables, top, bins = tables_of(X, V), X.max(axis=0), 21
    grid = quantize(tables, top, unchanged, bins)
    assert grid.bins == bins
    assert grid.T.dtype == np.float32
    nodes = np.linspace(0.0, 1.0, bins)[:, None] * top
    for rows in (nodes, np.random.default_rng(0).permuted(nodes, axis=0)):
        assert_close(grid.walk(sp.csr_matrix(rows)), tables.walk(sp.csr_matrix(rows)), np.float32)


@by_dtype
@few
@given(data=st.data(), bins=st.integers(2, 12))
def test_grid_is_off_by_no_more_than_half_a_step(dtype: type, data: st.DataObject, bins: int) -> None:
    X = data.draw(histograms(dims=4))
    top = X.max(axis=0)
    new = data.draw(histograms(dtype, dims=4, top=1.5))
    tables = tables_of(X, columns(len(X), 2))
    grid = quantize(tables, top, unchanged, bins)
    error = np.abs(grid.walk(sp.csr_matrix(new)) - tables.walk(sp.csr_matrix(new)))
    half_step = top / (bins - 1) / 2
    assert (error <= half_step @ steepest(tables) * (1 + TOL[np.float32].rtol) + 10 * TOL[np.float32].atol).all()


def test_the_bound_is_reached_midway_between_nodes() -> None:
    """T(x) = x on [0, 1] with nodes at 0, ½, 1: the worst x gives away a quarter. And the upper node wins."""
    tables = PiecewiseTables(np.array([0, 2]), np.array([0.0, 1.0]), np.array([[0.0], [1.0]]))
    grid = quantize(tables, np.ones(1), unchanged, 3)
    at = sp.csr_matrix(np.array([[0.2499], [0.25], [0.7499], [0.75], [1.0], [1.7], [1e300], [5e-324]]))
    assert grid.walk(at).ravel().tolist() == [0.0, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 0.0]


def test_rows_outside_the_range_take_the_last_node() -> None:
    X, V = sparse_rows(40, 6), columns(40, 3)
    tables = tables_of(X, V)
    grid = quantize(tables, X.max(axis=0), unchanged, 9)
    beyond = np.full((2, 6), [[2.0], [1e300]])
    wider = np.hstack([beyond, beyond])
    for rows in (beyond, wider):
        assert_close(grid.walk(sp.csr_matrix(rows)), tables.walk(sp.csr_matrix(beyond)), np.float32)
    assert not grid.walk(sp.csr_matrix((3, 6))).any()
    assert grid.walk(sp.csr_matrix((0, 6))).shape == (0, 3)


def test_grid_steps_through_raw_values_not_transformed_ones() -> None:
    kernel = HIK([Power(0.5), Weights([1.0, 2.0, 0.0, 1.0])], scale=1.0)
    X, V = sparse_rows(40, 4), columns(40, 2)
    tables = kernel.operator(encoded(X, "sorted")).tables(V)
    bins = 11
    grid = quantize(tables, X.max(axis=0), kernel.features, bins)
    nodes = np.linspace(0.0, 1.0, bins)[:, None] * X.max(axis=0)
    assert_close(grid.walk(sp.csr_matrix(nodes)), kernel(nodes, X) @ V, np.float32)


# ---------------------------------------------------------------- lanes


def test_columns_are_padded_to_lanes() -> None:
    assert [len(lane_tuple(m)) for m in (1, 2, 4, 5, 8, 9, 12, 13, 16, 17)] == [1, 2, 4, 6, 8, 10, 12, 14, 16, 16]
    V = columns(3, 6)
    block = padded(V, 4, (0,) * 4)
    np.testing.assert_array_equal(block, np.hstack([V[:, 4:], np.zeros((3, 2))]))
    assert block.flags.c_contiguous
    assert padded(np.asfortranarray(V), 0, (0,) * 4).flags.c_contiguous
