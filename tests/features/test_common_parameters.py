"""`random_state`, `n_jobs` and `cache` mean the same in every transformer."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import saccade.features
from saccade._core.errors import InvalidParameter
from saccade._core.threads import thread_count
from saccade.features import BagOfWords, DescriptorPCA, ForestCodebook, PyramidHistogram, image_features
from saccade.features.lazy import jobs
from saccade.features.serialize import NAMES
from tests.features.sets import Counted, described

SENTENCES = {
    "random_state": "random_state : int, RandomState or None Seed of the random choices. None means the same random "
    "numbers at every fit.",
    **dict.fromkeys(
        ("cache", "n_jobs"),
        "cache, n_jobs : path and int, optional Folder that keeps results, by content and settings (None: none); "
        "number of threads (None and -1: every core).",
    ),
}
PICTURES, KINDS = described()
LEARNERS: dict[str, Any] = {
    "words": BagOfWords(20),
    "forest": ForestCodebook(3, 8),
    "projection": DescriptorPCA(3, sample=200),
    "uniform": PyramidHistogram("uniform"),
    "vocabulary": PyramidHistogram("vocabulary", branch=3, depth=3),
}


@pytest.mark.parametrize("name", [*NAMES, "images"])
def test_one_default_and_one_sentence(name: str) -> None:
    maker = getattr(saccade.features, name)
    parameters = inspect.signature(maker).parameters
    for shared in SENTENCES.keys() & parameters.keys():
        assert parameters[shared].default is None, shared
        assert SENTENCES[shared] in " ".join(inspect.getdoc(maker).split()), shared  # type: ignore[union-attr]


def learned(encoder: Any, random_state: Any, items: Any = PICTURES, **parameters: Any) -> dict[str, Any]:
    encoder = clone(encoder).set_params(n_jobs=1, **parameters)
    encoder.random_state = random_state  # set_params and clone would copy a RandomState
    return dict(encoder.fit(items, KINDS).state())


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("encoder", LEARNERS.values(), ids=LEARNERS.keys())
def test_random_states(encoder: Any, tmp_path: Path) -> None:
    usual = learned(encoder, None)
    assert same(usual, learned(encoder, None))
    assert same(usual, learned(encoder, 0))
    assert not same(usual, learned(encoder, 1))
    rng = np.random.RandomState(1)
    assert same(learned(encoder, rng, cache=tmp_path), learned(encoder, 1))
    assert not same(learned(encoder, rng, cache=tmp_path), learned(encoder, 1))  # it has moved on
    items = Counted(PICTURES)
    assert same(learned(encoder, np.random.RandomState(1), items, cache=tmp_path), learned(encoder, 1))
    assert items.asked == 0  # the same numbers were drawn before: read from the cache


def test_recipes_are_the_same_every_time() -> None:
    for recipe in ("classic", "pyramid"):
        values = image_features(recipe).get_params()
        assert {value for name, value in values.items() if name.endswith("random_state")} == {None}


def test_counts_of_jobs() -> None:
    cores = thread_count()
    assert jobs(None) == jobs(-1) == cores
    assert jobs(-2) == max(1, cores - 1)
    assert jobs(-1000) == 1
    assert jobs(3) == jobs(np.int64(3)) == 3
    for wrong in (0, True, 1.0, "2"):
        with pytest.raises(InvalidParameter, match="`n_jobs` must be a whole number other than 0, or None, got"):
            jobs(wrong)  # type: ignore[arg-type]
