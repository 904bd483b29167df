"""Transformers that learn from the descriptors of many pictures: from a sample of them, once, and kept on disk."""

from abc import abstractmethod
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import clone

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.random_state import seed_of
from saccade.features.base import PictureTransformer
from saccade.features.cache import Cache
from saccade.features.lazy import Items, as_items, digest_of
from saccade.features.state import State


class Learner(PictureTransformer):
    """A transformer that learns from the descriptors given to `fit`, and from nothing else.

    `_learn` of a subclass returns what was learned as the named arrays that `restore` takes.
    """

    random_state: Any
    cache: Any
    n_jobs: int | None

    @abstractmethod
    def _learn(self, items: Items, labels: Annotated[Array, "n"] | None, seed: int) -> State:
        """Learn from the descriptors of each item, and when `supervised` its class number; without the cache."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the descriptors of pictures; a second fit on the same ones is read from the cache.

        Parameters
        ----------
        X : sequence of Descriptors or of arrays of shape (k, d)
            The descriptors of each picture.
        y : array of shape (n,), optional
            A class per picture; used only if `supervised`.

        Returns
        -------
        Self
            The fitted transformer.

        Raises
        ------
        InvalidInput
            If there is no picture or no descriptor, or if `supervised` and `y` has less than two classes.
        """
        self.check()
        items = as_items(X)
        if not len(items):
            raise InvalidInput(f"{type(self).__name__} must be fitted on at least one picture, got none.")
        labels = class_numbers(y, len(items)) if getattr(self, "supervised", False) else None
        seed = seed_of(self.random_state)
        with Cache(self.cache) as cache:
            key = "" if cache.path is None else self._key(items, labels, seed)  # digests of large items take time
            return self.restore(cache.remember(key, lambda: self._learn(items, labels, seed)))

    def _key(self, items: Items, labels: Array | None, seed: int) -> str:
        digests = [items.digest(i) for i in range(len(items))]
        return digest_of("fit", clone(self).recipe(), str(seed), *digests, np.zeros(0) if labels is None else labels)


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
