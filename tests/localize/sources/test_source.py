"""Every adapter reads the same pixels as slicing the whole picture, and a coarse copy is the mean of what it covers."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.localize.sources.arrays import Plane
from saccade.localize.sources.base import Level, Source, crops, open_picture, shrunk

tifffile = pytest.importorskip("tifffile", reason="tifffile comes with saccade[slides] and with scikit-image")
PICTURE = np.random.default_rng(0).integers(0, 256, (150, 220, 3)).astype(np.uint8)
HALF = np.rint(PICTURE.reshape(75, 2, 110, 2, 3).mean(axis=(1, 3))).astype(np.uint8)


def tiled(folder: Path, **options: Any) -> Any:
    tifffile.imwrite(folder / "a.tif", PICTURE, tile=(32, 48), photometric="rgb", **options)
    return folder / "a.tif"


def pyramid(folder: Path) -> Any:
    path = folder / "pyramid.tif"
    with tifffile.TiffWriter(path, bigtiff=True) as file:
        file.write(PICTURE, tile=(32, 32), photometric="rgb", subifds=1, compression="zlib")
        file.write(HALF, tile=(32, 32), photometric="rgb", subfiletype=1, compression="zlib")
    return path


def planes(folder: Path) -> Any:
    tifffile.imwrite(folder / "p.tif", PICTURE.transpose(2, 0, 1), tile=(32, 32), photometric="rgb", planarconfig=2)
    return folder / "p.tif"


def strips(folder: Path) -> Any:
    tifffile.imwrite(folder / "s.tif", PICTURE, rowsperstrip=7, photometric="rgb")
    return folder / "s.tif"


def png(folder: Path) -> Any:
    Image.fromarray(PICTURE).save(folder / "a.png")
    return folder / "a.png"


def mapped(folder: Path) -> Any:
    np.save(folder / "a.npy", PICTURE)
    return np.load(folder / "a.npy", mmap_mode="r")


def in_memory(folder: Path) -> Any:
    return PICTURE


def several(folder: Path) -> Any:
    return [PICTURE, HALF]


def zarr_array(folder: Path) -> Any:
    zarr = pytest.importorskip("zarr", reason="zarr comes with saccade[slides]")
    zarr.save(str(folder / "a.zarr"), PICTURE)
    return folder / "a.zarr"


def ome_zarr(folder: Path) -> Any:
    zarr = pytest.importorskip("zarr", reason="zarr comes with saccade[slides]")
    group = zarr.open_group(str(folder / "ome.zarr"), mode="w")
    for name, level in {"0": PICTURE, "1": HALF}.items():
        group[name] = level.transpose(2, 0, 1)[None]
    group.attrs["multiscales"] = [
        {"axes": [{"name": axis} for axis in "tcyx"], "datasets": [{"path": "0"}, {"path": "1"}]}
    ]
    return folder / "ome.zarr"


def slide(folder: Path) -> Any:
    pytest.importorskip("openslide", reason="OpenSlide is no requirement")
    from saccade.localize.sources.slides import SlideSource

    tifffile.imwrite(folder / "slide.tif", PICTURE, tile=(32, 32), photometric="rgb")
    return SlideSource(folder / "slide.tif")


MAKERS = (tiled, pyramid, planes, strips, png, mapped, in_memory, several, zarr_array, ome_zarr, slide)
Maker = Callable[[Path], Any]


@pytest.mark.parametrize("make", MAKERS)
def test_boxes_are_slices_of_the_picture(make: Maker, tmp_path: Path) -> None:
    source = open_picture(make(tmp_path))
    assert isinstance(source, Source)
    assert source.shape[:2] == (150, 220)
    for x0, y0, x1, y1 in ((0, 0, 220, 150), (31, 30, 97, 33), (219, 149, 220, 150), (5, 31, 6, 150)):
        np.testing.assert_array_equal(source.read((x0, y0, x1, y1)), PICTURE[y0:y1, x0:x1])
    np.testing.assert_array_equal(source.read((10.4, 20.0, 30.0, 39.2)), PICTURE[20:40, 10:30])  # touched pixels


@pytest.mark.parametrize("make", MAKERS)
def test_half_the_scale_is_the_mean_of_four_pixels(make: Maker, tmp_path: Path) -> None:
    coarse = open_picture(make(tmp_path)).read((20, 10, 120, 110), scale=0.5)
    assert coarse.shape == (50, 50, 3)
    assert np.abs(coarse.astype(int) - HALF[5:55, 10:60]).max() <= 1  # halves are rounded up or down


RAMP = np.stack(np.broadcast_arrays(np.arange(150)[:, None], np.arange(220), 99), axis=-1).astype(np.uint8)


@pytest.mark.parametrize(("picture", "scale"), [(PICTURE, 0.5), (PICTURE, 0.1), (RAMP, 0.31), (RAMP, 0.07)])
def test_a_copy_made_in_parts_is_the_one_made_at_once(picture: Array, scale: float) -> None:
    """A ramp where pixels of the two sizes do not fit: the border of two belongs to either, by rounding."""
    most = 0

    def region(x0: int, y0: int, x1: int, y1: int) -> Array:
        nonlocal most
        most = max(most, (x1 - x0) * (y1 - y0))
        return picture[y0:y1, x0:x1]

    size = round(200 * scale), round(100 * scale)
    box, inside = (11.0, 40.0, 211.0, 140.0), Level(220, 150)
    whole = shrunk(region, box, inside, size)
    most = 0
    parts = shrunk(region, box, inside, size, at_once=500)
    assert np.abs(whole.astype(int) - parts).max() <= 1
    pixel = np.ceil(200 / size[0]) * np.ceil(100 / size[1])
    assert most <= max(2.0 * 500, 2.0 * pixel)


def test_the_coarser_copy_is_read_where_it_is_fine_enough() -> None:
    source = open_picture([PICTURE, np.full_like(HALF, 7)])
    assert (source.read((0, 0, 100, 100), 0.5) == 7).all()
    assert (source.read((0, 0, 100, 100), 0.2) == 7).all()
    assert not (source.read((0, 0, 100, 100), 0.51) == 7).all()


@pytest.mark.parametrize("metadata", ["own", None])
def test_the_copies_inside_a_tiff_are_used(metadata: str | None, tmp_path: Path) -> None:
    """Files with tifffile's own notes keep them as sub-pages, others as levels."""
    options = {"tile": (32, 32), "photometric": "rgb"} | ({} if metadata else {"metadata": None})
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(PICTURE, subifds=1, **options)
        file.write(np.full_like(HALF, 7), subfiletype=1, **options)
    source = open_picture(tmp_path / "a.tif")
    assert (source.read((0, 0, 100, 100), 0.5) == 7).all()
    np.testing.assert_array_equal(source.read((0, 0, 50, 50)), PICTURE[:50, :50])


