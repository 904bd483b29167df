"""Progress reporting; silent by default.

The command line shows a bar (`listening`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float], None]  # (what is done, share done from 0 to 1)

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(what: str, done: float) -> bool:
    """Say that `what` has come as far as `done`, from 0 to 1; returns whether anybody listens."""
    listener = _listener.get()
    if listener is not None:
        listener(what, min(max(done, 0.0), 1.0))
    return listener is not None


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within the block, `listener` hears every report of this thread.

    >>> heard = []
    >>> with listening(lambda what, done: heard.append((what, done))):
    ...     heard_by_us = report("solving", 0.5)
    >>> heard
    [('solving', 0.5)]
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
