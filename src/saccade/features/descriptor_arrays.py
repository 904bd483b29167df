"""The descriptors of one picture as arrays: values and positions, checked."""

from typing import Annotated, Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.features.lazy import Descriptors

LARGEST = 1e15  # so that float32 holds the squares


def values_of(item: Any, width: int | None = None) -> Annotated[Array, "k, d"]:
    """The descriptors of an item as finite float32, or an error that says what an item must be."""
    given = item.values if isinstance(item, Descriptors) else item
    try:
        with np.errstate(over="ignore"):
            values: Array = np.ascontiguousarray(given, np.float32)
    except (TypeError, ValueError):
        raise _not_descriptors(type(item).__name__) from None
    if values.ndim and not len(values):
        return np.empty((0, width or 0), np.float32)
    if values.ndim != 2 or not values.shape[1]:
        raise _not_descriptors(f"an array of shape {values.shape}")
    if width is not None:
        same_width(values, width)
    if not float(np.abs(values).max()) < LARGEST:  # also when it is not a number
        raise InvalidInput(f"Descriptors must be finite and below {LARGEST:g}, got {np.abs(values).max()}.")
    return values


def _not_descriptors(got: str) -> InvalidInput:
    return InvalidInput(
        f"An item must be `Descriptors` or an array (descriptors, dimensions), got {got}. Pass a list of such items; "
        "DenseSIFT makes them of pictures."
    )


def positions_of(item: Any) -> Annotated[Array, "k, 2"]:
    """Where the descriptors of an item are: x and y from 0 to 1."""
    if not isinstance(item, Descriptors):
        raise InvalidInput(
            f"Positions are needed, got {type(item).__name__} without any. Pass `Descriptors(values, positions)`."
        )
    positions = np.asarray(item.positions, np.float64)
    if positions.shape != (len(item.values), 2):
        raise InvalidInput(
            f"`positions` must have the shape ({len(item.values)}, 2), a row per descriptor, got {positions.shape}."
        )
    if not ((positions >= 0) & (positions <= 1)).all():
        raise InvalidInput("`positions` must be shares from 0 to 1 of the picture's width and height.")
    return positions


def same_width(values: Array, width: int) -> None:
    """Raise InvalidInput where the descriptors have another number of dimensions."""
    if values.shape[1] != width:
        raise InvalidInput(
            f"Descriptors must have {width} dimensions like the others in training, got {values.shape[1]}. Make all "
            "with the same feature transformer."
        )
