"""One thread per matrix product while our own threads keep the cores busy.

BLAS and OpenMP would start a thread per core inside each of ours, and they would wait for one another: on two busy
cores the words of a picture then take several times as long. One core per picture is also what `n_jobs` promises.
A thread of BLAS also goes on looking for work for a while after each product: between small products it takes a core
from ours, and a question about a large pool took a third longer. So does algebra of few rows (docs/decisions/040).
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import RLock
from typing import Any

from threadpoolctl import ThreadpoolController

from saccade._core import limits

_lock = RLock()  # re-entrant: an abandoned stream may be closed at any moment, in any thread
_inside = 0
_limits: Any = None
_found: tuple[int, ThreadpoolController] | None = None  # modules that were loaded, and their libraries


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within the block, BLAS and OpenMP use one thread. The setting is the whole process's, so blocks are counted."""
    global _inside, _limits
    with _lock:
        _inside += 1
        if _limits is None:
            _limits = _controller().limit(limits=1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _limits is not None:
                _limits.restore_original_limits()
                _limits = None


def blas_threads_for(rows: int) -> AbstractContextManager[None]:
    """Within the block, one thread for matrices of few rows, and as many as the process has set for others."""
    return one_blas_thread() if rows <= limits.ONE_BLAS_THREAD_UP_TO else nullcontext()


def _controller() -> ThreadpoolController:
    """The libraries of this process. To look for them takes milliseconds: again only after a further import."""
    global _found
    if _found is None or _found[0] != len(sys.modules):
        _found = len(sys.modules), ThreadpoolController()
    return _found[1]
