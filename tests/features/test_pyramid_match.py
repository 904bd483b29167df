"""The pyramid match: the intersection of two vectors against the paper's sum Σ_i w_i (I_i − I_{i−1}) by points."""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from saccade._core.arrays import Array
from saccade.features.bins import UniformBins, VocabularyBins, _filled, folded
from saccade.features.codebook import BagOfWords
from saccade.features.lazy import Descriptors, Given
from saccade.features.projection import DescriptorPCA
from saccade.features.pyramid import SpatialPyramid
from saccade.features.pyramid_match import PyramidHistogram
from saccade.kernels import HIK
from tests.features.sets import described, point_sets, portrait
from tests.tolerances import assert_positive_semidefinite

BinOf = Callable[[Any, Array, Array, int], Hashable]  # (fitted bins, value, position, level) → the bin, 0 the finest
PICTURES, _ = described()
NEW = portrait()


def pyramid_match(bin_of: BinOf, bins: Any, levels: int, a: Descriptors, b: Descriptors, norm: bool) -> float:
    """K §5, with w_i = 1/2^i and I_{−1} = 0."""
    total = before = 0.0
    for i in range(levels):
        histograms = []
        for one in (a, b):
            counts: Counter[Hashable] = Counter()
            for value, position in zip(one.values, one.positions, strict=True):
                counts[bin_of(bins, value, position, i)] += 1 / len(one.values) if norm else 1  # type: ignore[assignment]
            histograms.append(counts)
        matches = float(sum((histograms[0] & histograms[1]).values()))
        total += 0.5**i * (matches - before)
        before = matches
    return total


def uniform_bin(bins: UniformBins, value: Array, position: Array, i: int) -> Hashable:
    """The corner of the cell of side 2^i."""
    grid = bins._grid
    value = np.asarray(value, np.float32).astype(np.float64)
    return tuple(np.floor((value - grid.origin[0]) / (grid.side * 2**i)).astype(int).tolist())


def vocabulary_bin(bins: VocabularyBins, value: Array, position: Array, i: int) -> Hashable:
    """Down the tree, always to the nearest child; a leaf is its own part at all finer levels."""
    node = 0
    for _ in range(bins.depth - 1 - i):
        first = 1 + int(bins.children_[:node].sum())
        count = int(bins.children_[node])
        if count:
            centres = bins.centres_[first : first + count].astype(np.float64)
            node = first + int(np.square(centres - np.asarray(value, np.float32)).sum(axis=1).argmin())
    return node


def word_and_place(bins: SpatialPyramid, value: Array, position: Array, i: int) -> Hashable:
    """The word, and the cell of the picture: for every word a pyramid over positions."""
    side = 2 ** (bins.depth - 1 - i)
    word = np.square(bins.codebook_.centres_ - np.asarray(value, np.float32)).sum(axis=1).argmin()  # type: ignore[attr-defined]
    return (int(word), *np.minimum((position * side).astype(int), side - 1).tolist())


KINDS: dict[str, tuple[BinOf, dict[str, Any]]] = {
    "uniform": (uniform_bin, {}),
    "vocabulary": (vocabulary_bin, {"branch": 3}),
    "positions": (word_and_place, {"codebook": BagOfWords(3)}),
}


@pytest.mark.filterwarnings("ignore:BagOfWords found")
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(point_sets(), st.integers(1, 5), st.sampled_from(["l1", None]), st.integers(0, 99))
def test_the_intersection_of_vectors_is_the_papers_sum(
    kind: str, sets: list[Descriptors], levels: int, norm: str | None, seed: int
) -> None:
    bin_of, parameters = KINDS[kind]
    encoder = PyramidHistogram(kind, depth=levels, norm=norm, random_state=seed, n_jobs=1, **parameters).fit(sets)
    K = HIK(scale=1.0)(encoder.transform(sets))
    direct = [[pyramid_match(bin_of, encoder.bins_, levels, a, b, norm == "l1") for b in sets] for a in sets]
    np.testing.assert_allclose(K, direct, rtol=1e-5, atol=1e-6)
    assert_positive_semidefinite(K, np.float32)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(point_sets(), st.sampled_from(["l1", None]))
