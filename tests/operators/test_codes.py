"""Codes say exactly what the data said, or the nearest level to it, in every layout and after any appending."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade._core import limits
from saccade.operators import codes
from saccade.operators import decode as decoding
from saccade.operators.append import append
from saccade.operators.codes import CodeBlocks, SortedColumns, column_max, encode, split_signs
from saccade.operators.decode import decode
from tests.operators.histograms import BLOCK_ROWS, LAYOUTS, Array, encoded, histograms, sparse_rows
from tests.tolerances import assert_close

few = settings(max_examples=30)
by_layout = pytest.mark.parametrize("layout", LAYOUTS)
by_blocks = pytest.mark.parametrize("layout", LAYOUTS[1:])
by_binning = pytest.mark.parametrize("binning", ["quantile", "width"])
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def wide_indices(X: Array) -> sp.csr_matrix:
    """CSR with int64 index arrays, which scipy would shrink."""
    S = sp.csr_matrix(X)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    return S


CONTAINERS = {"dense": np.asarray, "fortran": np.asfortranarray, "csr": sp.csr_matrix, "int64": wide_indices}
by_container = pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())


def levels_of(c: codes.Codes) -> list[Array]:
    assert isinstance(c, CodeBlocks)
    return [c.values[a:b] for a, b in pairwise(c.level_starts)]


def assert_well_formed(c: codes.Codes) -> None:
    """What the loops rely on and never check."""
    n, D = c.shape
    if isinstance(c, SortedColumns):
        assert c.starts[0] == 0
        assert c.starts[-1] == c.rows.size == c.values.size
        for a, b in pairwise(c.starts):
            assert (np.diff(c.values[a:b]) >= 0).all()
            assert np.unique(c.rows[a:b]).size == b - a
        return
    assert c.bases[0] == 0
    assert c.bases[-1] == n
    assert (np.diff(c.bases) > 0).all()
    assert c.starts.size == (c.bases.size - 1) * D + 1
    assert c.starts[-1] == c.codes.size
    assert c.level_starts[-1] == c.values.size
    for table in levels_of(c):
        assert table[0] == 0
        assert (np.diff(table) > 0).all()
    column = np.tile(np.arange(D), c.bases.size - 1).repeat(np.diff(c.starts))
    assert (c.codes < np.diff(c.level_starts)[column]).all()  # else a loop writes outside its table
    if c.rows is not None:
        assert c.rows.size == c.codes.size
        block = np.repeat(np.arange(c.bases.size - 1), D).repeat(np.diff(c.starts))
        assert (c.rows < np.diff(c.bases)[block]).all()


# ---------------------------------------------------------------- exact


@by_layout
@by_container
@by_dtype
@few
@given(data=st.data())
def test_exact_codes_round_trip(layout: str, container: Any, dtype: type, data: st.DataObject) -> None:
    X = data.draw(histograms(dtype))
    c = encoded(container(X), layout)
    assert_well_formed(c)
    np.testing.assert_array_equal(decode(c).toarray(), X)


@by_layout
def test_rows_can_be_decoded_alone(layout: str) -> None:
    X = sparse_rows(23, 6)
    c = encoded(X, layout)
    for rows in ([], [0], [22], [3, 4, 11], range(23)):
        wanted = np.array(rows, np.int64)
        np.testing.assert_array_equal(decode(c, wanted).toarray(), X[wanted])


@by_dtype
def test_the_layout_follows_the_data(dtype: type) -> None:
    """More than 255 distinct values in one dimension ask for sorted columns; few non-zeros for stored row numbers."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 3)).astype(dtype)
    X[:, 1] = 0
    assert np.unique(X[:255, 0]).size == 255
    assert isinstance(encode(X[:255]), CodeBlocks)
    assert isinstance(encode(X), SortedColumns)
    assert isinstance(encode(sp.csr_matrix(X)), SortedColumns)
    late = np.vstack([np.zeros((16 * limits.MAX_LEVELS, 3), dtype), X])  # not seen in the first look
    assert isinstance(encode(late), SortedColumns)
    for each in (X[:255], X, late):
        np.testing.assert_array_equal(decode(encode(each)).toarray(), each)
    dense, sparse = encode(X[:9]), encode(X[:9] * (rng.random((9, 3)) < 0.1))
    assert isinstance(dense, CodeBlocks)
    assert isinstance(sparse, CodeBlocks)
    assert dense.rows is None
    assert sparse.rows is not None


