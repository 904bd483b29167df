"""Class labels to and from the header of a model file, bounded before they are made."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import ModelFileError

KINDS = "biufU"  # bool, int, unsigned, float, text


def write_classes(classes: Annotated[Array, "M"]) -> dict[str, Any]:
    """The labels and their type."""
    if classes.dtype == object and all(isinstance(c, str) for c in classes):
        classes = classes.astype(str)
    if classes.dtype.kind not in KINDS:
        raise ModelFileError(f"Labels of type {classes.dtype} cannot be saved. Use text or numbers as labels.")
    if classes.nbytes > limits.LABEL_BYTES:
        raise ModelFileError(f"{classes.size} labels of type {classes.dtype} cannot be saved. Use shorter labels.")
    return {"dtype": classes.dtype.str, "values": classes.tolist()}


def label_type(written: dict[str, Any]) -> np.dtype[Any]:
    """The type of the labels, when all of them together are no more than a file may ask for."""
    dtype: np.dtype[Any] = np.dtype(written["dtype"])
    if dtype.kind not in KINDS or dtype.itemsize * len(written["values"]) > limits.LABEL_BYTES:
        raise ValueError(f"{len(written['values'])} labels of type {dtype}")
    return dtype


def read_classes(written: dict[str, Any]) -> Annotated[Array, "M"]:
    """The labels; a ValueError where they name no classes."""
    classes = np.array(written["values"], label_type(written))
    if classes.ndim != 1 or classes.size < 2 or not np.array_equal(np.unique(classes), classes):
        raise ValueError("classes are not two or more in ascending order")
    return classes
