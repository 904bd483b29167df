"""Functions of a picture that are sums over dimensions of one table each: all that prediction needs.

f(x) = Σ_d T_d(x_d) with T_d piecewise linear (H (6)), or read off an even grid (H §4, quantisation). A table holds no
row of the training data, only what all of them add up to.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.threads import ranged, share, share_calls


def lane_tuple(columns: int) -> tuple[int, ...]:
    """The lanes that `columns` columns are worked on in: 1, or an even number up to sixteen."""
    return (0,) * (1 if columns == 1 else min(16, -(-columns // 2) * 2))


def padded(V: Annotated[Array, "n, m"], first: int, lanes: tuple[int, ...]) -> Array:  # (n, len(lanes)), contiguous
    """Columns first, first+1, … of V, with zeros for columns that are not there."""
    block = V if V.shape[1] == len(lanes) else V[:, first : first + len(lanes)]
    if block.shape[1] == len(lanes):
        return np.ascontiguousarray(block)
    out = np.zeros((len(V), len(lanes)), V.dtype)
    out[:, : block.shape[1]] = block
    return out


def on_lines(shape: tuple[int, ...], dtype: Any) -> Array:
    """Zeros that begin with a line of the cache: loops take a third longer where rows of 64 bytes lie across two."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.zeros(size + 64, np.uint8)
    skip = -room.ctypes.data % 64
    return np.asarray(room[skip : skip + size].view(dtype).reshape(shape))


def lane_blocks(V: Annotated[Array, "n, m"], most: int = 16) -> Iterator[tuple[slice, Array, tuple[int, ...]]]:
    """The columns of V as the loops take them, some at a time: which, their numbers (n, lanes), and the lanes."""
    m = V.shape[1]
    for first in range(0, m, most):
        lanes = lane_tuple(min(m - first, most))
        yield slice(first, min(first + most, m)), padded(V, first, lanes), lanes


def stacked(V: Annotated[Array, "n, m"], lanes: int) -> Annotated[Array, "blocks, n, lanes"]:
    """All columns of V, `lanes` of them in a block, with zeros after the last."""
    n, m = V.shape
    blocks = on_lines((-(-m // lanes), n, lanes), V.dtype)

    def copy(_: int, first: int, last: int) -> None:
        for k, block in enumerate(blocks):
            part = V[first:last, k * lanes : (k + 1) * lanes]
            block[first:last, : part.shape[1]] = part

    share(copy, n)
    return blocks


@dataclass(frozen=True)
class PiecewiseTables:
    """T_d linear between the levels of dimension d, constant beyond the last; the first level is 0, where T_d is 0."""

    level_starts: Annotated[Array, "D+1"]  # int64
    levels: Annotated[Array, "L"]  # float64, ascending in each dimension
    T: Annotated[Array, "L, m"]  # float64

    @cached_property
    def _T_blocks(self) -> list[Array]:
        return _blocks(self.T)

    def walk(
        self, X: Annotated[sp.csr_matrix, "n, D: values after the kernel's transforms"]
    ) -> Annotated[Array, "n, m"]:
        """f(x) for every row."""
        from saccade.operators import few_loops, predict_loops

        read = X.indptr, X.indices, X.data, self.level_starts, self.levels
        loop = few_loops.interpolate_few if X.nnz <= limits.FEW_ENTRIES else predict_loops.interpolate
        return _walk(loop, read, self._T_blocks, X.shape[0], self.T.shape[1])


@dataclass(frozen=True)
class GridTables:
    """T_d at `bins` nodes, `per_unit[d]` of them for each unit of x_d; a value takes its nearest node, and 0 has 0."""

    per_unit: Annotated[Array, "D"]  # float64
    T: Annotated[Array, "D * bins, m"]  # float32

    @cached_property
    def _T_blocks(self) -> list[Array]:
        return _blocks(self.T)

    @property
    def bins(self) -> int:
        return int(self.T.shape[0]) // max(self.per_unit.size, 1)

    def walk(
        self, X: Annotated[sp.csr_matrix, "n, d: values as they come, no transform, with their signs"]
    ) -> Annotated[Array, "n, m"]:
        """f(x) for every row, in constant time per value. Tables of negative values follow those of positive ones."""
        from saccade.operators import predict_loops

        read = X.indptr, X.indices, X.data, X.shape[1], self.per_unit, self.bins
        return _walk(predict_loops.look_up_grid, read, self._T_blocks, X.shape[0], self.T.shape[1])


def _blocks(T: Array) -> list[Array]:
    """T as contiguous arrays of up to sixteen columns each, as the loops need it."""
    return [block for _, block, _ in lane_blocks(T)]


def _walk(loop: Callable[..., None], read: tuple[Any, ...], blocks: list[Array], n: int, m: int) -> Array:
    """The columns of all blocks, each by a run of the loop."""
    result = np.empty((n, m))
    for k, T in enumerate(blocks):
        lanes = (0,) * T.shape[1]
        out = np.zeros((n, len(lanes)), T.dtype)
        share_calls(ranged(loop, (*read, T), (out, lanes)), n)
        result[:, 16 * k : 16 * (k + 1)] = out[:, : m - 16 * k]
    return result


def quantize(
    tables: PiecewiseTables,
    top: Annotated[Array, "D"],  # the largest raw value of each dimension
    transform: Callable[[sp.csr_matrix], sp.csr_matrix],
    bins: int,
) -> GridTables:
    """`tables` read off at `bins` even steps of the raw values from 0 to `top`."""
    D = top.size
    share_of_top = np.linspace(0.0, 1.0, bins)[:, None]
    grid = sp.csr_matrix(share_of_top * top)  # (bins, D): all dimensions step together
    T = np.zeros((D, bins, tables.T.shape[1]), np.float32)
    for b in range(bins):  # one node of every dimension at a time, each dimension its own row
        row = grid[b]
        nodes = sp.csr_matrix((row.data, row.indices, np.arange(row.nnz + 1)), shape=(row.nnz, D))
        T[row.indices, b] = tables.walk(transform(nodes))
    per_unit = np.divide(bins - 1, top, out=np.zeros(D), where=top > 1e-300)
    return GridTables(per_unit, T.reshape(D * bins, tables.T.shape[1]))
