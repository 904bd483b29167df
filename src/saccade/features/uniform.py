"""Uniform bins for the pyramid match: cells of a grid over the space of descriptors, twice as wide at every level."""

from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.features.base import DescriptorEncoder
from saccade.features.descriptor_arrays import values_of
from saccade.features.lazy import Items, stream
from saccade.features.learner import Learner
from saccade.features.sample import sample_of
from saccade.features.state import State, part


@dataclass(eq=False, repr=False)
class UniformBins(Learner, DescriptorEncoder):
    """The level-i histogram counts points in cells of side 2^i, over the cells that training pictures fill (K §5).

    The number of cells grows exponentially with the dimensions, so a cell is named by a 64-bit mix of its coordinates
    (two of ten million cells coincide with a chance of about 10⁻⁵). Points in cells that no training picture fills go
    to one last column: they match no training picture, and k(x, x) stays right.
    """

    depth: int = 5
    _: KW_ONLY
    shifts: int = 1
    sample: int = 200_000
    random_state: Any = None
    cache: Any = None
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_cells")


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
