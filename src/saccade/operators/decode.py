"""Codes back as rows: what a kernel on them sees."""

from itertools import pairwise
from typing import Annotated

import numpy as np
import scipy.sparse as sp

from saccade._core.arrays import Array, PerRow
from saccade._core.threads import ranged, share_calls
from saccade.operators.codes import CodeBlocks, Codes, SortedColumns


def decode(codes: Codes, rows: Annotated[Array | None, "ascending row numbers; None for all"] = None) -> sp.csr_matrix:
    """The rows that the codes stand for."""
    n, D = codes.shape
    shape, place = (n if rows is None else rows.size, D), new_numbers(n, rows)
    if not isinstance(codes, SortedColumns):
        column, row, code = entries(codes, place)
        value, some = codes.values[codes.level_starts[column] + code], code > 0
        return sp.csr_matrix((value[some], (row[some], column[some])), shape=shape)
    from saccade.operators import encode_loops

    c, counts, wanted = codes, np.zeros(D, np.int64), place >= 0
    share_calls(ranged(encode_loops.count_placed, (c.starts, c.rows, wanted), (counts,)), D)
    heads = np.append(0, np.cumsum(counts))
    row, value = np.empty(heads[-1], np.int64), np.empty(heads[-1])
    read = c.starts, c.rows, c.values, wanted, place, heads
    share_calls(ranged(encode_loops.pick_placed, read, (row, value)), D)
    return sp.csr_matrix((value, (row, np.repeat(np.arange(D), counts))), shape=shape)


def new_numbers(n: int, rows: Annotated[Array | None, "ascending row numbers; None for all"]) -> PerRow:
    """The number of each row among those that are wanted, −1 for the others."""
    place = np.arange(n) if rows is None else np.full(n, -1)
    if rows is not None:
        place[rows] = np.arange(rows.size)
    return place


def entries(
    codes: CodeBlocks, place: Annotated[Array, "n: new row numbers, −1 for rows that are not wanted"]
) -> tuple[Array, Array, Array]:  # (e,) each
    """Dimension, new row and code of the entries of all rows with a place, block after block."""
    wanted = [block for block, (a, b) in enumerate(pairwise(codes.bases)) if (place[a:b] >= 0).any()]
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8)
    parts = [nothing, *[_decode_block(codes, block, place) for block in wanted]]
    column, row, code = (np.concatenate(part) for part in zip(*parts, strict=True))
    return column, row, code


def _decode_block(codes: CodeBlocks, block: int, place: Array) -> tuple[Array, Array, Array]:
    D = codes.shape[1]
    starts = codes.starts[block * D : (block + 1) * D + 1]
    own = slice(starts[0], starts[-1])
    place = place[codes.bases[block] : codes.bases[block + 1]]
    if codes.rows is None:
        kept = np.flatnonzero(place >= 0)
        code = codes.codes[starts[:-1, None] + kept]
        return np.repeat(np.arange(D), kept.size), np.tile(place[kept], D), code.reshape(-1)
    row = place[codes.rows[own]]
    keep = row >= 0
    return np.repeat(np.arange(D), np.diff(starts))[keep], row[keep], codes.codes[own][keep]
