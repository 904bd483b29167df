"""The files of pictures: which they are by their names and of which class, and what they hold.

A folder per class: root/class/any/depth/picture.jpg. Without class folders the pictures in the root have no labels.
A file is decoded once when the folder is read, and again each time it is asked for. Files that give no picture are
found at the start, so that rows and labels stay in step; which files are good is kept in the cache, by content.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import PurePath

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.features.cache import Cache
from saccade.features.decode import DECODER, Unreadable, decode, kind_of
from saccade.features.lazy import digest_of, stream
from saccade.features.pixels import pillow

EXTENSIONS = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".tif", ".tiff"),
    *(".gif", ".bmp", ".dib", ".ppm", ".pgm", ".pbm", ".pnm"),
)  # a camera's raw files are TIFFs inside, and would give their thumbnails: so names count too
OUT = "a link that leads out of the folder"
NOWHERE = "a link that leads nowhere"
BACK = "a link to a folder above it"
TWICE = "a link to a folder, inside a linked folder"
NO_PICTURE = "not a picture by its name"
BESIDE = "lies beside the class folders; move it into one of them"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to look into. The name is its path below the folder, with `/`."""

    path: str
    name: str
    label: str | None = None


def find_pictures(folder: str, by_class: bool = True) -> tuple[list[FoundFile], list[tuple[str, str]]]:
    """The files, sorted by name, and those left out with the reason. Hidden files are not mentioned."""
    if not os.path.isdir(folder):
        what = "is a file; for single files pass a list of paths" if os.path.exists(folder) else "does not exist"
        raise InvalidInput(f"The folder {folder!r} {what}.")
    found: list[FoundFile] = []
    skipped: list[tuple[str, str]] = []
    every = sorted(_walk(os.path.abspath(folder)), key=lambda each: each[1].split("/"))
    for path, name, reason in every:
        extension = PurePath(name).suffix.lower()
        if reason is None and extension and extension not in EXTENSIONS:
            reason = NO_PICTURE
        if reason is None:
            found.append(FoundFile(path, name))
        else:
            skipped.append((name, reason))
    return _by_class(found, skipped) if by_class else (found, sorted(skipped))


def _by_class(found: list[FoundFile], skipped: list[tuple[str, str]]) -> tuple[list[FoundFile], list[tuple[str, str]]]:
    """The files with their class folders as labels; where there are such folders, files beside them are left out."""
    inside = [replace(file, label=file.name.partition("/")[0]) for file in found if "/" in file.name]
    if not inside:
        return found, sorted(skipped)
    return inside, sorted(skipped + [(file.name, BESIDE) for file in found if "/" not in file.name])


def _walk(root: str) -> Iterator[tuple[str, str, str | None]]:
    """Path, name, and the reason to leave it out or None, for every file below the root that is not hidden.

    A link to a folder is followed if the folder lies inside the root and not above the link. Inside a linked folder no
    further link to a folder is followed: so cycles end, and links to links do not multiply.
    """
    real_root = os.path.realpath(root)
    todo = [(root, "", False)]  # folder, its name, whether we came through a link
    while todo:
        folder, above, linked = todo.pop()
        try:
            with os.scandir(folder) as listing:
                entries = [entry for entry in listing if not entry.name.startswith(".")]
        except OSError as error:
            yield folder, above or ".", words(error)
            continue
        for entry in entries:
            name = f"{above}/{entry.name}" if above else entry.name
            link = entry.is_symlink()
            reason = _link_refused(entry.path, folder, linked, real_root) if link else None
            if reason is None and entry.is_dir():
                todo.append((entry.path, name, linked or link))
            else:
                yield entry.path, name, reason


def _link_refused(path: str, folder: str, linked: bool, real_root: str) -> str | None:
    """Why a link is not followed; None for one that is."""
    real = os.path.realpath(path)
    if not _inside(real, real_root):
        return OUT
    if not os.path.isdir(real):
        return None if os.path.exists(real) else NOWHERE
    if linked:
        return TWICE
    return BACK if _inside(os.path.realpath(folder), real) else None


def _inside(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


def words(error: OSError) -> str:
    """The system's reason: permission denied, …"""
    return (error.strerror or type(error).__name__).lower()


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A file that held a picture when it was read."""

    found: FoundFile
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
    found: list[FoundFile], max_pixels: int, max_side: int | None, cache: Cache, n_jobs: int | None
) -> Iterator[tuple[str, PictureFile | str]]:
    """The name of each file in order, and the file or why it gives no picture. Bad ones are not kept: they change."""
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


def _is_small(found: FoundFile) -> bool:
    """Whether its digest takes less time than to hand it to another thread."""
    try:
        return os.stat(found.path).st_size < limits.SMALL_FILE_BYTES
    except (OSError, ValueError):
        return True  # there is nothing to read


def _look(found: FoundFile) -> tuple[str, PictureFile | str]:
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
