"""A piecewise linear monotone transform of each feature, learned from evidence or leave-one-out."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from saccade._core.checks import as_floats, check_count, shown
from saccade._core.errors import InvalidParameter
from saccade.kernels.base import Array
from saccade.kernels.transforms import Transform

FLATTEST, STEEPEST = 1e-4, 1e4  # slopes that learning may reach
CALM = 0.1  # how much the prior minds a steep slope next to one unlike its neighbour


class Monotone(Transform):
    """Piecewise linear g_d(x) between knots, with slope ≥ 0; the last piece goes on beyond the last knot.

    `Monotone()` is the identity until `tune` settles knots on the values of each dimension and learns the slopes.

    Parameters
    ----------
    knots : array (r, p), or None
        The upper ends of the p pieces, ascending in each row; a row for each dimension, or one row for all.
    slopes : array (r, p), or None
        The slope of each piece. None means ones.
    pieces : int
        Pieces per dimension when the knots are left to `tune`; fewer where a dimension has fewer values.
    shared : bool
        One transform for all dimensions when the knots are left to `tune`: p parameters instead of p per dimension.

    Examples
    --------
    >>> Monotone(knots=[[1.0, 2.0]], slopes=[[3.0, 0.5]])(np.array([0.5, 2.0, 4.0]), np.array([0, 0, 0]))
    array([1.5, 3.5, 4.5])
    """

    learned = "slopes"
    chosen: ClassVar[tuple[str, ...]] = ("knots",)

    def __init__(self, knots: Any = None, slopes: Any = None, *, pieces: int = 24, shared: bool = False) -> None:
        self.knots = knots
        self.slopes = slopes
        self.pieces = pieces
        self.shared = shared

    @property
    def width(self) -> int:
        rows = 0 if self.knots is None else len(self.knots)
        return rows if rows > 1 else 0

    def __call__(self, x: Array, dims: Array) -> Array:
        if self.knots is None:
            return np.array(x, np.float64)
        row, piece, rest, heights, slopes = self._locate(x, dims)
        return np.asarray(heights[row, piece] + slopes[row, piece] * rest)

    def resolved(self, x: Array, dims: Array, width: int) -> Monotone:
        if self.knots is not None:
            return self._copy(self.knots, np.ones(np.shape(self.knots)) if self.slopes is None else self.slopes)
        pieces = check_count("pieces", self.pieces, "The default is 24.")
        rows = 1 if self.shared else width
        knots = np.zeros((rows, pieces))  # pieces of no length come first: the last one goes on beyond the data
        order = np.argsort(dims, kind="stable") if not self.shared else np.arange(x.size)
        ends = np.cumsum(np.bincount(dims, minlength=rows)) if not self.shared else np.array([x.size])
        for row, values in enumerate(np.split(x[order], ends[:-1])):
            known = np.unique(values[values > 0])
            if known.size > pieces:
                known = np.quantile(known, np.linspace(0, 1, pieces + 1)[1:])
            knots[row, pieces - known.size :] = known
        return self._copy(knots, np.ones_like(knots))

    def coordinates(self, x: Array, dims: Array) -> Array:
        theta = np.log(np.clip(np.ravel(self._checked()[1]), FLATTEST, STEEPEST))
        bounds = np.log([FLATTEST, STEEPEST])
        return np.column_stack([theta, np.tile([*bounds, 1.0], (theta.size, 1))])

    def moved(self, theta: Array) -> Monotone:
        return self._copy(self.knots, np.exp(theta).reshape(np.shape(self.knots)))

    def pull(self, x: Array, dims: Array, upstream: Array) -> tuple[Array, Array]:
        if self.knots is None:
            return np.zeros(0), upstream
        row, piece, rest, _, slopes = self._locate(x, dims)
        shape = slopes.shape
        place, count = row * shape[1] + piece, slopes.size
        within = np.bincount(place, upstream * rest, count).reshape(shape)
        through = np.bincount(place, upstream, count).reshape(shape)
        beyond = through[:, ::-1].cumsum(axis=1)[:, ::-1] - through  # values in later pieces pass this one whole
        lengths = np.diff(self._checked()[0], axis=1, prepend=0.0)
        return np.ravel(slopes * (within + beyond * lengths)), upstream * slopes[row, piece]

    def penalty(self, theta: Array) -> tuple[float, Array]:
        # Log slopes of neighbouring pieces differ by a normal with variance 1, and lie around 0 with variance 10.
        T = theta.reshape(np.shape(self.knots))
        apart = np.diff(T, axis=1)
        slope = CALM * T
        slope[:, 1:] += apart
        slope[:, :-1] -= apart
        return 0.5 * float(np.square(apart).sum() + CALM * np.square(T).sum()), slope.ravel()

    def _copy(self, knots: Any, slopes: Any) -> Monotone:
        return Monotone(knots, slopes, pieces=self.pieces, shared=self.shared)

    def _checked(self) -> tuple[Array, Array]:
        knots = as_floats(self.knots)
        slopes = np.ones_like(knots) if self.slopes is None else as_floats(self.slopes)
        if knots.ndim != 2 or not knots.size or not np.isfinite(knots).all():
            raise InvalidParameter(f"`knots` must be a table (r, p) of finite numbers, got {shown(self.knots)}.")
        if knots.min() < 0 or (np.diff(knots, axis=1) < 0).any():
            raise InvalidParameter("`knots` must be ≥ 0 and ascend in each row.")
        if slopes.shape != knots.shape or not np.isfinite(slopes).all() or (slopes < 0).any() or not slopes.any():
            raise InvalidParameter(
                f"`slopes` must be a table of finite slopes ≥ 0, not all zero, as large as `knots` {knots.shape}."
            )
        return knots, slopes

    def _locate(self, x: Array, dims: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Row, piece and way into the piece of every value; height at the start of each piece, and the slopes."""
        knots, slopes = self._checked()
        rows, pieces = knots.shape
        if rows > 1 and dims.size and dims.max() >= rows:
            raise InvalidParameter(f"`knots` must have a row per dimension, got {rows} for dimension {dims.max()}.")
        row = dims if rows > 1 else np.zeros(x.size, np.int64)
        piece, left = np.zeros(x.size, np.int64), pieces
        while left > 1:  # every value halves its range in step: the first piece that ends at x or above, or the last
            half = left // 2
            piece = np.where(knots[row, piece + half - 1] < x, piece + half, piece)
            left -= half
        lower = np.column_stack([np.zeros(rows), knots[:, :-1]])
        heights = np.cumsum(slopes * (knots - lower), axis=1) - slopes * (knots - lower)
        return row, piece, x - lower[row, piece], heights, slopes
