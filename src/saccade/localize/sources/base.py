"""Pictures too large to hold: a source has a shape and reads a box of itself, whole or coarser.

Boxes are x0, y0, x1, y1 in pixels of the full picture, whatever the scale. A source never holds more than the answer,
what the file format must decode for it (each adapter says what that is) and `limits.SOURCE_PIXELS` pixels.
"""

import abc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import check_count, is_number, shown
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.features.pixels import check_pixels, pillow, resize
from saccade.localize.boxes import check_boxes

SLACK = 1e-6  # of a factor between levels: 1001 / 501 counts as two
SLIDES = (".svs", ".ndpi", ".mrxs", ".scn", ".vms", ".vmu", ".bif", ".svslide", ".dcm")  # OpenSlide's, beside TIFF


@runtime_checkable
class Source(Protocol):
    """Any object with `shape` and `read` is a source: also your own, for pictures on a server or made on demand."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Height, width, and perhaps channels, of the full picture."""

    def read(self, box: Any, scale: float = 1.0) -> Array:
        """What is in the box x0, y0, x1, y1 as uint8 RGB, (height · scale, width · scale, 3) to the nearest pixel."""


class Level(NamedTuple):
    """One copy of the picture; `width` / full width is its scale."""

    width: int
    height: int


class Pyramid(abc.ABC):
    """A source with copies of the picture at one or more scales. Subclasses say how a region of one copy is read."""

    levels: list[Level]  # the full picture first, then coarser and coarser

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.levels[0].height, self.levels[0].width, 3

    def read(self, box: Any, scale: float = 1.0) -> Array:
        """The box as uint8 RGB, from the coarsest copy that is fine enough, averaged down from there."""
        x0, y0, x1, y1 = whole_box(box, self.shape)
        scale = check_scale(scale)
        size = max(1, round((x1 - x0) * scale)), max(1, round((y1 - y0) * scale))
        full, number = self.levels[0], self._level(scale)
        fx, fy = self.levels[number].width / full.width, self.levels[number].height / full.height
        return shrunk(
            lambda *region: self.region(number, *region),
            (x0 * fx, y0 * fy, x1 * fx, y1 * fy),
            self.levels[number],
            size,
        )

    def _level(self, scale: float) -> int:
        """The coarsest copy that has at least the wanted resolution."""
        full = self.levels[0]
        fine = [n for n, level in enumerate(self.levels) if level.width / full.width >= scale * (1.0 - SLACK)]
        return fine[-1] if fine else 0

    @abc.abstractmethod
    def region(self, level: int, x0: int, y0: int, x1: int, y1: int) -> Annotated[Array, "h, w, 3"]:
        """These pixels of one copy, uint8."""


class OpenFile(Pyramid):
    """A source that holds a file open: `close` it, or use it in a `with` block."""

    _file: Any

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def shrunk(
    region: Callable[[int, int, int, int], Array],
    box: tuple[float, float, float, float],  # in pixels of what `region` reads
    inside: Level,
    size: tuple[int, int],  # (w, h) of the answer, not larger than the box
    at_once: int = limits.SOURCE_PIXELS,
) -> Annotated[Array, "h, w, 3"]:
    """The box averaged down to this size, read part by part: no more than about `at_once` pixels are held."""
    x0, y0, x1, y1 = box
    if size == (x1 - x0, y1 - y0) and all(side == int(side) for side in box):
        return region(*(int(side) for side in box))
    out = np.empty((size[1], size[0], 3), np.uint8)
    wide, high = (x1 - x0) / size[0], (y1 - y0) / size[1]  # pixels read for a pixel of the answer
    columns = max(1, min(size[0], int(np.sqrt(at_once) / wide)))
    rows = max(1, min(size[1], int(at_once / (columns * wide * high))))
    for top, bottom in _parts(size[1], rows):
        for left, right in _parts(size[0], columns):
            part = x0 + left * wide, y0 + top * high, x0 + right * wide, y0 + bottom * high
            out[top:bottom, left:right] = _average(region, part, inside, (right - left, bottom - top))
    return out


def _parts(length: int, step: int) -> Iterator[tuple[int, int]]:
    for start in range(0, length, step):
        yield start, min(start + step, length)


def _average(
    region: Callable[..., Array], part: tuple[float, ...], inside: Level, size: tuple[int, int]
) -> Annotated[Array, "h, w, 3"]:
    """Each pixel is the mean of those whose centre it covers: parts then fit together, except for ties in rounding."""
    left, top = int(np.floor(part[0] + SLACK)), int(np.floor(part[1] + SLACK))
    right = min(max(int(np.ceil(part[2] - SLACK)), left + 1), inside.width)
    bottom = min(max(int(np.ceil(part[3] - SLACK)), top + 1), inside.height)
    pixels = region(left, top, right, bottom)
    end = min(part[2] - left, right - left), min(part[3] - top, bottom - top)
    Image = pillow()
    box = (max(part[0] - left, 0.0), max(part[1] - top, 0.0), *end)
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BOX, box=box))


