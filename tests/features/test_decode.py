"""Files of every kind, whole and broken, that the tests write themselves."""

import io
import struct
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cv2
import numpy as np
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps
from skimage.data import astronaut, coffee

from saccade._core.arrays import Array
from saccade.features.decode import Unreadable, decode
from saccade.features.pixels import limited, resize, to_rgb

PICTURE = astronaut()[:160:2, 100:300:2]  # (80, 100, 3)
GREY = np.random.default_rng(0).integers(0, 65536, (9, 13), dtype=np.uint16)
DEEP = np.random.default_rng(1).integers(0, 65536, (9, 13, 4), dtype=np.uint16)
EXACT = [("PNG", {}), ("WEBP", {"lossless": True}), ("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"})]
EXACT += [("BMP", {}), ("PPM", {}), ("TIFF", {"compression": "tiff_deflate"}), ("TIFF", {"big_tiff": True})]
LOSSY = [("JPEG", {"quality": 95}), ("JPEG", {"quality": 95, "progressive": True}), ("WEBP", {"quality": 95})]
LOSSY += [("GIF", {})]
EVERY = EXACT + LOSSY


def written(picture: Any, kind: str, **options: Any) -> bytes:
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def tiff(picture: Array, **options: Any) -> bytes:
    file = io.BytesIO()
    tifffile.imwrite(file, picture, **options)
    return file.getvalue()


def decoded(data: bytes, max_pixels: int = 10**8, max_side: int | None = None) -> Array:
    return decode(io.BytesIO(data), max_pixels=max_pixels, max_side=max_side)


def apart(a: Array, b: Array) -> float:
    assert a.shape == b.shape
    return float(np.abs(a.astype(float) - b).mean())


@pytest.mark.parametrize(("kind", "options"), EXACT)
def test_lossless_files_give_their_pixels(kind: str, options: dict[str, Any]) -> None:
    got = decoded(written(PICTURE, kind, **options))
    assert got.dtype == np.uint8
    assert got.flags.c_contiguous
    assert got.flags.writeable
    assert np.array_equal(got, PICTURE)


@pytest.mark.parametrize(("kind", "options"), LOSSY)
def test_lossy_files_come_close(kind: str, options: dict[str, Any]) -> None:
    assert apart(decoded(written(PICTURE, kind, **options)), PICTURE) < 5


@pytest.mark.parametrize(("kind", "options"), EVERY)
def test_one_pixel_is_a_picture(kind: str, options: dict[str, Any]) -> None:
    assert apart(decoded(written(PICTURE[:1, :1], kind, **options)), PICTURE[:1, :1]) < 5


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "BMP", "PPM", "GIF"])
def test_one_bit(kind: str) -> None:
    mask = PICTURE[..., 0] > 100
    assert np.array_equal(decoded(written(mask, kind)), to_rgb(mask))


def test_sixteen_bit_grey() -> None:
    expected = to_rgb(GREY)
    assert np.array_equal(decoded(written(GREY, "PNG")), expected)
    assert np.array_equal(decoded(b"P5 13 9 65535\n" + GREY.astype(">u2").tobytes()), expected)
    for order in "<>":
        assert np.array_equal(decoded(tiff(GREY, photometric="minisblack", byteorder=order)), expected)
    assert np.array_equal(decoded(tiff(GREY, photometric="miniswhite")), 255 - expected)
    assert np.array_equal(decoded(tiff(GREY, compression="zlib")), expected)


def test_twelve_bits_fill_the_range_too() -> None:
    values = np.array([[0, 2048, 4095, 17]], np.uint32)
    packed = bytes([0, (2048 >> 8), 2048 & 255, 4095 >> 4, ((4095 & 15) << 4), 17])
    data = tiff(np.zeros((1, 6), np.uint8), photometric="minisblack")
    image = tifffile.TiffFile(io.BytesIO(data)).pages[0]
    raw = bytearray(data)
    raw[image.dataoffsets[0] : image.dataoffsets[0] + 6] = packed
    for name, value in (("ImageWidth", 4), ("BitsPerSample", 12)):
        at = image.tags[name].valueoffset
        raw[at : at + 2] = struct.pack("<H", value)
    assert np.abs(decoded(bytes(raw))[..., 0] - values * 255 / 4095).max() <= 0.51


@pytest.mark.parametrize("channels", [3, 4])
def test_sixteen_bit_colour(channels: int) -> None:
    picture = DEEP[..., :channels]
    png = cv2.imencode(".png", picture[..., [2, 1, 0, 3][:channels]])[1].tobytes()
    assert np.array_equal(decoded(png), to_rgb(picture))
    alpha = {"extrasamples": ["unassalpha"]} if channels == 4 else {}
    for options in ({}, {"compression": "zlib"}, {"byteorder": ">"}):
        assert np.array_equal(decoded(tiff(picture, photometric="rgb", **alpha, **options)), to_rgb(picture))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_sixteen_bit_colour_is_turned_as_well(orientation: int) -> None:
    picture = DEEP[..., :3]
    data = tiff(picture, photometric="rgb", extratags=[(0x0112, "H", 1, orientation, True)])
    assert np.array_equal(decoded(data), upright(to_rgb(picture), orientation))


