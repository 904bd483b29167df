"""The one decorator of every compiled loop: with a cache where one can be written, without compiling where asked.

Numba keeps compiled code beside the source, or in the user's cache folder. Where neither can be written (a package
that belongs to root, a user without a home, a read-only container) it refuses to compile at all; we compile without a
cache then. NUMBA_DISABLE_JIT=1 runs the loops as plain Python, for looking at them in a debugger.
"""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import config, njit

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


@cache  # one warning for all loops
def _warn() -> None:
    warnings.warn(
        "No folder for compiled code can be written: this process compiles anew, which takes some seconds. Set "
        "NUMBA_CACHE_DIR to a folder of yours to keep the code.",
        stacklevel=2,
    )
