"""Checks of the arguments of a search over tiles."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.checks import is_number
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.localize.boxes import as_numbers, check_boxes
from saccade.localize.sources.base import Source, open_picture


def source_and_bounds(picture: Any) -> tuple[Source | None, Any]:
    """(width, height) or (x0, y0, x1, y1) are bounds; everything else is a picture."""
    if isinstance(picture, tuple | list) and len(picture) in (2, 4) and all(is_number(side) for side in picture):
        return None, picture
    if isinstance(picture, np.ndarray) and picture.shape in ((2,), (4,)):
        return None, picture
    source = open_picture(picture)
    return source, (source.shape[1], source.shape[0])


def check_features(features: Any, n: int) -> Array | None:
    if features is None:
        return None
    found = as_numbers(features, "features")
    if found.ndim != 2 or len(found) != n or not found.shape[1] or not np.isfinite(found).all():
        raise InvalidInput(
            f"`features` must be {n} rows of finite numbers, one for each tile, got shape {found.shape}."
        )
    return found


def standardised(features: Array | None) -> Array | None:
    """Mean 0 and deviation 1, divided by the root of their number: two tiles are about √2 apart."""
    if features is None:
        return None
    deviation = features.std(axis=0)
    flat = deviation <= 1e-12 * (1.0 + np.abs(features).max(axis=0))
    return np.asarray(
        (features - features.mean(axis=0)) / np.where(flat, np.inf, deviation) / np.sqrt(features.shape[1])
    )


def check_prior(prior: Any, shape: tuple[int, int]) -> Annotated[Array, "n"]:
    found = as_numbers(prior, "prior")
    if found.shape not in ((), shape) or not ((found > 0.0) & (found < 1.0)).all():
        raise InvalidParameter(
            f"`prior` must be a probability between 0 and 1, or an array of shape {shape} of such, got {prior!r}."
        )
    return np.broadcast_to(found, shape).ravel().copy()


def check_inside(inside: Sequence[Any] | None, numbers: Array) -> list[list[list[float]]]:
    """For each tile the rows tile, x0, y0, x1, y1, score."""
    if inside is None:
        return [[] for _ in numbers]
    if len(inside) != numbers.size:
        raise InvalidInput(f"`inside` must have {numbers.size} entries, one for each tile, got {len(inside)}.")
    return [
        [[float(number), *row] for row in scored(own).tolist()] for number, own in zip(numbers, inside, strict=True)
    ]


def scored(boxes: Any) -> Annotated[Array, "k, 5"]:
    """Boxes with scores; boxes without scores get 1."""
    found = as_numbers(boxes, "inside")
    found = found.reshape(-1, 5) if found.size == 0 else np.atleast_2d(found)
    if found.ndim != 2 or found.shape[1] not in (4, 5) or not np.isfinite(found).all():
        raise InvalidInput(f"Boxes inside a tile must be (k, 4) or (k, 5) finite numbers, got shape {found.shape}.")
    check_boxes(found[:, :4], "inside")
    return found if found.shape[1] == 5 else np.column_stack([found, np.ones(len(found))])
