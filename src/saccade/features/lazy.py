"""One item per picture (pixels or descriptors), made when it is asked for.

So the pixels of a hundred thousand pictures never lie in memory at once.
Every item has a digest of its content and of what was done to it, so that results can be kept on disk under it.
"""

import hashlib
import os
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.blas import one_blas_thread
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.threads import thread_count


@dataclass(frozen=True, slots=True)
class Descriptors:
    """The descriptors of one picture, and where they lie.

    Parameters
    ----------
    values : array of shape (k, d)
        One descriptor per row.
    positions : array of shape (k, 2)
        x and y of each, as shares from 0 to 1 of the picture's width and height.
    sizes : array of shape (k, 2), optional
        Width and height of the patch around each position, as shares of the picture's width and height.

    Examples
    --------
    >>> found = Descriptors(np.ones((2, 8)), np.array([[0.25, 0.5], [0.75, 0.5]]))
    >>> found.values.shape, found.sizes
    ((2, 8), None)
    """

    values: Annotated[Array, "k, d"]
    positions: Annotated[Array, "k, 2"]
    sizes: Annotated[Array, "k, 2"] | None = None


class Items(Sequence[Any]):
    """A sequence whose items are made when they are asked for, each with a digest."""

    @property
    def shape(self) -> tuple[int]:
        """(n,). With a shape, scikit-learn splits by `X[rows, ...]`; without one it would make every item."""
        return (len(self),)

    @abstractmethod
    def digest(self, i: int) -> str:
        """Digest of an item: of its content and of what was done to it. Equal for equal items, in every process."""


class Given(Items):
    """Items that the caller holds in memory: arrays, or `Descriptors`."""

    def __init__(self, things: Sequence[Any]) -> None:
        self.things = things

    def __len__(self) -> int:
        return len(self.things)

    def __getitem__(self, i: Any) -> Any:
        return Given([self.things[k] for k in selected(i, len(self))]) if is_selection(i) else self.things[i]

    def digest(self, i: int) -> str:
        thing = self.things[i]
        return digest_of(thing.values, thing.positions) if isinstance(thing, Descriptors) else digest_of(thing)


class Made(Items):
    """`make` of every item of `source`; `recipe` is a text of all that the result depends on besides the item."""

    def __init__(self, source: Items, make: Callable[[Any], Any], recipe: str) -> None:
        self.source, self.make, self.recipe = source, make, recipe

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, i: Any) -> Any:
        return Made(self.source[i], self.make, self.recipe) if is_selection(i) else self.make(self.source[i])

    def digest(self, i: int) -> str:
        return digest_of(self.source.digest(i), self.recipe)


def as_items(X: Any) -> Items:
    """`Items` as they are; the things of a list or array as items; for paths, the pictures there."""
    if isinstance(X, str | bytes | os.PathLike):
        raise InvalidInput(f"Pictures are needed, got the path {X!r}. Use read_pictures({X!r}).")
    if isinstance(X, Items):
        return X
    if isinstance(next(iter(X), None), str | bytes | os.PathLike):
        return _pictures_at(X)
    return Given(X)


def _pictures_at(paths: Sequence[Any]) -> Items:
    """One picture per path, or an error, because callers need as many answers as paths."""
    from saccade.features.image import read_pictures

    pictures = read_pictures(list(paths))
    if pictures.skipped:
        name, reason = pictures.skipped[0]
        raise InvalidInput(
            f"Of {len(paths)} paths {len(pictures.skipped)} give no picture, such as {name!r}: {reason}. Leave them "
            "out, or pass read_pictures(paths), which skips and lists them."
        )
    return pictures


def digest_of(*parts: Any) -> str:
    """A digest of texts and arrays, equal in every process."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, str):
            digest.update(f"text {len(part)} {part}".encode())
        else:
            array = np.ascontiguousarray(part)
            digest.update(f"array {array.dtype.str} {array.shape}".encode())
            digest.update(array.data)
    return digest.hexdigest()


def jobs(n_jobs: int | None) -> int:
    """The number of threads: None and −1 for every core (SACCADE_NUM_THREADS limits them), −2 for all but one, …"""
    if n_jobs is None:
        return thread_count()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise InvalidParameter(
            f"`n_jobs` must be a whole number other than 0, or None, got {n_jobs!r}. None and -1 take every core."
        )
    return int(n_jobs) if n_jobs > 0 else max(1, thread_count() + 1 + int(n_jobs))


def stream(
    work: Callable[[Any], Any],
    things: Iterable[Any],
    n_jobs: int | None,
    quick: Callable[[Any], bool] = lambda thing: False,
) -> Generator[Any, None, None]:
    """work(thing) for each, in order, by `n_jobs` threads that run only a few things ahead of the reader.

    The calling thread itself does what is `quick`, such as a row from the cache: handing it over would take longer.
    """
    threads = jobs(n_jobs)
    with one_blas_thread(), ThreadPoolExecutor(threads, "saccade-features") as pool:  # no thread starts before work
        ahead: deque[Future[Any]] = deque()
        try:
            for thing in things:
                if threads > 1 and not quick(thing):
                    ahead.append(pool.submit(work, thing))
                elif ahead:
                    ahead.append(Future())
                    ahead[-1].set_result(work(thing))
                else:
                    yield work(thing)
                if len(ahead) > 2 * threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()


def is_selection(i: Any) -> bool:
    return isinstance(i, slice | list | np.ndarray | tuple)


def selected(i: Any, n: int) -> list[int]:
    """The item numbers that a slice, a list of numbers, a mask, or one of these with `...` selects."""
    return [int(k) for k in np.arange(n)[i]]
