"""Arrays as sources: in memory, mapped from a file, or of zarr, h5py or dask. Only the slice that is read is held."""

from pathlib import Path
from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.features.pixels import to_rgb
from saccade.localize.sources.base import Level, Pyramid

SCALES = "A list of arrays is one picture at several scales, the full one first, each smaller than the one before."


class ArraySource(Pyramid):
    """An array (height, width[, 1, 3 or 4]), or a list of them from the full picture to the coarsest copy.

    Values are taken as everywhere in saccade: the full range of uint8 or uint16, floats from 0 to 1, alpha over white.
    """

    def __init__(self, arrays: Any) -> None:
        self.arrays = list(arrays) if isinstance(arrays, list | tuple) else [arrays]
        for array in self.arrays:
            _check_shape(array)
        if not self.arrays:
            raise InvalidInput(f"There is no array in the list. {SCALES}")
        self.levels = [Level(int(array.shape[1]), int(array.shape[0])) for array in self.arrays]
        if any(b.width > a.width or b.height > a.height for a, b in zip(self.levels, self.levels[1:], strict=False)):
            raise InvalidInput(f"{SCALES} Got (width, height) {[tuple(level) for level in self.levels]}.")

    def region(self, level: int, x0: int, y0: int, x1: int, y1: int) -> Array:
        return to_rgb(np.asarray(self.arrays[level][y0:y1, x0:x1]))


def _check_shape(array: Any) -> None:
    shape = getattr(array, "shape", None)
    if shape is None or len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3, 4)):
        raise InvalidInput(
            "A picture must have the shape (h, w), (h, w, 3) or (h, w, 4), got "
            f"{shape or type(array).__name__}. {SCALES}"
        )
    if min(shape) < 1:
        raise InvalidInput(f"A picture must have pixels, got an array of shape {tuple(shape)}.")


class Plane:
    """Height, width and colours of an array with more axes, of which the first entry is taken."""

    def __init__(self, array: Any, axes: str) -> None:
        self.array, self.axes = array, axes
        sides = dict(zip(axes, array.shape, strict=True))
        if "y" not in sides or "x" not in sides:
            raise InvalidInput(f"A picture needs the axes y and x, got {axes!r}.")
        self.shape = tuple(int(sides[axis]) for axis in "yxc" if axis in sides)

    def __getitem__(self, where: tuple[slice, slice]) -> Array:
        chosen = {"y": where[0], "x": where[1], "c": slice(None)}
        found = np.asarray(self.array[tuple(chosen.get(axis, 0) for axis in self.axes)])
        left = [axis for axis in self.axes if axis in chosen]
        return found.transpose([left.index(axis) for axis in "yxc" if axis in left])


def open_zarr(path: Path) -> ArraySource:
    """A zarr array, or an OME-Zarr group, whose "multiscales" name the copies and the axes."""
    try:
        import zarr
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("Zarr pictures need zarr: pip install 'saccade[slides]'", name=error.name) from None

    try:
        found = zarr.open(str(path), mode="r")
    except Exception as error:  # whatever zarr raises for a folder that is none of its own, by version
        raise InvalidInput(f"The folder {str(path)!r} is not a zarr picture ({error}).") from error
    if isinstance(found, zarr.Array):
        return ArraySource(Plane(found, _plain_axes(found.shape)))
    notes = dict(found.attrs)
    scales = notes.get("ome", notes).get("multiscales")
    if not scales:
        raise InvalidInput(f"The zarr group {str(path)!r} names no 'multiscales'. Open one of its arrays instead.")
    arrays = [found[part["path"]] for part in scales[0]["datasets"]]
    axes = "".join(axis["name"] if isinstance(axis, dict) else axis for axis in scales[0].get("axes", ()))
    return ArraySource([Plane(array, axes or _plain_axes(array.shape)) for array in arrays])


def _plain_axes(shape: tuple[int, ...]) -> str:
    """By the number of axes, where nothing names them: y x c, and the colours first in OME's five."""
    return {2: "yx", 3: "yxc", 5: "tczyx"}.get(len(shape), "?" * len(shape))
