"""Bins for the pyramid match (K §5): cells of a grid over the space of descriptors, or nodes of a tree of k-means.

The cells are twice as wide at every level; the tree is that of Grauman and Darrell (2006).
"""

from collections import deque
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array, FilePath, RandomSource
from saccade._core.blas import one_blas_thread
from saccade._core.progress import report
from saccade.features.base import DescriptorEncoder
from saccade.features.codebook import distinct_rows
from saccade.features.descriptor_arrays import values_of
from saccade.features.lazy import Items, stream
from saccade.features.learner import Learner, State, part, sample_of


@dataclass(eq=False, repr=False)
class UniformBins(Learner, DescriptorEncoder):
    """The level-i histogram counts points in cells of side 2^i, over the cells that training pictures fill (K §5).

    The number of cells grows exponentially with the dimensions, so a cell is named by a 64-bit mix of its coordinates
    (two of ten million cells coincide with a chance of about 10⁻⁵). Points in cells that no training picture fills go
    to one last column: they match no training picture, and k(x, x) stays right.
    """

    FITTED = "_cells"
    depth: int = 5
    _: KW_ONLY
    shifts: int = 1
    sample: int = 200_000
    random_state: RandomSource = None
    cache: FilePath | None = None
    n_jobs: int | None = None

    def _learn(self, items: Items, labels: Array | None, seed: int) -> State:
        """The range of the descriptors from a sample; then the cells that all pictures fill."""
        rng = np.random.default_rng(seed)
        values, _ = sample_of(items, min(self.sample, limits.RANGE_DESCRIPTORS), seed, self.n_jobs)
        low, high = values.min(axis=0).astype(np.float64), values.max(axis=0).astype(np.float64)
        reach = float((high - low).max()) or 1.0
        grid = CellGrid(
            # The coarsest cell is twice as wide as all points, so that it holds them wherever the shift puts it.
            origin=low - rng.uniform(0.0, reach, (self.shifts, len(low))),
            side=2.0 * reach / 2 ** (self.depth - 1),
            mix=rng.integers(0, 2**64, len(low), np.uint64) | np.uint64(1),
            depth=self.depth,
        )
        cells = _filled(grid, items, self.n_jobs)
        starts = np.concatenate([[0], np.cumsum([len(block) for block in cells])])
        return _state(grid, np.concatenate(cells), starts)

    def occurrences(self, item: Any) -> tuple[Array, Array]:
        cells = self._grid.cells_of(item)
        columns = np.empty(cells.shape, np.int64)
        for b, (first, last) in enumerate(pairwise(self._starts)):
            block = self._cells[first:last]
            at = np.minimum(np.searchsorted(block, cells[:, b]), len(block) - 1)
            columns[:, b] = np.where(block[at] == cells[:, b], first + at, self.width() - 1)
        share = np.tile(folded(self.depth), self.shifts) / self.shifts
        return columns, np.broadcast_to(share, columns.shape)

    def width(self) -> int:
        return len(self._cells) + 1

    def state(self) -> State:
        return _state(self._grid, self._cells, self._starts) if self.__sklearn_is_fitted__() else {}

    def restore(self, state: State) -> Self:
        origin = part(state, "origin", "f", self.shifts, None).astype(np.float64)
        side = float(part(state, "side", "f", 1)[0])
        mix = part(state, "mix", "u", origin.shape[1]).astype(np.uint64)
        cells = part(state, "cells", "u", None).astype(np.uint64)
        starts = part(state, "starts", "iu", self.shifts * self.depth + 1).astype(np.int64)
        if side <= 0 or not origin.size:
            raise ValueError("the grid has no size")
        if starts[0] != 0 or starts[-1] != len(cells) or (np.diff(starts) < 1).any():
            raise ValueError("the cells of the levels do not fit together")
        ascending = cells[1:] > cells[:-1]
        ascending[starts[1:-1] - 1] = True  # a level may begin anywhere
        if not ascending.all():
            raise ValueError("the cells are not in ascending order")
        self._grid = CellGrid(origin, side, mix, self.depth)
        self._cells, self._starts = cells, starts
        return self


