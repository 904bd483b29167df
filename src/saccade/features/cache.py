"""Results kept on disk, by a digest of the picture's content and of everything that was done to it.

One SQLite file per folder: an entry is whole or not there, many processes can use it at once, and there are not a
hundred thousand small files.
Values are safetensors, so that reading one runs no code.
"""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import SaccadeError

FILE = "saccade-features.sqlite"
WAIT = 60.0  # seconds for another process that writes


class CacheError(SaccadeError, OSError):
    """The cache cannot be opened, read or written."""


class Cache:
    """Named arrays under keys; `folder=None` keeps nothing. For one thread, as a context manager."""

    def __init__(self, folder: Any) -> None:
        self.path = None if folder is None else Path(folder) / FILE
        self._db: sqlite3.Connection | None = None

    def __enter__(self) -> "Cache":
        if self.path is not None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                # Each entry for itself: one long transaction would keep every other process from writing.
                self._db = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)
                self._prepare(self._db)
            except (OSError, sqlite3.Error) as error:
                self.__exit__(None, None, None)
                raise self.broken(error) from None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    @staticmethod
    def _prepare(db: sqlite3.Connection) -> None:
        """Set the journal, which fails at once while another process does so and is tried again; make the table."""
        until = time.monotonic() + WAIT
        while True:
            try:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("PRAGMA synchronous=NORMAL")
                db.execute("CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value BLOB NOT NULL)")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return

    def get(self, key: str) -> dict[str, Array] | None:
        """The arrays under the key, or None."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        if self._db is None:
            return None
        try:
            row = self._db.execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()
            return None if row is None else load(row[0])
        except (sqlite3.Error, SafetensorError, TypeError) as error:
            raise self.broken(error) from None

    def put(self, key: str, arrays: dict[str, Array]) -> None:
        from safetensors.numpy import save

        if self._db is None:
            return
        value = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
        try:
            self._db.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", (key, value))
        except sqlite3.Error as error:
            raise self.broken(error) from None

    def remember(self, key: str, make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
        """The arrays under the key; if there are none they are made and kept."""
        arrays = self.get(key)
        if arrays is None:
            arrays = make()
            self.put(key, arrays)
        return arrays

    def broken(self, error: object) -> CacheError:
        """An error that names the file and says that it may be deleted."""
        return CacheError(
            f"The cache {self.path} cannot be used ({error}). Delete that file, or pass another folder; it holds only "
            "what can be computed again."
        )
