"""Research pictures that a user has on disk, found through the environment variable SACCADE_DATA.

They are never downloaded and never part of this package: experiments and some tests ask for them.
"""

import csv
import os
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput

DEFAULT = Path("..") / "shared" / "data"  # from the checkout, where experiments are run
BACKGROUND = "BACKGROUND_Google"


def data_folder() -> Path:
    """Folder of the research pictures: what SACCADE_DATA names, else ../shared/data.

    Returns
    -------
    Path
        The folder; it need not exist.
    """
    return Path(os.environ.get("SACCADE_DATA", DEFAULT))


class Photographs(NamedTuple):
    """Pictures of a situation: boxes and sizes, without pixels.

    Parameters
    ----------
    names : list of str
        File names of the n pictures.
    boxes : dict of arrays of shape (n, 4)
        For each object its box x0, y0, x1, y1 in every picture; NaN where it is not known.
    sizes : array of shape (n, 2)
        Width and height.
    proposals : array of shape (n, objects, p, 6)
        For each object p boxes x0, y0, x1, y1, then the confidence of a classifier and the IOU with the object's box.

    Examples
    --------
    >>> box = np.array([[10.0, 20.0, 40.0, 60.0]])
    >>> Photographs(["a.jpg"], {"dog": box}, np.array([[640, 480]]), np.zeros((1, 1, 0, 6))).sizes.tolist()
    [[640, 480]]
    """

    names: list[str]
    boxes: dict[str, Array]
    sizes: Annotated[Array, "n, 2"]
    proposals: Annotated[Array, "n, objects, p, 6"]


def portland() -> Photographs:
    """500 photographs of people walking dogs, with dog, walker and leash (Portland State University).

    The boxes were recovered from the overlaps of the proposals, to about a pixel. Three leashes came out inverted, and
    count as not known. A picture is as large as its outermost proposals.

    Returns
    -------
    Photographs
        Boxes, sizes and proposals; the pictures themselves are not needed.
    """
    folder = data_folder() / "portland"
    if not all((folder / name).is_file() for name in ("ground_truth.csv", "proposals.npz")):
        raise _missing(f"{folder} has no ground_truth.csv and proposals.npz", "portland")
    with np.load(folder / "proposals.npz") as file:
        proposals, names, objects = file["props"].astype(np.float64), file["names"].tolist(), file["objects"].tolist()
    proposals[..., 2:4] += proposals[..., :2]
    with (folder / "ground_truth.csv").open(encoding="utf-8") as table:
        found = {(row["image"], row["object"]): [float(row[k]) for k in "xywh"] for row in csv.DictReader(table)}
    boxes = {name: np.array([found[image, name] for image in names]) for name in objects}
    for box in boxes.values():
        box[(box[:, 2:] <= 0).any(axis=1)] = np.nan
        box[:, 2:] += box[:, :2]
    return Photographs(names, boxes, proposals[..., 2:4].max(axis=(1, 2)), proposals)


def caltech101(background: bool = False) -> tuple[list[Path], Array]:
    """The pictures of Caltech-101 (Fei-Fei et al. 2004) and their classes.

    Parameters
    ----------
    background : bool
        Add the class BACKGROUND_Google to the 101 classes.

    Returns
    -------
    paths : list of Path
        The files, sorted.
    labels : array of shape (n,)
        The class of each, a str.
    """
    paths, labels = _by_class(data_folder() / "caltech101" / "101_ObjectCategories")
    keep = np.ones(len(paths), bool) if background else labels != BACKGROUND
    return [path for path, kept in zip(paths, keep, strict=True) if kept], labels[keep]


def caltech101_boxes(name: str) -> tuple[list[Path], Array]:
    """The pictures of one class of Caltech-101 whose object has a box, and the boxes.

    26 classes have boxes. One box of the airplanes has no height and is left out.

    Parameters
    ----------
    name : str
        The class, such as "airplanes".

    Returns
    -------
    paths : list of Path
        The files.
    boxes : array of shape (n, 4)
        x0, y0, x1, y1 in pixels.
    """
    folder = data_folder() / "caltech101"
    if not (folder / "boxes.csv").is_file():
        raise _missing(f"{folder} has no boxes.csv", "caltech101")
    with (folder / "boxes.csv").open(encoding="utf-8") as table:
        rows = [row for row in csv.DictReader(table) if row["class"] == name]
    if not rows:
        raise InvalidInput(f"{folder / 'boxes.csv'} has no box of the class {name!r}. Check the name.")
    boxes = np.array([[float(row[side]) for side in ("xmin", "ymin", "xmax", "ymax")] for row in rows])
    kept = np.flatnonzero((boxes[:, 2:] > boxes[:, :2]).all(axis=1))
    return [folder / "101_ObjectCategories" / name / rows[i]["image"] for i in kept], boxes[kept]


def scenes15(part: str) -> tuple[list[Path], Array]:
    """The pictures of 15-Scenes (Lazebnik et al. 2006) and their classes.

    Parameters
    ----------
    part : "train" or "test"
        The training pictures, 100 per class, or the others.

    Returns
    -------
    paths : list of Path
        The files, sorted.
    labels : array of shape (n,)
        The class of each, a str.
    """
    return _by_class(data_folder() / "scenes15" / part)


def _missing(what: str, needed: object) -> InvalidInput:
    return InvalidInput(f"{what}. Point the environment variable SACCADE_DATA at the folder that has {needed}.")


def _by_class(folder: Path) -> tuple[list[Path], Array]:
    """Files in sorted order and the folder that each lies in."""
    if not folder.is_dir():
        raise _missing(f"There is no folder {folder}", folder.relative_to(data_folder()))
    paths = sorted(path for path in folder.glob("*/*") if path.is_file())
    return paths, np.array([path.parent.name for path in paths])
