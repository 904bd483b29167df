"""The loops that predict few rows against the twins of those that predict many: both give the same answers."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from saccade._core import limits
from saccade.operators import few_loops as loops
from saccade.operators.norms import NormTables
from saccade.operators.tables import PiecewiseTables
from tests.operators import predict_reference as reference
from tests.operators.histograms import columns, histograms
from tests.operators.test_loops import blocks, by_dtype, by_lanes, csr, cuts, few, in_two
from tests.operators.test_predict_loops import at_levels, tables_of_all_sizes
from tests.tolerances import assert_close


@by_dtype
@by_lanes
@few
@given(data=st.data(), cut=cuts)
def test_interpolate_few(dtype: type, lanes: int, data: st.DataObject, cut: float) -> None:
    """Also in dimensions that the tables do not know, and beyond the last level."""
    c = blocks(data.draw(histograms(dims=3)), "dense blocks")
    S = sp.csr_matrix(data.draw(histograms(dtype, top=1.5, dims=4)))
    T, out = columns(c.values.size, lanes), columns(S.shape[0], lanes, seed=1)
    expected = out.copy()
    tables = (c.level_starts, c.values, T)
    in_two(lambda a, b: loops.interpolate_few(*csr(S), *tables, a, b, out, (0,) * lanes), S.shape[0], cut)
    reference.interpolate(*csr(S), *tables, 0, S.shape[0], expected)
    assert_close(out, expected)


@by_lanes
@few
@given(data=st.data(), cut=cuts, count=st.integers(1, 3))
def test_walk_squares_few(lanes: int, data: st.DataObject, cut: float, count: int) -> None:
    c = blocks(data.draw(histograms(dims=3)), "dense blocks")
    S = sp.csr_matrix(data.draw(histograms(top=1.5, dims=4)))
    T = np.stack([columns(c.values.size, lanes, np.float32, seed=k) for k in range(count)])
    slack, out = columns(c.values.size, 2, seed=9).astype(np.float32), columns(S.shape[0], 4, seed=1)
    expected, f = out.copy(), np.empty((count, lanes), np.float32)
    read = (*csr(S), c.level_starts, c.values, T.reshape(-1, lanes), slack)
    in_two(lambda a, b: loops.walk_squares_few(*read, a, b, out, f, (0,) * lanes), S.shape[0], cut)
    reference.walk_squares(*csr(S), c.level_starts, c.values, T, slack, 0, S.shape[0], expected)
    assert_close(out, expected, np.float32)


def test_stored_zeros_have_no_slack() -> None:
    starts, levels, T = np.array([0, 3]), np.array([0.0, 0.5, 1.0]), np.zeros((3, 2), np.float32)
    S, out = sp.csr_matrix((np.array([0.0, 0.7]), ([0, 1], [0, 0])), shape=(2, 1)), np.zeros((2, 4))
    read = (*csr(S), starts, levels, T, np.ones((3, 2), np.float32))
    loops.walk_squares_few(*read, 0, 2, out, np.empty((1, 2), np.float32), (0, 0))
    assert out.tolist() == [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]


@pytest.mark.parametrize("most", [0, limits.FEW_ENTRIES])
def test_few_and_many_rows_get_one_answer(most: int) -> None:
    """Which loops predict is a question of time alone."""
    rng = np.random.default_rng(0)
    starts, levels = tables_of_all_sizes(rng)
    X, T = at_levels(rng, 40, starts, levels)[:, : starts.size - 1], columns(levels.size, 3)
    T[starts[:-1]] = 0.0
    norms = NormTables.of(starts, levels, T.astype(np.float32), np.zeros((levels.size, 2), np.float32))
    expected = np.zeros((40, 3))
    reference.interpolate(*csr(X), starts, levels, T, 0, 40, expected)
    with patch.object(limits, "FEW_ENTRIES", most):
        assert_close(PiecewiseTables(starts, levels, T).walk(X), expected)
        found = norms.squared_norms(X)
    assert_close(found, np.maximum(expected[:, 0], 0.0) ** 2 + np.square(expected[:, 1:]).sum(axis=1), np.float32)
