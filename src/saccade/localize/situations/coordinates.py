"""Boxes of training pictures as coordinates, checked: what a situation model learns from."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.localize.boxes import as_numbers, check_bounds, check_boxes, to_coordinates
from saccade.localize.priors.densities import Block

# Variances of a box's coordinates before any situation was seen: a centre anywhere, sizes within a factor of 2.7 and
# shapes within one of 1.6 either way.
SPREAD = np.array([1.0 / 12.0, 1.0 / 12.0, 1.0, 0.25])


def one_box(name: str, box: Any) -> Array:
    found = check_boxes(box, f"found[{name!r}]")
    if len(found) != 1:
        raise InvalidInput(f"`found[{name!r}]` must be one box, got {len(found)}. Pass the best one.")
    return np.asarray(found[0])


def coordinates_of(boxes: Mapping[str, Any], sizes: Any) -> tuple[list[str], Array]:
    """Names, and the coordinates (n, 4 · objects) of every picture that has an object."""
    if not isinstance(boxes, Mapping) or not boxes or not all(isinstance(name, str) and name for name in boxes):
        raise InvalidInput(
            f"`boxes` must be a dict: the name of each object, and its boxes (n, 4). Got {boxes!r:.100}."
        )
    bounds, parts = check_bounds(sizes), list[Array]()
    n = len(bounds) if bounds.ndim == 2 else None
    for name, given in boxes.items():
        found = as_numbers(given, f"boxes[{name!r}]")
        n = len(found) if n is None and found.ndim == 2 else n
        if found.shape != (n, 4):
            raise InvalidInput(
                f"`boxes[{name!r}]` must be an array ({n or 'n'}, 4), a row for each picture, got one of shape "
                f"{found.shape}. A row of NaN says that the picture has no {name}."
            )
        parts.append(_coordinates(name, found, np.broadcast_to(bounds, (len(found), 4))))
    U = np.hstack(parts)
    return list(boxes), U[~np.isnan(U).all(axis=1)]


def _coordinates(name: str, found: Array, bounds: Array) -> Array:
    """u of one object in every picture, NaN where there is none."""
    missing = np.asarray(np.isnan(found).all(axis=1))
    if missing.all():
        raise InvalidInput(f"No picture has a box of {name!r}. Leave this object out, or add pictures with it.")
    whole = np.where(missing[:, None], bounds, found)  # so that the number of a bad row is the right one
    u = to_coordinates(check_boxes(whole, f"boxes[{name!r}]"), bounds)
    outside = np.flatnonzero(((u[:, :2] < 0.0) | (u[:, :2] > 1.0)).any(axis=1))
    if outside.size:
        row = int(outside[0])
        raise InvalidInput(
            f"Box {row} of `boxes[{name!r}]`, {found[row].tolist()}, has its centre outside its picture, "
            f"{bounds[row].tolist()}. Check that `sizes` are (width, height), and boxes x0, y0, x1, y1."
        )
    u[missing] = np.nan
    return u


def ranges(U: Array) -> Block:
    """Centres in the whole picture; sizes and shapes in the range seen, a share of 1/n wider at both ends."""
    n, objects = len(U), U.shape[1] // 4
    low, high = np.nanmin(U, axis=0), np.nanmax(U, axis=0)
    wider = (high - low + np.sqrt(3.0 * np.tile(SPREAD, objects))) / n
    low, high = low - wider, high + wider
    for axis in (0, 1):
        low[axis::4], high[axis::4] = 0.0, 1.0
    return Block(low, high)