def test_new_pictures_match_the_training_pictures_and_themselves(
    kind: str, sets: list[Descriptors], norm: str | None
) -> None:
    """Also where they fall into cells that no training picture fills."""
    bin_of, parameters = KINDS[kind]
    training, new = [described_like(sets[0]), *sets[1:2]], sets
    encoder = PyramidHistogram(kind, depth=4, norm=norm, n_jobs=1, **parameters).fit(training)
    X, Z = encoder.transform(training), encoder.transform(new)
    direct = [[pyramid_match(bin_of, encoder.bins_, 4, a, b, norm == "l1") for b in training] for a in new]
    np.testing.assert_allclose(HIK(scale=1.0)(Z, X), direct, rtol=1e-5, atol=1e-6)
    self_match = [float(len(p.values) > 0) if norm else float(len(p.values)) for p in new]
    np.testing.assert_allclose(HIK(scale=1.0).diag(Z), self_match, rtol=1e-5, atol=1e-6)


def described_like(one: Descriptors) -> Descriptors:
    """A set as wide as any of `point_sets`, so that new points lie within its range; enough distinct ones for words."""
    corners = np.array([-250.0, 250.0, 1.0, 2.0])[:, None] * np.ones(one.values.shape[1])
    return Descriptors(corners, np.full((4, 2), 0.5))


def test_points_out_of_range_still_match_in_the_coarsest_cell() -> None:
    train = np.array([[0.0, 0.0], [1.0, 1.0]])
    encoder = PyramidHistogram("uniform", depth=4, norm=None, n_jobs=1).fit([train])
    X, Z = encoder.transform([train]), encoder.transform([np.array([[50.0, -70.0]])])
    assert HIK(scale=1.0)(Z, X)[0, 0] >= 0.5**3
    assert HIK(scale=1.0).diag(Z) == [1.0]


def test_real_pictures_in_uniform_cells() -> None:
    """K §7: ten dimensions of PCA and the position."""
    low = DescriptorPCA(10, positions=True, n_jobs=1).fit(PICTURES)
    sets, new = list(low.transform(PICTURES)), low.transform([NEW])[0]
    encoder = PyramidHistogram("uniform", n_jobs=1).fit(sets)
    K = HIK(scale=1.0)(encoder.transform([new]), encoder.transform(sets))
    direct = [pyramid_match(uniform_bin, encoder.bins_, 5, new, p, True) for p in sets]
    np.testing.assert_allclose(K[0], direct, rtol=1e-5)
    assert K.min() >= 0.5**4 - 1e-6  # all meet in the coarsest cell


def test_real_pictures_in_a_tree() -> None:
    encoder = PyramidHistogram("vocabulary", branch=5, depth=4, n_jobs=1).fit(PICTURES)
    assert encoder.bins_.deepest_ == 3
    K = HIK(scale=1.0)(encoder.transform([NEW]), encoder.transform(PICTURES))
    direct = [pyramid_match(vocabulary_bin, encoder.bins_, 4, NEW, p, True) for p in PICTURES]
    np.testing.assert_allclose(K[0], direct, rtol=1e-5)


def test_a_node_is_the_mean_of_its_descriptors() -> None:
    tree = VocabularyBins(3, branch=4, n_jobs=1).fit(PICTURES)
    values = np.concatenate([p.values for p in PICTURES])
    way = tree.nodes_of(values)
    for node in range(1 + 4 + 4):
        members = values[(way == node).any(axis=1)]
        np.testing.assert_allclose(tree.centres_[node], members.mean(axis=0), atol=2e-2)