def test_a_smaller_limit_asks_for_sorted_columns() -> None:
    X = np.array([[1.0], [2.0], [3.0], [3.0]])
    assert isinstance(encode(X, most_levels=3), CodeBlocks)
    assert isinstance(encode(X, most_levels=2), SortedColumns)


def test_more_than_65536_rows_keep_their_numbers() -> None:
    n = 70_000
    X = np.arange(n, dtype=np.float64)[:, None]
    c = encode(X)
    assert isinstance(c, SortedColumns)
    np.testing.assert_array_equal(c.rows, np.arange(1, n))
    few_values = encode(np.minimum(X, 9.0))
    assert isinstance(few_values, CodeBlocks)
    assert np.diff(few_values.bases).max() <= limits.BLOCK_ROWS
    np.testing.assert_array_equal(decode(few_values).toarray(), np.minimum(X, 9.0))


@by_layout
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1)])
def test_nothing_is_encoded_as_nothing(layout: str, shape: tuple[int, int]) -> None:
    c = encoded(np.zeros(shape), layout)
    assert_well_formed(c)
    assert decode(c).shape == shape
    assert decode(c).nnz == 0


@by_layout
def test_neighbouring_huge_and_tiny_numbers_stay_apart(layout: str) -> None:
    """Nothing lies between the first two of each: the border must not round up to the upper one."""
    tops = [5e-324, 1e-310, 1.0, 3.0, 1e300, np.finfo(np.float64).max / 2]
    X = np.array([[t, np.nextafter(t, np.inf), np.nextafter(np.nextafter(t, np.inf), np.inf)] for t in tops]).T
    c = encoded(np.vstack([X, np.zeros((1, len(tops)))]), layout)
    assert_well_formed(c)
    np.testing.assert_array_equal(decode(c).toarray()[:-1], X)


# ---------------------------------------------------------------- binned


@by_blocks
@by_binning
@by_dtype
@few
@given(data=st.data(), levels=st.integers(1, 5))
def test_binned_codes_take_the_nearest_level(
    layout: str, binning: str, dtype: type, data: st.DataObject, levels: int
) -> None:
    X = data.draw(histograms(dtype))
    c = encoded(X, layout, levels, binning)
    assert_well_formed(c)
    Y = decode(c).toarray()
    np.testing.assert_array_equal(Y == 0, X == 0)  # zero stays zero, and nothing else becomes it
    for d, table in enumerate(levels_of(c)):
        x, above_zero = X[:, d].astype(np.float64), table[1:]
        assert above_zero.size <= levels
        assert table[-1] == x.max()
        if binning == "width" and x.any():
            assert_close(table, np.linspace(0.0, x.max(), levels + 1))
        for was, became in zip(x[x > 0], Y[x > 0, d], strict=True):
            assert abs(was - became) <= np.abs(was - above_zero).min() * (1 + 1e-9)
        if binning == "quantile" and np.unique(x[x > 0]).size <= levels:
            np.testing.assert_array_equal(Y[:, d], x)


