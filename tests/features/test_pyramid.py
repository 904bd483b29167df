"""The spatial pyramid: its intersection against Lazebnik's sum over levels, cell by cell."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.base import clone

from saccade.features.codebook import BagOfWords
from saccade.features.forest import ForestCodebook
from saccade.features.lazy import Descriptors
from saccade.features.pyramid import SpatialPyramid, cells_of
from saccade.kernels import HIK
from tests.features.sets import described, point_sets

PICTURES, KINDS = described()


def cell_counts(codebook: Any, picture: Descriptors, side: int, mass: float = 1.0) -> Counter[Any]:
    """How much of each word lies in each cell of a grid of side × side, one descriptor after another."""
    counts: Counter[Any] = Counter()
    if len(picture.values):
        words, weights = codebook.words_of(np.asarray(picture.values, np.float32))
        for (x, y), these, count in zip(picture.positions, words, weights, strict=True):
            for word, weight in zip(these, count, strict=True):
                counts[min(int(x * side), side - 1), min(int(y * side), side - 1), int(word)] += float(weight) * mass
    return counts


def intersection(a: Counter[Any], b: Counter[Any]) -> float:
    return float(sum((a & b).values()))


def lazebnik(codebook: Any, a: Descriptors, b: Descriptors, levels: int, norm: bool = False) -> float:
    """I_L + Σ_{l<L} (I_l − I_{l+1}) / 2^{L−l}, Lazebnik et al. (2)."""
    masses = [1 / max(len(p.values), 1) if norm else 1.0 for p in (a, b)]
    per_level = [
        intersection(*(cell_counts(codebook, p, 2**l, mass) for p, mass in zip((a, b), masses, strict=True)))
        for l in range(levels)  # noqa: E741
    ]
    L = levels - 1
    return per_level[L] + sum((per_level[k] - per_level[k + 1]) / 2 ** (L - k) for k in range(L))


@pytest.mark.filterwarnings("ignore:BagOfWords found")
@settings(max_examples=25)
@given(point_sets())
def test_the_intersection_of_vectors_is_the_spatial_pyramid_match(sets: list[Descriptors]) -> None:
    for assign, norm, levels in (("hard", None, 3), ("soft", "l1", 2), ("hard", "l1", 1)):
        pyramid = SpatialPyramid(BagOfWords(4, assign), levels, norm=norm, n_jobs=1).fit(sets)
        K = HIK(scale=1.0)(pyramid.transform(sets))
        direct = [[lazebnik(pyramid.codebook_, a, b, levels, norm == "l1") for b in sets] for a in sets]
        np.testing.assert_allclose(K, direct, rtol=1e-5, atol=1e-6)


def test_the_match_of_real_pictures() -> None:
    pyramid = SpatialPyramid(ForestCodebook(1, 16), 3, norm="l1", n_jobs=1).fit(PICTURES)
    K = HIK(scale=1.0)(pyramid.transform(PICTURES))
    direct = [[lazebnik(pyramid.codebook_, a, b, 3, True) for b in PICTURES[:4]] for a in PICTURES]
    np.testing.assert_allclose(K[:, :4], direct, rtol=1e-5)


def test_a_descriptor_is_counted_in_its_cell() -> None:
    spots = np.array([[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [1.0, 1.0]])  # x, y
    picture = Descriptors(np.array([[0.0], [1.0], [0.0], [1.0]]), spots)
    pyramid = SpatialPyramid(BagOfWords(2), 2, norm=None, n_jobs=1).fit([picture])
    assert pyramid.codebook_.centres_.ravel().tolist() == [0.0, 1.0]
    (row,) = pyramid.transform([picture]).toarray()
    np.testing.assert_array_equal(row * 2, [2, 2, *(1, 0), *(0, 1), *(1, 0), *(0, 1)])  # both levels count half


def test_grids_of_rows_and_columns() -> None:
    spots = np.array([[0.9, 0.1], [0.1, 0.5], [0.5, 0.9]])
    np.testing.assert_array_equal(cells_of(spots, 3, 1), [0, 1, 2])  # three rows
    np.testing.assert_array_equal(cells_of(spots, 1, 3), [2, 0, 1])  # three columns
    np.testing.assert_array_equal(cells_of(spots, 2, 3), [2, 3, 4])


def test_given_grids_are_the_levels_where_they_are_equal() -> None:
    levels = SpatialPyramid(BagOfWords(8), 3, n_jobs=1).fit_transform(PICTURES)
    for grids in (((1, 1), (2, 2), (4, 4)), [[1, 1], [2, 2], [4, 4]]):
        given_grids = SpatialPyramid(BagOfWords(8), grids=grids, n_jobs=1).fit_transform(PICTURES)
        np.testing.assert_array_equal(given_grids.toarray(), levels.toarray())
    weighted = SpatialPyramid(BagOfWords(8), 3, weights=(0.25, 0.25, 0.5), n_jobs=1).fit_transform(PICTURES)
    np.testing.assert_array_equal(weighted.toarray(), levels.toarray())


def test_one_level_is_the_bag_of_words() -> None:
    for book in (BagOfWords(12, "soft"), ForestCodebook(3, 5)):
        pyramid = SpatialPyramid(book, 1, n_jobs=1).fit_transform(PICTURES)
        np.testing.assert_allclose(pyramid.toarray(), clone(book).fit_transform(PICTURES).toarray(), rtol=1e-6)


def test_the_codebook_given_stays_unfitted_and_learns_the_classes() -> None:
    book = ForestCodebook(2, 4, supervised=True)
    pyramid = SpatialPyramid(book, 2, cache=None, n_jobs=1).fit(PICTURES, KINDS)
    assert not hasattr(book, "n_words_")
    assert book.n_jobs is None
    assert pyramid.codebook_.n_jobs == 1
    assert pyramid.width() == 8 * 5


def test_the_default_codebook_has_200_words() -> None:
    pyramid = SpatialPyramid(depth=1, n_jobs=1).fit(PICTURES)
    assert pyramid.width() == 200