def test_several_shifts_are_the_mean_of_pyramids() -> None:
    sets = list(DescriptorPCA(3, n_jobs=1).fit_transform(PICTURES))
    several = PyramidHistogram("uniform", shifts=3, norm=None, depth=3, n_jobs=1).fit(sets)
    K = HIK(scale=1.0)(several.transform(sets))
    state = several.bins_.state()
    alone = []
    for t in range(3):
        first, last = state["starts"][[3 * t, 3 * t + 3]]
        part = {**state, "origin": state["origin"][[t]], "cells": state["cells"][first:last]}
        part["starts"] = state["starts"][3 * t : 3 * t + 4] - first
        one = UniformBins(3, n_jobs=1).restore(part)
        alone.append(HIK(scale=1.0)(one.transform(sets)))
    np.testing.assert_allclose(K, np.mean(alone, axis=0), rtol=1e-5)
    assert not np.allclose(alone[0], alone[1])  # the shifts differ


def test_positions_are_the_spatial_pyramid() -> None:
    book = BagOfWords(10)
    match = PyramidHistogram("positions", codebook=book, n_jobs=1).fit_transform(PICTURES)
    pyramid = SpatialPyramid(book, n_jobs=1).fit_transform(PICTURES)
    np.testing.assert_allclose(match.toarray(), pyramid.toarray(), rtol=1e-6)


def test_identical_descriptors() -> None:
    same = [np.ones((3, 2)), np.ones((5, 2))]
    for kind in ("uniform", "vocabulary"):
        K = HIK(scale=1.0)(PyramidHistogram(kind, norm=None, n_jobs=1).fit_transform(same))
        np.testing.assert_allclose(K, [[3, 3], [3, 5]])


def test_cells_are_merged_in_portions() -> None:
    bins = UniformBins(4, n_jobs=1).fit(PICTURES)
    whole, portions = bins.state(), _filled(bins._grid, Given(PICTURES), 1, most_pending=100)
    np.testing.assert_array_equal(np.concatenate(portions), whole["cells"])
    np.testing.assert_array_equal(np.cumsum([len(level) for level in portions]), whole["starts"][1:])


# Half of the smallest float is 0: numbers that small are no shares of matches.
SHARES = st.just(0.0) | st.floats(1e-250, 1)


@given(st.integers(1, 24), st.lists(SHARES, min_size=24, max_size=24))
def test_regrouping(levels: int, increases: list[float]) -> None:
    matches = np.cumsum(increases[:levels])  # I_i never falls
    w = 0.5 ** np.arange(levels)
    paper = (w * np.diff(matches, prepend=0.0)).sum()
    np.testing.assert_allclose(folded(levels) @ matches, paper, rtol=1e-12)
    assert (folded(levels) > 0).all()


def test_in_a_pipeline() -> None:
    chain = make_pipeline(DescriptorPCA(6, n_jobs=1), PyramidHistogram(branch=4, depth=3, n_jobs=1))
    assert chain.fit_transform(PICTURES).shape == (12, 21)


def test_cells_out_of_order_are_refused() -> None:
    state = UniformBins(3, n_jobs=1).fit(PICTURES).state()
    first, last = state["starts"][:2]
    cells = state["cells"].copy()
    cells[first:last] = cells[first:last][::-1]
    with pytest.raises(ValueError, match="ascending"):
        UniformBins(3).restore({**state, "cells": cells})


def test_trees_that_do_not_hang_together_are_refused() -> None:
    tree = VocabularyBins(3, branch=3, n_jobs=1).fit(PICTURES)
    state = tree.state()
    children = state["children"].copy()
    children[0], children[-1] = 0, 3  # as many as before, but the root has none
    with pytest.raises(ValueError, match="parent"):
        VocabularyBins(3, branch=3).restore({**state, "children": children})
    with pytest.raises(ValueError, match="deeper"):
        VocabularyBins(2, branch=3).restore(state)
