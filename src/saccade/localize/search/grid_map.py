"""The posterior of a search at every place of a grid, for boxes of one size: a map for people.

Overlap and nearness have edges and are found at every place. All that comes from clutter and offset is smooth: it is
found on a coarse grid and a cubic spline carries it over.
"""

from typing import Annotated

import numpy as np
from scipy.interpolate import make_interp_spline

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidParameter
from saccade.localize.search.belief import GivenObjects, Smooth
from saccade.localize.search.learned_response import Judgement
from saccade.localize.search.posterior import Belief

COARSE = 48  # places a side: a fifth of the distance over which clutter changes


def grid_boxes(
    bounds: Annotated[Array, "4"], size: Annotated[Array, "width, height"], rows: int, columns: int
) -> Annotated[Array, "rows · columns, 4"]:
    """Boxes of one size around places in the middle of rows · columns equal cells; at the edge they extend beyond."""
    return _boxes(bounds, size, _middles(rows), _middles(columns))


def grid_moments(
    belief: Belief, size: Annotated[Array, "2"], rows: int, columns: int, rng: np.random.Generator
) -> tuple[Array, Array]:  # (rows, columns) each
    """Mean and variance of the score of such boxes over hypotheses drawn by their weights."""
    bounds = belief.evidence.looks.bounds
    objects = belief.where.boxes[belief.where.resampled(limits.HYPOTHESES_FOR_MAPS, rng)]
    given, weights = belief.evidence.given(objects), np.full(len(objects), 1.0 / len(objects))
    if rows * columns > limits.MAP_CELLS:
        raise InvalidParameter(f"A map has at most {limits.MAP_CELLS:,} cells, got {rows} x {columns}.")
    boxes = grid_boxes(bounds, size, rows, columns)
    if isinstance(given, Judgement):
        mean, variance = belief.moments(boxes)
    else:
        mean, variance = given.mixed(boxes, objects, weights, _spread(given, bounds, size, rows, columns))
    return mean.reshape(rows, columns), variance.reshape(rows, columns)


def _spread(given: GivenObjects, bounds: Array, size: Array, rows: int, columns: int) -> Smooth:
    """The smooth parts of every place, from those of a coarse grid."""
    down, right = (np.linspace(0.0, 1.0, min(COARSE, max(4, side))) for side in (rows, columns))
    coarse = given.smooth(_boxes(bounds, size, down, right))
    parts = np.concatenate([coarse.known.transpose(0, 2, 1).reshape(-1, len(coarse.base)), [coarse.base, coarse.own]])
    table = parts.reshape(len(parts), down.size, right.size)
    up, across = (make_interp_spline(at, np.eye(at.size))(_middles(n)) for at, n in ((down, rows), (right, columns)))
    fine = (up @ table @ across.T).reshape(len(parts), -1)
    known = fine[:-2].reshape(2, -1, fine.shape[1]).swapaxes(1, 2)
    return Smooth(np.ascontiguousarray(known), fine[-2], np.maximum(fine[-1], 0.0))


def _middles(n: int) -> Array:
    return (np.arange(n) + 0.5) / n


def _boxes(bounds: Array, size: Array, down: Array, right: Array) -> Array:
    y, x = np.meshgrid(down, right, indexing="ij")
    centres = bounds[:2] + np.column_stack([x.ravel(), y.ravel()]) * (bounds[2:] - bounds[:2])
    return np.hstack([centres - 0.5 * size, centres + 0.5 * size])
