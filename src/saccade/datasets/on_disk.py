"""Research pictures that a user has on disk, found through the environment variable SACCADE_DATA.

They are never downloaded and never part of this package: experiments and some tests ask for them.
"""

import os
from pathlib import Path

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput

DEFAULT = Path("..") / "shared" / "data"  # from the checkout, where experiments are run
BACKGROUND = "BACKGROUND_Google"


def data_folder() -> Path:
    """SACCADE_DATA, or shared/data beside the folder we are in."""
    return Path(os.environ.get("SACCADE_DATA", DEFAULT))


def caltech101(background: bool = False) -> tuple[list[Path], Array]:
    """The pictures of Caltech-101 (Fei-Fei et al. 2004) and their classes: 101, and the background if wanted."""
    paths, labels = _by_class(data_folder() / "caltech101" / "101_ObjectCategories")
    keep = np.ones(len(paths), bool) if background else labels != BACKGROUND
    return [path for path, kept in zip(paths, keep, strict=True) if kept], labels[keep]


def scenes15(part: str) -> tuple[list[Path], Array]:
    """The "train" (100 per class) or "test" pictures of 15-Scenes (Lazebnik et al. 2006) and their classes."""
    return _by_class(data_folder() / "scenes15" / part)


def _by_class(folder: Path) -> tuple[list[Path], Array]:
    """Files in sorted order and the folder that each lies in."""
    if not folder.is_dir():
        raise InvalidInput(
            f"There is no folder {folder}. Point the environment variable SACCADE_DATA at the folder that has "
            f"{folder.relative_to(data_folder())}."
        )
    paths = sorted(path for path in folder.glob("*/*") if path.is_file())
    return paths, np.array([path.parent.name for path in paths])