def test_quantile_levels_follow_the_data() -> None:
    """Nine of ten values lie below 0.1: so do nine of ten levels, give or take one."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((2000, 1)) < 0.9, 0.1, 1.0) * rng.random((2000, 1))
    (quantile,) = levels_of(encode(X, 100))
    (width,) = levels_of(encode(X, 100, "width"))
    assert quantile.size == width.size == 101
    share = np.mean(X < 0.1)
    assert abs(np.mean(quantile[1:] < 0.1) - share) < 0.02
    assert np.sum(width[1:] < 0.1) in {9, 10}


def test_levels_of_many_rows_come_from_a_sample_and_the_top() -> None:
    X = np.zeros((50, 2))
    X[7], X[8, 1] = [3.0, 5.0], 2.0
    X[::7, 0] = 1.0
    first, second = levels_of(encode(X, 4, sample_rows=5))
    assert first[-1] == 1.0
    assert second.tolist() == [0.0, 5.0]  # the sample has only zeros there


@by_container
@by_dtype
@pytest.mark.parametrize("sample_rows", [40, 1000])
@few
@given(at_once=st.integers(1, 200), seed=st.integers(0, 99), weighted=st.booleans())
def test_levels_chosen_a_few_dimensions_at_a_time_are_those_of_all_at_once(
    container: Any, dtype: type, sample_rows: int, at_once: int, seed: int, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = np.round(np.maximum(rng.normal(0.2, 0.5, (60, 7)), 0), rng.integers(1, 4)).astype(dtype)
    weight = rng.random(60) if weighted else None
    expected = encode(sp.csr_matrix(X), 5, weight=weight, sample_rows=sample_rows)
    with patch.object(limits, "SORTED_AT_ONCE", at_once):
        found = encode(container(X), 5, weight=weight, sample_rows=sample_rows)
    for one, other in zip(levels_of(found), levels_of(expected), strict=True):
        np.testing.assert_array_equal(one, other)


def test_levels_of_dense_rows_take_less_memory_than_the_rows() -> None:
    """Codes included. All dimensions at once would take seven times as much."""
    X = np.random.default_rng(0).random((20_000, 100), np.float32)
    with patch.object(limits, "SORTED_AT_ONCE", 100_000):
        encode(X, 255)  # compiles
        tracemalloc.start()
        try:
            encode(X, 255)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < X.nbytes


def test_all_255_levels_fit_one_byte() -> None:
    X = np.random.default_rng(0).random((1000, 2))
    for binning in ("quantile", "width"):
        c = encode(X, limits.MAX_LEVELS, binning)
        assert_well_formed(c)
        assert [t.size for t in levels_of(c)] == [256, 256]
        assert np.abs(decode(c).toarray() - X).max() < 0.02


@by_container
def test_column_max(container: Any) -> None:
    X = sparse_rows(30, 6)
    np.testing.assert_array_equal(column_max(container(X)), X.max(axis=0))
    assert column_max(container(np.zeros((0, 2)))).tolist() == [0.0, 0.0]


# ---------------------------------------------------------------- appending


def same(a: codes.Codes, b: codes.Codes) -> None:
    """Equal levels and equal entries, however they are blocked."""
    assert type(a) is type(b)
    assert a.shape == b.shape
    np.testing.assert_array_equal(decode(a).toarray(), decode(b).toarray())
    np.testing.assert_array_equal(a.values, b.values)
    if isinstance(a, CodeBlocks) and isinstance(b, CodeBlocks):
        np.testing.assert_array_equal(a.level_starts, b.level_starts)


@by_container
@few
@given(data=st.data(), limit=st.integers(1, 12))
def test_exact_append_is_encoding_the_stacked_rows(container: Any, data: st.DataObject, limit: int) -> None:
    old, new = data.draw(histograms(dims=3)), data.draw(histograms(dims=3))
    small: dict[str, Any] = {"most_rows": BLOCK_ROWS, "most_levels": limit}
    longer = append(encode(container(old), **small), container(new), **small)
    assert_well_formed(longer)
    same(longer, encode(np.vstack([old, new]), **small))


@by_blocks
@few
@given(data=st.data(), levels=st.integers(1, 4))
def test_binned_append_keeps_the_levels(layout: str, data: st.DataObject, levels: int) -> None:
    """Also for values above the last level, and in dimensions that had none."""
    old, new = data.draw(histograms(dims=3)), data.draw(histograms(dims=3, top=2.0))
    before = encoded(old, layout, levels)
    assert isinstance(before, CodeBlocks)
    longer = append(before, new, levels, most_rows=BLOCK_ROWS)
    assert isinstance(longer, CodeBlocks)
    assert_well_formed(longer)
    same(longer, codes.encode_as(np.vstack([old, new]), before.level_starts, before.values))
    Y = decode(longer).toarray()
    np.testing.assert_array_equal(Y[: len(old)], decode(before).toarray())
    np.testing.assert_array_equal(Y[len(old) :] > 0, (new > 0) & (old.max(axis=0) > 0))


@by_blocks
@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_many_small_appends(layout: str, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row by row: the entries are right, and blocks neither crumble to single rows nor grow too long."""
    monkeypatch.setenv("SACCADE_NUM_THREADS", threads)
    X = sparse_rows(200, 4, density=0.5)
    X[100:] *= np.random.default_rng(1).random((100, 4)) > 0.2
    start = encoded(X[:10], layout, 4)
    assert isinstance(start, CodeBlocks)
    c: codes.Codes = start
    for i in range(10, len(X)):
        c = append(c, X[i : i + 1], 4, most_rows=32)
    assert isinstance(c, CodeBlocks)
    assert_well_formed(c)
    same(c, codes.encode_as(X, start.level_starts, start.values))
    assert np.diff(c.bases).max() <= 32
    assert np.diff(c.bases).mean() >= 8


