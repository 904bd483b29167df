"""Random trees as a codebook: the quick way down against one step at a time, splits against their definition."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.features.forest import ForestCodebook, _information, _median_split, _telling_split
from tests.features.sets import described

PICTURES, KINDS = described()
SIFT = np.concatenate([p.values for p in PICTURES])


def slow_word(forest: Any, tree: int, x: Array) -> int:
    """One descriptor down one tree."""
    node = forest.root_[tree]
    while forest.child_[node] != node:
        node = forest.child_[node] + int(x[forest.feature_[node]] > forest.threshold_[node])
    leaves = [i for i in range(len(forest.child_)) if forest.child_[i] == i]
    return leaves.index(node)


@pytest.mark.filterwarnings("ignore:ForestCodebook found")
@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4), st.integers(2, 9), st.booleans())
def test_the_quick_way_down_is_the_slow_one(seed: int, dims: int, trees: int, leaves: int, supervised: bool) -> None:
    rng = np.random.default_rng(seed)
    sets = [rng.integers(0, 5, (12, dims)) / 4 for _ in range(3)]
    forest = ForestCodebook(trees, leaves, supervised, n_jobs=1, random_state=seed % 1000).fit(sets, [0, 1, 1])
    new = rng.normal(0.5, 0.5, (10, dims)).astype(np.float32)
    words, weights = forest.words_of(new)
    assert words.tolist() == [[slow_word(forest, t, x) for t in range(trees)] for x in new]
    assert (weights == 1).all()
    np.testing.assert_allclose(forest.transform([new]).sum(), 1.0, rtol=1e-6)


def test_splits_at_the_median_fill_the_leaves_equally() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(640, 6))
    words, _ = ForestCodebook(3, 32, n_jobs=1, norm=None).fit([values]).words_of(values.astype(np.float32))
    assert words.shape == (640, 3)
    np.testing.assert_array_equal(np.bincount(words.ravel()), 20)  # 640 / 2⁵ in every leaf of every tree


def test_words_of_real_pictures() -> None:
    forest = ForestCodebook(4, 16, n_jobs=1).fit(PICTURES)
    assert forest.n_words_ == 64
    words, _ = forest.words_of(SIFT)
    per_tree = [len(np.unique(words[:, t])) for t in range(4)]
    assert per_tree == [16] * 4  # every leaf was filled in training
    assert len(np.unique(forest.feature_[forest.root_])) > 1  # the trees differ


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 15), st.integers(1, 4), st.integers(1, 4))
def test_a_split_divides_unless_all_are_equal(seed: int, m: int, dims: int, values: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.integers(0, values, (m, dims)), np.float32)
    rows = rng.permutation(m)[: rng.integers(1, m + 1)]
    found = _median_split(X, rows, rng)
    if len(np.unique(X[rows], axis=0)) == 1:
        assert found is None
        return
    assert found is not None
    feature, threshold = found
    x = np.sort(X[rows, feature])
    left = int((x <= threshold).sum())
    assert 0 < left < len(x)
    median = x[(len(x) - 1) // 2]
    assert threshold == median or (median == x[-1] and threshold == x[x < median].max())


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=30))
def test_information_is_mutual_information(pairs: list[tuple[int, bool]]) -> None:
    classes, right = np.array([c for c, _ in pairs]), np.array([r for _, r in pairs])
    np.testing.assert_allclose(_information(classes, right), mutual_info_score(classes, right), atol=1e-12)


def test_a_supervised_split_asks_the_feature_that_tells_the_class() -> None:
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.random((400, 5)), np.float32)
    classes = (X[:, 3] > 0.5).astype(int)
    found = [_telling_split(X, np.arange(400), classes, 40, rng) for _ in range(10)]
    assert all(split is not None and split[0] == 3 and abs(split[1] - 0.5) < 0.2 for split in found)
    assert _telling_split(X, np.flatnonzero(classes), classes, 40, rng) is None  # one class: nothing left to tell


def test_a_supervised_forest_tells_more_than_a_random_one() -> None:
    def told(supervised: bool) -> float:
        forest = ForestCodebook(5, 16, supervised, n_jobs=1).fit(PICTURES, KINDS)
        words, _ = forest.words_of(SIFT)
        kinds = np.repeat(KINDS, [len(p.values) for p in PICTURES])
        return float(np.mean([mutual_info_score(kinds, words[:, t]) for t in range(5)]))

    assert told(True) > 1.2 * told(False)


def test_fewer_distinct_descriptors_than_leaves() -> None:
    few = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 1.0]])
    with pytest.warns(UserWarning, match="found 6 words, not the 30 asked for"):
        forest = ForestCodebook(3, 10, n_jobs=1).fit([few])
    np.testing.assert_array_equal(forest.words_of(few)[0][0], forest.words_of(few)[0][2])
    with pytest.warns(UserWarning, match="found 1 words, not the 2 asked for"):
        assert ForestCodebook(1, 2, n_jobs=1).fit([np.ones((4, 2))]).transform([few]).toarray() == [[1.0]]


def test_supervised_needs_classes() -> None:
    forest = ForestCodebook(2, 4, supervised=True, n_jobs=1)
    with pytest.raises(InvalidInput, match=r"needs the classes: fit\(X, y\)"):
        forest.fit(PICTURES)
    with pytest.raises(InvalidInput, match="one class per picture, got shape"):
        forest.fit(PICTURES, KINDS[:3])
    with pytest.raises(InvalidInput, match="two classes or more"):
        forest.fit(PICTURES, ["thing"] * len(PICTURES))


def test_the_cache_tells_classes_apart(tmp_path: Path) -> None:
    forest = ForestCodebook(2, 4, supervised=True, cache=tmp_path, n_jobs=1)
    before = forest.fit(PICTURES, KINDS).recipe()
    assert forest.fit(PICTURES, KINDS[::2] + KINDS[1::2]).recipe() != before
    assert forest.fit(PICTURES, KINDS).recipe() == before


def test_nodes_that_lead_upwards_are_refused() -> None:
    forest = ForestCodebook(2, 4, n_jobs=1).fit(PICTURES)
    state = forest.state()
    state["child"] = state["child"].copy()
    state["child"][2] = 0  # a way down that never ends
    with pytest.raises(ValueError, match="trees"):
        ForestCodebook(2, 4).restore(state)
