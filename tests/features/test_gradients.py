"""HOG against scikit-image's, soft bins and PHOG against loops over the pixels."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from skimage.data import astronaut, brick, camera, coffee, grass
from skimage.feature import hog
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.features.gradients import HOG, PHOG, Gradients
from saccade.features.pixels import to_grey

GREY = camera()[100:228, 180:340]
PICTURES = [coffee()[:120, 140:290], astronaut()[:150, 150:300], brick()[:90, :70]]


def row(encoder: Gradients, picture: Array) -> Array:
    made = encoder.fit_transform([picture])
    assert made.shape == (1, encoder.width())
    return np.asarray(made.toarray()[0])


@pytest.mark.parametrize(("cell", "bins", "block"), [(16, 9, 2), (8, 6, 1), (32, 12, 3), (16, 9, 3)])
def test_hard_hog_is_that_of_scikit_image(cell: int, bins: int, block: int) -> None:
    expected = hog(GREY, bins, (cell, cell), (block, block), "L2-Hys")
    got = row(HOG((160, 128), cell=cell, bins=bins, block=block, soft=False, n_jobs=1), GREY)
    np.testing.assert_allclose(got, expected, atol=1e-5)
    assert got.max() > 0.1


@settings(max_examples=30)
@given(hnp.arrays(np.uint8, (16, 24), elements=st.sampled_from([0, 1, 2, 100, 101, 255])))
def test_hard_hog_with_ties_and_flat_parts(picture: Array) -> None:
    expected = hog(picture, 4, (8, 8), (2, 2), "L2-Hys")
    np.testing.assert_allclose(row(HOG((24, 16), cell=8, bins=4, soft=False, n_jobs=1), picture), expected, atol=1e-5)


@settings(max_examples=25)
@given(hnp.arrays(np.uint8, (8, 8)), st.sampled_from([180, 360]), st.integers(2, 9))
def test_soft_bins_share_a_gradient_between_two(picture: Array, angle: int, bins: int) -> None:
    grey = picture.astype(float)
    expected = np.zeros(bins)
    for y in range(8):
        for x in range(8):
            dx = grey[y, x + 1] - grey[y, x - 1] if 0 < x < 7 else 0.0
            dy = grey[y + 1, x] - grey[y - 1, x] if 0 < y < 7 else 0.0
            theta = np.degrees(np.arctan2(dy, dx)) % angle
            for k in range(bins):  # a hat of one bin's width around the bin's middle, round the circle
                away = abs(theta - (k + 0.5) * angle / bins)
                away = min(away, angle - away) / (angle / bins)
                expected[k] += np.hypot(dx, dy) * max(0.0, 1.0 - away)
    for _ in range(2):
        expected = expected / max(np.linalg.norm(expected), 1e-9)
        expected = np.minimum(expected, 0.2) if _ == 0 else expected
    got = row(HOG((8, 8), cell=8, bins=bins, block=1, angle=angle, n_jobs=1), picture)
    np.testing.assert_allclose(got, expected, atol=1e-4)


def test_hog_blocks_have_unit_length_and_no_negative_value() -> None:
    blocks = row(HOG(n_jobs=1), PICTURES[0]).reshape(-1, 36)
    assert (blocks >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(blocks, axis=1), 1.0, atol=1e-4)


def test_hog_hardly_sees_the_size_of_the_picture() -> None:
    large = np.repeat(np.repeat(GREY, 3, axis=0), 3, axis=1)
    a, b, other = (row(HOG(n_jobs=1), picture) for picture in (GREY, large, grass()[:128, :160]))
    assert np.corrcoef(a, b)[0, 1] > 0.95 > 0.5 > np.corrcoef(a, other)[0, 1]


def direct_phog(grey: Array, bins: int, levels: int, angle: int) -> list[Array]:
    """One histogram a level, pixel by pixel, each level's sum 1 unless there is no edge."""
    smooth = cv2.GaussianBlur(grey, (0, 0), 1.4)
    dx, dy = (cv2.Sobel(smooth, cv2.CV_16S, *along).astype(float) for along in ((1, 0), (0, 1)))
    high = np.quantile(np.hypot(dx, dy), 0.7)
    edges = cv2.Canny(dx.astype(np.int16), dy.astype(np.int16), 0.4 * high, high, L2gradient=True)
    pyramid = []
    for level in range(levels + 1):
        side = 2**level
        histogram = np.zeros((side, side, bins))
        for y, x in np.argwhere(edges):
            k = int(np.degrees(np.arctan2(dy[y, x], dx[y, x])) % angle / angle * bins)
            place = int(y * side / grey.shape[0]), int(x * side / grey.shape[1]), min(k, bins - 1)
            histogram[place] += np.hypot(dx[y, x], dy[y, x])
        pyramid.append(histogram.ravel() / max(histogram.sum(), 1e-9))
    return pyramid


