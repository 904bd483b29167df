"""Which files of a folder are pictures by their names, and of which class; no file is opened.

A folder per class: root/class/any/depth/picture.jpg. Without class folders the pictures in the root have no labels.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath

from saccade._core.errors import InvalidInput

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
class Found:
    """A file to look into. The name is its path below the folder, with `/`."""

    path: str
    name: str
    label: str | None = None


def find_pictures(folder: str, by_class: bool = True) -> tuple[list[Found], list[tuple[str, str]]]:
    """The files, sorted by name, and those left out with the reason. Hidden files are not mentioned."""
    if not os.path.isdir(folder):
        what = "is a file; for single files pass a list of paths" if os.path.exists(folder) else "does not exist"
        raise InvalidInput(f"The folder {folder!r} {what}.")
    found: list[Found] = []
    skipped: list[tuple[str, str]] = []
    every = sorted(_walk(os.path.abspath(folder)), key=lambda each: each[1].split("/"))
    for path, name, reason in every:
        reason = reason or _not_meant(name)
        if reason is None:
            found.append(Found(path, name))
        else:
            skipped.append((name, reason))
    return _by_class(found, skipped) if by_class else (found, sorted(skipped))


def _by_class(found: list[Found], skipped: list[tuple[str, str]]) -> tuple[list[Found], list[tuple[str, str]]]:
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


def _not_meant(name: str) -> str | None:
    """A reason to leave a file out, unless its name has the extension of a picture or none."""
    extension = PurePath(name).suffix.lower()
    return NO_PICTURE if extension and extension not in EXTENSIONS else None


def words(error: OSError) -> str:
    """The system's reason: permission denied, …"""
    return (error.strerror or type(error).__name__).lower()
