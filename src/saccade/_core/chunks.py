"""NumPy over very many numbers: a piece at a time that stays in the cache, and threads that share the pieces."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from saccade._core import limits
from saccade._core.threads import share, thread_count

Result = TypeVar("Result")


def batches(total: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` of `total` things. scikit-learn's `gen_batches` takes 60 µs to check its arguments.

    >>> list(batches(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(first, min(first + size, total)) for first in range(0, total, size))


def in_chunks(work: Callable[[slice], Result], total: int, size: int = limits.NUMBERS_IN_CACHE) -> list[Result]:
    """What `work` says of each piece of `total` numbers, in their order, however many threads there are.

    >>> in_chunks(lambda some: (some.start, some.stop), 5, size=2)
    [(0, 2), (2, 4), (4, 5)]
    """
    pieces = list(batches(total, size))
    found: list[Result | None] = [None] * len(pieces)

    def run(_: int, first: int, last: int) -> None:
        for k in range(first, last):
            found[k] = work(pieces[k])

    share(run, len(pieces), thread_count() if total > limits.ONE_THREAD_UP_TO else 1)
    return found  # type: ignore[return-value]
