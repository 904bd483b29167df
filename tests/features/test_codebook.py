"""Words by k-means: the nearest word against all distances, soft weights against their formula."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.features.codebook import SOFT_WORDS, BagOfWords, Nearest, distinct_rows, distinct_words
from tests.features.sets import described

PICTURES, _ = described()
SIFT = np.concatenate([p.values for p in PICTURES])


def squared_distances(X: Array, C: Array) -> Array:
    return np.square(X[:, None].astype(np.float64) - C[None]).sum(axis=2)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 12), st.integers(1, 9), st.sampled_from([0, 1e4]))
def test_the_nearest_have_the_smallest_distances(seed: int, k: int, w: int, d: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    X, C = ((rng.integers(-8, 9, (rows, d)) / 8 + offset).astype(np.float32) for rows in (k, w))  # many ties
    C = np.unique(C, axis=0)  # equal points count as one, see below
    count = int(rng.integers(1, len(C) + 1))
    numbers, closeness = Nearest(C).few(X, count)
    distances = squared_distances(X, C)
    found = np.take_along_axis(distances, numbers, axis=1)
    np.testing.assert_allclose(found, np.sort(distances, axis=1)[:, :count], atol=2e-3)
    assert all(len(set(row)) == count for row in numbers.tolist())  # none twice
    gaps = 2.0 * (closeness[:, :1] - closeness)
    np.testing.assert_allclose(gaps, found - found[:, :1], atol=2e-3)


def test_the_size_of_the_blocks_changes_nothing() -> None:
    nearest = Nearest(SIFT[::7])
    whole, _ = nearest.few(SIFT, 3)
    np.testing.assert_array_equal(nearest.few(SIFT, 3, at_once=10)[0], whole)


def test_words_of_float64_are_those_of_float32() -> None:
    bag = BagOfWords(30, n_jobs=1).fit(PICTURES)
    np.testing.assert_array_equal(bag.words_of(SIFT.astype(np.float64))[0], bag.words_of(SIFT)[0])


def test_hard_words_of_real_pictures() -> None:
    bag = BagOfWords(30, norm=None, n_jobs=1).fit(PICTURES)
    X = bag.transform(PICTURES)
    for picture, row in zip(PICTURES, X.toarray(), strict=True):
        words = squared_distances(picture.values, bag.centres_).argmin(axis=1)
        np.testing.assert_array_equal(row, np.bincount(words, minlength=30))


def test_words_lie_closer_to_descriptors_than_random_ones() -> None:
    rng = np.random.default_rng(0)
    bag = BagOfWords(30, n_jobs=1).fit(PICTURES)
    cost = squared_distances(SIFT, bag.centres_).min(axis=1).mean()
    others = [squared_distances(SIFT, SIFT[rng.permutation(len(SIFT))[:30]]).min(axis=1).mean() for _ in range(5)]
    assert cost < min(others)


def test_words_are_the_middles_of_clusters() -> None:
    rng = np.random.default_rng(0)
    middles = rng.permutation(40).reshape(8, 5) * 10.0
    pictures = [middles[rng.integers(0, 8, 50)] + rng.normal(0, 0.01, (50, 5)) for _ in range(10)]
    bag = BagOfWords(8, n_jobs=1).fit(pictures)
    found = squared_distances(middles, bag.centres_).argmin(axis=1)
    assert sorted(found) == list(range(8))
    np.testing.assert_allclose(bag.centres_[found], middles, atol=0.01)


@pytest.mark.parametrize("words", [30, 3, 1])
def test_soft_weights_are_gaussian_and_sum_to_one(words: int) -> None:
    soft = BagOfWords(words, "soft", n_jobs=1).fit(PICTURES)
    values = PICTURES[0].values
    count = min(SOFT_WORDS, words)
    numbers, weights = soft.words_of(values)
    assert numbers.shape == weights.shape == (len(values), count)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-5)
    # exp(−‖x − c‖²/2σ²) over the nearest words, σ² half the mean gap between the first and the last of them
    distances = np.sort(squared_distances(SIFT, soft.centres_), axis=1)[:, :count]
    variance = (distances[:, -1] - distances[:, 0]).mean() / 2
    kernel = np.exp(-distances[: len(values)] / (2 * variance)) if variance else np.ones((len(values), 1))
    np.testing.assert_allclose(weights, kernel / kernel.sum(axis=1, keepdims=True), rtol=1e-3)


def test_hard_and_soft_share_their_words() -> None:
    hard, soft = (BagOfWords(20, assign, n_jobs=1).fit(PICTURES) for assign in ("hard", "soft"))
    np.testing.assert_array_equal(hard.centres_, soft.centres_)
    np.testing.assert_array_equal(hard.words_of(SIFT)[0][:, 0], soft.words_of(SIFT)[0][:, 0])


@pytest.mark.parametrize("assign", ["hard", "soft"])
def test_fewer_distinct_descriptors_than_words(assign: str) -> None:
    few = np.array([[0.0, 1.0], [2.0, 0.0], [-0.0, 1.0]])
    with pytest.warns(UserWarning, match="found 2 words, not the 10 asked for"):
        bag = BagOfWords(10, assign, n_jobs=1).fit([few, few[:2]])
    assert bag.n_words_ == 2
    X = bag.transform([few, few[1:2]]).toarray()
    np.testing.assert_allclose(X.sum(axis=1), 1.0, rtol=1e-6)
    if assign == "hard":
        np.testing.assert_allclose(X, [[2 / 3, 1 / 3], [0, 1]], rtol=1e-6)


def test_as_many_distinct_descriptors_as_words_need_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    bag = BagOfWords(3, "soft", n_jobs=1).fit([np.eye(3), np.eye(3)])
    assert bag.n_words_ == 3
    assert not [w for w in recwarn if issubclass(w.category, UserWarning)]


def test_identical_descriptors_are_one_word() -> None:
    with pytest.warns(UserWarning, match="found 1 words"):
        bag = BagOfWords(5, "soft", n_jobs=1).fit([np.ones((4, 3))])
    np.testing.assert_array_equal(bag.transform([np.zeros((2, 3))]).toarray(), [[1.0]])


def test_the_seed_decides() -> None:
    a, b = (BagOfWords(20, random_state=seed, n_jobs=1).fit(PICTURES) for seed in (1, 2))
    assert not np.array_equal(a.centres_, b.centres_)
    generator = np.random.RandomState(3)
    assert BagOfWords(20, random_state=generator, n_jobs=1).fit(PICTURES).n_words_ == 20


@given(st.lists(st.tuples(st.sampled_from([0.0, -0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=1))
def test_distinct_rows(rows: list[tuple[float, float]]) -> None:
    X = np.array(rows, np.float32)
    total = len({(a + 0.0, b) for a, b in rows})
    assert distinct_rows(X, len(rows) + 1) == total
    assert distinct_rows(X, 2) == min(total, 2)


def test_centres_too_far_apart_for_float32() -> None:
    with pytest.raises(InvalidInput, match="Scale them"):
        Nearest(np.array([[1e30], [-1e30]], np.float32))


def test_a_centre_that_k_means_found_twice_is_one_word() -> None:
    """Two centres that differ by rounding: the processor would choose between them."""
    centres = np.random.default_rng(0).random((40, 8)).astype(np.float32) * 250
    again = np.vstack([centres, np.nextafter(centres[3:5], np.float32(np.inf)), centres[3:4]])
    np.testing.assert_array_equal(distinct_words(again), np.vstack([centres, centres[3:5], centres[3:4]]))
    np.testing.assert_array_equal(distinct_words(centres), centres)
    near = np.repeat(centres[3:5], 50, axis=0) + np.random.default_rng(1).random((100, 8), np.float32)
    words, closeness = Nearest(distinct_words(again)).few(near, 43)
    assert words.shape == (100, 40)
    assert words[:, 0].tolist() == [3] * 50 + [4] * 50
    assert np.isfinite(closeness).all()
