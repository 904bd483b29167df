"""A setting of the whole process that several of our threads want at the same time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock


class ProcessSetting:
    """Calling it gives a context: the first thread to enter changes the setting, the last to leave restores it."""

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:  # returns what restores it
        self._change = change
        self._lock = Lock()
        self._inside = 0
        self._restore: Callable[[], None] = lambda: None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if not self._inside:
                self._restore = self._change()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    self._restore()
