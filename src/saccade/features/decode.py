"""One file as RGB pixels, or the reason why not. Its content decides what it is, whatever its name says.

Pillow decodes; its classes are used one by one instead of `Image.open`, which would try every format it knows, and
would apply a limit that is one global for the whole process.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Annotated, Any, BinaryIO

import numpy as np

from saccade._core.arrays import Array
from saccade.features.pixels import limited, pillow, resize, to_rgb
from saccade.features.process_setting import ProcessSetting

DECODER = "1"  # raise it when the same file may give other pixels than before: results on disk are kept under it
MAGIC = {
    b"\xff\xd8\xff": "Jpeg",
    b"\x89PNG\r\n\x1a\n": "Png",
    b"GIF87a": "Gif",
    b"GIF89a": "Gif",
    b"BM": "Bmp",
    b"II*\0": "Tiff",
    b"MM\0*": "Tiff",
    b"II+\0": "Tiff",  # BigTIFF
    b"MM\0+": "Tiff",
    **{b"P%d%c" % (kind, space): "Ppm" for kind in range(1, 7) for space in b" \t\r\n"},
}
LIMITED = ("Tiff", "Gif", "WebP")  # formats for which Pillow applies a limit of its own
ORIENTATION = 0x0112  # the EXIF tag
BITS, PHOTOMETRIC, WHITE_IS_ZERO = 258, 262, 0  # TIFF tags


class Unreadable(Exception):
    """A file that gives no picture; the text is the reason, in a few words."""


def decode(file: BinaryIO, *, max_pixels: int, max_side: int | None = None) -> Annotated[Array, "h, w, 3"]:  # uint8
    """The first picture in the file, upright, alpha laid over white, its longer side at most `max_side`."""
    with _opened(file) as (image, kind):
        width, height = image.size
        if width * height > max_pixels:
            raise Unreadable(
                f"{width} x {height} = {width * height:,} pixels, over the limit of {max_pixels:,}; "
                "raise max_pixels to accept"
            )
        size = limited(image.size, max_side)
        if size != image.size and kind == "Jpeg":  # decoded small at once, but still twice as large as wanted
            image.draft(image.mode, (2 * size[0], 2 * size[1]))
        picture = to_rgb(_samples(image, kind, file))
        if kind != "Jpeg":  # Pillow may have turned it by now
            size = limited((picture.shape[1], picture.shape[0]), max_side)
        return _upright(resize(picture, size), image)


def upright_size(file: BinaryIO) -> tuple[int, int]:  # (w, h)
    """The size of the picture as `decode` gives it, from the header alone."""
    with _opened(file) as (image, _):
        width, height = image.size
        return (height, width) if _orientation(image) >= 5 else (width, height)


@contextmanager
def _opened(file: BinaryIO) -> Iterator[tuple[Any, str]]:
    """Pillow's image and its kind; whatever a damaged file sets off within the block is Unreadable."""
    kind = kind_of(file)
    Plugin = getattr(import_module(f"{pillow().__package__}.{kind}ImagePlugin"), f"{kind}ImageFile")
    try:
        with _own_limit() if kind in LIMITED else nullcontext(), Plugin(file) as image:
            yield image, kind
    except Unreadable:
        raise
    except Exception as error:  # whatever a damaged file sets off deep inside: it must not end a run over thousands
        text = " ".join(str(error).split())[:100] or type(error).__name__
        raise Unreadable(f"damaged or unusual {kind.upper()} file: {text}") from None


def kind_of(file: BinaryIO) -> str:
    """Jpeg, Png, …, by the first bytes; the file is at its start before and after."""
    head = file.read(16)
    file.seek(0)
    if not head:
        raise Unreadable("empty file")
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WebP"
    for magic, kind in MAGIC.items():
        if head.startswith(magic):
            return kind
    raise Unreadable("not a JPEG, PNG, WebP, TIFF, GIF, BMP or PPM picture")


