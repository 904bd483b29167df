"""Windows that begin and end on the lines of a grid, and sets of them."""

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import check_positive
from saccade._core.errors import InvalidInput, InvalidParameter

Interval = tuple[int, int, int, int]
Windows = tuple[int, ...]
"""A set of windows: the first and the last grid line that left, then top, right and bottom may be."""
ROUNDING = 1e-9  # of a step: smaller differences are rounding


@dataclass(frozen=True)
class Axis:
    """Grid lines along one side of the picture. An interval of them may be from `least` to `most` long."""

    lines: Annotated[Array, "lines"]  # x or y
    first_end: list[int]  # for each line the first that an interval from it can end at; beyond the last where none
    last_end: list[int]
    first_begin: list[int]  # for each line the first that an interval up to it can begin at
    last_begin: list[int]  # −1 where none

    @classmethod
    def of(cls, low: float, high: float, step: float, least: float, most: float) -> Self:
        lines = np.append(np.arange(low, high - ROUNDING * step, step), high)
        places, least, most = np.arange(lines.size), least - ROUNDING * step, most + ROUNDING * step
        first_end = np.maximum(np.searchsorted(lines, lines + least), places + 1)
        last_begin = np.minimum(np.searchsorted(lines, lines - least, side="right"), places) - 1
        last_end = np.searchsorted(lines, lines + most, side="right") - 1
        first_begin = np.searchsorted(lines, lines - most)
        return cls(lines, first_end.tolist(), last_end.tolist(), first_begin.tolist(), last_begin.tolist())

    @property
    def intervals(self) -> int:
        """How many there are."""
        return int(np.maximum(np.array(self.last_end) - np.array(self.first_end) + 1, 0).sum())

    def tightened(self, a0: int, a1: int, b0: int, b1: int) -> Interval | None:
        """Begins a0..a1 and ends b0..b1 without those that no interval has; None where nothing is left."""
        b0, b1 = max(b0, self.first_end[a0]), min(b1, self.last_end[a1])
        if b0 > b1:
            return None
        a0, a1 = max(a0, self.first_begin[b0]), min(a1, self.last_begin[b1])
        return None if a0 > a1 else (a0, a1, b0, b1)


@dataclass(frozen=True)
class WindowGrid:
    """The windows of a picture that begin and end on grid lines."""

    x: Axis
    y: Axis

    @classmethod
    def of(cls, limit: Array, step: float, min_size: Any, max_size: Any) -> Self:
        x0, y0, x1, y1 = limit.tolist()
        if max(x1 - x0, y1 - y0) / step > limits.GRID_LINES:
            raise InvalidParameter(f"`step` = {step} makes more than {limits.GRID_LINES:,} grid lines. Make it larger.")
        least, most = _check_size("min_size", min_size, 0.0), _check_size("max_size", max_size, np.inf)
        grid = cls(Axis.of(x0, x1, step, least[0], most[0]), Axis.of(y0, y1, step, least[1], most[1]))
        if not grid.windows:
            raise InvalidInput(
                f"No window of the grid has a size from {least} to {most} in a picture of {x1 - x0:g} × {y1 - y0:g} "
                f"with step {step:g}. Change min_size, max_size or step."
            )
        return grid

    @property
    def windows(self) -> int:
        return self.x.intervals * self.y.intervals

    @property
    def all(self) -> Windows:
        """The set of all windows."""
        x, y = self.x.lines.size - 1, self.y.lines.size - 1
        return 0, x - 1, 0, y - 1, 1, x, 1, y

    def tightened(self, windows: list[int]) -> Windows | None:
        """The set without lines on which no window can begin or end; None where no window is left."""
        l0, l1, t0, t1, r0, r1, b0, b1 = windows
        across, down = self.x.tightened(l0, l1, r0, r1), self.y.tightened(t0, t1, b0, b1)
        return None if across is None or down is None else (*across[:2], *down[:2], *across[2:], *down[2:])

    def box(self, windows: Windows) -> Annotated[Array, "4"]:
        """x0, y0, x1, y1 of a set of one window."""
        left, _, top, _, right, _, bottom, _ = windows
        return np.array([self.x.lines[left], self.y.lines[top], self.x.lines[right], self.y.lines[bottom]])


def _check_size(name: str, size: Any, default: float) -> tuple[float, float]:
    """(width, height)."""
    if size is None:
        return default, default
    sides = tuple(size) if isinstance(size, tuple | list | np.ndarray) else (size, size)
    if len(sides) != 2:
        raise InvalidParameter(f"`{name}` must be a number or (width, height), got {size!r}.")
    width, height = (check_positive(name, side, "None sets no limit.") for side in sides)
    return width, height
