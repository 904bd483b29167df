"""Work shared out over the cores: plain Python threads around compiled loops that release the GIL.

Python threads rather than Numba's parallel loops: they compile several times faster, nest safely inside joblib and
web servers, survive a fork, and the number of threads is one number that anybody can set.
"""

import os
from _thread import LockType
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from threading import Lock, Thread
from typing import Any

from saccade._core.errors import InvalidParameter

Calls = Callable[[int, int, int], Callable[[], None]]  # (thread, first, last) -> what that thread runs


def thread_count() -> int:
    """SACCADE_NUM_THREADS if it is set, else the number of cores this process may use."""
    wish = os.environ.get("SACCADE_NUM_THREADS")
    if wish is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not wish.isdecimal() or int(wish) < 1:
        raise InvalidParameter(
            f"SACCADE_NUM_THREADS must be a whole number from 1 on, got {wish!r}. Unset it to use every core."
        )
    return int(wish)


def spans(total: int, parts: int) -> list[tuple[int, int]]:
    """`total` things as at most `parts` runs of nearly equal length.

    >>> spans(5, 2), spans(1, 4), spans(0, 3)
    ([(0, 2), (2, 5)], [(0, 1)], [])
    """
    parts = min(parts, total)
    return list(pairwise(k * total // parts for k in range(parts + 1))) if parts else []


def share(work: Callable[[int, int, int], None], total: int, threads: int | None = None) -> int:
    """Run work(thread, first, last) over `spans(total, threads)`, one thread each; returns how many ran.

    There are `thread_count()` threads, unless it is said how many.
    """
    return share_calls(partial(partial, work), total, threads)


def ranged(loop: Callable[..., None], read: tuple[Any, ...], write: tuple[Any, ...]) -> Calls:
    """Calls of loop(*read, first, last, *write): the order of arguments that all compiled loops have."""
    return lambda _, first, last: partial(loop, *read, first, last, *write)


def share_calls(calls: Calls, total: int, threads: int | None = None) -> int:
    """`share` for calls that are made ready first: the compiled loop then is the next frame.

    Where the helpers are busy (work that shares out again, a second thread of the caller's), all is done in one run.
    """
    runs, mine = spans(total, thread_count() if threads is None else threads), False
    if not runs:
        return 0
    errors: list[BaseException | None] = []
    try:
        mine = len(runs) > 1 and _busy.acquire(blocking=False)
        if not mine:
            calls(0, 0, total)()
            return 1
        while len(_helpers) < len(runs) - 1:
            _helpers.append(_Helper(f"saccade-{len(_helpers) + 1}"))
        own, *others = [calls(k, *run) for k, run in enumerate(runs)]
        helpers = _helpers[: len(others)]
        try:
            for helper, other in zip(helpers, others, strict=True):
                helper.begin(other)
            own()
        finally:
            errors = [helper.end() for helper in helpers]  # also after an error: nobody writes once the caller goes on
    finally:
        if mine:
            _busy.release()
    for error in errors:
        if error is not None:
            raise error
    return len(runs)


class _Helper(Thread):
    """A thread that waits for work. Two bare locks: an executor's queue and futures cost three times the waiting.

    The two counts say what is to be done and what is done; a free lock only says that a count may have changed. So an
    interrupt (Ctrl-C) between any two steps can neither lose a piece of work nor wait for one twice.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._work: Callable[[], None] | None = None
        self._error: BaseException | None = None
        self._wanted, self._done = Lock(), Lock()
        self._begun = self._ended = 0
        self.start()

    def begin(self, work: Callable[[], None]) -> None:
        self.end()  # of work that an interrupted caller did not wait for
        self._work = work
        self._begun += 1
        _free(self._wanted)

    def end(self) -> BaseException | None:
        """Wait until it is done, also through Ctrl-C; returns the error it ended with."""
        interrupt: BaseException | None = None
        while True:
            try:
                while self._ended < self._begun:
                    _free(self._wanted)  # an interrupted `begin` may not have come so far
                    self._done.acquire()
                break
            except KeyboardInterrupt as stop:
                interrupt = stop
        error, self._work, self._error = self._error, None, None
        return interrupt or error

    def run(self) -> None:
        while True:
            while self._ended == self._begun:
                self._wanted.acquire()
            try:
                assert self._work is not None
                self._work()
            except BaseException as error:
                self._error = error
            self._ended += 1
            _free(self._done)


def _free(lock: LockType) -> None:
    """Release a lock that may be free already."""
    with suppress(RuntimeError):
        lock.release()


_helpers: list[_Helper] = []
_busy = Lock()


def _after_fork() -> None:
    """Threads do not survive a fork, and a lock that another thread held would stay locked."""
    global _busy
    _helpers.clear()
    _busy = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