@dataclass(frozen=True, slots=True)
class CellGrid:
    """Several nested grids, each with its own random shift."""

    origin: Annotated[Array, "shifts, d"]
    side: float  # of the finest cells
    mix: Annotated[Array, "d"]  # odd 64-bit numbers
    depth: int

    def cells_of(self, item: Any) -> Annotated[Array, "k, shifts · depth"]:  # shift after shift, the finest level first
        """The cell of each point at every level, as a 64-bit number."""
        points = values_of(item, self.origin.shape[1]).astype(np.float64)
        cells = np.empty((len(points), len(self.origin), self.depth), np.uint64)
        for t, origin in enumerate(self.origin):
            finest = np.floor((points - origin) / self.side)
            place = np.clip(finest, 0, 2 ** (self.depth - 1) - 1).astype(np.uint64)
            for i in range(self.depth):  # coarser cells hold finer ones whole, so that matches only grow
                cells[:, t, i] = ((place >> np.uint64(i)) * self.mix).sum(axis=1, dtype=np.uint64)
        return cells.reshape(len(points), len(self.origin) * self.depth)


def _filled(grid: CellGrid, items: Items, n_jobs: int | None, most_pending: int = limits.PENDING_CELLS) -> list[Array]:
    """The distinct cells of every shift and level, ascending."""
    known = [np.empty(0, np.uint64)] * (len(grid.origin) * grid.depth)
    pending: list[Array] = []
    for done, cells in enumerate(stream(lambda i: grid.cells_of(items[i]), range(len(items)), n_jobs), 1):
        pending.append(cells)
        if sum(map(np.size, pending)) > most_pending or done == len(items):
            together = np.concatenate(pending)
            known = [np.union1d(old, new) for old, new in zip(known, together.T, strict=True)]
            pending = []
        report("cells that pictures fill", done / len(items))
    return known


def _state(grid: CellGrid, cells: Array, starts: Array) -> State:
    placed = {"origin": grid.origin, "side": np.array([grid.side]), "mix": grid.mix}
    return {**placed, "cells": cells, "starts": starts}


def folded(depth: int) -> Annotated[Array, "depth"]:
    """w_i − w_{i+1} for w_i = 1/2^i and w_L = 0, the finest level first.

    Σ_i w_i (I_i − I_{i−1}) = Σ_i (w_i − w_{i+1}) I_i: the pyramid match (K §5) intersects weighted histograms.

    >>> folded(3)
    array([0.5 , 0.25, 0.25])
    """
    w = 0.5 ** np.arange(depth)
    return np.asarray(w - np.append(w[1:], 0.0))


FALL = 0.5  # how much a match counts, of one a level further down


