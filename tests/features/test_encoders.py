"""One suite that every encoder of descriptors must pass, and the sample that they learn from."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.progress import listening
from saccade.features.base import VectorEncoder, counted
from saccade.features.codebook import BagOfWords
from saccade.features.descriptor_arrays import values_of
from saccade.features.forest import ForestCodebook
from saccade.features.lazy import Descriptors, Given
from saccade.features.learner import sample_of
from saccade.features.pyramid import SpatialPyramid
from saccade.features.pyramid_match import PyramidHistogram
from tests.features.sets import EMPTY, Counted, described, portrait

PICTURES, KINDS = described()
NEW = portrait()

ENCODERS: dict[str, VectorEncoder] = {
    "words": BagOfWords(20),
    "soft words": BagOfWords(20, "soft"),
    "forest": ForestCodebook(3, 8),
    "supervised forest": ForestCodebook(3, 8, supervised=True),
    "spatial pyramid": SpatialPyramid(BagOfWords(10, "soft"), 2),
    "pyramid of forests": SpatialPyramid(ForestCodebook(2, 5), grids=((1, 1), (3, 1)), weights=(0.5, 0.5)),
    "uniform": PyramidHistogram("uniform", shifts=2, depth=4),
    "vocabulary": PyramidHistogram("vocabulary", branch=3, depth=4),
    "positions": PyramidHistogram("positions", codebook=BagOfWords(10)),
}
NEEDS_POSITIONS = ("spatial pyramid", "pyramid of forests", "positions")
every_encoder = pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS.keys())


def fitted(encoder: VectorEncoder, **parameters: Any) -> Any:
    """A fitted one of its own."""
    return clone(encoder).set_params(**{"n_jobs": 1, **parameters}).fit(PICTURES, KINDS)


@cache
def shared(encoder: VectorEncoder) -> Any:
    """One that is fitted once; tests do not change it."""
    return fitted(encoder)


def assert_same(a: sp.csr_matrix, b: sp.csr_matrix) -> None:
    np.testing.assert_array_equal(a.toarray(), b.toarray())


@every_encoder
def test_rows_are_sparse_float32_and_match_themselves_with_one(encoder: VectorEncoder) -> None:
    X = shared(encoder).transform([*PICTURES, NEW, EMPTY])
    assert isinstance(X, sp.csr_matrix)
    assert X.dtype == np.float32
    assert X.has_canonical_format
    assert X.shape[0] == len(PICTURES) + 2
    assert (X.data > 0).all()
    sums = np.asarray(X.sum(axis=1)).ravel()
    np.testing.assert_allclose(sums[:-1], 1.0, rtol=1e-5)  # k(x, x) of the intersection kernel, new pictures too
    assert sums[-1] == 0


@every_encoder
def test_counts_grow_with_the_set_without_a_norm(encoder: VectorEncoder) -> None:
    twice = Descriptors(*(np.concatenate([part, part]) for part in (NEW.values, NEW.positions)))
    once, both = fitted(encoder, norm=None).transform([NEW, twice]).toarray()
    np.testing.assert_allclose(both, 2 * once, rtol=1e-6)
    a, b = shared(encoder).transform([NEW, twice]).toarray()
    np.testing.assert_allclose(a, b, atol=1e-6)


@every_encoder
def test_fit_is_repeatable_and_threads_change_nothing(encoder: VectorEncoder) -> None:
    first = shared(encoder).transform([*PICTURES, NEW])
    assert_same(first, fitted(encoder, n_jobs=2).transform([*PICTURES, NEW]))
    assert_same(first, fitted(encoder).transform([*PICTURES, NEW]))
    assert_same(first[[3]], shared(encoder).transform(PICTURES[3:4]))


@every_encoder
def test_before_fit(encoder: VectorEncoder) -> None:
    with pytest.raises(NotFittedError):
        clone(encoder).transform(PICTURES)
    assert clone(encoder).state() == {}


@every_encoder
def test_the_parameters_stay_as_they_were(encoder: VectorEncoder) -> None:
    mine = shared(encoder)
    again = clone(mine)
    assert repr(again) == repr(mine) == repr(clone(encoder).set_params(n_jobs=1))
    with pytest.raises(NotFittedError):
        again.transform(PICTURES)


@every_encoder
def test_a_state_gives_the_same_vectors_again(encoder: VectorEncoder) -> None:
    mine = shared(encoder)
    state = load(save({name: np.ascontiguousarray(array) for name, array in mine.state().items()}))
    again = clone(mine).restore(state)
    assert_same(again.transform([*PICTURES, NEW]), mine.transform([*PICTURES, NEW]))
    assert again.recipe() == mine.recipe()
    assert again.recipe() != clone(mine).recipe()
    assert len(again.get_feature_names_out()) == again.transform([NEW]).shape[1]


def spoil_by_length(array: Array) -> Array:
    return array[: len(array) // 2] if len(array) > 1 else np.concatenate([array, array])


SPOILED: dict[str, Callable[[Array], Array]] = {
    "length": spoil_by_length,
    "kind": lambda array: array.astype(np.complex64),
    "dimensions": lambda array: array[None],
    "empty": lambda array: array[:0],
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED.keys())
@every_encoder
def test_a_state_that_does_not_fit_together_is_refused(encoder: VectorEncoder, spoil: Callable[[Array], Array]) -> None:
    mine = shared(encoder)
    state = mine.state()
    for name in state:
        if spoil is spoil_by_length and name.endswith(("centres", "root")) and "children" not in "".join(state):
            continue  # fewer words, or fewer trees, are a codebook too
        with pytest.raises(ValueError, match=r"."):
            clone(mine).restore({**state, name: spoil(state[name])})
        with pytest.raises(ValueError, match=name.rsplit(".", maxsplit=1)[-1]):
            clone(mine).restore({other: array for other, array in state.items() if other != name})


@every_encoder
def test_a_state_with_numbers_out_of_range_is_refused(encoder: VectorEncoder) -> None:
    mine = shared(encoder)
    state = mine.state()
    for name, array in state.items():
        if name.endswith(("mix", "cells", "dims")):
            continue  # large numbers are as good as others, or stop nothing but descriptors of another width
        for wrong in (np.inf, np.nan) if array.dtype.kind == "f" else (10**9, -1):
            spoiled = array.copy()
            spoiled.flat[0] = np.array(wrong).astype(array.dtype)
            with pytest.raises(ValueError, match=r"."):
                clone(mine).restore({**state, name: spoiled})


@every_encoder
def test_a_second_run_is_read_from_the_cache(encoder: VectorEncoder, tmp_path: Path) -> None:
    items = Counted(PICTURES)
    first = clone(encoder).set_params(cache=tmp_path).fit(items, KINDS)
    X = first.transform(items)
    asked = items.asked
    second = clone(encoder).set_params(cache=tmp_path).fit(items, KINDS)
    assert_same(second.transform(items), X)
    assert items.asked == asked  # nobody looked at a picture
    third = clone(encoder).set_params(cache=tmp_path).fit(Given(PICTURES[:-1]), KINDS[:-1])
    assert third.recipe() != first.recipe()


@every_encoder
def test_only_the_pictures_of_fit_are_learned_from(encoder: VectorEncoder) -> None:
    mine = shared(encoder)
    before = mine.recipe()
    mine.transform([NEW])
    assert mine.recipe() == before
    other = clone(mine).fit([*PICTURES[:-1], NEW], KINDS)
    assert other.recipe() != before


@every_encoder
def test_bad_items(encoder: VectorEncoder) -> None:
    mine = shared(encoder)
    spots = NEW.positions[:3]
    for values, says in (
        (np.ones((3, 7)), "must have 128 dimensions.*got 7"),
        (np.full((3, 128), np.nan), "finite"),
        (np.full((3, 128), 1e300), "finite"),
        (np.ones(128), "shape \\(128,\\)"),
        (["a", "b", "c"], "Descriptors"),
    ):
        with pytest.raises(InvalidInput, match=says):
            mine.transform([Descriptors(values, spots)])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="at least one picture"):
        clone(mine).fit([], [])
    with pytest.raises(InvalidInput, match="no descriptors at all"):
        clone(mine).fit([EMPTY, EMPTY], [0, 1])
    with pytest.raises(InvalidInput, match="same feature transformer"):
        clone(mine).fit([NEW, Descriptors(np.ones((3, 7)), spots)], [0, 1])


@every_encoder
def test_pictures_without_descriptors_are_no_hindrance(encoder: VectorEncoder) -> None:
    X = clone(encoder).fit([EMPTY, *PICTURES], ["thing", *KINDS]).transform([EMPTY])
    assert X.nnz == 0


@pytest.mark.parametrize("name", ENCODERS)
def test_plain_arrays_serve_where_no_positions_are_needed(name: str) -> None:
    mine = shared(ENCODERS[name])
    if name in NEEDS_POSITIONS:
        with pytest.raises(InvalidInput, match="Positions are needed, got ndarray"):
            mine.transform([NEW.values])
        for wrong, says in ((NEW.positions[:4], "shape"), (NEW.positions + 1, "from 0 to 1")):
            with pytest.raises(InvalidInput, match=says):
                mine.transform([Descriptors(NEW.values, wrong)])
    else:
        arrays = clone(mine).fit([p.values for p in PICTURES], KINDS).transform([NEW.values])
        assert_same(arrays, mine.transform([NEW]))


@every_encoder
def test_progress_is_reported_up_to_the_end(encoder: VectorEncoder) -> None:
    heard: list[tuple[str, float]] = []
    with listening(lambda what, done: heard.append((what, done))):
        fitted(encoder)
    assert heard
    assert heard[-1][1] == 1.0


@pytest.mark.parametrize(
    ("encoder", "says"),
    [
        (BagOfWords(0), "`words` must be a whole number from 1 on, got 0"),
        (BagOfWords(True), "words"),
        (BagOfWords(10, "firm"), "`assign` must be one of 'hard', 'soft', got 'firm'"),
        (BagOfWords(10, norm="l2"), "norm"),
        (BagOfWords(10, sample=0), "sample"),
        (BagOfWords(10, n_jobs=0), "n_jobs"),
        (ForestCodebook(0), "trees"),
        (ForestCodebook(2, 1), "leaves"),
        (ForestCodebook(2, 4, supervised="yes"), "supervised"),  # type: ignore[arg-type]
        (ForestCodebook(2, 4, candidates=0), "candidates"),
        (SpatialPyramid(BagOfWords(5), 0), "depth"),
        (SpatialPyramid("words"), "codebook"),  # type: ignore[arg-type]
        (SpatialPyramid(BagOfWords(5), grids=((1, 0),)), "grids"),
        (SpatialPyramid(BagOfWords(5), grids=3), "grids"),
        (SpatialPyramid(BagOfWords(5), weights=(1, 2)), "3 positive numbers"),
        (SpatialPyramid(BagOfWords(5), weights=(1, -1, 1)), "weights"),
        (SpatialPyramid(BagOfWords(5), norm="max"), "norm"),
        (SpatialPyramid(BagOfWords(5), 20), "`depth` must be at most 10"),
        (PyramidHistogram("square"), "bins"),
        (PyramidHistogram(depth=0), "depth"),
        (PyramidHistogram(depth=60), "at most 24"),
        (PyramidHistogram(branch=1), "branch"),
        (PyramidHistogram(shifts=0), "shifts"),
        (PyramidHistogram(norm=1), "norm"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_parameters_out_of_range(encoder: Any, says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        encoder.fit(PICTURES, KINDS)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 300), min_size=1, max_size=8), st.integers(1, 900))
def test_the_sample_takes_equally_many_of_every_picture(seed: int, sizes: list[int], most: int) -> None:
    starts = np.cumsum([0, *sizes])
    sets = [np.arange(a, b, dtype=np.float64)[:, None] for a, b in pairwise(starts)]
    each = max(limits.DESCRIPTORS_PER_PICTURE, -(-most // len(sizes)))
    if not sum(sizes):
        with pytest.raises(InvalidInput, match="no descriptors"):
            sample_of(Given(sets), most, seed, 1)
        return
    values, owners = sample_of(Given(sets), most, seed, 1)
    assert len(values) == min(most, sum(min(size, each) for size in sizes))
    assert len(np.unique(values)) == len(values)  # none twice
    np.testing.assert_array_equal(np.searchsorted(starts, values[:, 0], side="right") - 1, owners)
    taken = np.bincount(owners, minlength=len(sizes))
    assert (taken <= each).all()
    assert (taken == np.minimum(sizes, each)).sum() >= np.count_nonzero(taken) - 1  # all but the last in full


def test_the_sample_reads_no_more_pictures_than_it_needs() -> None:
    items = Counted([Descriptors(np.ones((200, 2)), np.zeros((200, 2)))] * 1000)
    values, owners = sample_of(items, 2000, 0, 1)
    assert values.shape == (2000, 2)
    assert items.asked == len(np.unique(owners)) == 2000 // limits.DESCRIPTORS_PER_PICTURE


def test_values_of_accepts_lists_and_integers() -> None:
    assert values_of([[1, 2], [3, 4]]).dtype == np.float32
    assert values_of(np.ones((2, 3), np.uint8)).shape == (2, 3)
    assert values_of([], 5).shape == (0, 5)


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.0, 0.5, 1.0]))))
def test_counted_is_a_sum_by_column(entries: list[tuple[int, float]]) -> None:
    columns, weights = np.array([c for c, _ in entries], np.int64), np.array([w for _, w in entries])
    dense = np.zeros(10)
    np.add.at(dense, columns, weights)
    distinct, sums = counted(columns, weights)
    np.testing.assert_array_equal(distinct, np.flatnonzero(dense))
    np.testing.assert_array_equal(sums, dense[dense > 0])