@pytest.mark.parametrize(("bins", "levels", "angle"), [(20, 3, 180), (40, 2, 360), (7, 0, 180), (1, 1, 360)])
@pytest.mark.parametrize("picture", PICTURES)
def test_phog_pixel_by_pixel(picture: Array, bins: int, levels: int, angle: int) -> None:
    got = row(PHOG(bins, depth=levels + 1, angle=angle, n_jobs=1), picture)
    expected = np.concatenate(direct_phog(to_grey(picture), bins, levels, angle)) / (levels + 1)
    np.testing.assert_allclose(got, expected, atol=1e-6)
    np.testing.assert_allclose(got.sum(), 1.0, atol=1e-5)


def test_weighted_phog_is_the_spatial_pyramid_match() -> None:
    a, b = (row(PHOG(8, depth=4, weighted=True, n_jobs=1), picture) for picture in PICTURES[:2])
    levels = zip(*(direct_phog(to_grey(picture), 8, 3, 180) for picture in PICTURES[:2]), strict=True)
    met = [np.minimum(x, z).sum() for x, z in levels]
    # Matches found at level l and not at the finer l + 1 count 2^−(L−l).
    expected = met[3] + sum(2.0 ** -(3 - level) * (met[level] - met[level + 1]) for level in range(3))
    np.testing.assert_allclose(np.minimum(a, b).sum(), expected, rtol=1e-5)
    np.testing.assert_allclose([a.sum(), b.sum()], 1.0, atol=1e-5)


def test_phog_of_edges_in_a_corner() -> None:
    picture = np.zeros((80, 80, 3), np.uint8)
    picture[5:15, 5:15] = 200
    levels = np.split(row(PHOG(4, depth=3, n_jobs=1), picture), [4, 20])
    finest = levels[2].reshape(4, 4, 4)
    assert finest[0, 0].sum() == pytest.approx(1 / 3, abs=1e-5)
    assert not finest[1:].any()
    assert not finest[:, 1:].any()
    full = row(PHOG(4, depth=1, angle=360, n_jobs=1), picture)
    assert (full > 0.1).all()  # up, down, left and right


@pytest.mark.parametrize("encoder", [HOG(), PHOG(), PHOG(weighted=True)])
def test_a_flat_picture_is_a_row_of_zeros(encoder: Gradients) -> None:
    assert not row(encoder, np.full((50, 40, 3), 77, np.uint8)).any()


@settings(max_examples=40)
@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3))))
def test_tiny_pictures_have_finite_rows(picture: Array) -> None:
    for encoder in (HOG(n_jobs=1), PHOG(n_jobs=1)):
        values = row(encoder, picture)
        assert (values >= 0).all()
        assert np.isfinite(values).all()


@pytest.mark.parametrize("encoder", [HOG(), PHOG()])
def test_rows_do_not_depend_on_threads_or_cache(encoder: Gradients, tmp_path: Path) -> None:
    alone = clone(encoder).set_params(n_jobs=1).fit_transform(PICTURES)
    shared = clone(encoder).set_params(n_jobs=3, cache=tmp_path)
    for _ in range(2):
        made = shared.fit_transform(PICTURES)
        assert isinstance(made, sp.csr_matrix)
        assert made.dtype == np.float32
        assert made.has_canonical_format
        assert made.shape == (len(PICTURES), encoder.width()) == (len(PICTURES), len(encoder.get_feature_names_out()))
        np.testing.assert_array_equal(made.toarray(), alone.toarray())
    assert len(list(tmp_path.iterdir())) == 1


def test_scikit_learn_conventions() -> None:
    for encoder in (HOG((64, 32), cell=8, soft=False), PHOG(40, depth=3, angle=360, weighted=True)):
        assert clone(encoder).get_params() == encoder.get_params()
        assert clone(encoder).recipe() == encoder.recipe()
        assert make_pipeline(encoder).fit_transform(PICTURES).shape == (3, encoder.width())
    assert PHOG().recipe() != PHOG(weighted=True).recipe()


@pytest.mark.parametrize(
    ("encoder", "name"),
    [
        (HOG((100, 128)), "size"),
        (HOG((16, 128)), "size"),
        (HOG((0, 128)), "size"),
        (HOG(128), "size"),  # type: ignore[arg-type]
        (HOG(cell=0), "cell"),
        (HOG(bins=2.5), "bins"),  # type: ignore[arg-type]
        (HOG(block=-1), "block"),
        (HOG(angle=90), "angle"),
        (PHOG(0), "bins"),
        (PHOG(depth=0), "depth"),
        (PHOG(depth=10), "depth"),
        (PHOG(angle=0), "angle"),
    ],
)
def test_bad_parameters_are_named(encoder: Gradients, name: str) -> None:
    for call in (encoder.fit, encoder.transform):
        with pytest.raises(InvalidParameter, match=f"`{name}` must"):
            call(PICTURES)


def test_what_is_no_picture_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"A picture must have the shape .*, got \(3, 4, 5\)"):
        PHOG(n_jobs=1).fit_transform([np.zeros((3, 4, 5), np.uint8)])