def test_a_coarse_jpeg_is_upright_and_right(tmp_path: Path) -> None:
    smooth = np.zeros((160, 240, 3), np.uint8)
    smooth[:80, :, 0], smooth[80:, 120:, 2] = 200, 180
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned
    Image.fromarray(np.rot90(smooth)).save(tmp_path / "a.jpg", quality=95, exif=exif)
    source = open_picture(tmp_path / "a.jpg")
    assert source.shape[:2] == (160, 240)
    for scale in (1.0, 0.5, 0.25, 0.1):
        small = source.read((0, 0, 240, 160), scale)
        assert small.shape[:2] == (round(160 * scale), round(240 * scale))
        h, w = small.shape[:2]
        assert abs(int(small[h // 4, w // 4, 0]) - 200) < 12
        assert abs(int(small[3 * h // 4, 3 * w // 4, 2]) - 180) < 12


def test_grey_deep_and_transparent_arrays_become_rgb() -> None:
    grey = open_picture(PICTURE[..., 0]).read((0, 0, 9, 9))
    np.testing.assert_array_equal(grey, np.repeat(PICTURE[:9, :9, :1], 3, axis=2))
    deep = open_picture(PICTURE.astype(np.uint16) * 257).read((0, 0, 9, 9))
    np.testing.assert_array_equal(deep, PICTURE[:9, :9])
    clear = np.dstack([PICTURE, np.zeros(PICTURE.shape[:2], np.uint8)])
    assert (open_picture(clear).read((0, 0, 9, 9)) == 255).all()


def test_crops_for_a_judge() -> None:
    source = open_picture(PICTURE)
    plain = crops(source, [[0, 0, 20, 10], [5, 5, 9, 9]])
    assert [crop.shape for crop in plain] == [(10, 20, 3), (4, 4, 3)]
    np.testing.assert_array_equal(plain[0], PICTURE[:10, :20])
    sized = crops(source, [[0, 0, 200, 100], [5, 5, 9, 9]], size=(50, 25))
    assert [crop.shape for crop in sized] == [(25, 50, 3)] * 2
    assert abs(float(sized[0].mean()) - float(PICTURE[:100, :200].mean())) < 1.0
    assert crops(source, np.zeros((0, 4))) == []
    assert crops(source, [[0, 0, 20, 10]], scale=0.5)[0].shape == (5, 10, 3)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    source = open_picture(PICTURE)
    with pytest.raises(InvalidInput, match="not inside the picture"):
        source.read((0, 0, 221, 10))
    with pytest.raises(InvalidInput, match="inverted"):
        source.read((10, 0, 5, 10))
    with pytest.raises(InvalidInput, match="takes one box"):
        source.read([[0, 0, 5, 10], [0, 0, 5, 10]])
    for scale in (0.0, 1.5, np.nan, "half"):
        with pytest.raises(InvalidParameter, match="`scale`"):
            source.read((0, 0, 5, 10), scale)  # type: ignore[arg-type]
    for bad in (np.zeros((4, 4, 2), np.uint8), np.zeros(4), [], 3, np.zeros((0, 4), np.uint8), [HALF, PICTURE]):
        with pytest.raises(InvalidInput):
            open_picture(bad)
    with pytest.raises(InvalidInput, match="no picture at"):
        open_picture(tmp_path / "missing.tif")
    (tmp_path / "text.png").write_text("hello")
    with pytest.raises(InvalidInput, match="gives no picture"):
        open_picture(tmp_path / "text.png")
    (tmp_path / "cut.tif").write_bytes(tiled(tmp_path).read_bytes()[:60_000])
    with pytest.raises(InvalidInput):
        open_picture(tmp_path / "cut.tif").read((0, 0, 220, 150))


def test_a_file_too_large_to_decode_is_refused_by_its_header(tmp_path: Path) -> None:
    from saccade.localize.sources.files import FileSource

    source = FileSource(png(tmp_path), max_pixels=1000)
    assert source.shape[:2] == (150, 220)
    with pytest.raises(InvalidInput, match="tiled TIFF"):
        source.read((0, 0, 5, 5))


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.svs").write_bytes(b"no slide")
    for module, path, words in (("zarr", "a.zarr", "saccade.slides"), ("openslide", "a.svs", "openslide-python")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ModuleNotFoundError, match=words):
            open_picture(tmp_path / path)


def test_axes_in_any_order() -> None:
    """As zarr and OME write them; of time and depth the first entry is shown."""
    volume = np.random.default_rng(0).integers(0, 256, (2, 3, 2, 50, 40), np.uint8)  # t c z y x
    picture = volume[0, :, 0].transpose(1, 2, 0)
    for axes in ("tczyx", "xyczt", "ytcxz"):
        source = open_picture(Plane(volume.transpose(["tczyx".index(axis) for axis in axes]), axes))
        assert source.shape[:2] == (50, 40)
        np.testing.assert_array_equal(source.read(np.array([3.0, 10.0, 23.0, 45.0])), picture[10:45, 3:23])
    grey = open_picture(Plane(volume[0, 0, 0].T, "xy"))
    np.testing.assert_array_equal(grey.read(np.array([3.0, 10.0, 23.0, 45.0]))[..., 0], volume[0, 0, 0, 10:45, 3:23])
    with pytest.raises(InvalidInput, match="axes y and x"):
        Plane(volume, "tczyw")


@pytest.mark.parametrize("size", [32, (32,), (32, 24, 3), "ab", {32: 1, 24: 2}])
def test_a_size_of_crops_that_is_none(size: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"`size` must be \(width, height\) in pixels"):
        crops(open_picture(PICTURE), [[0, 0, 100, 100]], size=size)
