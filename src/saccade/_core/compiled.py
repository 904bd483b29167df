"""The one decorator of every compiled loop: with a cache where one can be written, without compiling where asked.

Numba keeps compiled code beside the source, or in the user's cache folder. Where neither can be written (a package
that belongs to root, a user without a home, a read-only container) it refuses to compile at all; we compile without a
cache then. NUMBA_DISABLE_JIT=1 runs the loops as plain Python, for looking at them in a debugger.

The first loop that is really compiled, and not found in the cache, is announced in one line: a call that takes seconds
longer than the next one should say why. The line goes where progress is shown, else to the logger "saccade", which
writes to stderr unless it is told otherwise.
"""

import logging
import threading
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import config, njit
from numba.core import event

from saccade._core.progress import report

_settings: Any = config  # Numba fills the module in when it is loaded
PLAIN = bool(_settings.DISABLE_JIT)  # loops are plain Python functions
# Innermost loops count in unsigned numbers (see operators/loops.py). Plain Python has none: NumPy 1 makes a float of
# an unsigned number and an int.
Unsigned: Any = int if PLAIN else np.uint64


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: a loop that Numba compiles at its first call and that releases the GIL."""

    def decorate(loop: Callable[..., Any]) -> Any:
        given: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, **options}  # no C code calls a loop
        try:
            return njit(cache=True, **given)(loop)
        except RuntimeError:  # "cannot cache function ...: no locator available"
            _warn()
            return njit(**given)(loop)

    return decorate


class _Announcer(event.Listener):
    """Says once that loops of this package are being compiled."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Any) -> None:
        ours = event.data["dispatcher"].py_func.__module__.startswith("saccade.")
        helper = threading.current_thread().name.startswith("saccade-")  # its caller says it
        if self._said or not ours or helper or _warn.cache_info().currsize:
            return
        self._said = True
        if not report("compiling once", 0.0):
            logging.getLogger("saccade").warning(
                "Compiling once, which takes some seconds. The code is kept for the next start."
            )

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


_events: Any = event  # without types
_events.register("numba:compile", _Announcer())


@cache  # one warning for all loops
def _warn() -> None:
    warnings.warn(
        "No folder for compiled code can be written: this process compiles anew, which takes some seconds. Set "
        "NUMBA_CACHE_DIR to a folder of yours to keep the code.",
        stacklevel=2,
    )
