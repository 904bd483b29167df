"""Arrays as RGB bytes, against sums of fractions."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image
from skimage.data import astronaut, camera

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.features.image import resize, to_grey, to_rgb
from saccade.features.pixels import limited


def over_white(colour: int, alpha: int, full: int) -> int:
    """alpha · colour + (1 − alpha) · white in bytes, in fractions; 128/257 rounds down."""
    mixed = round(Fraction(colour * alpha + full * (full - alpha), full))
    return int(Fraction(mixed * 255, full) + Fraction(1, 2))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@settings(max_examples=50, deadline=None)
@given(st.data())
def test_colours_and_alpha_are_laid_over_white(dtype: Any, data: Any) -> None:
    full = int(np.iinfo(dtype).max)
    edges = st.sampled_from([0, 1, 127, 128, 129, full - 1, full]) | st.integers(0, full)
    picture = data.draw(hnp.arrays(dtype, (2, 3, 4), elements=edges))
    expected = [[[over_white(int(p[c]), int(p[3]), full) for c in range(3)] for p in row] for row in picture]
    got = to_rgb(picture)
    assert got.dtype == np.uint8
    assert np.abs(got.astype(int) - np.array(expected)).max() == 0


@pytest.mark.parametrize("dtype", ["<u2", ">u2"])
def test_sixteen_bits_are_divided_by_257(dtype: str) -> None:
    grey = np.arange(65536).astype(dtype).reshape(256, 256)
    expected = np.rint(np.arange(65536) / 257).reshape(256, 256)
    assert np.array_equal(to_rgb(grey), np.repeat(expected[..., None], 3, axis=2))


def test_every_way_to_say_black_and_white_is_the_same() -> None:
    mask = camera() > 128
    expected = np.repeat((255 * mask.astype(np.uint8))[..., None], 3, axis=2)
    ways: list[Array] = [mask, mask[..., None], mask.astype(float), mask.astype(np.float32), mask.astype(np.float16)]
    ways += [255 * mask.astype(np.uint8), 65535 * mask.astype(np.uint16), np.dstack([mask] * 3)]
    ways += [np.dstack([mask, mask, mask, np.ones_like(mask)]), np.dstack([np.zeros((512, 512, 3), bool), ~mask])]
    for way in ways:
        assert np.array_equal(to_rgb(way), expected)
        assert to_rgb(way).dtype == np.uint8


def test_an_rgb_picture_stays_itself() -> None:
    picture = astronaut()
    assert np.array_equal(to_rgb(picture), astronaut())


@pytest.mark.parametrize(
    ("picture", "words"),
    [
        (np.zeros(5), "shape"),
        (np.zeros((2, 2, 2)), "shape"),
        (np.zeros((3, 50, 50)), "Move the colours last"),
        (np.zeros((0, 5), np.uint8), "shape"),
        (np.full((2, 2), 1.5), "from 1.5 to 1.5"),
        (np.full((2, 2), -0.5), "from -0.5"),
        (np.array([[0.5, np.nan]]), "nan"),
        (np.full((2, 2), np.inf), "inf"),
        (np.zeros((2, 2), int), "astype"),
        (np.zeros((2, 2), complex), "complex"),
        (np.full((2, 2), None), "object"),
    ],
)
def test_what_is_no_picture_is_refused(picture: Array, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        to_rgb(picture)


def test_grey_is_the_luma() -> None:
    picture = astronaut()
    grey = to_grey(picture)
    assert grey.dtype == np.uint8
    assert np.abs(grey - picture @ [0.299, 0.587, 0.114]).max() <= 0.51
    assert np.array_equal(grey, np.asarray(Image.fromarray(picture).convert("L")))


def test_the_luma_of_grey_is_grey() -> None:
    assert np.array_equal(to_grey(camera()), camera())
    assert np.array_equal(to_grey(to_rgb(camera())), camera())
    assert np.array_equal(to_grey(camera() / 255.0), camera())


def test_shrinking_averages_instead_of_picking() -> None:
    board = np.indices((200, 300)).sum(axis=0) % 2 * np.uint8(255)
    small = resize(to_rgb(board.astype(np.uint8)), (30, 20))
    assert small.shape == (20, 30, 3)
    assert np.abs(small.astype(int) - 128).max() <= 2


def test_growing_keeps_flat_colours() -> None:
    flat = np.full((3, 2, 3), (10, 200, 30), np.uint8)
    assert np.array_equal(resize(flat, (7, 11)), np.full((11, 7, 3), (10, 200, 30)))


@given(st.tuples(st.integers(1, 20_000), st.integers(1, 20_000)), st.integers(1, 5000))
def test_limited_keeps_the_proportions(size: tuple[int, int], side: int) -> None:
    width, height = limited(size, side)
    assert limited(size, None) == size
    assert min(width, height) >= 1
    if max(size) <= side:
        assert (width, height) == size
    else:
        assert max(width, height) == side
        scale = side / max(size)
        assert abs(width - size[0] * scale) <= 1
        assert abs(height - size[1] * scale) <= 1
