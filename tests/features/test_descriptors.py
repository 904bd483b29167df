"""SIFT on grids and at interest points, against a direct implementation of Lowe's descriptor."""

from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from skimage.data import astronaut, brick, camera, coffee
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.features import descriptors
from saccade.features.descriptors import DenseSIFT, OpponentSIFT
from saccade.features.lazy import Descriptors, stream
from saccade.features.pixels import to_grey

PICTURE = coffee()[:100, 140:290]
GREY = camera()[100:200, 200:350]


def one(transformer: DenseSIFT, picture: Array) -> Descriptors:
    made = transformer.fit_transform([picture])[0]
    assert isinstance(made, Descriptors)
    assert made.values.dtype == made.positions.dtype == np.float32
    return made


def lowe(
    plane: Array,  # (h, w)
    x: int,
    y: int,
    side: float,
) -> Array:  # (128,)
    """The upright descriptor around a pixel: trilinear shares, a Gaussian of half the patch, clipped at 0.2."""
    grey, width = plane.astype(float), side / 4
    histogram = np.zeros((6, 6, 9))  # a margin of bins takes what falls outside
    for row in range(1, plane.shape[0] - 1):
        for column in range(1, plane.shape[1] - 1):
            across, down = (column - x) / width, (row - y) / width
            if not (abs(across) < 2.5 and abs(down) < 2.5):
                continue
            dx, dy = grey[row, column + 1] - grey[row, column - 1], grey[row - 1, column] - grey[row + 1, column]
            weight = np.hypot(dx, dy) * np.exp(-(across**2 + down**2) / 8)
            at = np.array([down + 2.5, across + 2.5, np.arctan2(dy, dx) % (2 * np.pi) * 4 / np.pi])
            low = np.floor(at).astype(int)
            for corner in np.ndindex(2, 2, 2):
                share = np.prod(np.where(corner, at - low, 1 - (at - low)))
                place = low + corner
                histogram[place[0], place[1], place[2] % 8] += weight * share
    values = histogram[1:5, 1:5, :8].ravel()
    values = np.minimum(values / max(np.linalg.norm(values), 1e-9), 0.2)
    return np.asarray(values / max(np.linalg.norm(values), 1e-9))


@pytest.mark.parametrize("side", [12, 16, 24])
def test_descriptors_are_lowes(side: int) -> None:
    made = one(DenseSIFT(scales=(side,), contrast=0.0, root=False), GREY)
    shrunk = GREY if side <= 16 else cv2.resize(GREY, (75, 50), interpolation=cv2.INTER_AREA)
    width = side if side <= 16 else 12
    at = np.floor(made.positions * shrunk.shape[::-1] + 1e-3).astype(int)
    for k in np.linspace(0, len(at) - 1, 6).astype(int):
        expected = lowe(shrunk, *at[k], width)
        np.testing.assert_allclose(made.values[k], expected, atol=3e-3)  # rounded to 1/512, angles to 0.3°


