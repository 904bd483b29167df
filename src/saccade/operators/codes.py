"""Histograms as codes and levels: the data structure behind every fast product.

Each dimension keeps a small sorted table of *levels*, and each non-zero entry says which level it has; zeros are not
kept (or have code 0), so sparsity survives. Transforms, weights and scale act on the levels alone. Two layouts, chosen
by measurement (docs/decisions/002): `SortedColumns` are exact. `CodeBlocks` have one byte per entry, and are exact when
no dimension has more than 255 distinct values (pixels, counts); else the nearest of chosen levels stands for a value:
exact inference for a slightly coarser kernel, which is itself positive semi-definite.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.arrays import Array, PerRow
from saccade._core.chunks import batches
from saccade._core.threads import ranged, share, share_calls, thread_count

DENSE_FROM = 0.25  # share of non-zeros from which a byte for every entry beats three for each non-zero


@dataclass(frozen=True)
class SortedColumns:
    """Entries k of dimension d are starts[d] <= k < starts[d+1], ascending in `values`; `rows` says whose they are."""

    shape: tuple[int, int]
    starts: Annotated[Array, "D+1"]  # int64
    rows: Annotated[Array, "nnz"]  # uint16 or uint32
    values: Annotated[Array, "nnz"]  # float64

    @property
    def level_starts(self) -> Annotated[Array, "D+1"]:
        """Every entry is its own level."""
        return self.starts


@dataclass(frozen=True)
class CodeBlocks:
    """Row blocks of code columns. Dimension d has the levels values[level_starts[d]:level_starts[d+1]], the first is 0.

    Entries of (block, d) are starts[block*D + d] <= k < starts[block*D + d + 1]; entry k belongs to row
    bases[block] + rows[k], or, when `rows` is None, to the next row each (dense: zeros are there too, with code 0).
    """

    shape: tuple[int, int]
    bases: Annotated[Array, "blocks+1"]  # int64, first row of each block
    starts: Annotated[Array, "blocks*D+1"]  # int64
    rows: Annotated[Array, "nnz"] | None  # uint16
    codes: Annotated[Array, "nnz"]  # uint8
    level_starts: Annotated[Array, "D+1"]  # int64
    values: Annotated[Array, "levels"]  # float64


Codes = SortedColumns | CodeBlocks


def level_dims(starts: Annotated[Array, "D+1"]) -> Annotated[Array, "L"]:
    """The dimension of each level."""
    return np.repeat(np.arange(starts.size - 1), np.diff(starts))


def row_type(n: int) -> type[np.unsignedinteger[Any]]:
    """The type of the row numbers of `SortedColumns`."""
    return np.uint16 if n <= 65_536 else np.uint32


def split_signs(X: Any) -> Any:
    """A signed matrix as a non-negative one of twice the width: positive parts, then negative parts.

    min(x⁺, z⁺) + min(x⁻, z⁻) is positive semi-definite like the kernel itself, so any embedding can be used.
    Data without a negative entry comes back as it is.

    >>> split_signs(np.array([[1.0, -2.0]]))
    array([[1., 0., 0., 2.]])
    """
    D = X.shape[1]
    data = X.data if sp.issparse(X) else X
    if not (data.size and data.min() < 0):
        return X
    if not sp.issparse(X):
        return np.hstack([np.maximum(X, 0), np.maximum(-X, 0)])
    wide = X.indices + np.where(X.data < 0, D, 0).astype(X.indices.dtype)
    return sp.csr_matrix((np.abs(X.data), wide, X.indptr), shape=(X.shape[0], 2 * D))


def encode(
    X: Annotated[Any, "n, D"],  # non-negative, dense or CSR without duplicate entries
    levels: int | None = None,
    binning: str = "quantile",
    weight: PerRow | None = None,  # how many copies of itself each row stands for, where levels are quantiles
    *,
    dense: bool | None = None,
    most_rows: int | None = None,  # of a block; None: as the cache likes it
    most_levels: int = limits.MAX_LEVELS,  # of exact codes in blocks
    sample_rows: int = limits.SAMPLE_ROWS,
) -> Codes:
    """Codes of X: exact when `levels` is None, else at most `levels` levels per dimension ("quantile" or "width")."""
    if levels is None:
        columns = _columns(X) if sp.issparse(X) else None
        tables = _distinct_levels(X if columns is None else columns, most_levels)
        if tables is None:
            return _sorted(_columns(X) if columns is None else columns)
    else:
        tables = _chosen_levels(X, levels, binning, weight, sample_rows)
    level_starts = np.concatenate([[0], np.cumsum([len(t) for t in tables])]).astype(np.int64)
    entries = int(X.nnz if sp.issparse(X) else np.count_nonzero(X))
    dense = entries >= DENSE_FROM * X.shape[0] * X.shape[1] if dense is None else dense
    block_rows = even_rows(X.shape[0], most_rows or suiting_rows(X.shape, entries, dense))
    return encode_as(X, level_starts, np.concatenate([np.zeros(0), *tables]), dense=dense, block_rows=block_rows)


def _columns(X: Annotated[Any, "dense or CSR"]) -> SortedColumns:
    """The positive entries by dimension, not sorted yet: those of a dimension in the order of their rows."""
    from saccade.operators import encode_loops

    if not sp.issparse(X):
        return _dense_columns(np.ascontiguousarray(X))
    (n, D), threads = X.shape, thread_count()
    bases = np.linspace(0, n, threads + 1).astype(np.int64)
    counts = np.zeros((threads, D), np.int64)
    read = X.indptr, X.indices, X.data, bases
    share_calls(ranged(encode_loops.count_sparse, (*read, D), (counts.reshape(-1),)), threads, threads)
    starts = np.append(0, np.cumsum(counts.sum(axis=0)))
    fill = starts[:-1] + np.cumsum(counts, axis=0) - counts
    rows = np.empty(starts[-1], row_type(n))
    values = np.empty(starts[-1])
    share_calls(ranged(encode_loops.to_columns, read, (fill, rows, values)), threads, threads)
    return SortedColumns((n, D), starts, rows, values)


def _dense_columns(X: Annotated[Array, "C-contiguous"]) -> SortedColumns:
    """Those of a dense matrix: as CSR, it would take five times the memory for a while."""
    from saccade.operators import encode_loops

    n, D = X.shape
    starts = np.append(0, np.cumsum(np.count_nonzero(X > 0, axis=0)))
    rows, values = np.empty(starts[-1], row_type(n)), np.empty(starts[-1])
    share_calls(ranged(encode_loops.dense_to_columns, (X, starts), (rows, values)), D)
    return SortedColumns((n, D), starts, rows, values)


def _sorted(columns: Annotated[SortedColumns, "changed"]) -> SortedColumns:
    from saccade.operators import encode_loops

    c, bits = columns, columns.values.view(np.int64)
    share_calls(ranged(encode_loops.sort_columns, (c.starts,), (bits, c.rows)), c.shape[1])
    return c


def _distinct_levels(X: Annotated[Any, "dense, or columns"], most: int) -> list[Array] | None:
    """Zero and every distinct value of each dimension, or None when some dimension has more than `most`."""
    from saccade.operators import encode_loops

    tables: list[Array | None] = [np.zeros(1)] * X.shape[1]

    def look(_: int, first: int, last: int) -> None:
        for d in range(first, last):
            if isinstance(X, SortedColumns):
                entries = X.values[X.starts[d] : X.starts[d + 1]]
            else:
                entries = np.ascontiguousarray(X[:, d], np.float64)
            found = np.empty(most, np.int64)
            count = encode_loops.distinct(entries.view(np.int64), np.zeros(4 * most, np.int64), found)
            if count == 0 and entries.size and entries.max() > 0:
                tables[d] = None
                return
            tables[d] = np.append(0.0, np.sort(found[:count].view(np.float64)))

    share(look, X.shape[1])
    known = [table for table in tables if table is not None]
    return known if len(known) == len(tables) else None


def _chosen_levels(X: Any, levels: int, binning: str, weight: Array | None, sample_rows: int) -> list[Array]:
    """Zero and up to `levels` levels per dimension: quantiles of the non-zero values, or equal steps up to the top."""
    n, top = X.shape[0], column_max(X)
    if binning == "width":
        return [np.linspace(0.0, t, levels + 1) if t > 0 else np.zeros(1) for t in top]
    some = np.arange(n) if n <= sample_rows else np.linspace(0, n - 1, sample_rows).astype(np.int64)
    tables: list[Array] = []
    for sorted_ in _sorted_parts(X, some):
        for first, last in pairwise(sorted_.starts):
            entries, highest = sorted_.values[first:last], top[len(tables)]
            copies = np.ones(entries.size) if weight is None else weight[some[sorted_.rows[first:last]]]
            if highest > entries.max(initial=0.0):
                entries, copies = np.append(entries, highest), np.append(copies, 1.0)  # the sample missed the top
            known = entries[np.diff(entries, prepend=0.0) > 0]
            if known.size > levels:
                known = entries[_even_places(copies, levels)]
            tables.append(np.unique(np.append(0.0, known)))
    return tables


def _sorted_parts(X: Any, some: Annotated[Array, "s: row numbers, ascending"]) -> Iterator[SortedColumns]:
    """Some rows as sorted columns: a few dimensions of a dense matrix at a time, all of a sparse one."""
    every, at_once = some.size == X.shape[0], limits.SORTED_AT_ONCE // max(some.size, 1)
    if sp.issparse(X):
        yield _sorted(_columns(X if every else X[some]))
        return
    for part in batches(X.shape[1], max(at_once, 1)):
        yield _sorted(_columns(X[:, part] if every else X[some, part]))


def _even_places(copies: Annotated[Array, "k: how often each entry counts"], count: int) -> Annotated[Array, "count"]:
    """Entries at even distances, the last one first, in the list that repeats each as often as it counts."""
    ends = np.cumsum(copies)
    places = np.linspace(ends[-1] - min(1.0, copies[-1]), 0.0, count)
    found = np.minimum(np.searchsorted(ends, places, side="right"), copies.size - 1)
    found[0] = copies.size - 1  # rounding may place it before: weights below 1 are no whole numbers
    return np.asarray(found)


def column_max(X: Any) -> Annotated[Array, "D"]:  # float64
    """The largest value of each dimension, 0 where there is none."""
    if not sp.issparse(X):
        return np.asarray(X.max(axis=0, initial=0), np.float64)
    from saccade.operators import encode_loops

    parts = np.zeros((thread_count(), X.shape[1]), X.dtype)
    loop = partial(encode_loops.column_max, X.indices, X.data)
    share_calls(lambda t, a, b: partial(loop, a, b, parts[t]), X.data.size, len(parts))
    return np.asarray(parts.max(axis=0), np.float64)


def encode_as(
    X: Annotated[Any, "n, D"],
    level_starts: Array,
    values: Array,
    *,
    dense: bool | None = None,
    block_rows: int | None = None,
) -> CodeBlocks:
    """Codes of X by given levels: each non-zero entry takes the nearest level above zero, if there is one.

    `dense` and `block_rows` ask for a layout; otherwise it follows from the rows and non-zeros of X.
    """
    n, D = X.shape
    above_zero = np.ones(values.size, bool)
    above_zero[level_starts[:-1]] = False
    lower = np.roll(values, 1)
    middles = lower + (values - lower) / 2  # between a level and the one below
    borders = np.where(middles < values, middles, lower)
    borders[level_starts[:-1][np.diff(level_starts) > 1] + 1] = 0.0
    border_starts = level_starts - np.arange(D + 1)
    bases = block_bases(n, block_rows)
    if dense is None:
        dense = (X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X)) >= DENSE_FROM * n * D
    store = _encode_dense if dense else _encode_sparse
    starts, rows, codes = store(X, bases, borders[above_zero], border_starts)
    return CodeBlocks((n, D), bases, starts, rows, codes, level_starts, values)


def block_bases(n: int, block_rows: int | None = None) -> Annotated[Array, "blocks+1"]:
    """The first row of each block, and n."""
    return np.append(np.arange(0, n, block_rows or even_rows(n)), n).astype(np.int64)


def suiting_rows(shape: tuple[int, int], entries: int, dense: bool) -> int:
    """The most rows of a block that suit the cache."""
    wanted = limits.COLUMN_ENTRIES * shape[0] * shape[1] // max(entries, 1)
    return limits.BLOCK_ROWS if dense else min(max(wanted, limits.SPARSE_BLOCK_ROWS), limits.BLOCK_ROWS)


def even_rows(n: int, most: int = limits.BLOCK_ROWS) -> int:
    """Rows of a block when there are n in all: at most `most`, and every thread gets as many as the others."""
    threads = thread_count()
    blocks = threads * -(-n // (most * threads))
    return max(1, -(-n // max(blocks, 1)))


def _encode_dense(X: Any, bases: Array, borders: Array, border_starts: Array) -> tuple[Array, None, Array]:
    from saccade.operators import encode_loops

    D = X.shape[1]
    starts = np.append((bases[:-1, None] * D + np.diff(bases)[:, None] * np.arange(D)).ravel(), bases[-1] * D)
    codes = np.empty(X.shape[0] * D, np.uint8)
    for first, last in pairwise(bases):
        block = X[first:last].toarray() if sp.issparse(X) else X[first:last]
        read, write = (block, borders, border_starts), (first * D, codes)
        share_calls(ranged(encode_loops.encode_dense, read, write), D)
    return starts.astype(np.int64), None, codes


def _encode_sparse(X: Any, bases: Array, borders: Array, border_starts: Array) -> tuple[Array, Array, Array]:
    from saccade.operators import encode_loops

    X = X if sp.issparse(X) else sp.csr_matrix(X)
    D, blocks = X.shape[1], bases.size - 1
    counts = np.zeros(blocks * D, np.int64)
    read = X.indptr, X.indices, X.data, bases
    share_calls(ranged(encode_loops.count_sparse, (*read, D), (counts,)), blocks)
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows = np.empty(starts[-1], np.uint16)
    codes = np.empty(starts[-1], np.uint8)
    share_calls(ranged(encode_loops.encode_sparse, (*read, borders, border_starts), (starts, rows, codes)), blocks)
    return starts, rows, codes