def _samples(image: Any, kind: str, file: BinaryIO) -> Array:
    """The pixels of the opened file as an array that `to_rgb` takes."""
    bits, inverted = _depth(image, kind, file)
    image.load()
    if image.mode in ("I", "I;16", "I;16B", "I;16L"):
        if kind == "Tiff" and (image.mode == "I" or bits > 16):
            raise Unreadable("signed or 32-bit whole numbers; save it with 8 or 16 bits")
        return _deep_grey(np.array(image), bits, inverted)
    if image.mode == "F":
        return np.array(image)
    mode = "RGBA" if image.has_transparency_data else "RGB"
    upper: Array = np.array(image if image.mode == mode else image.convert(mode))
    lower = _lower_bytes(type(image), file) if bits == 16 and kind != "Ppm" else None
    return upper.astype(np.uint16) << 8 | lower if lower is not None and lower.shape == upper.shape else upper


def _deep_grey(samples: Array, bits: int, inverted: bool) -> Array:
    """Grey values as uint16 over its whole range; 12 bits come as they are in the file."""
    full = 2**bits - 1
    grey: Array = ((samples.astype(np.uint32) * 65535 + full // 2) // full).astype(np.uint16)
    return ~grey if inverted else grey


def _depth(image: Any, kind: str, file: BinaryIO) -> tuple[int, bool]:
    """From the header: the bits of a grey value or colour, and whether 0 is white in a deep grey picture."""
    if kind == "Tiff":
        return max(image.tag_v2.get(BITS, (1,))), image.tag_v2.get(PHOTOMETRIC) == WHITE_IS_ZERO
    if kind == "Png":
        at = file.tell()
        file.seek(24)
        depth = file.read(1)[0]
        file.seek(at)
        return depth, False
    return 16 if kind == "Ppm" else 8, False  # a deep PGM comes as 16 bits, whatever it has


def _lower_bytes(Plugin: Any, file: BinaryIO) -> Array | None:
    """The lower bytes of 16-bit colours.

    Pillow keeps the upper byte; if it is told that the bytes lie in the other order, it keeps the lower. None where the
    colours are packed in a way for which that is not true.
    """
    file.seek(0)
    with Plugin(file) as image:
        for k, tile in enumerate(image.tile):
            packed, *rest = (tile[3],) if isinstance(tile[3], str) else tile[3]
            mode, _, order = packed.partition(";16")
            if mode not in ("RGB", "RGBA") or order not in ("B", "L", "N"):
                return None
            other = "L" if order == "B" or (order == "N" and sys.byteorder == "big") else "B"
            packed = f"{mode};16{other}"
            told = (*tile[:3], packed if isinstance(tile[3], str) else (packed, *rest))
            image.tile[k] = getattr(tile, "_make", tuple)(told)  # a plain tuple before Pillow 11
        return np.array(image)


def _upright(picture: Annotated[Array, "h, w, 3"], image: Any) -> Array:
    """The picture turned and mirrored by its EXIF note; Pillow does so itself for TIFF, and drops the note."""
    orientation = _orientation(image)
    turn = {3: 2, 4: 2, 5: 3, 6: 3, 7: 1, 8: 1}.get(orientation, 0)  # quarters, anticlockwise
    turned = np.rot90(picture, turn)
    return np.ascontiguousarray(turned[:, ::-1] if orientation in (2, 4, 5, 7) else turned)


def _orientation(image: Any) -> int:
    """The EXIF orientation, 1 to 8; from 5 on, height and width change places."""
    try:
        found = image.getexif().get(ORIENTATION, 1)
    except Exception:  # damaged notes do not make a damaged picture
        return 1
    return found if found in range(1, 9) else 1


def _no_limit() -> Callable[[], None]:
    Image = pillow()
    before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    return lambda: setattr(Image, "MAX_IMAGE_PIXELS", before)


_own_limit = ProcessSetting(_no_limit)  # Pillow's own limit of pixels is off within it: `max_pixels` replaces it
