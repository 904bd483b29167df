"""The histogram-intersection kernel matrix K_ij = Σ_d min(ℓ_d[c_id], ℓ_d[c_jd]), known by its products (H §4).

One pass in and one pass out, whatever the number of columns of V:

    H_d[b] = Σ_{i: c_id = b} V_i,   C_d[b] = Σ_{b' ≥ b} H_d[b'],   T_d[b] = Σ_{b' ≤ b} (ℓ_d[b'] − ℓ_d[b'−1]) C_d[b'],
    (K V)_i = Σ_d T_d[c_id]
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.chunks import in_chunks
from saccade._core.threads import Calls, ranged, share, share_calls, thread_count
from saccade.operators.base import Operator
from saccade.operators.codes import CodeBlocks, Codes, SortedColumns
from saccade.operators.nodes import Lines, Nodes
from saccade.operators.tables import PiecewiseTables, lane_blocks, lane_tuple, on_lines, padded, stacked

LINE_LANES = 8  # columns that `lines` takes together: V of 10,000 rows then stays in a core's second cache
Levels = Callable[[Array, Array], Array]  # (values, starts) -> levels: the kernel's transforms, weights and scale


class Intersection(Operator):
    """Products, diagonal and tables of the kernel matrix of `codes`, which another kernel on the data may share."""

    def __init__(self, codes: Codes, transform: Levels) -> None:
        starts = codes.starts if isinstance(codes, SortedColumns) else codes.level_starts
        self.codes = codes
        self.levels = transform(codes.values, starts)
        self.starts = starts
        self._steps: dict[Any, Array] = {}

    @property
    def shape(self) -> tuple[int, int]:
        return self.codes.shape[0], self.codes.shape[0]

    @property
    def work(self) -> int:
        return self.codes.values.size if isinstance(self.codes, SortedColumns) else self.codes.codes.size

    @abstractmethod
    def matmul(
        self,
        V: Array,  # (n, m)
    ) -> Array:  # (n, m)
        """K V in O(non-zeros · m)."""

    def steps(self, dtype: Any) -> Array:
        """ℓ[b] − ℓ[b−1] within each dimension; the first step starts from 0. Rounding does not add up.

        Very many of sorted columns are float32 for every dtype, because their product is as fast as it reads them:
        levels are then right to 6e-8 of one step.
        """
        many = isinstance(self.codes, SortedColumns) and self.levels.size >= limits.ROUNDED_STEPS
        dtype = np.dtype(np.float32 if many else dtype)
        if dtype not in self._steps:
            self._steps[dtype] = self._made_steps(dtype)
        return self._steps[dtype]

    def _made_steps(self, dtype: Any) -> Array:
        from saccade.operators import loops

        steps = np.empty(self.levels.size, dtype)
        calls = ranged(loops.rises, (self.levels, self.starts), (steps,))
        share_calls(calls, self.starts.size - 1, thread_count())
        return steps

    def diag(self) -> Array:
        """Σ_d ℓ_d[c_id], the self-similarities."""
        return self._sums[:, 0].copy()

    def squared_parts(self) -> Array:
        """Σ_d ℓ_d[c_id]²."""
        return np.asarray(self._sums[:, 1])

    def row_sums(self) -> tuple[Array, float]:
        """One product; no entry is negative."""
        return self.matmul(np.ones((self.shape[0], 1)))[:, 0], 0.0

    def level_gradient(
        self,
        left: Array,  # (n, m)
        right: Array | None = None,  # (n, m); None for `left`
    ) -> Array:  # (L,)
        """The derivative of Σ_m left_mᵀ K right_m with respect to every level, for one pass over the data.

        ∂K/∂δ_d[b] = ccᵀ with c_i = [c_id ≥ b], and ℓ_d[b] is the end of one step and the start of the next.
        """
        G, first = np.zeros(self.levels.size), 0
        while first < left.shape[1]:
            lanes = lane_tuple(max(2, min(left.shape[1] - first, 8)))
            other = None if right is None else padded(right, first, lanes)
            self._moments(padded(left, first, lanes), other, lanes, G)
            first += len(lanes)
        return self._of_levels(G)

    def matrix_gradient(
        self,
        A: Array,  # (n, n) symmetric
    ) -> Array:  # (L,)
        """The derivative of Σ_ij A_ij K_ij with respect to every level."""
        return self.level_gradient(A, np.eye(len(A)))

    def _of_levels(self, G: Array) -> Array:
        """Derivatives with respect to the levels from those with respect to the steps, in place."""
        from saccade.operators import gradient_loops

        calls = ranged(gradient_loops.falls, (self.starts,), (G,))
        share_calls(calls, self.starts.size - 1, thread_count() if G.size > limits.ONE_THREAD_UP_TO else 1)
        return G

    @cached_property
    @abstractmethod
    def _sums(self) -> Array:  # (n, 2)
        """The sums of the levels of each row and of their squares."""

    @abstractmethod
    def level_sums(
        self,
        v: Array,  # (n,)
    ) -> Array:  # (L,)
        """Σ v_i over the entries at each level: the derivative of Σ_i v_i K_ii with respect to every level."""

    @abstractmethod
    def _moments(self, left: Array, right: Array | None, lanes: tuple[int, ...], G: Array) -> None:
        """Add the products of suffix sums, which are derivatives with respect to the steps, to G (L,)."""

    @abstractmethod
    def tables(
        self,
        V: Array,  # (n, m)
    ) -> PiecewiseTables:
        """The function x ↦ Σ_i V_i k(x_i, x) as tables."""

    @abstractmethod
    def levels_from_zero(self) -> tuple[Array, Array]:  # (D+1,), (L,)
        """Where the levels of each dimension begin, and the levels, of which the first of each dimension is 0."""

    @abstractmethod
    def lines(
        self,
        Ws: Sequence[Array],  # (n, r) each
        nodes: Nodes,  # of the levels from zero
    ) -> Iterator[Lines]:
        """`tables` of each W at the nodes, and their distances from the lines between nodes."""


class SortedIntersection(Intersection):
    """Exact, for any number of distinct values; threads share the dimensions."""

    codes: SortedColumns

    @cached_property
    def _longest(self) -> int:
        """Entries of the fullest dimension."""
        return int(np.diff(self.codes.starts).max(initial=0))

    @cached_property
    def _sums(self) -> Array:
        from saccade.operators import loops

        c, parts = self.codes, np.zeros((thread_count(), self.codes.shape[0], 2))
        ran = share_calls(
            lambda t, a, b: partial(loops.sum_by_row, c.starts, c.rows, self.levels, a, b, parts[t]),
            c.shape[1],
            len(parts),
        )
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
        from saccade.operators import loops

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
        from saccade.operators import gradient_loops

        c, G = self.codes, np.empty(self.levels.size)
        share_calls(
            ranged(gradient_loops.sorted_matrix_moments, (c.starts, c.rows), (A, G)), c.shape[1], thread_count()
        )
        return self._of_levels(G)

    def _moments(self, left: Array, right: Array | None, lanes: tuple[int, ...], G: Array) -> None:
        from saccade.operators import gradient_loops

        c = self.codes
        longest = int(np.diff(c.starts).max(initial=0))
        other = left[:0] if right is None else right

        def work(_: int, first: int, last: int) -> None:
            A, B = np.empty((2, longest, len(lanes)), left.dtype)
            B = A if right is None else B
            gradient_loops.sorted_moments(c.starts, c.rows, first, last, left, other, A, B, G, lanes)

        share(work, c.shape[1], thread_count())

    def tables(self, V: Array) -> PiecewiseTables:
        from saccade.operators import loops

        c, D, steps = self.codes, self.codes.shape[1], self._made_steps(np.float64)
        level_starts, levels = self.levels_from_zero()
        T = np.empty((levels.size, V.shape[1]))
        for some, block, lanes in lane_blocks(V, 4):
            part = T if len(lanes) == V.shape[1] else np.empty((levels.size, len(lanes)))

            calls = ranged(loops.sorted_tables, (c.starts, c.rows, steps), (block, part, lanes))
            share_calls(calls, D, thread_count())
            if part is not T:
                T[:, some] = part[:, : V.shape[1] - some.start]
        return PiecewiseTables(level_starts, levels, T)

    def levels_from_zero(self) -> tuple[Array, Array]:
        starts = self.codes.starts
        return starts + np.arange(starts.size), np.insert(self.levels, starts[:-1], 0.0)  # equal levels do no harm

    def lines(self, Ws: Sequence[Array], nodes: Nodes) -> Iterator[Lines]:
        from saccade.operators import table_loops

        c, D, threads, lanes = self.codes, self.codes.shape[1], thread_count(), (0,) * LINE_LANES
        read = c.starts, c.rows, self._made_steps(np.float64), nodes.starts, nodes.places
        longest = int(np.diff(c.starts).max(initial=0))
        C, off = on_lines((threads, longest, len(lanes)), np.float64), np.empty((threads, longest))
        for W in Ws:
            to, v, V = Lines.empty(nodes, W.shape[1]), np.ascontiguousarray(W[:, 0]), stacked(W[:, 1:], len(lanes))
            first, others = (v, to.blocks[0, :, 0], to.above), (V, to.rank, to.blocks, to.size, to.lost)
            share_calls(_with_scratch(table_loops.sorted_line_below, read, first, (off,)), D, threads)
            share_calls(_with_scratch(table_loops.sorted_lines, read, others, (C, off), lanes), D, threads)
            yield to


class BinnedIntersection(Intersection):
    """At most 255 levels per dimension; threads share the blocks of rows."""

    codes: CodeBlocks

    @cached_property
    def _sums(self) -> Array:
        return self._look_up(np.column_stack([self.levels, np.square(self.levels)]), (0, 0))

    def matmul(self, V: Array) -> Array:
        out, c = np.empty_like(V), self.codes
        wide = c.rows is None or c.bases.size <= 3  # of few blocks the histograms travel seldom
        for some, block, lanes in lane_blocks(V, 16 if wide else limits.LANE_BYTES // V.itemsize):
            found = self._look_up(self._table(self._histograms(block, lanes), lanes), lanes)
            if block is V:
                return found
            out[:, some] = found[:, : V.shape[1] - some.start]
        return out

    def spread(self, rows: Array, V: Array, at: Array | None = None) -> Array:
        """Dense codes of the given rows are read alone."""
        if self.codes.rows is not None:
            return super().spread(rows, V, at)
        order = np.argsort(rows, kind="stable")
        out = np.empty((self.shape[0] if at is None else at.size, V.shape[1]), V.dtype)
        for some, block, lanes in lane_blocks(V[order]):
            table = self._table(self._histogram_of(rows[order], block, lanes), lanes)
            found = self._look_up(table, lanes) if at is None else self._look_up_at(at, table, lanes)
            out[:, some] = found[:, : V.shape[1] - some.start]
        return out

    def tables(self, V: Array) -> PiecewiseTables:
        T = np.empty((self.levels.size, V.shape[1]))
        for some, block, lanes in lane_blocks(V):
            T[:, some] = self._table(self._histograms(block, lanes), lanes)[:, : V.shape[1] - some.start]
        return PiecewiseTables(self.codes.level_starts, self.levels, T)

    def levels_from_zero(self) -> tuple[Array, Array]:
        return self.codes.level_starts, self.levels

    def lines(self, Ws: Sequence[Array], nodes: Nodes) -> Iterator[Lines]:
        from saccade.operators import table_loops

        starts, D, threads = self.codes.level_starts, self.codes.shape[1], thread_count()
        read = starts, self.steps(np.float64), nodes.starts, nodes.places
        for W in Ws:
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
        from saccade.operators import gradient_loops

        A = self._histograms(left, lanes).sum(axis=0)
        B = A if right is None else self._histograms(right, lanes).sum(axis=0)
        calls = ranged(gradient_loops.binned_moments, (self.codes.level_starts,), (A, B, right is None, G, lanes))
        share_calls(calls, self.codes.shape[1], thread_count())

    def _histograms(self, V: Array, lanes: tuple[int, ...]) -> Array:  # (parts, L, lanes)
        """Sums of V over the rows at each level, in parts to be added up."""
        from saccade.operators import loops

        c, layout = self.codes, self._layout
        parts = max(1, min(thread_count(), c.bases.size - 1))
        H: Array = np.zeros((parts, self.levels.size, len(lanes)), V.dtype)
        share_calls(lambda t, a, b: partial(loops.histogram, *layout, a, b, V, H[t], lanes), c.bases.size - 1, parts)
        return H

    def _histogram_of(self, rows: Array, V: Array, lanes: tuple[int, ...]) -> Array:  # (1, L, lanes)
        """The same for some rows, ascending, of dense codes; V is that of these rows alone."""
        from saccade.operators import loops

        c = self.codes
        H: Array = np.zeros((1, self.levels.size, len(lanes)), V.dtype)
        cuts = np.searchsorted(rows, c.bases)
        fixed = c.starts, c.codes, c.bases, c.level_starts, cuts, rows
        share_calls(ranged(loops.histogram_of, fixed, (V, H[0], lanes)), c.shape[1], thread_count())
        return H

    def _table(self, H: Array, lanes: tuple[int, ...]) -> Array:  # (L, lanes)
        """The table of histograms, which are changed."""
        from saccade.operators import loops

        calls = ranged(loops.cumulate, (self.codes.level_starts, self.steps(H.dtype)), (H, lanes))
        share_calls(calls, self.codes.shape[1], thread_count())
        return np.asarray(H[0])

    def _look_up(self, T: Array, lanes: tuple[int, ...]) -> Array:  # (n, lanes)
        from saccade.operators import loops

        out = np.zeros((self.shape[0], len(lanes)), T.dtype)
        calls = ranged(loops.look_up, self._layout, (T, out, lanes))
        share_calls(calls, self.codes.bases.size - 1, thread_count())
        return out

    def _look_up_at(self, rows: Array, T: Array, lanes: tuple[int, ...]) -> Array:  # (p, lanes)
        """The same at some rows of dense codes."""
        from saccade.operators import loops

        c, order = self.codes, np.argsort(rows, kind="stable")
        found, chosen = np.zeros((rows.size, len(lanes)), T.dtype), rows[order]
        cuts = np.searchsorted(chosen, c.bases)
        fixed = c.starts, c.codes, c.bases, c.level_starts, cuts, chosen
        share_calls(ranged(loops.look_up_at, fixed, (T, found, lanes)), rows.size, thread_count())
        out = np.empty_like(found)
        out[order] = found
        return out

    @property
    def _layout(self) -> tuple[Array | None, ...]:
        """The codes as the loops take them."""
        c = self.codes
        return c.starts, c.rows, c.codes, c.bases, c.level_starts


def _with_scratch(
    loop: Callable[..., None], read: tuple[Any, ...], write: tuple[Any, ...], scratch: tuple[Array, ...], *lanes: Any
) -> Calls:
    """Calls of loop(*read, first, last, *write, *scratch, *lanes), scratch[t] for thread t."""
    return lambda t, a, b: partial(loop, *read, a, b, *write, *(part[t] for part in scratch), *lanes)


def intersection(codes: Codes, transform: Levels) -> Intersection:
    """The operator for the layout that the codes have."""
    kind = SortedIntersection if isinstance(codes, SortedColumns) else BinnedIntersection
    return kind(codes, transform)