@dataclass(eq=False, repr=False)
class VocabularyBins(Learner, DescriptorEncoder):
    """A point lies in one node at every level of the tree; each node has a column.

    A match in a node counts with the node's weight w, and only if it is no match in a child already. Regrouped:
    Σ_nodes (w_node − w_parent) min(n_node(x), n_node(z)). Weights double with every step down: those of Grauman and
    Darrell, one over the bin's diameter, hardly grow in 128 dimensions and were 2 to 5 points worse on test
    pictures of 15-Scenes.
    """

    FITTED = "centres_"
    depth: int = 5
    _: KW_ONLY
    branch: int = 10
    sample: int = 200_000
    random_state: RandomSource = None
    cache: FilePath | None = None
    n_jobs: int | None = None

    def _learn(self, items: Items, labels: Array | None, seed: int) -> State:
        values, _ = sample_of(items, self.sample, seed, self.n_jobs)
        with one_blas_thread():  # many small products
            centres, children = _grown(values, self.branch, self.depth, seed)
        return {"centres": centres, "children": children}

    def nodes_of(self, values: Annotated[Array, "k, d"]) -> Annotated[Array, "k, deepest_ + 1"]:
        """The nodes of each point from the root down; −1 below a leaf."""
        way = np.full((len(values), self.deepest_ + 1), -1, np.int64)
        way[:, 0] = 0
        for first in range(0, len(values), limits.DESCRIPTORS_AT_ONCE):
            rows = slice(first, first + limits.DESCRIPTORS_AT_ONCE)
            for level in range(self.deepest_):
                way[rows, level + 1] = self._step(values[rows], way[rows, level])
        return way

    def _step(self, X: Annotated[Array, "k, d"], node: Annotated[Array, "k"]) -> Annotated[Array, "k"]:
        """The nearest child of each point's node; −1 where there is none."""
        below = np.full(len(X), -1, np.int64)
        inner = np.flatnonzero((node >= 0) & (self.children_[node] > 0))
        at = node[inner]
        offset = np.arange(int(self.children_[at].max(initial=0)))
        child = np.minimum(self._first[at][:, None] + offset, len(self.centres_) - 1)
        closeness = (self._shifted[child] @ (X[inner] - self._origin)[:, :, None])[:, :, 0] - self._half[child]
        closeness[offset >= self.children_[at][:, None]] = -np.inf
        if len(inner):
            below[inner] = self._first[at] + closeness.argmax(axis=1)
        return below

    def occurrences(self, item: Any) -> tuple[Array, Array]:
        way = self.nodes_of(values_of(item, self.centres_.shape[1]))
        return np.maximum(way, 0), np.where(way >= 0, self._share[way], 0.0)

    def width(self) -> int:
        return len(self.centres_)

    def state(self) -> State:
        if not self.__sklearn_is_fitted__():
            return {}
        return {"centres": self.centres_, "children": self.children_}

    def restore(self, state: State) -> Self:
        centres = part(state, "centres", "f", None, None).astype(np.float32)
        children = part(state, "children", "iu", len(centres)).astype(np.int64)
        if not centres.size or not 0 <= children.min() <= children.max() < len(centres) == children.sum() + 1:
            raise ValueError("the nodes do not make one tree")
        first = 1 + np.cumsum(children) - children  # children stand in the order of their parents
        if (first[children > 0] <= np.flatnonzero(children)).any():
            raise ValueError("a node comes before its parent")
        parent = np.append(0, np.repeat(np.arange(len(centres)), children))
        level = _levels(parent)
        if level.max() >= self.depth:
            raise ValueError(f"the tree is deeper than its {self.depth} levels")
        # A leaf that could not be divided is its own only part at every finer level, so a match there is a finest one.
        w = np.where(children == 0, 1.0, FALL ** (self.depth - 1 - level))
        self.centres_, self.children_, self.deepest_ = centres, children, int(level.max())
        self._first, self._share = first, np.append(w[0], w[1:] - w[parent[1:]])
        self._origin = centres[0]
        self._shifted = centres - self._origin
        self._half = np.einsum("wd,wd->w", self._shifted, self._shifted) / 2
        return self


def _grown(values: Annotated[Array, "m, d"], branch: int, depth: int, seed: int) -> tuple[Array, Array]:  # (N, d), (N,)
    """The centre and the number of children of every node, level after level."""
    centres: list[Array] = []
    children: list[int] = []
    waiting = deque([(np.arange(len(values)), 0)])
    while waiting:
        rows, level = waiting.popleft()
        points = values[rows]
        groups = _divided(points, branch, seed) if level + 1 < depth else []
        waiting.extend((rows[group], level + 1) for group in groups)
        centres.append(points.mean(axis=0, dtype=np.float64).astype(np.float32))
        children.append(len(groups))
        report("a tree of words", len(centres) / (len(centres) + len(waiting)))
    return np.array(centres), np.array(children)


def _divided(points: Annotated[Array, "m, d"], branch: int, seed: int) -> list[Array]:
    """The rows of each of `branch` clusters; fewer where fewer points are distinct, none for a single one."""
    from sklearn.cluster import KMeans

    count = distinct_rows(points, branch)
    if count < 2:
        return []
    label = KMeans(count, n_init=1, max_iter=20, random_state=seed).fit(points).labels_
    groups = [np.flatnonzero(label == g) for g in range(count)]
    return [group for group in groups if len(group)]


def _levels(parent: Array) -> Annotated[Array, "N"]:
    """The level of every node; the root has 0."""
    level = np.zeros(len(parent), np.int64)
    for node in range(1, len(parent)):
        level[node] = level[parent[node]] + 1
    return level