def test_an_unused_fourth_colour_is_no_alpha() -> None:
    data = tiff(DEEP, photometric="rgb", extrasamples=["unspecified"])
    assert np.abs(decoded(data).astype(int) - to_rgb(DEEP[..., :3])).max() <= 1


def test_floats() -> None:
    values = np.linspace(0, 1, 60, dtype=np.float32).reshape(6, 10)
    assert np.array_equal(decoded(tiff(values)), to_rgb(values))
    with pytest.raises(Unreadable, match=r"\[0, 1\]"):
        decoded(tiff(values * 300))


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.uint32])
def test_numbers_without_a_known_white_are_refused(dtype: Any) -> None:
    with pytest.raises(Unreadable):
        decoded(tiff(GREY.astype(dtype)))


def test_cmyk() -> None:
    cmyk = Image.fromarray(PICTURE).convert("CMYK")
    assert apart(decoded(written(cmyk, "JPEG", quality=95)), PICTURE) < 5
    assert np.array_equal(decoded(written(cmyk, "TIFF")), PICTURE)


def test_ycck() -> None:
    flat = np.empty((16, 16, 4), np.uint8)
    flat[:] = (120, 90, 180, 200)  # Y, Cb, Cr of the inks cyan, magenta and yellow, and what is left of white by black
    data = written(Image.fromarray(255 - flat, "CMYK"), "JPEG", quality=100, subsampling=0)
    at = data.index(b"Adobe") + 11  # after the version and two flags: the transform
    assert data[at] == 0
    data = data[:at] + b"\x02" + data[at + 1 :]
    y, cb, cr, white = (float(v) for v in flat[0, 0])
    ink = np.array([y + 1.402 * (cr - 128), y - 0.344 * (cb - 128) - 0.714 * (cr - 128), y + 1.772 * (cb - 128)])
    assert np.abs(decoded(data)[8, 8] - (255 - ink) * white / 255).max() < 2
    other = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[8, 8, ::-1]
    assert np.abs(decoded(data)[8, 8].astype(int) - other).max() <= 2


def test_palettes_and_transparency_over_white() -> None:
    palette = Image.fromarray(PICTURE).convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
    plain = np.asarray(palette.convert("RGB"))
    assert np.array_equal(decoded(written(palette, "PNG")), plain)
    clear = np.asarray(palette) == 5
    expected = np.where(clear[..., None], 255, plain)
    for kind in ("PNG", "GIF"):
        assert np.array_equal(decoded(written(palette, kind, transparency=5)), expected)
    half = bytes([128] * 64)
    over = to_rgb(np.dstack([plain, np.full(plain.shape[:2], 128, np.uint8)]))
    assert np.array_equal(decoded(written(palette, "PNG", transparency=half)), over)


@pytest.mark.parametrize(("kind", "options"), [("PNG", {}), ("TIFF", {}), ("WEBP", {"lossless": True, "exact": True})])
def test_alpha_over_white(kind: str, options: dict[str, Any]) -> None:
    alpha = np.add.outer(np.arange(80), 1 + np.arange(100)).astype(np.uint8)
    rgba = np.dstack([PICTURE, alpha])
    assert np.array_equal(decoded(written(rgba, kind, **options)), to_rgb(rgba))
    if kind != "WEBP":
        grey = np.dstack([PICTURE[..., 0], alpha])
        whole = np.dstack([PICTURE[..., :1].repeat(3, axis=2), alpha])
        assert np.array_equal(decoded(written(Image.fromarray(grey, "LA"), kind)), to_rgb(whole))


