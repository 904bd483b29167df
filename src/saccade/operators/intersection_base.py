"""The histogram-intersection kernel matrix K_ij = Σ_d min(ℓ_d[c_id], ℓ_d[c_jd]), known by its products (H §4).

One pass in and one pass out, whatever the number of columns of V:

    H_d[b] = Σ_{i: c_id = b} V_i,   C_d[b] = Σ_{b' ≥ b} H_d[b'],   T_d[b] = Σ_{b' ≤ b} (ℓ_d[b'] − ℓ_d[b'−1]) C_d[b'],
    (K V)_i = Σ_d T_d[c_id]
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array, PerRow
from saccade._core.threads import ranged, share_calls, thread_count
from saccade.operators.base import Operator
from saccade.operators.codes import Codes, SortedColumns
from saccade.operators.nodes import Lines, Nodes
from saccade.operators.tables import PiecewiseTables, lane_tuple, padded

LINE_LANES = 8  # columns that `lines` takes together: V of 10,000 rows then stays in a core's second cache


class Intersection(Operator):
    """Products, diagonal and tables of the kernel matrix of `codes`, which another kernel on the data may share."""

    def __init__(self, codes: Codes, levels: Annotated[Array, "L: what the kernel makes of codes.values"]) -> None:
        self.codes, self.levels, self.starts = codes, levels, codes.level_starts
        self._steps: dict[Any, Array] = {}

    def with_levels(self, levels: Annotated[Array, "L"]) -> Self:
        """The codes under another kernel."""
        return type(self)(self.codes, levels)

    @property
    def shape(self) -> tuple[int, int]:
        return self.codes.shape[0], self.codes.shape[0]

    @property
    def work(self) -> int:
        return self.codes.values.size if isinstance(self.codes, SortedColumns) else self.codes.codes.size

    @abstractmethod
    def matmul(self, V: Annotated[Array, "n, m"]) -> Annotated[Array, "n, m"]:
        """K V in O(non-zeros · m)."""

    def steps(self, dtype: Any, *, exact: bool = False) -> Array:
        """ℓ[b] − ℓ[b−1] within each dimension; the first step starts from 0. Rounding does not add up.

        Very many of sorted columns are float32 for every dtype, because their product is as fast as it reads them:
        levels are then right to 6e-8 of one step. `exact` ones keep their dtype, and are not kept for the next time.
        """
        from saccade.operators import loops

        many = isinstance(self.codes, SortedColumns) and self.levels.size >= limits.ROUNDED_STEPS
        dtype = np.dtype(np.float32 if many and not exact else dtype)
        steps = self._steps.get(dtype)
        if steps is None:
            steps = np.empty(self.levels.size, dtype)
            share_calls(ranged(loops.rises, (self.levels, self.starts), (steps,)), self.starts.size - 1)
        if not exact:
            self._steps[dtype] = steps
        return steps

    def diag(self) -> Array:
        """Σ_d ℓ_d[c_id], the self-similarities."""
        return self.sums[:, 0].copy()

    def squared_parts(self) -> Array:
        """Σ_d ℓ_d[c_id]²."""
        return np.asarray(self.sums[:, 1])

    def row_sums(self) -> tuple[Array, float]:
        """One product; no entry is negative."""
        return self.matmul(np.ones((self.shape[0], 1)))[:, 0], 0.0

    def level_gradient(
        self, left: Annotated[Array, "n, m"], right: Annotated[Array, "n, m: None for `left`"] | None = None
    ) -> Annotated[Array, "L"]:
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

    def matrix_gradient(self, A: Annotated[Array, "n, n: symmetric"]) -> Annotated[Array, "L"]:
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
    def sums(self) -> Annotated[Array, "n, 2"]:
        """The sums of the levels of each row and of their squares."""

    @abstractmethod
    def level_sums(self, v: PerRow) -> Annotated[Array, "L"]:
        """Σ v_i over the entries at each level: the derivative of Σ_i v_i K_ii with respect to every level."""

    @abstractmethod
    def _moments(self, left: Array, right: Array | None, lanes: tuple[int, ...], G: Array) -> None:
        """Add the products of suffix sums, which are derivatives with respect to the steps, to G (L,)."""

    @abstractmethod
    def tables(self, V: Annotated[Array, "n, m"]) -> PiecewiseTables:
        """The function x ↦ Σ_i V_i k(x_i, x) as tables."""

    @abstractmethod
    def levels_from_zero(self) -> tuple[Array, Array]:  # (D+1,), (L,)
        """Where the levels of each dimension begin, and the levels, of which the first of each dimension is 0."""

    @abstractmethod
    def lines(
        self,
        Ws: Sequence[Annotated[Array, "n, r"]],  # each
        nodes: Nodes,  # of the levels from zero
    ) -> Iterator[Lines]:
        """`tables` of each W at the nodes, and their distances from the lines between nodes."""
