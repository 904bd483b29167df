"""TIFF files as sources, by tifffile: plain, tiled, BigTIFF, and pyramids such as those of slide scanners.

Held in memory: the segments (tiles or strips) that a box touches, one at a time. A tiled file therefore serves pictures
of any size; a file in strips decodes whole rows; one single strip is decoded whole. An orientation tag is not applied.
"""

import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.features.pixels import to_rgb
from saccade.localize.sources.base import Level, OpenFile

PALETTE, WHITE_IS_ZERO = 3, 0  # values of the TIFF tag that says what numbers mean


def installed() -> bool:
    return find_spec("tifffile") is not None


class TiffSource(OpenFile):
    """The first picture of a TIFF file, with its coarser copies."""

    def __init__(self, path: str | Path) -> None:
        try:
            import tifffile
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "Huge TIFFs need tifffile: pip install 'saccade[slides]'", name=error.name
            ) from None
        self.path = Path(path)
        try:
            self._file = tifffile.TiffFile(self.path)
            weakref.finalize(self, self._file.close)
            self._pages = _copies(self._file.series[0])
        except (tifffile.TiffFileError, OSError, IndexError, ValueError) as error:
            raise InvalidInput(f"{str(path)!r} is not a readable TIFF file: {error}.") from None
        for page in self._pages:
            _check_page(page, self.path)
        self.levels = [Level(int(page.imagewidth), int(page.imagelength)) for page in self._pages]

    def region(self, level: int, x0: int, y0: int, x1: int, y1: int) -> Array:
        page = self._pages[level]
        out = np.zeros((y1 - y0, x1 - x0, page.samplesperpixel), page.dtype)
        for number in _segments(page, x0, y0, x1, y1):
            self._paste(page, number, out, x0, y0)
        if page.photometric == WHITE_IS_ZERO:
            out = (~out if out.dtype.kind in "ub" else 1 - out).astype(out.dtype)
        return to_rgb(out[..., :3] if page.samplesperpixel > 4 else out)

    def _paste(self, page: Any, number: int, out: Array, x0: int, y0: int) -> None:
        """One segment, where it lies; a segment without bytes stays 0."""
        offset, count = page.dataoffsets[number], page.databytecounts[number]
        if not count:
            return
        self._file.filehandle.seek(offset)
        try:
            decoded, (plane, _, top, left, _), _ = page.decode(
                self._file.filehandle.read(count), number, jpegtables=page.jpegtables
            )
        except Exception as error:  # a damaged segment, or a codec that is missing
            raise InvalidInput(f"Segment {number} of {str(self.path)!r} cannot be decoded: {error}") from error
        pixels = decoded[0]
        rows = slice(max(top, y0), min(top + pixels.shape[0], y0 + out.shape[0]))
        columns = slice(max(left, x0), min(left + pixels.shape[1], x0 + out.shape[1]))
        piece = pixels[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
        place = out[rows.start - y0 : rows.stop - y0, columns.start - x0 : columns.stop - x0]
        if page.planarconfig == 2 and page.samplesperpixel > 1:  # a plane for each colour
            place[..., plane] = piece[..., 0]
        else:
            place[...] = piece


def _copies(series: Any) -> list[Any]:
    """The full picture and its coarser copies: levels as tifffile knows them, else the reduced pages below the first.

    tifffile does not count the sub-pages of files that it wrote itself as levels.
    """
    found = [level.keyframe for level in series.levels]
    first = found[0]
    if len(found) > 1 or not first.subifds:
        return found
    below = [page.aspage() for page in first.pages]
    reduced = [page for page in below if page.is_reduced and page.photometric == first.photometric]
    return [first, *sorted(reduced, key=lambda page: -page.imagewidth)]


def _segments(page: Any, x0: int, y0: int, x1: int, y1: int) -> list[int]:
    """Numbers of the tiles or strips that a region touches, in all planes."""
    high, wide = (page.tilelength, page.tilewidth) if page.is_tiled else (page.rowsperstrip, page.imagewidth)
    down, across = -(-page.imagelength // high), -(-page.imagewidth // wide)
    rows, columns = range(y0 // high, -(-y1 // high)), range(x0 // wide, -(-x1 // wide))
    planes = page.samplesperpixel if page.planarconfig == 2 else 1
    return [(p * down + r) * across + c for p in range(planes) for r in rows for c in columns]


def _check_page(page: Any, path: Path) -> None:
    if page.imagedepth != 1 or page.photometric == PALETTE or page.dtype is None or page.samplesperpixel == 2:
        raise InvalidInput(f"{str(path)!r} has volumes, a palette or an odd number of colours. Save it as RGB or grey.")
    high, wide = (page.tilelength, page.tilewidth) if page.is_tiled else (page.rowsperstrip, page.imagewidth)
    if high * wide > limits.PICTURE_PIXELS:
        raise InvalidInput(
            f"{str(path)!r} keeps {wide} x {high} pixels in one piece, which must be decoded at once. Save it in "
            "tiles, such as tifffile.imwrite(..., tile=(512, 512))."
        )
