"""Folders of pictures for the commands: read, labelled, and turned into vectors block by block."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from saccade import features
from saccade._core import limits
from saccade._core.errors import InvalidInput
from saccade.cli import console
from saccade.cli.options import PictureOptions
from saccade.cli.tables.columns import TableReading
from saccade.cli.tables.named_labels import names_of, read_labelled
from saccade.cli.tables.read import Examples
from saccade.features.files import EXTENSIONS

FEW = 20  # skipped files that are named


class LazyVectors:
    """Rows that are computed when a slice of them is asked for."""

    block_rows = limits.PICTURE_ROWS_AT_ONCE

    def __init__(self, pictures: Any, chain: Any) -> None:
        self.pictures, self.chain = pictures, chain
        self.shape = (len(pictures), chain.steps[-1][1].width())

    def __getitem__(self, rows: slice) -> Any:
        return self.chain.transform(self.pictures[rows])


def are_pictures(path: Path) -> bool:
    """A folder, or a single picture."""
    return path.is_dir() or path.suffix.lower() in EXTENSIONS


def read(path: Path, chain: Any, seeing: PictureOptions, by_class: bool = False) -> Any:
    """The pictures, no larger than the chain will make them: a large photograph is then decoded faster.

    Files that give no picture are named on the terminal.
    """
    _check_packages(chain)
    first = chain.steps[0][1]
    largest = first.size if isinstance(first, features.Resize) and isinstance(first.size, int) else None
    limited: dict[str, Any] = {"max_pixels": seeing.max_pixels, "max_side": largest, "cache": seeing.cache}
    pictures = features.read_pictures(path if path.is_dir() else [path], by_class=by_class, **limited)
    if pictures.skipped:
        console.warn(f"Skipped {console.count(len(pictures.skipped), 'file')}:")
    for name, reason in pictures.skipped[:FEW]:
        console.line(f"  {console.printable(name)}: {reason}")
    if len(pictures.skipped) > FEW:
        console.line(f"  and {len(pictures.skipped) - FEW:,} more")
    return pictures


def _check_packages(chain: Any) -> None:
    """The extra that brings all that is missing; Pillow alone would be followed by the next complaint."""
    deep = any(isinstance(step, features.DeepFeatures) for _, step in chain.steps)
    extra, also = ("deep", ("onnx", "onnxruntime")) if deep else ("pictures", ())
    for package in ("PIL", *also):
        if find_spec(package) is None:
            needs = "Deep features need" if deep else "Pictures need"
            raise ModuleNotFoundError(f"{needs} {package}: pip install 'saccade[{extra}]'", name=package)


def with_labels(
    path: Path,
    pictures: Any,
    files: tuple[Path, ...],  # labels by the names of pictures; without a file, the folders are the classes
) -> tuple[Any, Any]:
    """The pictures that have a label, and the labels: of two classes at least."""
    if files:
        rows, y = read_labelled(files, TableReading(), names_of(path, named(pictures)))
        pictures = pictures[rows]
    else:
        y = _labels(path, pictures)
    if len(set(y)) < 2:
        remedy = "label a picture of another class" if files else "add the folder of another class"
        raise InvalidInput(
            f"All {'labelled ' if files else ''}pictures of {path} are of one class, {y[0]}. There must be at least "
            f"two classes: {remedy}."
        )
    return pictures, y


def _labels(path: Path, pictures: Any) -> Any:
    if pictures.labels is None:
        raise InvalidInput(
            f"The pictures of {path} have no labels. Put the pictures of each class into a folder with the name of the "
            "class, or name them in a file for --labels."
        )
    return pictures.labels


def named(pictures: Any, X: Any = None, y: Any = None) -> Examples:
    return Examples(pictures if X is None else X, y, ids=pictures.names, id_name="file")


def chain_of(model: Path, seeing: PictureOptions) -> Any:
    """The transformers that made vectors of pictures for a model file, their results kept in the cache."""
    chain = features.load_features(model)
    names = [name for name in chain.get_params() if name.endswith("__cache")]
    return chain.set_params(**dict.fromkeys(names, seeing.cache))


def examples(chain: Any, path: Path, seeing: PictureOptions, need_labels: bool = False) -> Examples:
    """The pictures as vectors, made block by block when they are asked for."""
    pictures = read(path, chain, seeing, need_labels)
    return named(pictures, LazyVectors(pictures, chain), _labels(path, pictures) if need_labels else None)