def whole_box(box: Any, shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """The box in whole pixels, with every pixel that it touches; an error if it is not inside the picture."""
    checked = check_boxes(np.asarray(box), "box", bounds=(shape[1], shape[0]))
    if len(checked) != 1:
        raise InvalidInput(f"`read` takes one box x0, y0, x1, y1, got {len(checked)}. Use `crops` for several.")
    x0, y0, x1, y1 = checked[0]
    low = max(0, int(np.floor(x0 + SLACK))), max(0, int(np.floor(y0 + SLACK)))
    return *low, min(shape[1], int(np.ceil(x1 - SLACK))), min(shape[0], int(np.ceil(y1 - SLACK)))


def check_scale(scale: Any) -> float:
    if is_number(scale) and 0.0 < float(scale) <= 1.0:
        return float(scale)
    raise InvalidParameter(f"`scale` must be above 0 and at most 1, got {shown(scale)}. 0.5 reads half as many rows.")


def open_picture(picture: Any) -> Source:
    """The source for an array, a list of arrays, or a file; a source is returned as it is.

    Parameters
    ----------
    picture : source, array, list of arrays, or path
        An array is anything with a shape that can be sliced: NumPy, a memory map, h5py, zarr, dask. A list is one
        picture at several scales, the full one first. Paths: a .zarr folder (needs zarr), TIFF (tifffile; Pillow where
        it is missing), a slide (OpenSlide; tifffile where it is missing), or any other picture (Pillow).

    Returns
    -------
    Source
        An object with `shape` and `read(box, scale=1.0)`, which gives the pixels of a box.

    Examples
    --------
    >>> source = open_picture(np.zeros((400, 600, 3), np.uint8))
    >>> source.shape, source.read((0, 0, 200, 100), scale=0.5).shape
    ((400, 600, 3), (50, 100, 3))
    """
    if isinstance(picture, str | Path):
        return _open_file(Path(picture))
    if isinstance(picture, Source):
        return picture
    from saccade.localize.sources.arrays import ArraySource

    return ArraySource(picture)


def _open_file(path: Path) -> Source:
    from saccade.localize.sources import arrays as source_arrays
    from saccade.localize.sources import files as source_files
    from saccade.localize.sources import slides as source_slides
    from saccade.localize.sources import tiff as source_tiff

    if path.is_dir():
        return source_arrays.open_zarr(path)
    if not path.is_file():
        raise InvalidInput(f"There is no picture at {str(path)!r}.")
    tiff = source_files.is_tiff(path)
    if path.suffix.lower() in SLIDES and (source_slides.installed() or not tiff):
        return source_slides.SlideSource(path)
    return source_tiff.TiffSource(path) if tiff and source_tiff.installed() else source_files.FileSource(path)


def crops(
    source: Source, boxes: Annotated[Any, "n, 4"], size: tuple[int, int] | None = None, scale: float = 1.0
) -> list[Annotated[Array, "h, w, 3"]]:
    """The pixels in each box, for a judge that takes a list of crops.

    Parameters
    ----------
    source : Source
        The picture, as `open_picture` gives it.
    boxes : array of shape (n, 4)
        x0, y0, x1, y1 inside the picture.
    size : (width, height), optional
        Size of all crops. A larger box is read from a coarser copy, which is quicker.
    scale : float
        Above 0 and at most 1: resolution where `size` is not given.

    Returns
    -------
    list of n arrays of shape (h, w, 3)
        The crops, uint8 RGB.

    Examples
    --------
    >>> source = open_picture(np.zeros((400, 600, 3), np.uint8))
    >>> [crop.shape for crop in crops(source, [[0, 0, 100, 100], [0, 0, 9, 7]], size=(32, 32))]
    [(32, 32, 3), (32, 32, 3)]
    """
    found, shown = check_boxes(boxes, bounds=(source.shape[1], source.shape[0])), check_shown(size, scale)
    if shown is None:
        return [source.read(box, scale) for box in found]
    width, height = shown
    wanted = np.maximum(width / (found[:, 2] - found[:, 0]), height / (found[:, 3] - found[:, 1]))
    read = zip(found, np.minimum(wanted, 1.0), strict=True)
    return [resize(np.asarray(source.read(box, float(each))), (width, height)) for box, each in read]


def check_shown(size: Any, scale: Any) -> tuple[int, int] | None:
    """The size of every crop, or None where `scale` decides."""
    if size is None:
        check_scale(scale)
        return None
    if not isinstance(size, tuple | list | np.ndarray) or len(size) != 2:
        raise InvalidParameter(f"`size` must be (width, height) in pixels, got {size!r:.100}.")
    width, height = (check_count("size", side, "Pass (width, height) in pixels.") for side in size)
    return check_pixels((width, height))
