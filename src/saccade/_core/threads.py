"""Work shared out over the cores: plain Python threads around compiled loops that release the GIL.

Python threads rather than Numba's parallel loops: they compile several times faster, nest safely inside joblib and
web servers, survive a fork, and the number of threads is one number that anybody can set.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from threading import local

from saccade._core.errors import InvalidParameter


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


def share(
    work: Callable[[int, int, int], None],  # (thread, first, last)
    total: int,
    threads: int,
) -> int:
    """Run `work` over `spans(total, threads)`, one thread each; returns how many ran.

    Work that shares out again keeps to its own thread: waiting for the pool it runs in would never end.
    """
    runs = spans(total, 1 if getattr(_thread, "of_pool", False) else threads)
    others = [_pool(len(runs) - 1).submit(work, k, *run) for k, run in enumerate(runs) if k]
    try:
        if runs:
            work(0, *runs[0])
    finally:
        wait(others)  # also after an error: nobody writes any more once the caller goes on
    for future in others:
        future.result()
    return len(runs)


_pools: dict[int, ThreadPoolExecutor] = {}
_thread = local()


def _pool(size: int) -> ThreadPoolExecutor:
    """Threads wait between calls, because starting one costs as much as a small product."""
    if size not in _pools:
        _pools[size] = ThreadPoolExecutor(size, "saccade", lambda: setattr(_thread, "of_pool", True))
    return _pools[size]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # threads do not survive a fork
