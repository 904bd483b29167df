"""The loops that predict against their twins, on whole ranges cut in two: threads share the work out the same way."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from saccade._core import limits
from saccade.operators import predict_loops as loops
from tests.operators import predict_reference as reference
from tests.operators.histograms import Array, columns, histograms
from tests.operators.test_loops import blocks, by_dtype, by_lanes, csr, cuts, few, in_two
from tests.tolerances import assert_close

SIZES = [1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 130, 600]  # levels of a dimension: below and above whole nodes


@by_dtype
@by_lanes
@few
@given(data=st.data(), cut=cuts)
def test_interpolate(dtype: type, lanes: int, data: st.DataObject, cut: float) -> None:
    """Also in dimensions that the tables do not know, and beyond the last level."""
    c = blocks(data.draw(histograms(dims=3)), "dense blocks")
    S = sp.csr_matrix(data.draw(histograms(dtype, top=1.5, dims=4)))
    T, out = columns(c.values.size, lanes), columns(S.shape[0], lanes, seed=1)
    expected = out.copy()
    tables = (c.level_starts, c.values, T)
    in_two(lambda a, b: loops.interpolate(*csr(S), *tables, a, b, out, (0,) * lanes), S.shape[0], cut)
    reference.interpolate(*csr(S), *tables, 0, S.shape[0], expected)
    assert_close(out, expected)


@by_dtype
@by_lanes
@few
@given(data=st.data(), cut=cuts, blocks_=st.integers(1, 3))
def test_walk_squares(dtype: type, lanes: int, data: st.DataObject, cut: float, blocks_: int) -> None:
    """Also in dimensions that the tables do not know, and beyond the last level."""
    c = blocks(data.draw(histograms(dims=3)), "dense blocks")
    S = sp.csr_matrix(data.draw(histograms(dtype, top=1.5, dims=4)))
    T = np.stack([columns(c.values.size, lanes, np.float32, seed=k) for k in range(blocks_)])
    slack = columns(c.values.size, 2, seed=9)
    out = columns(S.shape[0], 4, seed=1)
    expected = out.copy()
    tables = (c.level_starts, c.values, T, slack)
    in_two(lambda a, b: loops.walk_squares(*csr(S), *tables, a, b, out, (0,) * lanes), S.shape[0], cut)
    reference.walk_squares(*csr(S), *tables, 0, S.shape[0], expected)
    assert_close(out, expected, np.float32)


def tables_of_all_sizes(rng: np.random.Generator) -> tuple[Array, Array]:
    """Where the levels of each dimension begin, and the levels: zero first, then crowded ones and far ones."""
    found = [np.append(0.0, np.sort(np.exp(rng.normal(0.0, 3.0, size - 1)))) for size in SIZES]
    return np.append(0, np.cumsum(SIZES)), np.concatenate(found)


def at_levels(rng: np.random.Generator, rows: int, starts: Array, levels: Array) -> Any:
    """A third of the values at a level, a third between two or before the first, a third anywhere; some beyond all."""
    X = np.exp(rng.normal(0.0, 3.0, (rows, len(SIZES) + 1)))
    for d, (a, b) in enumerate(pairwise(starts)):
        k = rng.integers(a, b, rows)
        X[::3, d] = levels[k][::3]
        X[1::3, d] = (levels[k] * 0.5 + np.append(levels, 9.0)[k + 1] * 0.5)[1::3]
    X[rng.random(X.shape) < 0.2] = 0.0
    X[-1] = 1e9
    return sp.csr_matrix(X)


@pytest.mark.parametrize("rows", [3, 40, 700])
def test_place_among_many_levels(rows: int) -> None:
    """Few values halve their range, many climb a ladder of nodes; 700 take more than one turn of those in step."""
    rng = np.random.default_rng(rows)
    starts, levels = tables_of_all_sizes(rng)
    S, T = at_levels(rng, rows, starts, levels), columns(levels.size, 2)
    T[starts[:-1]] = 0.0
    out, expected = columns(rows, 2, seed=1), columns(rows, 2, seed=1)
    loops.interpolate(*csr(S), starts, levels, T, 0, rows, out, (0, 0))
    reference.interpolate(*csr(S), starts, levels, T, 0, rows, expected)
    assert_close(out, expected)

    slack, squares = columns(levels.size, 2, seed=2), [columns(rows, 4, seed=3) for _ in range(2)]
    tables = starts, levels, T[None].astype(np.float32), slack
    loops.walk_squares(*csr(S), *tables, 0, rows, squares[0], (0, 0))
    reference.walk_squares(*csr(S), *tables, 0, rows, squares[1])
    assert_close(*squares, np.float32)
    assert_close(squares[0][:, 2:], squares[1][:, 2:])


def test_more_entries_than_are_searched_together() -> None:
    """Against NumPy, a dimension at a time: rows of one chunk are searched in several parts."""
    rng, dims, nodes = np.random.default_rng(0), 40, 20
    X, levels = rng.random((4500, dims)), np.sort(rng.random((dims, nodes)), axis=1)
    levels[:, 0] = 0.0
    T, slack = columns(dims * nodes, 2, np.float32), columns(dims * nodes, 2, seed=1)
    T[::nodes] = 0.0
    f, lost = np.zeros((4500, 2)), np.zeros((4500, 2))
    for d, own in enumerate(levels):
        f += np.column_stack([np.interp(X[:, d], own, column) for column in T[d * nodes : (d + 1) * nodes].T])
        lost += slack[d * nodes + np.minimum(np.searchsorted(own, X[:, d]) - 1, nodes - 2)]
    S, out = sp.csr_matrix(X), np.zeros((4500, 4))
    assert S.nnz > limits.SEARCHED_ENTRIES
    read = np.arange(0, dims * nodes + 1, nodes), levels.ravel(), T[None], slack
    loops.walk_squares(*csr(S), *read, 0, 4500, out, (0, 0))
    assert_close(out[:, :2], np.column_stack([f[:, 0], f[:, 1] ** 2]), np.float32)
    assert_close(out[:, 2:], lost)


def test_stored_zeros_have_no_slack() -> None:
    starts, levels, T = np.array([0, 3]), np.array([0.0, 0.5, 1.0]), np.zeros((1, 3, 2), np.float32)
    S, out = sp.csr_matrix((np.array([0.0, 0.7]), ([0, 1], [0, 0])), shape=(2, 1)), np.zeros((2, 4))
    loops.walk_squares(*csr(S), starts, levels, T, np.ones((3, 2), np.float32), 0, 2, out, (0, 0))
    assert out.tolist() == [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]


@pytest.mark.parametrize("loop", ["interpolate", "walk_squares"])
def test_rows_go_in_chunks(loop: str) -> None:
    """More rows than go by dimension together."""
    rng = np.random.default_rng(0)
    starts, levels = np.array([0, 3, 5]), np.array([0.0, 0.5, 1.0, 0.0, 2.0])
    S, T = sp.csr_matrix(np.round(rng.random((9000, 2)), 1)), columns(5, 1)
    T[starts[:-1]] = 0.0
    tables, width = ((T,), 1) if loop == "interpolate" else ((T[None].astype(np.float32), columns(5, 2)), 4)
    out, expected = np.zeros((2, 9000, width))
    getattr(loops, loop)(*csr(S), starts, levels, *tables, 0, 9000, out, (0,))
    getattr(reference, loop)(*csr(S), starts, levels, *tables, 0, 9000, expected)
    assert_close(out, expected, np.float64 if loop == "interpolate" else np.float32)


@pytest.mark.parametrize("most", [1, 5, 10_000])
def test_a_chunk_ends_before_too_many_entries(most: int) -> None:
    indptr, chunks = np.array([0, 3, 3, 9, 10, 10, 12]), [0]
    while chunks[-1] < 6:
        chunks.append(loops._end_of_chunk(indptr, chunks[-1], 6, 4, most))
    assert np.diff(chunks).min() >= 1
    assert np.diff(chunks).max() <= 4
    assert most < 10_000 or chunks == [0, 4, 6]
    assert most > 1 or max(np.diff(indptr[chunks])) <= 6  # one row, which may have more


@by_dtype
@by_lanes
@few
@given(data=st.data(), cut=cuts, bins=st.integers(1, 9), signed=st.booleans())
def test_look_up_grid(dtype: type, lanes: int, data: st.DataObject, cut: float, bins: int, signed: bool) -> None:
    """Also in dimensions that the tables do not know, with and without tables of negative values."""
    X = data.draw(histograms(dtype, top=1.5, dims=6))
    X[:, ::2] *= -1 if signed else 1
    S, per_unit = sp.csr_matrix(X), np.array([0.0, 1.0, 8.0, 2.0, 1.0, 0.5, 8.0, 3.0])
    T, out = columns(8 * bins, lanes, np.float32), columns(S.shape[0], lanes, np.float32, seed=1)
    T[::bins] = 0.0
    expected = out.astype(np.float64)
    read = (*csr(S), 4 if signed else 6, per_unit, bins, T)
    in_two(lambda a, b: loops.look_up_grid(*read, a, b, out, (0,) * lanes), S.shape[0], cut)
    reference.look_up_grid(*read, 0, S.shape[0], expected)
    assert_close(out, expected, np.float32)


@pytest.mark.parametrize("entries", range(10))
def test_every_value_of_a_row_is_looked_up_once(entries: int) -> None:
    """Four at a time, and the rest one by one."""
    S = sp.csr_matrix(np.arange(1.0, entries + 1)[None])
    T, out = np.repeat([[0.0], [1.0]], [1, 1], axis=0), np.zeros((1, 1))
    loops.look_up_grid(*csr(S), entries, np.ones(entries), 2, np.tile(T, (entries, 1)), 0, 1, out, (0,))
    assert out[0, 0] == entries
