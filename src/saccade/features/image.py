"""Pictures as a lazy sequence: from a folder, from paths, or from arrays.

Pixels are made each time they are asked for, so that memory holds the few that are worked on.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array, FilePath
from saccade._core.checks import check_count
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.progress import report
from saccade.features.base import PerPicture
from saccade.features.cache import Cache
from saccade.features.decode import DECODER
from saccade.features.files import FoundFile, PictureFile, check_files, find_pictures
from saccade.features.lazy import Items, digest_of, is_selection, selected
from saccade.features.pixels import check_picture, check_pixels, limited, pillow, resize, to_grey, to_rgb

__all__ = ["Pictures", "Resize", "read_pictures", "resize", "to_grey", "to_rgb"]


@dataclass(frozen=True, slots=True)
class PictureArray:
    """A picture the caller holds in memory."""

    found: FoundFile
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

    A number gives one picture. A slice, a mask or an array of numbers gives `Pictures` again.

    Parameters
    ----------
    pictures : list of PictureFile or of PictureArray
        Where the pixels come from.
    skipped : list of (name, reason)
        Files that gave no picture; a selection of pictures keeps the whole list.
    max_pixels : int
        Largest number of pixels of a file.
    max_side : int or None
        Largest longer side of what comes out; larger pictures shrink.

    Examples
    --------
    >>> pictures = read_pictures(np.zeros((3, 40, 60), np.uint8))
    >>> pictures[0].shape, len(pictures[1:]), pictures.names, pictures.labels
    ((40, 60, 3), 2, ['0', '1', '2'], None)
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
        """Paths below the folder, with `/`; the paths as they were given; or the numbers of arrays."""
        return [picture.found.name for picture in self._pictures]

    @cached_property
    def paths(self) -> list[Path] | None:
        """The files; None for arrays."""
        held = any(isinstance(picture, PictureArray) for picture in self._pictures)
        return None if held else [Path(picture.found.path) for picture in self._pictures]

    @cached_property
    def labels(self) -> Annotated[Array, "n"] | None:  # of str
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
        """These pictures, made smaller where a side is too long.

        Parameters
        ----------
        max_side : int
            Largest longer side in pixels.

        Returns
        -------
        Pictures
            A large JPEG is then decoded at a fraction of its size.
        """
        side = max_side if self.max_side is None else min(max_side, self.max_side)
        return Pictures(self._pictures, skipped=self.skipped, max_pixels=self.max_pixels, max_side=side)

    def __repr__(self) -> str:
        return f"<{len(self)} pictures, {len(self.skipped)} skipped>"


def read_pictures(
    source: Any,
    *,
    by_class: bool = True,
    max_pixels: int = limits.PICTURE_PIXELS,
    max_side: int | None = None,
    cache: FilePath | None = None,
    n_jobs: int | None = None,
) -> Pictures:
    """The pictures of a folder (a folder per class, or all in one), of a list of paths, or of arrays.

    Every file is decoded once, so that a bad one is found now. Files that give no picture are in `.skipped` with the
    reason.

    Parameters
    ----------
    source : path, list of paths, list of arrays, or array of shape (n, h, w) or (n, h, w, colours)
        A folder, files, or pictures in memory, each (h, w), (h, w, 3) or (h, w, 4).
    by_class : bool
        True: folders in the folder are the classes. False: the folder is one set of pictures, however deep they lie,
        without labels.
    max_pixels : int
        Files with more pixels are skipped, by their header, before they are decoded. Default: 100,000,000.
    max_side : int, optional
        Largest longer side of what comes out; larger pictures shrink.
    cache : path, optional
        Folder in which to note the files that are good, by content, so that they are not decoded again.
    n_jobs : int, optional
        Number of threads. None and -1: every core.

    Returns
    -------
    Pictures
        A lazy sequence.

    Examples
    --------
    >>> read_pictures([np.zeros((40, 60), np.uint8)], max_side=30)[0].shape
    (20, 30, 3)
    """
    pillow()
    check_count("max_pixels", max_pixels, f"Default: {limits.PICTURE_PIXELS:,}.")
    if max_side is not None:
        check_count("max_side", max_side, "None keeps every size.")
    if isinstance(source, str | os.PathLike):
        where = repr(os.fsdecode(source))
        found, skipped = find_pictures(os.fsdecode(source), by_class)
    else:
        things = _listed(source)
        if isinstance(things[0], np.ndarray):
            arrays = [_held(i, thing) for i, thing in enumerate(things)]
            return Pictures(arrays, skipped=[], max_pixels=max_pixels, max_side=max_side)
        where, skipped = "the list", []
        found = [FoundFile(os.path.abspath(os.fsdecode(path)), Path(os.fsdecode(path)).as_posix()) for path in things]
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


@dataclass(eq=False, repr=False)
class Resize(PerPicture):
    """Every picture at one size, or with a limited longer side.

    Parameters
    ----------
    size : (width, height) or int
        A pair gives every picture this size, whatever its proportions: H §6 has 15-Scenes at 256 × 256. An int limits
        the longer side and keeps the proportions; smaller pictures stay as they are.

    Examples
    --------
    >>> picture = np.zeros((100, 200, 3), np.uint8)
    >>> Resize((64, 48)).fit_transform([picture])[0].shape, Resize(50).fit_transform([picture])[0].shape
    ((48, 64, 3), (25, 50, 3))
    """

    PACKAGES = ("pillow",)

    size: tuple[int, int] | int = (256, 256)

    def check(self) -> None:
        self._target(np.empty((1, 1, 3)))

    def transform(self, X: Any) -> Items:
        self.check()
        if isinstance(X, Pictures) and isinstance(self.size, int):
            return X.limited_to(self.size)  # a large JPEG is decoded at a fraction of its size
        return super().transform(X)

    def make(self, item: Array) -> Array:
        picture = to_rgb(item)
        return resize(picture, self._target(picture))

    def _target(self, picture: Array) -> tuple[int, int]:
        """The size of the result, (width, height)."""
        if not isinstance(self.size, tuple | list):
            check_count("size", self.size, "Default: (256, 256).")
            return limited((picture.shape[1], picture.shape[0]), self.size)
        if len(self.size) != 2:
            raise InvalidParameter(f"`size` must be (width, height) or a number, got {self.size!r}.")
        for side in self.size:
            check_count("size", side, "Default: (256, 256).")
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
    return things


def _held(i: int, array: Array) -> PictureArray:
    """An array that can be a picture; its name is its number."""
    try:
        check_picture(array)
    except InvalidInput as error:
        raise InvalidInput(f"Picture {i}, counted from 0: {error}") from None
    return PictureArray(FoundFile("", str(i)), array)


def _nothing(where: str, skipped: list[tuple[str, str]]) -> str:
    if not skipped:
        return f"There is no picture in {where}. Put pictures into it, or into one folder per class."
    first = "; ".join(f"{name!r}: {reason}" for name, reason in skipped[:3])
    more = f"; and {len(skipped) - 3} more" if len(skipped) > 3 else ""
    return f"None of the {len(skipped)} files of {where} gives a picture. {first}{more}."
