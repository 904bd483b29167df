"""Blocks of the intersection kernel as plain matrices: Σ_d min(a_d, b_d) for every pair of two sets of rows.

Both sets stay sparse. PANEL rows of the second at a time lie side by side in a small dense array, where one entry of
the first meets all of them in a few machine instructions; zeros of the first cost nothing. Tiles of several rows of
both were a fifth faster where all is dense (minima and additions are the limit, not loads), but took every zero along.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.threads import share_calls

PANEL = 32  # rows of the second set side by side: as many running sums as hide the time of one addition
NARROW = 4  # the same where there are no more: a third of the time for one row
LINE = 64  # bytes; a vector that lies across two cache lines takes two loads


def intersections(
    A: Annotated[sp.csr_matrix, "n, D"],  # non-negative float64
    B: Annotated[sp.csr_matrix, "m, D"] | None = None,
    panel_dims: int = limits.PANEL_DIMS,
) -> Annotated[Array, "n, m"]:
    """The block; without B that of A with itself, of which only the upper triangle is true."""
    from . import loops

    Z, upper = (A, True) if B is None else (B, False)
    out = np.zeros((A.shape[0], Z.shape[0]))
    width = max(A.shape[1], Z.shape[1], 1)  # split signs: one side may have a part that the other has not
    dims = min(width, panel_dims)
    entries = (*cut(A, dims, width), *cut(Z, dims, width))

    lanes = (0,) * (NARROW if Z.shape[0] <= NARROW else PANEL)

    def calls(_: int, first: int, last: int) -> Callable[[], None]:
        scratch = aligned(dims, len(lanes)), aligned(1, len(lanes))
        return partial(loops.intersect, *entries, upper, first, last, out, *scratch, lanes)

    share_calls(calls, -(-Z.shape[0] // len(lanes)))
    return out


def cut(A: Annotated[sp.csr_matrix, "n, D"], dims: int, width: int) -> tuple[Array, Array, Array]:
    """Where each row's entries of dimension 0, dims, 2 dims, … begin, (blocks+1, n); the dimensions and the values."""
    rows = A if A.has_sorted_indices else A.sorted_indices()  # split signs are not in order
    cuts = [rows.indptr[:-1]]
    for edge in range(dims, width, dims):
        below = np.append(0, np.cumsum(rows.indices < edge))
        cuts.append(rows.indptr[:-1] + below[rows.indptr[1:]] - below[rows.indptr[:-1]])
    return np.stack([*cuts, rows.indptr[1:]]).astype(np.int64), rows.indices, rows.data


def aligned(rows: int, lanes: int) -> Annotated[Array, "rows, lanes"]:
    """Scratch that begins with a cache line."""
    raw = np.empty(rows * lanes * 8 + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + rows * lanes * 8].view(np.float64).reshape(rows, lanes)