def test_appending_does_not_read_the_full_blocks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_NUM_THREADS", "1")
    c = encode(sparse_rows(35, 4), 3, most_rows=10)
    with patch.object(decoding, "_decode_block", wraps=decoding._decode_block) as decoded:
        c = append(c, sparse_rows(4, 4), 3, most_rows=10)
        assert decoded.call_count == 0
        assert append(c, sparse_rows(3, 4), 3, most_rows=10).shape == (42, 4)
        assert [call.args[1] for call in decoded.call_args_list] == [4]  # the short one, which is filled up


@pytest.mark.parametrize("levels", [None, 3])
def test_appending_to_nothing_and_nothing(levels: int | None) -> None:
    X = sparse_rows(9, 4)
    nothing = encode(X[:0], levels)
    longer = append(nothing, X, levels)
    assert longer.shape == (9, 4)
    assert_well_formed(longer)
    c = encode(X, levels)
    same(append(c, X[:0], levels), c)


@pytest.mark.parametrize("levels", [None, 3])
def test_appending_wider_rows_makes_room_for_negative_parts(levels: int | None) -> None:
    X = sparse_rows(9, 4)
    wide = split_signs(-X)
    longer = append(encode(X, levels), wide, levels)
    assert longer.shape == (18, 8)
    whole = np.vstack([np.hstack([X, 0 * X]), wide])
    same(longer, encode(whole, levels))
    same(append(encode(whole, levels), X, levels), encode(np.vstack([whole, np.hstack([X, 0 * X])]), levels))


# ---------------------------------------------------------------- signs


@by_container
def test_split_signs(container: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 5)) * (rng.random((12, 5)) < 0.6)
    signed = container(X)
    wide = split_signs(signed)
    assert sp.issparse(wide) == sp.issparse(signed)
    W = np.asarray(wide.todense()) if sp.issparse(wide) else wide
    assert W.shape == (12, 10)
    assert (W >= 0).all()
    np.testing.assert_array_equal(W[:, :5] - W[:, 5:], X)
    assert not (W[:, :5] * W[:, 5:]).any()
    np.testing.assert_array_equal(decode(encode(wide)).toarray(), W)
    np.testing.assert_array_equal(np.asarray(signed.todense()) if sp.issparse(signed) else signed, X)


@by_container
def test_data_without_negative_entries_is_not_copied(container: Any) -> None:
    for X in (container(sparse_rows(6, 3)), container(np.zeros((0, 3)))):
        assert split_signs(X) is X
