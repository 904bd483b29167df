"""What is learned from the descriptors of many pictures: from a sample of them, once, and remembered on disk."""

from abc import abstractmethod
from contextlib import closing
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.progress import report
from saccade.features.base import VectorEncoder
from saccade.features.cache import Cache
from saccade.features.lazy import Descriptors, Items, as_items, digest_of, stream

Array = np.ndarray[Any, np.dtype[Any]]
State = dict[str, Array]
LARGEST = 1e15  # so that float32 holds the squares
A_PICTURE = 100  # descriptors at least: to make a picture's descriptors costs far more than to use them


class Learner(VectorEncoder):
    """An encoder that learns from the descriptors it is given to `fit`, and nothing else.

    Subclasses say in `learn` what there is to learn, as the named arrays that `restore` takes.
    """

    random_state: Any

    @abstractmethod
    def learn(
        self,
        items: Items,
        labels: Array | None,  # (n,) class numbers, when `supervised`
    ) -> State: ...

    def check(self) -> None:
        """Complain of parameters out of range."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from items of descriptors; a second fit on the same items is read from the cache."""
        self.check()
        items = as_items(X)
        if not len(items):
            raise InvalidInput(f"{type(self).__name__} must be fitted on at least one picture, got none.")
        labels = class_numbers(y, len(items)) if getattr(self, "supervised", False) else None
        with Cache(self.cache) as cache:
            return self.restore(cache.remember(self._key(items, labels, cache), lambda: self.learn(items, labels)))

    def _key(self, items: Items, labels: Array | None, cache: Cache) -> str:
        if cache.path is None:
            return ""  # nobody asks, and digests of large items take time
        digests = [items.digest(i) for i in range(len(items))]
        return digest_of("fit", clone(self).recipe(), *digests, np.zeros(0) if labels is None else labels)

    def seed(self) -> int:
        """One number from `random_state`, from which every random choice follows."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))


def sample_of(
    items: Items,
    most: int,
    seed: int,
    n_jobs: int | None,
) -> tuple[Array, Array]:  # (m, d) descriptors, (m,) the item of each
    """At most about `most` descriptors: equally many a picture, of pictures in random order until there are enough."""
    each = max(A_PICTURE, -(-most // len(items)))

    def take(i: int) -> tuple[int, Array]:
        values = values_of(items[i])
        if len(values) > each:  # a generator a picture: the choice does not depend on which thread came first
            values = values[np.sort(np.random.default_rng([seed, i]).choice(len(values), each, replace=False))]
        return i, values

    chosen: list[Array] = []
    owners: list[Array] = []
    total = 0
    order = np.random.default_rng(seed).permutation(len(items)).tolist()
    with closing(stream(take, order, n_jobs)) as taken:
        for i, values in taken:
            if len(values):
                _same_width(values, chosen[0].shape[1] if chosen else values.shape[1])
                chosen.append(values)
                owners.append(np.full(len(values), i))
                total += len(values)
            report("a sample of descriptors", total / most)
            if total >= most:
                break
    if not total:
        raise InvalidInput(
            f"The {len(items)} training pictures have no descriptors at all. Larger pictures or a finer grid have some."
        )
    return np.concatenate(chosen)[:most], np.concatenate(owners)[:most]


def values_of(
    item: Any,
    width: int | None = None,
) -> Array:  # (k, d)
    """The descriptors of an item as finite float32, or an error that says what an item must be."""
    given = item.values if isinstance(item, Descriptors) else item
    try:
        with np.errstate(over="ignore"):
            values: Array = np.ascontiguousarray(given, np.float32)
    except (TypeError, ValueError):
        raise _not_descriptors(type(item).__name__) from None
    if values.ndim and not len(values):
        return np.empty((0, width or 0), np.float32)
    if values.ndim != 2 or not values.shape[1]:
        raise _not_descriptors(f"an array of shape {values.shape}")
    if width is not None:
        _same_width(values, width)
    if not float(np.abs(values).max()) < LARGEST:  # also when it is not a number
        raise InvalidInput(f"Descriptors must be finite and below {LARGEST:g}, got {np.abs(values).max()}.")
    return values


def _not_descriptors(got: str) -> InvalidInput:
    return InvalidInput(
        f"An item must be `Descriptors` or an array (descriptors, dimensions), got {got}. Pass a list of such items; "
        "DenseSIFT makes them of pictures."
    )


def positions_of(
    item: Any,
) -> Array:  # (k, 2)
    """Where the descriptors of an item are: x and y from 0 to 1."""
    if not isinstance(item, Descriptors):
        raise InvalidInput(
            f"Positions are needed, got {type(item).__name__} without any. Pass `Descriptors(values, positions)`."
        )
    positions = np.asarray(item.positions, np.float64)
    if positions.shape != (len(item.values), 2):
        raise InvalidInput(
            f"`positions` must have the shape ({len(item.values)}, 2), one x and y a descriptor, got {positions.shape}."
        )
    if not ((positions >= 0) & (positions <= 1)).all():
        raise InvalidInput("`positions` must be shares from 0 to 1 of the picture's width and height.")
    return positions


def _same_width(values: Array, width: int) -> None:
    if values.shape[1] != width:
        raise InvalidInput(
            f"Descriptors must have {width} dimensions as the others in training, got {values.shape[1]}. Make all "
            "with the same feature transformer."
        )


def class_numbers(y: Any, n: int) -> Array:  # (n,)
    """The classes of the pictures as numbers from 0 on."""
    if y is None:
        raise InvalidInput("supervised=True needs the classes: fit(X, y). supervised=False does without.")
    classes, numbers = np.unique(np.asarray(y), return_inverse=True)
    if numbers.shape != (n,):
        raise InvalidInput(f"`y` must have one class a picture, got shape {np.shape(y)} for {n} pictures.")
    if len(classes) < 2:
        raise InvalidInput("supervised=True needs two classes or more, got one. supervised=False is for one class.")
    return np.asarray(numbers, np.int64)


def check_count(name: str, value: Any, least: int, remedy: str) -> int:
    """The value as an int, or an error that names the parameter, the value and a remedy."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least:
        return int(value)
    raise InvalidParameter(f"`{name}` must be a whole number from {least} on, got {value!r}. {remedy}")


def counted(
    columns: Array,  # (m,)
    weights: Array,  # (m,)
) -> tuple[Array, Array]:
    """The distinct columns, ascending, and the sum of the weights of each."""
    distinct, inverse = np.unique(columns, return_inverse=True)
    sums = np.bincount(inverse, weights, minlength=len(distinct))
    return distinct[sums > 0], sums[sums > 0]


def normed(columns: Array, counts: Array, norm: str | None) -> tuple[Array, Array]:
    """With "l1", divided by the sum, which is what a vector's intersection with itself is."""
    return columns, counts / counts.sum() if norm == "l1" and len(counts) else counts


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
