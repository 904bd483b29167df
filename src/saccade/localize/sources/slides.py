"""Slides as sources, by OpenSlide (Aperio, Hamamatsu, Leica, MIRAX, Philips, …), where it is installed.

Held in memory: the region that is read, four bytes per pixel, and OpenSlide's own cache of tiles, 32 MB.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.features.pixels import to_rgb
from saccade.localize.sources.base import Level, OpenFile


def installed() -> bool:
    return find_spec("openslide") is not None


class SlideSource(OpenFile):
    """One slide; parts that were not scanned are white."""

    def __init__(self, path: str | Path) -> None:
        try:
            import openslide
        except (ModuleNotFoundError, OSError) as error:  # OSError: the package without the library
            raise ModuleNotFoundError(
                "Slides need OpenSlide: pip install openslide-python openslide-bin", name="openslide"
            ) from error
        try:
            self._file = openslide.OpenSlide(str(path))
        except openslide.OpenSlideError as error:
            raise InvalidInput(f"OpenSlide cannot read {str(path)!r}: {error}.") from None
        self.levels = [Level(*size) for size in self._file.level_dimensions]

    def region(self, level: int, x0: int, y0: int, x1: int, y1: int) -> Array:
        step = self._file.level_downsamples[level]
        start = round(x0 * step), round(y0 * step)  # in pixels of the full picture, as OpenSlide wants it
        return to_rgb(np.asarray(self._file.read_region(start, level, (x1 - x0, y1 - y0))))
