"""Files that are whole or not there."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ModuleNotFoundError:  # Windows, which does not delete a file that is being written
    fcntl = None  # type: ignore[assignment]

PART = r"\.[0-9a-f]{16}\.part"
_swept: set[Path] = set()  # targets whose remains were looked for in this process


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes the name `path` when the block ends well; else the old file stays and nothing is left.

    An error of the disk names `path`. What an earlier process left when it was killed is removed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as file:
    ...         _ = file.write(b"whole")
    ...     (Path(folder) / "a.txt").read_bytes()
    b'whole'
    """
    _sweep(path)
    temporary: Path | None = None
    try:
        handle, temporary = _create(path)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:
                os.replace(temporary, path)  # while it is locked
        if fcntl is None:
            os.replace(temporary, path)  # Windows renames closed files only
    except BaseException as error:  # Ctrl-C too
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename is None:  # a full disk names no file
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _create(path: Path) -> tuple[int, Path]:
    """A new file beside `path`, locked as long as it is written. The system applies the umask."""
    while True:
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
        try:
            handle = os.open(temporary, flags, 0o666)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        _lock(handle, wait=True)
        if temporary.exists():  # else another process took it for a remainder before it was locked
            return handle, temporary
        os.close(handle)


def _sweep(path: Path) -> None:
    """Remove the remains of processes that were killed while they wrote `path`: files that nobody has locked."""
    if fcntl is None or path in _swept:
        return
    _swept.add(path)
    with suppress(OSError):  # a folder that is missing or not ours shows when the file is made
        for found in os.scandir(path.parent):
            if re.fullmatch(re.escape(path.name) + PART, found.name):
                handle = os.open(found.path, os.O_RDONLY)
                if _lock(handle, wait=False):
                    os.unlink(found.path)
                os.close(handle)


def _lock(handle: int, wait: bool) -> bool:
    """Whether the lock is ours; not where another process has it, or where the file system has no locks."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True