@settings(max_examples=60)
@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 40), st.integers(4, 40))
def test_the_grid_is_regular_and_in_the_middle(height: int, width: int, step: int, side: int) -> None:
    made = one(DenseSIFT(step, (side,), root=False), np.zeros((height, width), np.uint8))
    count = [max(0, (length - side) // step) + 1 for length in (width, height)]
    assert made.values.shape == (count[0] * count[1], 128)
    for axis, length in enumerate((width, height)):
        at = np.unique(made.positions[:, axis]) * length
        assert len(at) == count[axis]
        np.testing.assert_allclose(np.diff(at), step, atol=1e-3)
        np.testing.assert_allclose(at[0], length - at[-1], atol=1e-3)
        assert at[0] >= min(side, length) / 2 - 1e-3
        assert at[0] < max(side, length if count[axis] == 1 else 0) / 2 + step / 2 + 1e-3


def test_a_shifted_picture_has_shifted_descriptors() -> None:
    grey, sift = camera(), DenseSIFT(8, (16,))
    here = one(sift, grey[200:300, 200:360]).values.reshape(11, 19, 128)
    there = one(sift, grey[208:308, 216:376]).values.reshape(11, 19, 128)
    np.testing.assert_array_equal(here[2:-1, 3:-1], there[1:-2, 1:-3])
    assert np.abs(here[2:-1, 3:-1] - there[2:-1, 3:-1]).max() > 0.1


def test_a_ramp_has_one_orientation() -> None:
    ramp = np.tile(np.arange(0, 250, 5, dtype=np.uint8), (50, 1))
    histogram = one(DenseSIFT(scales=(16,)), ramp).values.reshape(-1, 16, 8)
    assert (histogram[..., 0] > 0.1).all()
    assert (histogram[..., 2:7] == 0).all()


def test_scales_follow_each_other() -> None:
    both, parts = one(DenseSIFT(scales=(24, 16)), PICTURE), [one(DenseSIFT(scales=(s,)), PICTURE) for s in (24, 16)]
    np.testing.assert_array_equal(both.values, np.concatenate([p.values for p in parts]))
    np.testing.assert_array_equal(both.positions, np.concatenate([p.positions for p in parts]))


def test_both_kinds_have_unit_length_and_root_is_the_root_of_shares() -> None:
    plain, root = (one(DenseSIFT(contrast=0.0, root=r), brick()[:80, :90]).values for r in (False, True))
    np.testing.assert_allclose(np.linalg.norm(plain, axis=1), 1.0, atol=0.01)
    np.testing.assert_allclose(root, np.sqrt(plain / plain.sum(axis=1, keepdims=True)), atol=1e-6)


def test_patches_without_contrast_are_zeros() -> None:
    rng = np.random.default_rng(0)
    noise = np.full((64, 128), 100, np.uint8) + rng.integers(0, 2, (64, 128)).astype(np.uint8)
    noise[:, 64:] = 100 + 20 * (noise[:, 64:] - 100)
    made, all_kept = (one(DenseSIFT(8, (16,), contrast=c), noise) for c in (1.0, 0.0))
    left = made.positions[:, 0] * 128 + 8 < 62
    right = made.positions[:, 0] * 128 - 8 > 66
    assert left.sum() > 20 < right.sum()
    assert not made.values[left].any()
    np.testing.assert_array_equal(made.values[right], all_kept.values[right])
    assert all_kept.values.any(axis=1).all()


@settings(max_examples=60)
@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 12))), st.integers(1, 9), st.data())
def test_contrast_is_the_standard_deviation_of_the_patch(plane: Array, side: int, data: st.DataObject) -> None:
    x, y = (data.draw(st.integers(0, length - 1)) for length in plane.shape[::-1])
    got = descriptors._deviation(cv2, plane, np.array([[x, y]]), np.array([side]))
    top, left = y - side // 2, x - side // 2
    expected = plane[max(top, 0) : top + side, max(left, 0) : left + side].std()
    np.testing.assert_allclose(got, [expected], atol=1e-9)


@settings(max_examples=40)
@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 20), st.integers(1, 20), st.just(3))), st.booleans())
def test_tiny_pictures_have_descriptors(picture: Array, interest: bool) -> None:
    for kind, dims in ((DenseSIFT, 128), (OpponentSIFT, 384)):
        made = one(kind(points="interest" if interest else "dense"), picture)
        assert made.values.shape[1] == dims
        assert len(made.values) == len(made.positions) >= 1
        assert np.isfinite(made.values).all()
        assert ((made.positions >= 0) & (made.positions <= 1)).all()


def test_a_grey_picture_is_its_rgb() -> None:
    np.testing.assert_array_equal(
        one(DenseSIFT(), GREY).values, one(DenseSIFT(), np.repeat(GREY[..., None], 3, axis=2)).values
    )


def test_opponent_planes_are_the_formula() -> None:
    red, green, blue = np.moveaxis(PICTURE.astype(float), 2, 0)
    opponents = [(red - green) / np.sqrt(2), (red + green - 2 * blue) / np.sqrt(6), (red + green + blue) / np.sqrt(3)]
    factors = [1 / np.sqrt(2), np.sqrt(6) / 4, 1 / np.sqrt(3)]
    middles = [127.5, 127.5, 0.0]
    for plane, opponent, factor, middle in zip(
        OpponentSIFT()._planes(PICTURE), opponents, factors, middles, strict=True
    ):
        assert plane.dtype == np.uint8
        assert np.abs(opponent * factor + middle - plane).max() <= 1.0


