"""Arrays as pictures: as RGB bytes, as grey values, at another size."""

from typing import Annotated, Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter


def to_rgb(picture: Annotated[Array, "h, w | h, w, 1 | h, w, 3 | h, w, 4"]) -> Annotated[Array, "h, w, 3"]:
    """RGB, uint8: the full range of the type becomes 0 to 255, floats count from 0 to 1, alpha is laid over white.

    >>> to_rgb(np.array([[0.0, 1.0]])).tolist(), to_rgb(np.array([[65535, 128]], np.uint16))[..., 0].tolist()
    ([[[0, 0, 0], [255, 255, 255]]], [[255, 0]])
    """
    check_picture(picture)
    picture = picture.astype(picture.dtype.newbyteorder("="), copy=False)
    if picture.dtype.kind == "f":
        picture = np.rint(np.clip(picture, 0.0, 1.0) * 255.0).astype(np.uint8)
    elif picture.dtype == bool:
        picture = picture.astype(np.uint8) * np.uint8(255)
    if picture.ndim == 3 and picture.shape[2] == 4:
        picture = _over_white(picture)
    if picture.dtype == np.uint16:
        picture = ((picture.astype(np.uint32) + 128) // 257).astype(np.uint8)  # 65535 = 257 · 255
    if picture.ndim == 2 or picture.shape[2] == 1:
        picture = np.repeat(picture.reshape(*picture.shape[:2], 1), 3, axis=2)
    return picture


def check_picture(picture: Array) -> None:
    """Raise InvalidInput if an array cannot be a picture."""
    if picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[2] not in (1, 3, 4)) or not picture.size:
        raise InvalidInput(
            f"A picture must have the shape (h, w), (h, w, 3) or (h, w, 4), got {picture.shape}. Move the colours last."
        )
    if picture.dtype.kind == "f":
        low, high = picture.min(), picture.max()
        if not (low >= -1e-6 and high <= 1.0 + 1e-6):  # NaN is neither
            raise InvalidInput(
                f"A picture of floats must lie in [0, 1], got values from {low:g} to {high:g}. "
                "Divide by the largest value."
            )
    elif picture.dtype.newbyteorder("=") not in (np.uint8, np.uint16, np.bool_):
        raise InvalidInput(
            f"A picture must be uint8, uint16, bool or floats in [0, 1], got {picture.dtype}. "
            "Use picture.astype(np.uint8) where the values go from 0 to 255."
        )


def to_grey(picture: Array) -> Annotated[Array, "h, w"]:
    """The luma of ITU-R 601, uint8: 0.299 R + 0.587 G + 0.114 B, rounded; of a picture as `to_rgb` takes it."""
    if picture.ndim == 2 and picture.dtype == np.uint8:
        return picture
    wide = to_rgb(picture).astype(np.uint32)  # in 1/65536, so that three bytes sum without overflow
    luma = 19595 * wide[..., 0] + 38470 * wide[..., 1] + 7471 * wide[..., 2] + 32768
    return (luma >> 16).astype(np.uint8)


def resize(picture: Annotated[Array, "h, w, 3"], size: tuple[int, int]) -> Array:
    """The picture at (width, height), bicubic; a smaller one averages over each new pixel, against aliasing."""
    Image = pillow()
    height, width = picture.shape[:2]
    if size == (width, height):
        return picture
    return np.array(Image.fromarray(picture).resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0))


def check_pixels(size: tuple[int, int]) -> tuple[int, int]:
    """The size, or an error if such a picture has too many pixels, because a forged model file may name any size."""
    if size[0] * size[1] > limits.PICTURE_PIXELS:
        raise InvalidParameter(f"`size` must have at most {limits.PICTURE_PIXELS:,} pixels, got {tuple(size)}.")
    return size


def limited(size: tuple[int, int], max_side: int | None) -> tuple[int, int]:
    """The size whose longer side is at most `max_side`, the proportions kept.

    >>> limited((640, 480), 320), limited((640, 480), None), limited((9000, 1), 10)
    ((320, 240), (640, 480), (10, 1))
    """
    longer = max(size)
    if max_side is None or longer <= max_side:
        return size
    width, height = (max(1, round(side * max_side / longer)) for side in size)
    return width, height


def pillow() -> Any:
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("Pictures need Pillow: pip install 'saccade[pictures]'", name=error.name) from None
    return Image


def _over_white(picture: Annotated[Array, "h, w, 4"]) -> Array:
    """alpha · colour + (1 − alpha) · white, rounded, of uint8 or uint16; the sums just fit into twice the bits."""
    full = np.iinfo(picture.dtype).max
    wide: Array = picture.astype(np.uint32 if full > 255 else np.uint16)
    colour, alpha = wide[..., :3], wide[..., 3:]
    mixed: Array = (colour * alpha + full * (full - alpha) + full // 2) // full
    return mixed.astype(picture.dtype)
