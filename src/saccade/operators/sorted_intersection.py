"""The intersection kernel on sorted columns: exact, whatever the number of distinct values (H §4)."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.chunks import in_chunks
from saccade._core.threads import Calls, ranged, share_calls, thread_count
from saccade.operators import gradient_loops, loops, table_loops
from saccade.operators.codes import SortedColumns
from saccade.operators.intersection_base import LINE_LANES, Intersection
from saccade.operators.nodes import Lines, Nodes
from saccade.operators.tables import PiecewiseTables, lane_blocks, on_lines, stacked


class SortedIntersection(Intersection):
    """Exact, for any number of distinct values; threads share the dimensions."""

    codes: SortedColumns

    @cached_property
    def _longest(self) -> int:
        """Entries of the fullest dimension."""
        return int(np.diff(self.codes.starts).max(initial=0))

    @cached_property
    def sums(self) -> Array:
        c, parts = self.codes, np.zeros((thread_count(), self.codes.shape[0], 2))
        loop = partial(loops.sum_by_row, c.starts, c.rows, self.levels)
        ran = share_calls(lambda t, a, b: partial(loop, a, b, parts[t]), c.shape[1], len(parts))
        return np.asarray(parts[:ran].sum(axis=0))

    def matmul(self, V: Array) -> Array:
        out = np.empty_like(V)
        for some, block, lanes in lane_blocks(V, limits.SORTED_LANE_BYTES // V.itemsize):
            parts = np.zeros((thread_count(), *block.shape), V.dtype)
            ran = share_calls(self._product(block, lanes, parts), self.codes.shape[1], len(parts))
            for part in parts[1:ran]:
                parts[0] += part
            if block is V:
                return np.asarray(parts[0])
            out[:, some] = parts[0, :, : V.shape[1] - some.start]
        return out

    def _product(self, V: Array, lanes: tuple[int, ...], parts: Array) -> Calls:
        """What adds K V up in one part for each thread."""
        c, steps, (threads, *_), longest = self.codes, self.steps(V.dtype), parts.shape, self._longest
        if len(lanes) > 1:
            C = np.empty((threads, longest, len(lanes)), V.dtype)
            return lambda t, a, b: partial(
                loops.sorted_product, c.starts, c.rows, steps, a, b, V, parts[t], C[t], lanes
            )
        v, scratch = V[:, 0], np.empty((threads, 2, longest), V.dtype)
        return lambda t, a, b: partial(
            loops.sorted_product_one, c.starts, c.rows, steps, a, b, v, parts[t, :, 0], *scratch[t]
        )

    def level_sums(self, v: Array) -> Array:
        rows, out = self.codes.rows, np.empty(self.codes.rows.size)

        def pick(some: slice) -> None:
            out[some] = v[rows[some]]

        in_chunks(pick, rows.size)
        return out

    def matrix_gradient(self, A: Array) -> Array:
        c, G = self.codes, np.empty(self.levels.size)
        share_calls(ranged(gradient_loops.sorted_matrix_moments, (c.starts, c.rows), (A, G)), c.shape[1])
        return self._of_levels(G)

    def _moments(self, left: Array, right: Array | None, lanes: tuple[int, ...], G: Array) -> None:
        c, longest = self.codes, self._longest
        other = left[:0] if right is None else right

        def calls(_: int, first: int, last: int) -> Callable[[], None]:
            A, B = np.empty((2, longest, len(lanes)), left.dtype)
            write = left, other, A, A if right is None else B, G, lanes
            return partial(gradient_loops.sorted_moments, c.starts, c.rows, first, last, *write)

        share_calls(calls, c.shape[1])

    def tables(self, V: Array) -> PiecewiseTables:
        c, D, steps = self.codes, self.codes.shape[1], self.steps(np.float64, exact=True)
        level_starts, levels = self.levels_from_zero()
        T = np.empty((levels.size, V.shape[1]))
        for some, block, lanes in lane_blocks(V, 4):
            part = T if len(lanes) == V.shape[1] else np.empty((levels.size, len(lanes)))
            share_calls(ranged(loops.sorted_tables, (c.starts, c.rows, steps), (block, part, lanes)), D)
            if part is not T:
                T[:, some] = part[:, : V.shape[1] - some.start]
        return PiecewiseTables(level_starts, levels, T)

    def levels_from_zero(self) -> tuple[Array, Array]:
        starts = self.codes.starts
        return starts + np.arange(starts.size), np.insert(self.levels, starts[:-1], 0.0)  # equal levels do no harm

    def lines(self, Ws: Sequence[Array], nodes: Nodes) -> Iterator[Lines]:
        c, D, threads, lanes = self.codes, self.codes.shape[1], thread_count(), (0,) * LINE_LANES
        read = c.starts, c.rows, self.steps(np.float64, exact=True), nodes.starts, nodes.places
        longest = self._longest
        C, off = on_lines((threads, longest, len(lanes)), np.float64), np.empty((threads, longest))
        for W in Ws:
            to, v, V = Lines.empty(nodes, W.shape[1]), np.ascontiguousarray(W[:, 0]), stacked(W[:, 1:], len(lanes))
            first, others = (v, to.blocks[0, :, 0], to.above), (V, to.rank, to.blocks, to.size, to.lost)
            share_calls(_with_scratch(table_loops.sorted_line_below, read, first, (off,)), D, threads)
            share_calls(_with_scratch(table_loops.sorted_lines, read, others, (C, off), lanes), D, threads)
            yield to


def _with_scratch(
    loop: Callable[..., None], read: tuple[Any, ...], write: tuple[Any, ...], scratch: tuple[Array, ...], *lanes: Any
) -> Calls:
    """Calls of loop(*read, first, last, *write, *scratch, *lanes), scratch[t] for thread t."""
    return lambda t, a, b: partial(loop, *read, a, b, *write, *(part[t] for part in scratch), *lanes)
