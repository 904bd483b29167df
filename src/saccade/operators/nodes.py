"""The few levels of each dimension that stay in small tables, and what the lines between them keep and lose."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from saccade._core.arrays import Array
from saccade._core.threads import share_calls, thread_count
from saccade.operators.tables import on_lines, stacked

WIDEST = 64  # columns that go through the walk together


@dataclass(frozen=True)
class Nodes:
    """Levels that stay; the first of each dimension is 0."""

    starts: Annotated[Array, "D+1"]  # int64: the nodes of dimension d are starts[d] .. starts[d+1]
    levels: Annotated[Array, "N"]  # float64, ascending in each dimension
    places: Annotated[Array, "N"]  # int64: how many levels above the first 0 of its dimension a node is


@dataclass(frozen=True)
class Lines:
    """Tables at the nodes, and how far they are from the lines between two nodes; the first column is held apart."""

    blocks: Annotated[Array, "blocks, N, lanes"]  # float32: columns 0, 1, … of the tables, so many in a block
    rank: int  # columns
    above: Annotated[Array, "N"]  # how far a line of the first column is above its table, on the piece after a node
    size: Annotated[Array, "N"]  # ‖T‖² of the other columns
    lost: Annotated[Array, "N"]  # the largest squared distance of the other columns from their lines on that piece

    @classmethod
    def empty(cls, nodes: Nodes, columns: int) -> "Lines":
        N, lanes = nodes.levels.size, table_lanes(columns)
        blocks = on_lines((-(-columns // lanes), N, lanes), np.float32)
        return cls(blocks, columns, np.empty(N), np.zeros(N), np.zeros(N))

    @classmethod
    def of_tables(cls, T: Annotated[Array, "N, r"]) -> "Lines":
        """Of tables that are known at every level."""
        N, r = T.shape
        blocks = stacked(T.astype(np.float32), table_lanes(r))
        return cls(blocks, r, np.zeros(N), np.square(T[:, 1:]).sum(axis=1), np.zeros(N))


def table_lanes(columns: int) -> int:
    """The columns of a table that go through the walk together."""
    return min(WIDEST, -(-columns // 16) * 16)


def choose_nodes(levels: Annotated[Array, "L"], starts: Annotated[Array, "D+1"], nodes: int) -> Nodes:
    kept, at = kept_nodes(levels, starts, nodes)
    return Nodes(at, levels[kept], kept - np.repeat(starts[:-1], np.diff(at)))


def kept_nodes(
    levels: Annotated[Array, "L"], starts: Annotated[Array, "D+1"], nodes: int
) -> tuple[Array, Array]:  # (L',), (D+1,)
    """Which levels stay, at most `nodes` per dimension with its first and last, and where each dimension begins then.

    A piece of width h over m training values is off by about h √m, and m of the values meet it. The sum over the
    pieces is least when they are as wide as (values per unit)^−0.6: equal sums of gap^0.4 between neighbouring values.
    """
    from saccade.operators import table_loops

    if int(np.diff(starts).max(initial=0)) <= nodes:
        return np.arange(levels.size), starts
    stays, threads = np.empty(levels.size, bool), thread_count()
    total = np.empty((threads, int(np.diff(starts).max(initial=0))))
    read = levels, starts, nodes
    share_calls(lambda t, a, b: partial(table_loops.mark_nodes, *read, a, b, stays, total[t]), starts.size - 1, threads)
    kept = np.flatnonzero(stays)
    return kept, np.searchsorted(kept, starts)