def test_one_colour_named_transparent() -> None:
    flat = np.full((4, 4, 3), 7, np.uint8)
    flat[1, 2] = (1, 2, 3)
    expected = flat.copy()
    expected[1, 2] = 255
    assert np.array_equal(decoded(written(flat, "PNG", transparency=(1, 2, 3))), expected)


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_the_first_of_several_pictures(kind: str) -> None:
    frames = [Image.fromarray(np.full((8, 9, 3), value, np.uint8)) for value in (250, 10, 90)]
    options = {"lossless": True} if kind == "WEBP" else {}
    data = written(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    assert np.array_equal(decoded(data), np.full((8, 9, 3), 250))


def upright(picture: Array, orientation: int) -> Array:
    """Pillow's own way with the note."""
    image = Image.fromarray(picture)
    image.getexif()[0x0112] = orientation
    return np.asarray(ImageOps.exif_transpose(image))


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "JPEG"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_stand_upright(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if kind == "WEBP" else {"quality": 95} if kind == "JPEG" else {}
    data = written(PICTURE, kind, exif=exif, **options)
    assert apart(decoded(data), upright(PICTURE, orientation)) < (5 if kind == "JPEG" else 1e-9)
    assert decoded(data, max_side=50).shape == upright(PICTURE[::2, ::2], orientation).shape


def test_damaged_notes_do_not_cost_the_picture() -> None:
    data = written(PICTURE, "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff garbage")
    assert decoded(data).shape == PICTURE.shape
    assert np.array_equal(decoded(written(PICTURE, "PNG", exif=b"garbage")), PICTURE)


@pytest.mark.parametrize(("kind", "options"), EVERY)
def test_half_a_file_is_damaged(kind: str, options: dict[str, Any]) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    data = written(noise, kind, **options)
    with pytest.raises(Unreadable, match="damaged or unusual"):
        decoded(data[: len(data) // 2])
    with pytest.raises(Unreadable):
        decoded(data[: len(data) // 2], max_side=8)


def test_what_is_no_picture() -> None:
    with pytest.raises(Unreadable, match="empty file"):
        decoded(b"")
    for data in (b"Dear diary", b"\0" * 500, b"%PDF-1.7 ", b"RIFF\0\0\0\0WAVEfmt ", b"P7 a text", b"<svg/>"):
        with pytest.raises(Unreadable, match="not a JPEG, PNG"):
            decoded(data)


def png_header(width: int, height: int) -> bytes:
    """A PNG that announces its size and has nothing to decode."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"IDAT" + zlib.compress(b"")
    chunks = (struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in (head, data, b"IEND"))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def test_a_bomb_is_refused_by_its_header() -> None:
    with pytest.raises(Unreadable) as refusal:
        decoded(png_header(20_000, 20_000))
    expected = "20000 x 20000 = 400,000,000 pixels, over the limit of 100,000,000; raise max_pixels to accept"
    assert str(refusal.value) == expected
    with pytest.raises(Unreadable, match="damaged"):
        decoded(png_header(200, 200))


def test_a_gif_whose_frame_is_larger_than_its_screen() -> None:
    data = bytearray(written(PICTURE, "GIF"))
    data[6:10] = struct.pack("<HH", 2, 2)
    with pytest.raises(Unreadable, match="100 x 80"):
        decoded(bytes(data), max_pixels=7999)
    assert decoded(bytes(data), max_pixels=8000).shape == PICTURE.shape


@pytest.mark.parametrize(("kind", "options"), EVERY)
def test_the_limit_is_ours_and_pillows_stays(
    kind: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 300)
    data = written(PICTURE, kind, **options)  # 8,000 pixels
    edge = written(PICTURE[:20, :20], kind, **options)  # Pillow would warn of 400 and refuse 601
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decoded(data, max_pixels=8000).shape == PICTURE.shape
        assert decoded(edge, max_pixels=8000).shape == (20, 20, 3)
        with pytest.raises(Unreadable, match=r"100 x 80 = 8,000 pixels, over the limit of 7,999"):
            decoded(data, max_pixels=7999)
    assert Image.MAX_IMAGE_PIXELS == 300


@pytest.mark.parametrize(("kind", "options"), EVERY)
def test_the_longer_side_is_limited(kind: str, options: dict[str, Any]) -> None:
    picture = coffee()  # (400, 600, 3)
    data = written(picture, kind, **options)
    for side in (1, 37, 150, 599, 600, 10_000):
        got = decoded(data, max_side=side)
        width, height = limited((600, 400), side)
        assert got.shape == (height, width, 3)
        assert apart(got, resize(picture, (width, height))) < (8 if kind == "GIF" else 4)


def test_many_threads_decode_the_same_pixels() -> None:
    files = [written(np.roll(PICTURE, k, axis=1), *(k_o := EVERY[k % len(EVERY)])[:1], **k_o[1]) for k in range(36)]
    alone = [decoded(data) for data in files]
    limit = Image.MAX_IMAGE_PIXELS
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(decoded, files * 4))
    assert all(np.array_equal(a, b) for a, b in zip(alone * 4, together, strict=True))
    assert limit == Image.MAX_IMAGE_PIXELS


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's, of metadata it cannot read
@pytest.mark.parametrize(("kind", "options"), EVERY)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_damage_gives_a_picture_or_a_reason(kind: str, options: dict[str, Any], data: Any) -> None:
    file = bytearray(written(PICTURE[::8, ::8], kind, **options))
    for _ in range(data.draw(st.integers(1, 4))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    try:
        got = decoded(bytes(file), max_pixels=10**6)
    except Unreadable as error:
        reason = str(error)
    else:
        reason = f"{got.dtype} {got.shape[2:]}"
    assert reason == "uint8 (3,)" or " " in reason
    assert "\n" not in reason
