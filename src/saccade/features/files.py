"""The file of a picture: decoded once when the folder is read, and again each time it is asked for.

Files that give no picture are found at the start, so that rows and labels stay in step; which files are good is kept in
the cache, by content.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.features.cache import Cache
from saccade.features.decode import DECODER, Unreadable, decode, kind_of
from saccade.features.folder import Found, words
from saccade.features.lazy import digest_of, stream
from saccade.features.pixels import pillow


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A file that held a picture when it was read."""

    found: Found
    digest: str  # of its bytes
    stamp: tuple[int, int]  # bytes and time: while they stay, so does the content

    def decoded(self, max_pixels: int, max_side: int | None) -> Array:
        """The pixels; raises Unreadable or OSError if the file does not give them."""
        with open(self.found.path, "rb") as file:
            if _stamp(file) != self.stamp and _digest(file) != self.digest:
                raise Unreadable("its content is different now")
            return decode(file, max_pixels=max_pixels, max_side=max_side)

    def pixels(self, max_pixels: int, max_side: int | None) -> Array:
        try:
            return self.decoded(max_pixels, max_side)
        except (OSError, Unreadable) as error:
            raise InvalidInput(
                f"The picture {self.found.path!r} has changed since it was read ({_why(error)}). "
                "Read the pictures again."
            ) from None


def check_files(
    found: list[Found], max_pixels: int, max_side: int | None, cache: Cache, n_jobs: int | None
) -> Iterator[tuple[str, PictureFile | str]]:
    """In order, the name of each file, and the file or why it gives no picture.

    The cache keeps only good files, because the others may be repaired.
    """
    settings = f"{DECODER} {pillow().__version__} {max_pixels} {max_side}"

    def ask() -> Iterator[tuple[str, PictureFile | str, str, bool]]:
        for name, file in stream(_look, found, n_jobs, _is_small):  # this thread alone asks the cache
            key = digest_of("good picture", settings, file.digest) if isinstance(file, PictureFile) else ""
            yield name, file, key, bool(key) and cache.get(key) is not None

    def check(asked: tuple[str, PictureFile | str, str, bool]) -> tuple[str, PictureFile | str, str]:
        name, file, key, known = asked
        if isinstance(file, str) or known:
            return name, file, ""
        try:
            file.decoded(max_pixels, max_side)
        except (OSError, Unreadable) as error:
            return name, _why(error), ""
        return name, file, key

    for name, file, key in stream(check, ask(), n_jobs, lambda asked: isinstance(asked[1], str) or asked[3]):
        if key:
            cache.put(key, {"good": np.ones(1, np.uint8)})
        yield name, file


def _is_small(found: Found) -> bool:
    """Whether its digest takes less time than to hand it to another thread."""
    try:
        return os.stat(found.path).st_size < limits.SMALL_FILE_BYTES
    except (OSError, ValueError):
        return True  # there is nothing to read


def _look(found: Found) -> tuple[str, PictureFile | str]:
    """The file's digest, if its first bytes are a picture's."""
    try:
        if not stat.S_ISREG(os.stat(found.path).st_mode):  # to open a pipe would wait for ever
            return found.name, "not a file"
        with open(found.path, "rb") as file:
            kind_of(file)
            stamp = _stamp(file)
            return found.name, PictureFile(found, _digest(file), stamp)
    except (OSError, ValueError, Unreadable) as error:  # ValueError: a path that no file can have
        return found.name, _why(error)


def _stamp(file: BufferedReader) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _digest(file: BufferedReader) -> str:
    """Of all bytes; the file is at its start before and after."""
    digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    file.seek(0)
    return digest


def _why(error: Exception) -> str:
    return words(error) if isinstance(error, OSError) else str(error)
