"""Folders of pictures for `saccade fit`, `saccade predict` and `saccade novelty`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from saccade._core import limits
from saccade.cli import console

if TYPE_CHECKING:
    from saccade.cli.tables.read import Examples
    from saccade.features import Pictures

USUAL = "classic"  # features: no network, and good for textures, letters and drawings
FEW = 20  # skipped files that are named


class TrainingPictures(NamedTuple):
    """How the pictures to learn from become vectors."""

    asked: str | None  # the features that --features names
    cache: Path | None
    max_pixels: int
    seed: int
    levels: int | Literal["usual"] | None

    @property
    def recipe(self) -> str:
        return self.asked or USUAL

    def chain(self) -> Any:
        """The transformers, not fitted yet."""
        from saccade.features import image_features

        return image_features(self.recipe, cache=self.cache, random_state=self.seed)

    def vectors(self, chain: Any, pictures: Pictures, y: Any = None) -> Any:
        """Fit the transformers to these pictures; says which they are where the user did not."""
        X = chain.fit_transform(pictures, y)
        if self.asked is None:
            console.note(
                f"The pictures were seen by {USUAL} features, because --features names none. For photographs of things "
                "--features deep is usually better."
            )
        return X


class NewPictures(NamedTuple):
    """The model whose features are wanted, and how to read pictures for it."""

    model: Path
    cache: Path | None
    max_pixels: int


def are_pictures(path: Path) -> bool:
    """A folder, or a single picture."""
    from saccade.features.folder import EXTENSIONS

    return path.is_dir() or path.suffix.lower() in EXTENSIONS


def read(path: Path, chain: Any, cache: Path | None, max_pixels: int, by_class: bool = True) -> Pictures:
    """The pictures, no larger than the chain will make them: a large photograph is then decoded faster."""
    from saccade.features import Resize, read_pictures

    _check_packages(chain)
    first = chain.steps[0][1]
    largest = first.size if isinstance(first, Resize) and isinstance(first.size, int) else None
    source = path if path.is_dir() else [path]
    return read_pictures(source, by_class=by_class, max_pixels=max_pixels, max_side=largest, cache=cache)


def _check_packages(chain: Any) -> None:
    """The extra that brings all that is missing; Pillow alone would be followed by the next complaint."""
    from importlib.util import find_spec

    from saccade.features import DeepFeatures

    deep = any(isinstance(step, DeepFeatures) for _, step in chain.steps)
    extra, also = ("deep", ("onnx", "onnxruntime")) if deep else ("pictures", ())
    for package in ("PIL", *also):
        if find_spec(package) is None:
            needs = "Deep features need" if deep else "Pictures need"
            raise ModuleNotFoundError(f"{needs} {package}: pip install 'saccade[{extra}]'", name=package)


def note_skipped(pictures: Pictures) -> None:
    """How many files gave no picture, which, and why."""
    if not pictures.skipped:
        return
    console.warn(f"Skipped {console.count(len(pictures.skipped), 'file')}:")
    for name, reason in pictures.skipped[:FEW]:
        console.line(f"  {printable(name)}: {reason}")
    if len(pictures.skipped) > FEW:
        console.line(f"  and {len(pictures.skipped) - FEW:,} more")


def printable(name: str) -> str:
    """A file's name on one line of a terminal, whatever bytes it has."""
    text = name.encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() else repr(text)


def with_labels(
    path: Path,
    pictures: Pictures,
    files: tuple[Path, ...],  # labels by the names of pictures; without a file, the folders are the classes
) -> tuple[Pictures, Any]:
    """The pictures that have a label, and the labels: of two classes at least."""
    from saccade._core.errors import InvalidInput

    if files:
        from saccade.cli.tables.columns import Reading
        from saccade.cli.tables.named_labels import names_of, read_labelled

        rows, y = read_labelled(files, Reading(), names_of(path, named(pictures)))
        pictures = pictures[rows]
    elif pictures.labels is None:
        raise _unlabelled(path)
    else:
        y = pictures.labels
    if len(set(y)) < 2:
        remedy = "label one of another class" if files else "add the folder of another"
        raise InvalidInput(
            f"All {'labelled ' if files else ''}pictures of {path} are of one class, {y[0]}. There must be at least "
            f"two classes: {remedy}."
        )
    return pictures, y


def named(pictures: Pictures, X: Any = None) -> Examples:
    """Examples that are called as the files are."""
    from saccade.cli.tables.read import Examples

    return Examples(pictures if X is None else X, ids=pictures.names, id_name="file")


def examples(how: NewPictures, path: Path, need_labels: bool) -> Examples:
    """The pictures as the examples that the model knows."""
    return seen(chain_of(how.model, how.cache), path, how.cache, how.max_pixels, need_labels)


def chain_of(model: Path, cache: Path | None) -> Any:
    """The transformers that made vectors of pictures for a model file, their results kept in the folder."""
    from saccade.features import load_features

    chain = load_features(model)
    names = [name for name in chain.get_params() if name.endswith("__cache")]
    return chain.set_params(**dict.fromkeys(names, cache))


def seen(chain: Any, path: Path, cache: Path | None, max_pixels: int, need_labels: bool = False) -> Examples:
    """The pictures as vectors, made block by block when they are asked for."""
    from saccade.cli.tables.read import Examples

    pictures = read(path, chain, cache, max_pixels, need_labels)
    note_skipped(pictures)
    y = pictures.labels if need_labels else None
    if need_labels and y is None:
        raise _unlabelled(path)
    return Examples(LazyVectors(pictures, chain), y, ids=pictures.names, id_name="file")


def _unlabelled(path: Path) -> Exception:
    from saccade._core.errors import InvalidInput

    return InvalidInput(
        f"The pictures of {path} have no labels. Put those of each class into a folder of its own, named after it, or "
        "name them in a file for --labels."
    )


class LazyVectors:
    """Rows that are computed when a slice of them is asked for."""

    block_rows = limits.PICTURE_ROWS_AT_ONCE

    def __init__(self, pictures: Pictures, chain: Any) -> None:
        self.pictures, self.chain = pictures, chain
        self.shape = (len(pictures), chain.steps[-1][1].width())

    def __getitem__(self, rows: slice) -> Any:
        return self.chain.transform(self.pictures[rows])