def test_opponent_sift_is_the_sift_of_each_plane() -> None:
    opponent = OpponentSIFT(10, (16, 24))
    made = one(opponent, PICTURE)
    for k, plane in enumerate(opponent._planes(PICTURE)):
        single = one(DenseSIFT(10, (16, 24)), plane)
        np.testing.assert_array_equal(made.values[:, 128 * k : 128 * (k + 1)], single.values)
        np.testing.assert_array_equal(made.positions, single.positions)
    assert made.values[:, :128].any()
    assert made.values[:, 128:256].any()


@pytest.mark.parametrize("points", ["dense", "interest"])
def test_without_colour_two_thirds_are_zeros(points: str) -> None:
    values = one(OpponentSIFT(points=points), GREY).values
    assert not values[:, :256].any()
    assert values[:, 256:].any(axis=1).mean() > 0.8


def test_interest_points_are_those_of_the_detector() -> None:
    made = one(DenseSIFT(points="interest", root=False), PICTURE)
    keypoints, values = cv2.SIFT_create().detectAndCompute(to_grey(PICTURE), None)
    assert len(made.values) == len(keypoints) > 20
    np.testing.assert_allclose(made.values, values / 512.0)
    np.testing.assert_allclose(made.positions * [150, 100] - 0.5, [k.pt for k in keypoints], atol=1e-4)


def test_interest_points_turn_with_the_picture() -> None:
    sift = DenseSIFT(points="interest")
    upright, turned = one(sift, GREY).values, one(sift, np.rot90(GREY)).values
    nearest = ((upright[:, None] - turned) ** 2).sum(axis=2).min(axis=1)
    assert np.median(nearest) < 0.02


def test_without_interest_points_the_grid_is_used() -> None:
    flat = np.full((40, 50, 3), 7, np.uint8)
    np.testing.assert_array_equal(one(DenseSIFT(points="interest"), flat).positions, one(DenseSIFT(), flat).positions)


@pytest.mark.parametrize("sift", [DenseSIFT(), DenseSIFT(points="interest"), OpponentSIFT()])
def test_the_result_does_not_depend_on_threads(sift: DenseSIFT) -> None:
    pictures = [np.ascontiguousarray(astronaut()[k : k + 120, k : k + 150]) for k in range(0, 120, 20)]
    made = sift.fit_transform(pictures)
    alone = list(stream(made.__getitem__, range(len(pictures)), 1))
    before = cv2.getNumThreads()
    try:
        cv2.setNumThreads(4)
        shared = list(stream(made.__getitem__, range(len(pictures)), 3))
    finally:
        cv2.setNumThreads(before)
    for a, b in zip(alone, shared, strict=True):
        np.testing.assert_array_equal(a.values, b.values)
        np.testing.assert_array_equal(a.positions, b.positions)


def test_large_grids_are_not_kept() -> None:
    descriptors._kept_grid.cache_clear()
    small, large = GREY[:50, :60], GREY
    again = [descriptors._on_grid([p], 8, 16, 0.5, True, most_kept=100).values for p in (small, small, large, large)]
    assert descriptors._kept_grid.cache_info().currsize == descriptors._kept_grid.cache_info().hits == 1
    np.testing.assert_array_equal(again[2], again[3])


def test_scikit_learn_conventions() -> None:
    sift = OpponentSIFT(12, (20,), points="interest", contrast=2.0, root=False)
    assert clone(sift).get_params() == sift.get_params()
    assert OpponentSIFT().step == 10
    assert len(make_pipeline(DenseSIFT()).fit_transform([PICTURE, GREY])) == 2
    assert DenseSIFT().recipe() != DenseSIFT(9).recipe() != OpponentSIFT(9).recipe()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", 0),
        ("step", 2.5),
        ("step", "8"),
        ("scales", ()),
        ("scales", 16),
        ("scales", "16"),
        ("scales", (16, 3)),
        ("scales", (np.nan,)),
        ("contrast", -1.0),
        ("contrast", None),
        ("points", "sparse"),
    ],
)
def test_bad_parameters_are_named(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameter, match=f"`{name}` must"):
        DenseSIFT(**{name: value}).fit([PICTURE])
    with pytest.raises(InvalidParameter, match=f"`{name}` must"):
        OpponentSIFT(**{name: value}).transform([PICTURE])


def test_what_is_no_picture_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"A picture must have the shape .*, got \(3, 4, 5\)"):
        DenseSIFT().fit_transform([np.zeros((3, 4, 5), np.uint8)])[0]
