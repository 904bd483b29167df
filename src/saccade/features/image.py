"""Pictures as a lazy sequence: from a folder, from paths, or from arrays.

Pixels are made each time they are asked for, so that memory holds the few that are worked on.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import check_count
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.progress import report
from saccade.features.base import PerPicture
from saccade.features.cache import Cache
from saccade.features.decode import DECODER
from saccade.features.files import PictureFile, check_files
from saccade.features.folder import Found, find_pictures
from saccade.features.lazy import Items, digest_of, is_selection, selected
from saccade.features.pixels import check_picture, check_pixels, limited, pillow, resize, to_grey, to_rgb

__all__ = ["Pictures", "Resize", "read_pictures", "resize", "to_grey", "to_rgb"]


@dataclass(frozen=True, slots=True)
class PictureArray:
    """A picture the caller holds in memory."""

    found: Found
    array: Array

    @property
    def digest(self) -> str:
        return digest_of(self.array)

    def pixels(self, max_pixels: int, max_side: int | None) -> Array:
        picture = to_rgb(self.array)
        height, width = picture.shape[:2]
        return resize(picture, limited((width, height), max_side))


class Pictures(Items):
    """RGB pictures, (h, w, 3) uint8, decoded when they are asked for. Made by `read_pictures`.

    A slice, a mask or an array of numbers gives `Pictures` again; `skipped` is about the whole reading and stays.
    """

    def __init__(
        self,
        pictures: list[PictureFile] | list[PictureArray],
        *,
        skipped: list[tuple[str, str]],
        max_pixels: int,
        max_side: int | None,
    ) -> None:
        self._pictures: list[Any] = pictures
        self.skipped = skipped  # (name, reason)
        self.max_pixels, self.max_side = max_pixels, max_side

    @cached_property
    def names(self) -> list[str]:
        """Below the folder, with `/`; the paths as they were given; or the numbers of arrays."""
        return [picture.found.name for picture in self._pictures]

    @cached_property
    def paths(self) -> list[Path] | None:
        """None for arrays."""
        return None if self._held() else [Path(picture.found.path) for picture in self._pictures]

    @cached_property
    def labels(self) -> Array | None:  # (n,) of str
        """The class folders; None where there are none."""
        labels = [picture.found.label for picture in self._pictures]
        return None if None in labels else np.array(labels, np.str_)

    def __len__(self) -> int:
        return len(self._pictures)

    def __getitem__(self, i: Any) -> Any:
        if not is_selection(i):
            return self._pictures[i].pixels(self.max_pixels, self.max_side)
        chosen = [self._pictures[k] for k in selected(i, len(self))]
        return Pictures(chosen, skipped=self.skipped, max_pixels=self.max_pixels, max_side=self.max_side)

    def digest(self, i: int) -> str:
        return digest_of("pixels", DECODER, str(self.max_side), self._pictures[i].digest)

    def limited_to(self, max_side: int) -> "Pictures":
        """The same pictures with the longer side at most so many pixels."""
        side = max_side if self.max_side is None else min(max_side, self.max_side)
        return Pictures(self._pictures, skipped=self.skipped, max_pixels=self.max_pixels, max_side=side)

    def __repr__(self) -> str:
        return f"<{len(self)} pictures, {len(self.skipped)} skipped>"

    def _held(self) -> bool:
        return any(isinstance(picture, PictureArray) for picture in self._pictures)


def read_pictures(
    source: Any,
    *,
    by_class: bool = True,
    max_pixels: int = limits.PICTURE_PIXELS,
    max_side: int | None = None,
    cache: Any = None,
    n_jobs: int | None = None,
) -> Pictures:
    """The pictures of a folder (a folder per class, or all in one), of a list of paths, or of arrays.

    With `by_class=False` a folder is taken as one set of pictures, however deep they lie, without labels.
    Files that give no picture are in `.skipped` with the reason; a picture of more than `max_pixels` is one, told by
    its header. `max_side` limits the longer side of what comes out. Arrays are (h, w), (h, w, 3) or (h, w, 4) each.
    """
    pillow()
    check_count("max_pixels", max_pixels, f"{limits.PICTURE_PIXELS:,} is usual.")
    if max_side is not None:
        check_count("max_side", max_side, "None keeps every size.")
    if isinstance(source, str | os.PathLike):
        where = repr(os.fsdecode(source))
        found, skipped = find_pictures(os.fsdecode(source), by_class)
    else:
        things = _listed(source)
        if isinstance(things[0], np.ndarray):
            arrays = [PictureArray(Found("", str(i)), thing) for i, thing in enumerate(things)]
            return Pictures(arrays, skipped=[], max_pixels=max_pixels, max_side=max_side)
        where, skipped = "the list", []
        found = [Found(os.path.abspath(os.fsdecode(path)), Path(os.fsdecode(path)).as_posix()) for path in things]
    files: list[PictureFile] = []
    with Cache(cache) as kept:
        for done, (name, file) in enumerate(check_files(found, max_pixels, max_side, kept, n_jobs), 1):
            if isinstance(file, PictureFile):
                files.append(file)
            else:
                skipped.append((name, file))
            report("Reading pictures", done / len(found))
    if not files:
        raise InvalidInput(_nothing(where, skipped))
    return Pictures(files, skipped=skipped, max_pixels=max_pixels, max_side=max_side)


class Resize(PerPicture):
    """Every picture at one size, (width, height), whatever its proportions: 15-Scenes at 256 × 256, H §6.

    A single number instead limits the longer side and keeps the proportions; smaller pictures stay as they are.
    """

    PACKAGES = ("pillow",)

    def __init__(self, size: tuple[int, int] | int = (256, 256)) -> None:
        self.size = size

    def fit(self, X: Any, y: Any = None) -> Self:
        self._target(np.empty((1, 1, 3)))
        return self

    def transform(self, X: Any) -> Items:
        self._target(np.empty((1, 1, 3)))
        if isinstance(X, Pictures) and isinstance(self.size, int):
            return X.limited_to(self.size)  # a large JPEG is decoded at a fraction of its size
        return super().transform(X)

    def make(self, item: Array) -> Array:
        picture = to_rgb(item)
        return resize(picture, self._target(picture))

    def _target(self, picture: Array) -> tuple[int, int]:
        """The size of the result, (width, height)."""
        if not isinstance(self.size, tuple | list):
            check_count("size", self.size, "(256, 256) is usual.")
            return limited((picture.shape[1], picture.shape[0]), self.size)
        if len(self.size) != 2:
            raise InvalidParameter(f"`size` must be (width, height) or a number, got {self.size!r}.")
        for side in self.size:
            check_count("size", side, "(256, 256) is usual.")
        return check_pixels((self.size[0], self.size[1]))


def _listed(source: Any) -> list[Any]:
    """All paths, or all arrays that can be pictures."""
    need = "`source` must be a folder, a list of paths, a list of arrays, or an array (n, h, w) or (n, h, w, colours)"
    if isinstance(source, np.ndarray) and (source.ndim == 2 or (source.ndim == 3 and source.shape[2] in (3, 4))):
        raise InvalidInput(f"{need}, got one of shape {source.shape}. For a single picture pass [picture].")
    if isinstance(source, Items) or not isinstance(source, Iterable):
        raise InvalidInput(f"{need}, got {type(source).__name__}.")
    things = list(source)
    if not things:
        raise InvalidInput(f"{need}, got an empty one.")
    kind = np.ndarray if isinstance(things[0], np.ndarray) else str | bytes | os.PathLike
    for i, thing in enumerate(things):
        if not isinstance(thing, kind):
            raise InvalidInput(f"{need}, got {type(thing).__name__} as number {i}.")
        if isinstance(thing, np.ndarray):
            try:
                check_picture(thing)
            except InvalidInput as error:
                raise InvalidInput(f"Picture {i}, counted from 0: {error}") from None
    return things


def _nothing(where: str, skipped: list[tuple[str, str]]) -> str:
    if not skipped:
        return f"There is no picture in {where}. Put pictures into it, or into one folder per class."
    first = "; ".join(f"{name!r}: {reason}" for name, reason in skipped[:3])
    more = f"; and {len(skipped) - 3} more" if len(skipped) > 3 else ""
    return f"None of the {len(skipped)} files of {where} gives a picture. {first}{more}."
