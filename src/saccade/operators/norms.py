"""‖Wᵀk*‖² from below, in constant time: the tables of a low-rank variance.

Wᵀk* = Σ_d T_d(x_d) with a column per direction of W. Exact tables have a node for every training value; here each
dimension keeps at most `nodes` of them, in float32, and says how far the line between two nodes can be from the true
table. By the triangle inequality ‖Wᵀk*‖ ≥ ‖Σ_d T_d(x_d)‖ − Σ_d slack_d(x_d): what is small and fast is still a bound.

The first column is held apart. Lines lie below min(x_i, x), so where w_1 ≥ 0 (the leading eigenvector of a kernel that
is never negative) its table is too small already, and needs no slack: more than half of what there is to explain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.arrays import Array, PerRow
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade._core.threads import ranged, share_calls, thread_count
from saccade.operators.intersection_base import Intersection
from saccade.operators.nodes import Lines, Nodes, choose_nodes, table_lanes
from saccade.operators.tables import stacked

ROUNDING = 1e-6  # share of a table's norm that float32 sums may lose


@dataclass(frozen=True)
class NormTables:
    """T_d linear between the nodes of dimension d, within slack of the truth; the first node is 0, where T_d is 0."""

    level_starts: Annotated[Array, "D+1"]  # int64
    levels: Annotated[Array, "L"]  # float64, ascending in each dimension
    blocks: Annotated[Array, "blocks, L, lanes"]  # float32: T as the walk needs it, with zeros after the last column
    rank: int  # columns of T
    slack: Annotated[Array, "L, 2"]  # float32: of the first column and of the others, on the piece after a node

    @classmethod
    def of(
        cls,
        level_starts: Annotated[Array, "D+1"],
        levels: Annotated[Array, "L"],
        T: Annotated[Array, "L, r"],  # float32
        slack: Annotated[Array, "L, 2"],
    ) -> "NormTables":
        """The tables of T in one piece."""
        return cls(level_starts, levels, stacked(T, table_lanes(T.shape[1])), T.shape[1], slack)

    @property
    def T(self) -> Annotated[Array, "L, r"]:
        """T in one piece; a copy where there are several blocks."""
        whole = self.blocks[0] if len(self.blocks) == 1 else np.concatenate(list(self.blocks), axis=1)
        return np.asarray(whole[:, : self.rank])

    def squared_norms(self, X: Annotated[sp.csr_matrix, "n, D: values after the kernel's transforms"]) -> PerRow:
        """A lower bound of ‖Wᵀk*‖² for every row."""
        from saccade.operators import few_loops, predict_loops

        out, (blocks, _, wide) = np.zeros((X.shape[0], 4)), self.blocks.shape
        read, lanes = (X.indptr, X.indices, X.data, self.level_starts, self.levels), (0,) * wide
        if X.nnz <= limits.FEW_ENTRIES:
            T, f = self.blocks.reshape(-1, wide), np.empty((thread_count(), blocks, wide), np.float32)
            few = partial(few_loops.walk_squares_few, *read, T, self.slack)
            share_calls(lambda t, a, b: partial(few, a, b, out, f[t], lanes), X.shape[0], len(f))
        else:
            share_calls(ranged(predict_loops.walk_squares, (*read, self.blocks, self.slack), (out, lanes)), X.shape[0])
        sure = np.maximum(np.column_stack([out[:, 0], np.sqrt(out[:, 1])]) - out[:, 2:], 0.0)
        return np.asarray(np.square(sure).sum(axis=1))


def norm_tables(
    K: Intersection, W: Annotated[Array, "n, r: the leading direction first"], nodes: int | None = None
) -> NormTables:
    """The tables of ‖Wᵀk*‖ with at most `nodes` nodes per dimension.

    None: limits.TABLE_NODES, or more where there are few dimensions. Every dimension then has its error, and with three
    of them and 128 nodes the slack was as large as the variance of new examples.
    """
    return all_norm_tables(K, (W,), nodes)[0]


def all_norm_tables(
    K: Intersection, Ws: Annotated[Sequence[Annotated[Array, "n, r"]], "each"], nodes: int | None = None
) -> tuple[NormTables, ...]:
    """`norm_tables` of several W, which share the nodes."""
    for W in Ws:
        _check_single(K, W)
    starts, levels = K.levels_from_zero()
    if nodes is None:
        nodes = max(limits.TABLE_NODES, limits.TABLE_NODES_TOGETHER // (starts.size - 1))
    chosen, found = choose_nodes(levels, starts, nodes), list[NormTables]()
    for lines in K.lines([W if W[:, 0].sum() >= 0 else -W for W in Ws], chosen):
        found.append(_with_slack(chosen, lines))
        report("variance", 0.5 + 0.5 * len(found) / len(Ws))
    return tuple(found)


def _with_slack(nodes: Nodes, lines: Lines) -> NormTables:
    """The distance is piecewise linear, so its norm is convex between two training values: the largest lies at one."""
    slack = np.column_stack([lines.above, np.sqrt(lines.lost)])
    size = np.column_stack([np.abs(lines.blocks[0, :, 0]), np.sqrt(lines.size)])
    slack += ROUNDING * np.maximum(size, np.roll(size, -1, axis=0)) + np.finfo(np.float32).tiny
    slack[nodes.starts[1:] - 1] = 0.0  # no piece begins at the last node
    return NormTables(nodes.starts, nodes.levels, lines.blocks, lines.rank, slack.astype(np.float32))


def _check_single(K: Intersection, W: Array) -> None:
    """|T_d| ≤ Σ_i |w_i| k_d(x_i, x_i): complain where that is beyond float32, before it becomes infinity."""
    largest = float((K.diag() @ np.abs(W)).max(initial=0.0))
    if not largest < float(np.finfo(np.float32).max):
        raise InvalidInput(
            f"Kernel values up to {K.diag().max():.3g} do not fit into the float32 tables of a low-rank variance. "
            'Use HIK(scale="auto"), or scale the features to about [0, 1] first.'
        )
