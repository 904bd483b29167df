"""The intersection kernel on codes in blocks of rows: at most 255 levels in each dimension (H §4, quantisation)."""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Annotated

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.threads import ranged, share_calls, thread_count
from saccade.operators import gradient_loops, loops, table_loops
from saccade.operators.codes import CodeBlocks
from saccade.operators.intersection_base import LINE_LANES, Intersection
from saccade.operators.nodes import Lines, Nodes
from saccade.operators.tables import PiecewiseTables, lane_blocks


class BinnedIntersection(Intersection):
    """At most 255 levels per dimension; threads share the blocks of rows."""

    codes: CodeBlocks

    @cached_property
    def sums(self) -> Array:
        return self._look_up(np.column_stack([self.levels, np.square(self.levels)]), (0, 0))

    def matmul(self, V: Array) -> Array:
        out, c, _ = np.empty_like(V), self.codes, self.steps(V.dtype)  # ready before the passes
        wide = c.rows is None or c.bases.size <= 3  # of few blocks the histograms travel seldom
        for some, block, lanes in lane_blocks(V, 16 if wide else limits.LANE_BYTES // V.itemsize):
            found = self._look_up(self._table(self._histograms(block, lanes), lanes), lanes)
            if block is V:
                return found
            out[:, some] = found[:, : V.shape[1] - some.start]
        return out

    def matmul_rows(self, rows: Array, V: Array, at: Array | None = None) -> Array:
        """Dense codes of the given rows are read alone."""
        if self.codes.rows is not None:
            return super().matmul_rows(rows, V, at)
        order = np.argsort(rows, kind="stable")
        out = np.empty((self.shape[0] if at is None else at.size, V.shape[1]), V.dtype)
        for some, block, lanes in lane_blocks(V[order]):
            table = self._table(self._histogram_of(rows[order], block, lanes), lanes)
            found = self._look_up(table, lanes) if at is None else self._look_up_at(at, table, lanes)
            out[:, some] = found[:, : V.shape[1] - some.start]
        return out

    def tables(self, V: Array) -> PiecewiseTables:
        T, _ = np.empty((self.levels.size, V.shape[1])), self.steps(V.dtype)
        for some, block, lanes in lane_blocks(V):
            T[:, some] = self._table(self._histograms(block, lanes), lanes)[:, : V.shape[1] - some.start]
        return PiecewiseTables(self.codes.level_starts, self.levels, T)

    def levels_from_zero(self) -> tuple[Array, Array]:
        return self.codes.level_starts, self.levels

    def lines(self, Ws: Sequence[Array], nodes: Nodes) -> Iterator[Lines]:
        starts, D, threads = self.codes.level_starts, self.codes.shape[1], thread_count()
        read = starts, self.steps(np.float64), nodes.starts, nodes.places
        for W in Ws:
            if nodes.levels.size == self.levels.size:  # every level is a node, and no line between two is off
                yield Lines.of_tables(self.tables(W).T)
                continue
            to, off = Lines.empty(nodes, W.shape[1]), np.zeros(self.levels.size)
            first = self._histograms(np.ascontiguousarray(W[:, :1]), (0,)), to.blocks[0, :, 0], to.above, (0,)
            share_calls(ranged(table_loops.binned_line_below, read, first), D, threads)
            for some, block, lanes in lane_blocks(W[:, 1:], LINE_LANES):
                columns = 1 + some.start, 1 + some.stop
                others = self._histograms(block, lanes), *columns, to.blocks, to.size, off, lanes
                share_calls(ranged(table_loops.binned_lines, read, others), D, threads)
            share_calls(ranged(table_loops.binned_largest, (starts, *read[2:]), (off, to.lost)), D, threads)
            yield to

    def level_sums(self, v: Array) -> Array:
        H = self._histograms(np.ascontiguousarray(v[:, None], np.float64), (0,)).sum(axis=0)[:, 0]
        H[self.codes.level_starts[:-1]] = 0.0  # level zero is no level: it does not move
        return np.asarray(H)

    def _moments(self, left: Array, right: Array | None, lanes: tuple[int, ...], G: Array) -> None:
        A = self._histograms(left, lanes).sum(axis=0)
        B = A if right is None else self._histograms(right, lanes).sum(axis=0)
        calls = ranged(gradient_loops.binned_moments, (self.codes.level_starts,), (A, B, right is None, G, lanes))
        share_calls(calls, self.codes.shape[1])

    def _histograms(self, V: Array, lanes: tuple[int, ...]) -> Annotated[Array, "parts, L, lanes"]:
        """Sums of V over the rows at each level, in parts to be added up."""
        c, layout = self.codes, self._layout
        parts = max(1, min(thread_count(), c.bases.size - 1))
        H: Array = np.zeros((parts, self.levels.size, len(lanes)), V.dtype)
        share_calls(lambda t, a, b: partial(loops.histogram, *layout, a, b, V, H[t], lanes), c.bases.size - 1, parts)
        return H

    def _histogram_of(self, rows: Array, V: Array, lanes: tuple[int, ...]) -> Annotated[Array, "1, L, lanes"]:
        """Histogram of some rows, ascending, of dense codes; V is that of these rows alone."""
        c = self.codes
        H: Array = np.zeros((1, self.levels.size, len(lanes)), V.dtype)
        cuts = np.searchsorted(rows, c.bases)
        fixed = c.starts, c.codes, c.bases, c.level_starts, cuts, rows
        share_calls(ranged(loops.histogram_of, fixed, (V, H[0], lanes)), c.shape[1])
        return H

    def _table(self, H: Array, lanes: tuple[int, ...]) -> Annotated[Array, "L, lanes"]:
        """The table of histograms, which are changed."""
        calls = ranged(loops.cumulate, (self.codes.level_starts, self.steps(H.dtype)), (H, lanes))
        share_calls(calls, self.codes.shape[1])
        return np.asarray(H[0])

    def _look_up(self, T: Array, lanes: tuple[int, ...]) -> Annotated[Array, "n, lanes"]:
        out = np.zeros((self.shape[0], len(lanes)), T.dtype)
        share_calls(ranged(loops.look_up, self._layout, (T, out, lanes)), self.codes.bases.size - 1)
        return out

    def _look_up_at(self, rows: Array, T: Array, lanes: tuple[int, ...]) -> Annotated[Array, "p, lanes"]:
        c, order = self.codes, np.argsort(rows, kind="stable")
        found, chosen = np.zeros((rows.size, len(lanes)), T.dtype), rows[order]
        cuts = np.searchsorted(chosen, c.bases)
        fixed = c.starts, c.codes, c.bases, c.level_starts, cuts, chosen
        share_calls(ranged(loops.look_up_at, fixed, (T, found, lanes)), rows.size)
        out = np.empty_like(found)
        out[order] = found
        return out

    @property
    def _layout(self) -> tuple[Array | None, ...]:
        """The codes as the loops take them."""
        c = self.codes
        return c.starts, c.rows, c.codes, c.bases, c.level_starts
