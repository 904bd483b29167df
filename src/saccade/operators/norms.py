"""‖Wᵀk*‖² from below, in constant time: the tables of a low-rank variance.

Wᵀk* = Σ_d T_d(x_d) with a column per direction of W. Exact tables have a node for every training value; here each
dimension keeps at most `nodes` of them, in float32, and says how far the line between two nodes can be from the true
table. By the triangle inequality ‖Wᵀk*‖ ≥ ‖Σ_d T_d(x_d)‖ − Σ_d slack_d(x_d): what is small and fast is still a bound.

The first column is held apart. Lines lie below min(x_i, x), so where w_1 ≥ 0 (the leading eigenvector of a kernel that
is never negative) its table is too small already, and needs no slack: more than half of what there is to explain.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade._core.threads import ranged, share_calls, thread_count
from saccade.operators.codes import level_dims
from saccade.operators.intersection import Intersection
from saccade.operators.tables import on_lines

WIDEST = 64  # columns that go through the walk together
ROUNDING = 1e-6  # share of a table's norm that float32 sums may lose


@dataclass(frozen=True)
class NormTables:
    """T_d linear between the nodes of dimension d, within slack of the truth; the first node is 0, where T_d is 0."""

    level_starts: Array  # (D+1,) int64
    levels: Array  # (L,) float64, ascending in each dimension
    T: Array  # (L, r) float32
    slack: Array  # (L, 2) float32: of the first column and of the others, on the piece that begins at a node

    @cached_property
    def _T_blocks(self) -> Array:  # (blocks, L, lanes)
        L, r = self.T.shape
        lanes = min(WIDEST, -(-r // 16) * 16)
        blocks = on_lines((-(-r // lanes), L, lanes), np.float32)
        for k, block in enumerate(blocks):
            part = self.T[:, k * lanes : (k + 1) * lanes]
            block[:, : part.shape[1]] = part
        return blocks

    def squared_norms(
        self,
        X: sp.csr_matrix,  # (n, D): values after the kernel's transforms
    ) -> Array:  # (n,)
        """A lower bound of ‖Wᵀk*‖² for every row."""
        from saccade.operators import predict_loops

        out, lanes = np.zeros((X.shape[0], 4)), (0,) * self._T_blocks.shape[2]
        tables = self.level_starts, self.levels, self._T_blocks, self.slack
        calls = ranged(predict_loops.walk_squares, (X.indptr, X.indices, X.data, *tables), (out, lanes))
        share_calls(calls, X.shape[0], thread_count())
        sure = np.maximum(np.column_stack([out[:, 0], np.sqrt(out[:, 1])]) - out[:, 2:], 0.0)
        return np.asarray(np.square(sure).sum(axis=1))


def norm_tables(
    K: Intersection,
    W: Array,  # (n, r), the leading direction first
    nodes: int | None = None,
) -> NormTables:
    """The tables of ‖Wᵀk*‖ with at most `nodes` nodes per dimension; exact tables are made a few columns at a time.

    None: limits.TABLE_NODES, or more where there are few dimensions. Every dimension then has its error, and with three
    of them and 128 nodes the slack was as large as the variance of new examples.
    """
    r = W.shape[1]
    _check_single(K, W)
    exact = K.tables(W[:, :1] if W[:, 0].sum() >= 0 else -W[:, :1])
    if nodes is None:
        nodes = max(limits.TABLE_NODES, limits.TABLE_NODES_TOGETHER // (exact.level_starts.size - 1))
    kept, starts = kept_nodes(exact.levels, exact.level_starts, nodes)
    between = _Between(exact.levels, kept)
    T = np.empty((kept.size, r), np.float32)
    T[:, 0] = exact.T[kept, 0]
    above = np.maximum(between.lines(exact.T) - exact.T, 0.0)[:, 0]
    size, lost = np.zeros(kept.size), np.zeros(exact.levels.size)
    together = min(limits.EXACT_TABLE_COLUMNS, max(1, limits.EXACT_TABLE_NUMBERS // exact.levels.size))
    for first in range(1, r, together):
        exact = K.tables(W[:, first : first + together])
        T[:, first : first + together] = exact.T[kept]
        size += np.square(exact.T[kept]).sum(axis=1)
        between.add_squares(exact.T, lost)
        report("variance", 0.5 + 0.5 * first / r)
    # the distance is piecewise linear, so its norm is convex between two training values: the largest lies at one
    slack = np.maximum.reduceat(np.column_stack([above, np.sqrt(lost)]), kept)
    size = np.column_stack([np.abs(T[:, 0]), np.sqrt(size)])
    slack += ROUNDING * np.maximum(size, np.roll(size, -1, axis=0)) + np.finfo(np.float32).tiny
    slack[starts[1:] - 1] = 0.0  # no piece begins at the last node
    return NormTables(starts, exact.levels[kept], T, slack.astype(np.float32))


def _check_single(K: Intersection, W: Array) -> None:
    """|T_d| ≤ Σ_i |w_i| k_d(x_i, x_i): complain where that is beyond float32, before it becomes infinity."""
    largest = float((np.abs(W) * K.diag()[:, None]).sum(axis=0).max(initial=0.0))
    if not largest < float(np.finfo(np.float32).max):
        raise InvalidInput(
            f"Kernel values up to {K.diag().max():.3g} do not fit into the float32 tables of a low-rank variance. "
            'Use HIK(scale="auto"), or scale the features to about [0, 1] first.'
        )


def kept_nodes(
    levels: Array,  # (L,)
    starts: Array,  # (D+1,)
    nodes: int,
) -> tuple[Array, Array]:  # (L',), (D+1,)
    """Which levels stay, at most `nodes` per dimension with its first and last, and where each dimension begins then.

    A piece of width h over m training values is off by about h √m, and m of the values meet it. The sum over the
    pieces is least when they are as wide as (values per unit)^−0.6: equal sums of gap^0.4 between neighbouring values.
    """
    dims = level_dims(starts)
    gaps = np.diff(levels, prepend=0.0)
    gaps[starts[:-1]] = 0.0
    total = np.cumsum(np.maximum(gaps, 0.0) ** 0.4)
    first, last = total[starts[:-1]], total[starts[1:] - 1]
    share_of_all = (total - first[dims]) / np.maximum(last - first, np.finfo(np.float64).tiny)[dims]
    piece = np.floor(share_of_all * (nodes - 1) * (1.0 - 1e-12))
    stays = np.diff(piece, append=-1.0) != 0  # the last level in a piece
    stays[starts[:-1]] = stays[starts[1:] - 1] = True
    stays |= (np.diff(starts) <= nodes)[dims]  # room for all
    return np.flatnonzero(stays), np.append(0, np.cumsum(np.bincount(dims[stays], minlength=starts.size - 1)))


class _Between:
    """The lines between kept nodes, at every level."""

    def __init__(
        self,
        levels: Array,  # (L,)
        kept: Array,  # (L',)
    ) -> None:
        piece = np.repeat(np.arange(kept.size), np.diff(np.append(kept, levels.size)))
        self.below = kept[piece]
        self.above = np.where(self.below == np.arange(levels.size), self.below, np.append(kept, 0)[piece + 1])
        gap = levels[self.above] - levels[self.below]
        rise = levels - levels[self.below]
        self.w = np.divide(rise, gap, out=np.zeros_like(rise), where=gap > 0)[:, None]

    def lines(
        self,
        T: Array,  # (L, m)
    ) -> Array:  # (L, m)
        """Between the values of T at kept nodes."""
        lower: Array = T[self.below]
        lower += self.w * (T[self.above] - lower)
        return lower

    def add_squares(
        self,
        T: Array,  # (L, m)
        lost: Array,  # (L,)
    ) -> None:
        """Add ‖T − lines‖² to `lost`."""
        from saccade.operators import loops

        read = T, self.below, self.above, self.w[:, 0]
        share_calls(ranged(loops.squares_off_lines, read, (lost,)), len(T), thread_count())
