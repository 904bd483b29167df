"""Every compiled loop against its twin, on whole ranges cut in two: threads share the work out the same way."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher

from saccade.operators import block, codes, encode_loops, few_loops, gradient_loops, loops, predict_loops, table_loops
from tests.operators import predict_reference, reference
from tests.operators.histograms import Array, columns, encoded, histograms, sparse_rows
from tests.tolerances import assert_close

DTYPES = [np.float32, np.float64]
by_dtype = pytest.mark.parametrize("dtype", DTYPES)
by_lanes = pytest.mark.parametrize("lanes", [1, 4])
by_layout = pytest.mark.parametrize("layout", ["dense blocks", "sparse blocks"])
few = settings(max_examples=25)
cuts = st.floats(0.0, 1.0)
SCRATCH = {
    "sorted_product_one": {"A", "B"},
    "sorted_product": {"C"},
    "sorted_moments": {"A", "B"},
    "sorted_lines": {"C", "off"},
    "mark_nodes": {"total"},
    "sorted_line_below": {"C"},
    "intersect": {"panel", "sums"},
    "distinct": {"table"},
    "walk_squares_few": {"f"},
}
NO_NUMBER = np.nan  # what scratch holds before: it must not matter


def in_two(work: Callable[[int, int], None], total: int, cut: float) -> None:
    """`work` on 0..k and k..total: what the two halves do must add up."""
    middle = round(cut * total)
    work(0, middle)
    work(middle, total)


def sorted_steps(X: Array, dtype: type) -> tuple[Array, Array, Array]:
    """starts, rows and steps of the sorted layout."""
    c = codes._sorted(codes._columns(X))
    steps = c.values.copy()
    for a, b in pairwise(c.starts):
        steps[a:b] = np.diff(c.values[a:b], prepend=0.0)
    return c.starts, c.rows, steps.astype(dtype)


def blocks(X: Array, layout: str) -> codes.CodeBlocks:
    c = encoded(X, layout)
    assert isinstance(c, codes.CodeBlocks)
    assert (c.rows is None) == (layout == "dense blocks")
    return c


def test_every_loop_has_a_twin_with_the_same_arguments() -> None:
    everything = vars(loops) | vars(encode_loops) | vars(gradient_loops) | vars(predict_loops) | vars(table_loops)
    slow = vars(reference) | vars(predict_reference)
    compiled = {name: f for name, f in everything.items() if isinstance(f, Dispatcher) and name[0] != "_"}
    twins = {name: f for name, f in slow.items() if inspect.isfunction(f) and name[0] != "_"}
    assert set(twins) == set(compiled)
    few_rows = {name: f for name, f in vars(few_loops).items() if isinstance(f, Dispatcher)}
    twins |= {name: twins[name.removesuffix("_few")] for name in few_rows}
    for name, loop in (compiled | few_rows).items():
        only_for_speed = SCRATCH.get(name, set()) | {"lanes"}
        arguments = [a for a in inspect.signature(loop.py_func).parameters if a not in only_for_speed]
        assert list(inspect.signature(twins[name]).parameters) == arguments, name


# ---------------------------------------------------------------- sorted columns


@few
@given(data=st.data(), cut=cuts)
def test_steps_rows_and_places_of_sorted_columns(data: st.DataObject, cut: float) -> None:
    X = data.draw(histograms())
    n, D = X.shape
    c = codes._sorted(codes._columns(X))
    outputs = []
    for module in (loops, reference):
        steps, total = np.full(c.values.size, NO_NUMBER), columns(n, 2).copy()
        in_two(lambda a, b, m=module, s=steps: m.rises(c.values, c.starts, a, b, s), D, cut)
        in_two(lambda a, b, m=module, t=total: m.sum_by_row(c.starts, c.rows, c.values, a, b, t), D, cut)
        outputs.append((steps, total))
    for fast, slow in zip(*outputs, strict=True):
        assert_close(fast, slow)
    place, wanted, picked = np.arange(n) // 2, np.arange(n) % 2 == 0, []
    for module in (encode_loops, reference):
        counts = np.full(D, -1)
        in_two(lambda a, b, m=module, k=counts: m.count_placed(c.starts, c.rows, wanted, a, b, k), D, cut)
        heads = np.append(0, np.cumsum(counts))
        row, value = np.full(heads[-1], -1), np.full(heads[-1], NO_NUMBER)
        in_two(
            lambda a, b, m=module, h=heads, r=row, v=value: m.pick_placed(
                c.starts, c.rows, c.values, wanted, place, h, a, b, r, v
            ),
            D,
            cut,
        )
        picked.append((counts, row, value))
    for fast, slow in zip(*picked, strict=True):
        np.testing.assert_array_equal(fast, slow)


def test_rounding_of_steps_does_not_add_up() -> None:
    """A thousand steps in float32: their sums stay as near to the levels as one step is, and none is negative."""
    rng = np.random.default_rng(0)
    levels = np.sort(rng.random(1000))
    levels[500:600] = levels[500]
    steps = np.empty(1000, np.float32)
    loops.rises(levels, np.array([0, 1000]), 0, 1, steps)
    assert (steps >= 0).all()
    off = np.abs(np.cumsum(steps.astype(np.float64)) - levels)
    assert off.max() <= 1e-7 * np.diff(levels, prepend=0.0).max()
    assert (
        np.abs(np.cumsum(np.diff(levels, prepend=0.0).astype(np.float32).astype(np.float64)) - levels).max() > off.max()
    )


@by_dtype
@few
@given(data=st.data(), cut=cuts)
def test_sorted_product_one(dtype: type, data: st.DataObject, cut: float) -> None:
    X = data.draw(histograms())
    n, D = X.shape
    starts, rows, steps = sorted_steps(X, dtype)
    v, out = columns(n, 1, dtype)[:, 0], columns(n, 1, dtype, seed=1)[:, 0]
    expected = out.astype(np.float64)
    A, B = np.full((2, n + 2), NO_NUMBER, dtype)
    in_two(lambda a, b: loops.sorted_product_one(starts, rows, steps, a, b, v, out, A, B), D, cut)
    reference.sorted_product_one(starts, rows, steps, 0, D, v, expected)
    assert_close(out, expected, dtype)


@by_dtype
@by_lanes
@few
@given(data=st.data(), cut=cuts)
def test_sorted_product(dtype: type, lanes: int, data: st.DataObject, cut: float) -> None:
    X = data.draw(histograms())
    n, D = X.shape
    starts, rows, steps = sorted_steps(X, dtype)
    V, out = columns(n, lanes, dtype), columns(n, lanes, dtype, seed=1)
    expected = out.astype(np.float64)
    C = np.full((n, lanes), NO_NUMBER, dtype)
    in_two(lambda a, b: loops.sorted_product(starts, rows, steps, a, b, V, out, C, (0,) * lanes), D, cut)
    reference.sorted_product(starts, rows, steps, 0, D, V, expected)
    assert_close(out, expected, dtype)


@by_dtype
@by_lanes
@few
@given(data=st.data(), cut=cuts)
def test_sorted_tables(dtype: type, lanes: int, data: st.DataObject, cut: float) -> None:
    X = data.draw(histograms())
    starts, rows, steps = sorted_steps(X, np.float64)
    V = columns(len(X), lanes, dtype)
    T = np.full((rows.size + X.shape[1], lanes), NO_NUMBER)
    expected = T.copy()
    in_two(lambda a, b: loops.sorted_tables(starts, rows, steps, a, b, V, T, (0,) * lanes), X.shape[1], cut)
    reference.sorted_tables(starts, rows, steps, 0, X.shape[1], V, expected)
    assert_close(T, expected)


# ---------------------------------------------------------------- blocks of codes


@by_dtype
@by_lanes
@few
@given(data=st.data(), cut=cuts)
def test_histogram_and_look_up_of_some_rows(dtype: type, lanes: int, data: st.DataObject, cut: float) -> None:
    X = data.draw(histograms())
    c = blocks(X, "dense blocks")
    chosen = np.flatnonzero(np.random.default_rng(len(X)).random(len(X)) < 0.6)
    edges, fixed = np.searchsorted(chosen, c.bases), (c.starts, c.codes, c.bases, c.level_starts)
    V, H = columns(chosen.size, lanes, dtype), columns(c.values.size, lanes, dtype, seed=1)
    expected = H.astype(np.float64)
    in_two(lambda a, b: loops.histogram_of(*fixed, edges, chosen, a, b, V, H, (0,) * lanes), X.shape[1], cut)
    reference.histogram_of(*fixed, edges, chosen, 0, X.shape[1], V, expected)
    assert_close(H, expected, dtype)

    T, out = columns(c.values.size, lanes, dtype), columns(chosen.size, lanes, dtype, seed=1)
    expected = out.astype(np.float64)
    in_two(lambda a, b: loops.look_up_at(*fixed, edges, chosen, a, b, T, out, (0,) * lanes), chosen.size, cut)
    reference.look_up_at(*fixed, edges, chosen, 0, chosen.size, T, expected)
    assert_close(out, expected, dtype)


@by_layout
@by_dtype
@by_lanes
@few
@given(data=st.data(), cut=cuts)
def test_histogram_and_look_up(layout: str, dtype: type, lanes: int, data: st.DataObject, cut: float) -> None:
    X = data.draw(histograms())
    c = blocks(X, layout)
    layout_arrays = (c.starts, c.rows, c.codes, c.bases, c.level_starts)
    count = c.bases.size - 1

    V, H = columns(len(X), lanes, dtype), columns(c.values.size, lanes, dtype, seed=1)
    expected = H.astype(np.float64)
    in_two(lambda a, b: loops.histogram(*layout_arrays, a, b, V, H, (0,) * lanes), count, cut)
    reference.histogram(*layout_arrays, 0, count, V, expected)
    assert_close(H, expected, dtype)

    T, out = columns(c.values.size, lanes, dtype, seed=2), columns(len(X), lanes, dtype, seed=3)
    expected = out.astype(np.float64)
    in_two(lambda a, b: loops.look_up(*layout_arrays, a, b, T, out, (0,) * lanes), count, cut)
    reference.look_up(*layout_arrays, 0, count, T, expected)
    assert_close(out, expected, dtype)


@by_layout
@by_lanes
@pytest.mark.parametrize("dims", [3, 8, 11])
def test_look_up_takes_every_dimension_once(layout: str, lanes: int, dims: int) -> None:
    """Those of dense codes go four at a time."""
    X = sparse_rows(30, dims)
    c = blocks(X, layout)
    layout_arrays, count = (c.starts, c.rows, c.codes, c.bases, c.level_starts), c.bases.size - 1
    T, out = columns(c.values.size, lanes), columns(len(X), lanes, seed=1)
    expected = out.copy()
    loops.look_up(*layout_arrays, 0, count, T, out, (0,) * lanes)
    reference.look_up(*layout_arrays, 0, count, T, expected)
    assert_close(out, expected)


@by_dtype
@by_lanes
@few
@given(data=st.data(), cut=cuts, threads=st.integers(1, 3))
def test_cumulate(dtype: type, lanes: int, data: st.DataObject, cut: float, threads: int) -> None:
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    level_starts = np.concatenate([[0], np.cumsum(sizes)])
    total = int(level_starts[-1])
    steps = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.125, 1.0]), min_size=total, max_size=total)), dtype)
    H = columns(threads * total, lanes, dtype).reshape(threads, total, lanes)
    expected = H.astype(np.float64)
    in_two(lambda a, b: loops.cumulate(level_starts, steps, a, b, H, (0,) * lanes), len(sizes), cut)
    reference.cumulate(level_starts, steps, 0, len(sizes), expected)
    assert_close(H[0], expected[0], dtype)
    np.testing.assert_array_equal(H[1:], columns(threads * total, lanes, dtype).reshape(H.shape)[1:])


# ---------------------------------------------------------------- encoding


def some_borders(D: int, seed: int) -> tuple[Array, Array]:
    """Zero and a few borders for each dimension, some on a tied value, some dimensions with none at all."""
    rng = np.random.default_rng(seed)
    tables = [np.append(0.0, np.sort(rng.choice([0.125, 0.3, 0.5, 0.9], k))) for k in rng.integers(0, 4, D)]
    tables = [t if rng.random() < 0.8 else np.zeros(0) for t in tables]
    return np.concatenate(tables), np.concatenate([[0], np.cumsum([t.size for t in tables])])


@by_dtype
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@few
@given(data=st.data(), cut=cuts, seed=st.integers(0, 99))
def test_sparse_rows_to_codes(dtype: type, index_dtype: type, data: st.DataObject, cut: float, seed: int) -> None:
    X = data.draw(histograms(dtype))
    n, D = X.shape
    S = sp.csr_matrix(X)
    S.data[::3] = 0  # stored zeros are no entries
    rows_csr = (S.indptr.astype(index_dtype), S.indices.astype(index_dtype), S.data)
    bases = np.append(np.arange(0, n, 4), n)
    count = bases.size - 1

    counts, expected = np.zeros(count * D, np.int64), np.zeros(count * D, np.int64)
    in_two(lambda a, b: encode_loops.count_sparse(*rows_csr, bases, D, a, b, counts), count, cut)
    reference.count_sparse(*rows_csr, bases, D, 0, count, expected)
    np.testing.assert_array_equal(counts, expected)

    starts = np.concatenate([[0], np.cumsum(counts)])
    borders, border_starts = some_borders(D, seed)
    given_to = (*rows_csr, bases, borders, border_starts)
    rows, coded = np.full(starts[-1], 99, np.uint16), np.full(starts[-1], 99, np.uint8)
    twin_rows, twin_coded = rows.copy(), coded.copy()
    in_two(lambda a, b: encode_loops.encode_sparse(*given_to, a, b, starts, rows, coded), count, cut)
    reference.encode_sparse(*given_to, 0, count, starts, twin_rows, twin_coded)
    np.testing.assert_array_equal(rows, twin_rows)
    np.testing.assert_array_equal(coded, twin_coded)


@by_dtype
@few
@given(data=st.data(), cut=cuts, seed=st.integers(0, 99), start=st.integers(0, 7))
def test_encode_dense(dtype: type, data: st.DataObject, cut: float, seed: int, start: int) -> None:
    X = data.draw(histograms(dtype))
    borders, border_starts = some_borders(X.shape[1], seed)
    coded = np.full(start + X.size + 3, 99, np.uint8)
    expected = coded.copy()
    in_two(lambda a, b: encode_loops.encode_dense(X, borders, border_starts, a, b, start, coded), X.shape[1], cut)
    reference.encode_dense(X, borders, border_starts, 0, X.shape[1], start, expected)
    np.testing.assert_array_equal(coded, expected)


def crowd(rng: np.random.Generator, count: int) -> Array:
    """Positive values of very different size, many of them crowded into one bucket."""
    near = 1.0 + 1e-12 * rng.random(count // 2)
    return np.concatenate([near, np.exp(rng.normal(0.0, 40.0, count - near.size))])


@by_dtype
@few
@given(data=st.data(), cut=cuts)
def test_to_columns(dtype: type, data: st.DataObject, cut: float) -> None:
    S = sp.csr_matrix(data.draw(histograms(dtype)))
    (n, D), bases = S.shape, np.array([0, S.shape[0] // 3, S.shape[0]])
    counts = np.array([(S[a:b] > 0).sum(axis=0).A1 for a, b in pairwise(bases)]).astype(np.int64)
    fill = np.cumsum(counts.sum(axis=0)) - counts.sum(axis=0) + np.cumsum(counts, axis=0) - counts
    rows, values = np.zeros((2, counts.sum()))
    expected = fill.copy(), rows.copy(), values.copy()
    in_two(lambda a, b: encode_loops.to_columns(*csr(S), bases, a, b, fill, rows, values), 2, cut)
    reference.to_columns(*csr(S), bases, 0, 2, *expected)
    for found, wanted in zip((fill, rows, values), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert D == 0 or n == 0 or rows.max(initial=0.0) < n


@by_dtype
@few
@given(data=st.data(), cut=cuts)
def test_dense_to_columns(dtype: type, data: st.DataObject, cut: float) -> None:
    X = data.draw(histograms(dtype))
    starts = np.append(0, np.cumsum((X > 0).sum(axis=0)))
    found, expected = (np.full((2, starts[-1]), NO_NUMBER) for _ in range(2))
    in_two(lambda a, b: encode_loops.dense_to_columns(X, starts, a, b, *found), X.shape[1], cut)
    reference.dense_to_columns(X, starts, 0, X.shape[1], *expected)
    np.testing.assert_array_equal(found, expected)


@few
@given(seed=st.integers(0, 1000), ties=st.booleans(), cut=cuts)
def test_sort_columns(seed: int, ties: bool, cut: float) -> None:
    rng = np.random.default_rng(seed)
    starts = np.append(0, np.cumsum(rng.choice([0, 1, 2, 7, 300], 6)))
    values = crowd(rng, starts[-1])
    values = rng.permutation(np.round(values, 1) + 0.1 if ties else values)
    rows = rng.permutation(starts[-1]).astype(np.uint32)
    expected = values.copy(), rows.copy()
    before = dict(zip(rows.tolist(), values.tolist(), strict=True))
    in_two(lambda a, b: encode_loops.sort_columns(starts, a, b, values.view(np.int64), rows), 6, cut)
    reference.sort_columns(starts, 0, 6, expected[0].view(np.int64), expected[1])
    np.testing.assert_array_equal(values, expected[0])
    assert dict(zip(rows.tolist(), values.tolist(), strict=True)) == before  # every row kept its value


@by_dtype
@few
@given(data=st.data(), cut=cuts)
def test_column_max(dtype: type, data: st.DataObject, cut: float) -> None:
    S = sp.csr_matrix(data.draw(histograms(dtype)))
    out = np.linspace(0.0, 1.0, S.shape[1]).astype(dtype)
    expected = out.copy()
    in_two(lambda a, b: encode_loops.column_max(S.indices, S.data, a, b, out), S.nnz, cut)
    reference.column_max(S.indices, S.data, 0, S.nnz, expected)
    np.testing.assert_array_equal(out, expected)


def check_distinct(bits: Array, limit: int) -> None:
    """As the loop finds them, ascending; its twin finds the same."""
    found, expected = np.empty((2, limit), np.int64)
    count = encode_loops.distinct(bits, np.zeros(4 * limit, np.int64), found)
    assert count == reference.distinct(bits, expected)
    np.testing.assert_array_equal(np.sort(found[:count]), expected[:count])


@by_dtype
@given(data=st.data(), limit=st.integers(1, 8))
def test_distinct(dtype: type, data: st.DataObject, limit: int) -> None:
    """Few slots for many values: collisions run past the end of the table."""
    bits = data.draw(histograms(dtype, dims=1)).ravel().astype(np.float64).view(np.int64)
    check_distinct(bits, limit)


@pytest.mark.parametrize("values", [np.arange(256.0), np.arange(257.0), np.exp2(np.arange(-120.0, 120.0))])
def test_distinct_at_the_limit(values: Array) -> None:
    bits = np.random.default_rng(0).permutation(np.tile(values, 3)).view(np.int64)
    check_distinct(bits, 255)


# ---------------------------------------------------------------- prediction


@few
@given(n=st.integers(0, 13), b=st.sampled_from([0, 1, 5, 511, 512, 1300]), cut=cuts)
def test_weighted_squares(n: int, b: int, cut: float) -> None:
    K, weight, out = columns(n, b), columns(n, 1, seed=1)[:, 0], columns(b, 1, seed=2)[:, 0]
    expected = out.copy()
    in_two(lambda first, last: loops.weighted_squares(K, weight, first, last, out), b, cut)
    reference.weighted_squares(K, weight, 0, b, expected)
    assert_close(out, expected)


def csr(S: Any) -> tuple[Array, Array, Array]:
    return S.indptr, S.indices, S.data


# ---------------------------------------------------------------- dense blocks


@pytest.mark.parametrize("lanes", [1, 4])
@few
@given(data=st.data(), cut=cuts, dims=st.integers(1, 7), upper=st.booleans())
def test_intersect(lanes: int, data: st.DataObject, cut: float, dims: int, upper: bool) -> None:
    """Panels that the rows do not fill, of fewer dimensions than there are, and rows that only one side has wide."""
    X = sp.csr_matrix(data.draw(histograms()))
    Z = X if upper else sp.csr_matrix(data.draw(histograms()))
    out = columns(X.shape[0], Z.shape[0])
    expected = out.copy()
    panel, sums = np.full((dims, lanes), NO_NUMBER), np.full((1, lanes), NO_NUMBER)
    width = max(X.shape[1], Z.shape[1])
    given_to = (*block.cut(X, dims, width), *block.cut(Z, dims, width), upper)
    count = -(-Z.shape[0] // lanes)
    in_two(lambda a, b: loops.intersect(*given_to, a, b, out, panel, sums, (0,) * lanes), count, cut)
    reference.intersect(*given_to, 0, count, expected)
    only = np.triu if upper else np.asarray
    assert_close(only(out), only(expected))


@by_dtype
@few
@given(data=st.data(), cut=cuts)
def test_to_rows(dtype: type, data: st.DataObject, cut: float) -> None:
    X = data.draw(histograms(dtype))
    indptr = np.append(0, np.cumsum(np.count_nonzero(X, axis=1))).astype(np.int32)
    found, expected = (np.full((2, indptr[-1]), NO_NUMBER) for _ in range(2))
    in_two(lambda a, b: encode_loops.to_rows(X, indptr, a, b, *found), len(X), cut)
    reference.to_rows(X, indptr, 0, len(X), *expected)
    np.testing.assert_array_equal(found, expected)
