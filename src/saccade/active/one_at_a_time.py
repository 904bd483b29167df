"""Locks: for threads that use one object, and for processes that write into one folder."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

S = TypeVar("S", bound="OneAtATime")
P = ParamSpec("P")
R = TypeVar("R")


class OneAtATime:
    """An object whose methods marked `alone` wait for each other. Each copy, also by pickle, has its own lock."""

    def __new__(cls, *_: Any, **__: Any) -> Any:
        made = super().__new__(cls)
        vars(made)["_lock"] = threading.RLock()
        return made

    def __getstate__(self) -> dict[str, Any]:
        with vars(self)["_lock"]:
            return {name: value for name, value in vars(self).items() if name != "_lock"}


def alone(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """The method; one thread at a time can be in it."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with vars(self)["_lock"]:
            return method(self, *args, **kwargs)

    return call


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """A block that one process (and thread) at a time enters for a folder.

    Systems without such a lock (Windows, some network disks) do not wait.
    """
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)  # ends the lock
