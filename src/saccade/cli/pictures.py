"""Folders of pictures for `saccade fit` and `saccade predict`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.cli import say

if TYPE_CHECKING:
    from saccade.cli.read import Examples
    from saccade.features import Pictures

FEW = 20  # skipped files that are named
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".gif", ".bmp")


def are_pictures(path: Path) -> bool:
    """A folder, or a single picture."""
    return path.is_dir() or path.suffix.lower() in ENDINGS


def read(path: Path, chain: Any, cache: Path | None, by_class: bool = True) -> Pictures:
    """The pictures, no larger than the chain will make them: a large photograph is then decoded faster."""
    from saccade.features import Resize, read_pictures

    first = chain.steps[0][1]
    largest = first.size if isinstance(first, Resize) and isinstance(first.size, int) else None
    return read_pictures(path if path.is_dir() else [path], by_class=by_class, max_side=largest, cache=cache)


def note_skipped(pictures: Pictures) -> None:
    """How many files gave no picture, which, and why."""
    if not pictures.skipped:
        return
    say.warn(f"Skipped {say.count(len(pictures.skipped), 'file')}:")
    for name, reason in pictures.skipped[:FEW]:
        say.note(f"  {name}: {reason}")
    if len(pictures.skipped) > FEW:
        say.note(f"  and {len(pictures.skipped) - FEW:,} more")


def labels(path: Path, pictures: Pictures) -> Any:
    from saccade._core.errors import InvalidInput

    if pictures.labels is None:
        raise InvalidInput(
            f"The pictures of {path} have no labels. Put those of each class into a folder of its own, named after it."
        )
    return pictures.labels


def examples(model: Path, path: Path, cache: Path | None, need_labels: bool) -> Examples:
    """The pictures as the examples that the model knows, made block by block when they are asked for."""
    from saccade.cli.read import Examples
    from saccade.features import load_features

    chain = keep_in(load_features(model), cache)
    pictures = read(path, chain, cache, need_labels)
    note_skipped(pictures)
    y = labels(path, pictures) if need_labels else None
    return Examples(_Vectors(pictures, chain), y, ids=pictures.names, id_name="file")


def keep_in(chain: Any, cache: Path | None) -> Any:
    """The chain with its results kept in the folder."""
    names = [name for name in chain.get_params() if name.endswith("__cache")]
    return chain.set_params(**dict.fromkeys(names, cache))


class _Vectors:
    """Rows that are computed when a slice of them is asked for."""

    def __init__(self, pictures: Pictures, chain: Any) -> None:
        self.pictures, self._chain = pictures, chain
        self.shape = (len(pictures), chain.steps[-1][1].width())

    def __getitem__(self, rows: slice) -> Any:
        return self._chain.transform(self.pictures[rows])
