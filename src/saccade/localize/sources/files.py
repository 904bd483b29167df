"""Picture files as sources, by Pillow, which decodes a whole picture at a time.

Held in memory: the copy that was read last, three bytes per pixel. A JPEG file is decoded straight to a half or a
quarter and shrunk from there, so that a coarse look at a huge one holds little. Other formats are decoded
whole, and refused above `limits.PICTURE_PIXELS` pixels: save such pictures as tiled TIFF.
"""

from pathlib import Path

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.features.decode import Unreadable, decode, kind_of, upright_size
from saccade.features.pixels import limited
from saccade.localize.sources.base import Level, Pyramid


class FileSource(Pyramid):
    """One picture file. It is read again when another copy of a JPEG is needed than last time."""

    def __init__(self, path: str | Path, max_pixels: int = limits.PICTURE_PIXELS) -> None:
        self.path, self.max_pixels = Path(path), max_pixels
        try:
            with self.path.open("rb") as file:
                kind = kind_of(file)
                width, height = upright_size(file)
        except (Unreadable, OSError) as error:
            raise InvalidInput(f"{str(path)!r} gives no picture: {error}.") from None
        longer, halvings = max(width, height), 4 if kind == "Jpeg" else 1
        self.levels = [Level(*limited((width, height), -(-longer // 2**k))) for k in range(halvings)]
        self._held: tuple[int, Array] | None = None

    def region(self, level: int, x0: int, y0: int, x1: int, y1: int) -> Array:
        if self._held is None or self._held[0] != level:
            self._held = None  # before the next is made: two are never held
            self._held = level, self._decoded(level)
        return self._held[1][y0:y1, x0:x1]

    def _decoded(self, level: int) -> Array:
        width, height = self.levels[level]
        if width * height > self.max_pixels:
            raise InvalidInput(
                f"{str(self.path)!r} has {width} x {height} pixels to decode at once, over the limit of "
                f"{self.max_pixels:,}. Save it as a tiled TIFF, read it at a lower scale if it is a JPEG, or pass "
                "`max_pixels`."
            )
        try:
            with self.path.open("rb") as file:
                whole = self.levels[0].width * self.levels[0].height
                return decode(file, max_pixels=whole, max_side=max(width, height) if level else None)
        except (Unreadable, OSError) as error:
            raise InvalidInput(f"{str(self.path)!r} gives no picture: {error}.") from None


def is_tiff(path: Path) -> bool:
    """By its first bytes, as `features.decode` tells formats apart."""
    try:
        with path.open("rb") as file:
            return kind_of(file) == "Tiff"
    except Unreadable:
        return False
