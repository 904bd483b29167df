"""Transformers that learn from the descriptors of many pictures: from a sample of them, once, and kept on disk."""

from abc import abstractmethod
from contextlib import closing
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import clone

from saccade._core import limits
from saccade._core.arrays import Array, FilePath, RandomSource
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade._core.random_state import seed_of
from saccade.features.base import PictureTransformer
from saccade.features.cache import Cache
from saccade.features.descriptor_arrays import same_width, values_of
from saccade.features.lazy import Items, as_items, digest_of, stream


def sample_of(items: Items, most: int, seed: int, n_jobs: int | None) -> tuple[Array, Array]:
    """About `most` descriptors (m, d), equally many per picture, and the item (m,) of each; drawn at random."""
    each = max(limits.DESCRIPTORS_PER_PICTURE, -(-most // len(items)))

    def take(i: int) -> tuple[int, Array]:
        values = values_of(items[i])
        if len(values) > each:  # a generator per picture: the choice does not depend on which thread came first
            values = values[np.sort(np.random.default_rng([seed, i]).choice(len(values), each, replace=False))]
        return i, values

    chosen: list[Array] = []
    owners: list[Array] = []
    total = 0
    order = np.random.default_rng(seed).permutation(len(items)).tolist()
    with closing(stream(take, order, n_jobs)) as taken:
        for i, values in taken:
            if len(values):
                same_width(values, chosen[0].shape[1] if chosen else values.shape[1])
                chosen.append(values)
                owners.append(np.full(len(values), i))
                total += len(values)
            report("a sample of descriptors", total / most)
            if total >= most:
                break
    if not total:
        raise InvalidInput(
            f"The {len(items)} training pictures have no descriptors at all. Take larger pictures or a finer grid."
        )
    return np.concatenate(chosen)[:most], np.concatenate(owners)[:most]


State = dict[str, Array]


def part(state: State, name: str, kind: str, *shape: int | None) -> Array:
    """An array of a kept state, of the kind ("f", "iu") and shape it must have; None stands for any length."""
    array = state.get(name)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in kind or array.ndim != len(shape):
        raise ValueError(f"`{name}` is missing or of the wrong kind")
    if any(want is not None and want != have for want, have in zip(shape, array.shape, strict=True)):
        raise ValueError(f"`{name}` has the shape {array.shape}, not {shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"`{name}` is not finite")
    return array


def prefixed(prefix: str, state: State) -> State:
    """A state inside another: every name with a prefix."""
    return {f"{prefix}.{name}": array for name, array in state.items()}


def without(prefix: str, state: State) -> State:
    """The state inside another: the names with the prefix, without it."""
    return {name[len(prefix) + 1 :]: array for name, array in state.items() if name.startswith(f"{prefix}.")}


class Learner(PictureTransformer):
    """A transformer that learns from the descriptors given to `fit`, and from nothing else."""

    random_state: RandomSource
    cache: FilePath | None
    n_jobs: int | None

    @abstractmethod
    def _learn(self, items: Items, labels: Annotated[Array, "n"] | None, seed: int) -> State:
        """What `restore` takes, from the descriptors of each item and, if `supervised`, its class number."""

    def fit(self, X: Any, y: Any = None) -> Self:
        self.check()
        items = as_items(X)
        if not len(items):
            raise InvalidInput(f"{type(self).__name__} must be fitted on at least one picture, got none.")
        labels = class_numbers(y, len(items)) if getattr(self, "supervised", False) else None
        seed = seed_of(self.random_state)
        with Cache(self.cache) as cache:
            key = ""
            if cache.path is not None:  # digests of large items take time
                digests = [items.digest(i) for i in range(len(items))]
                classes = np.zeros(0) if labels is None else labels
                key = digest_of("fit", clone(self).recipe(), str(seed), *digests, classes)
            return self.restore(cache.remember(key, lambda: self._learn(items, labels, seed)))


def class_numbers(y: Any, n: int) -> Annotated[Array, "n"]:
    """The classes of the pictures as numbers from 0 on."""
    if y is None:
        raise InvalidInput("supervised=True needs the classes: fit(X, y). supervised=False needs none.")
    classes, numbers = np.unique(np.asarray(y), return_inverse=True)
    if numbers.shape != (n,):
        raise InvalidInput(f"`y` must have one class per picture, got shape {np.shape(y)} for {n} pictures.")
    if len(classes) < 2:
        raise InvalidInput("supervised=True needs two classes or more, got one. supervised=False is for one class.")
    return np.asarray(numbers, np.int64)
