"""The detector of `saccade novelty`, learned from a table, a folder of pictures, or read from a model file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Annotated, Any

import numpy as np

from saccade._core import model_file
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.cli import console
from saccade.cli import options as o
from saccade.cli import pictures as p
from saccade.cli.tables.columns import TableReading
from saccade.cli.tables.read import TABLES, Examples, read, read_matching

UNEQUAL = 0.05  # spread of self-similarities that "variance" may mistake for novelty
NAMED = 3  # folders, where there are many
TELLING = 20  # known examples from which a p-value of 0.05 can occur


@dataclass(frozen=True)
class Detector:
    """A detector, and what it learned from."""

    model: Any  # a fitted OneClassGP
    scores: Annotated[Array, "n"]  # of the known, each judged by the others; of a model file some thousand, ascending
    said: str  # what it learned from and with which settings, in one sentence
    examples: Examples | None = None  # None: a model file
    pictures: Any = None
    chain: Any = None  # what makes vectors of pictures


def kind_of(path: Path) -> str:
    """ "pictures", "table" or "model"."""
    if not path.exists():
        raise InvalidInput(f"There is no file or folder {path}. Check the name.")
    if p.are_pictures(path):
        return "pictures"
    return "table" if path.name.lower().endswith(TABLES) else "model"


def learn_table(detector: Any, path: Path, how: TableReading) -> Detector:
    examples = read(path, how, need_labels=False)
    _check_several(path, examples.X.shape[0])
    said = _learn(detector, examples.X, "example", "features")
    if examples.names:
        detector.feature_names_in_ = np.array(examples.names, object)
    return Detector(detector, detector.leave_one_out_scores_, said, examples)


def learn_pictures(detector: Any, path: Path, seeing: o.FeatureOptions, options: o.KernelOptions) -> Detector:
    """Learn from a folder of pictures, the vocabulary too. Folders inside it are not classes here."""
    chain = seeing.chain(options.seed)
    pictures = p.read(path, chain, seeing)
    _check_several(path, len(pictures))
    _point_to_classes(path, pictures.names, seeing.recipe)
    X = seeing.vectors(chain, pictures)
    detector.set_params(scale=None, **options.for_pictures(X.shape[1]))  # features of pictures have one unit
    said = _learn(detector, X, "picture", f"{seeing.recipe} features")
    return Detector(detector, detector.leave_one_out_scores_, said, p.named(pictures, X), pictures, chain)


def _point_to_classes(path: Path, names: Sequence[str], recipe: str) -> None:
    """Say how to ask for pictures of no known class, where all pictures lie in folders of several classes."""
    folders = sorted({PurePath(name).parts[0] for name in names if len(PurePath(name).parts) > 1})
    if len(folders) < 2 or any(len(PurePath(name).parts) < 2 for name in names):
        return
    few = console.few([*map(console.printable, folders)], NAMED)
    console.warn(
        f"The {len(folders)} folders of {path} ({few}) are taken as one kind, so pictures of a rare folder may look "
        f"newer than new ones. If the folders are classes, use `saccade fit {path} MODEL --features {recipe}`; "
        "`saccade predict MODEL SCORE` then writes the novelty of each picture beside all classes."
    )


def recall(path: Path, seeing: o.PictureOptions, contamination: float | None) -> Detector:
    """A model file that `saccade novelty --save` wrote; the threshold may be another one."""
    from saccade.estimators.model_file import load
    from saccade.estimators.one_class import OneClassGP
    from saccade.scores.novelty import threshold

    model = load(path)
    if not isinstance(model, OneClassGP):
        raise InvalidInput(
            f"{path} holds a {type(model).__name__}. FIT can be a model file that `saccade novelty --save` wrote; use "
            "`saccade predict` for this one."
        )
    if contamination is not None:
        model.contamination = contamination
        model.offset_ = threshold(model.normal_scores_, contamination)
    chain = p.chain_of(path, seeing) if model_file.read(path)[0].get("pictures") else None
    said = f"Learned earlier: {path}, {_settings(model, 'features')}."
    return Detector(model, model.normal_scores_, said, chain=chain)


def save(detector: Detector, path: Path) -> None:
    detector.model.save(path, features=detector.chain)
    if detector.model.measure != "mean" and detector.model.variance_method_ == "exact":
        console.note(
            f"{path} keeps a low-rank variance instead of the exact one, and a threshold that goes with it: its scores "
            "differ a little from those below. Leave --approximation out to get the same scores in both."
        )


def read_new(detector: Detector, path: Path, how: TableReading, seeing: o.PictureOptions) -> Examples:
    if kind_of(path) != "pictures":
        # Options that name columns hold for the new table too, as far as it has these columns.
        how = replace(how, lenient=detector.examples is not None)
        return read_matching(path, how, detector.model, of_pictures=detector.chain is not None)
    if detector.chain is None:
        raise InvalidInput(f"{path} has pictures, and FIT is a table of features. Give a table to judge.")
    return p.examples(detector.chain, path, seeing)


def _check_several(path: Path, n: int) -> None:
    if n < 2:
        raise InvalidInput(
            f"{path} has only 1 example. What is normal is learned from how several differ: give at least 2, better "
            f"{TELLING} or more."
        )


def _learn(detector: Any, X: Any, one: str, what: str) -> str:
    watch = console.Stopwatch()
    detector.fit(X)
    if detector.measure == "variance" and detector.columns_ is None:
        prior = detector.kernel_.diag(X)
        if prior.std() > UNEQUAL * prior.mean():
            console.warn(
                "The sums of the rows differ, and --measure variance takes rows with small sums for normal. Divide "
                "each row by its sum, or leave --measure out."
            )
    return f"Learned from {console.count(X.shape[0], one)} in {watch}: {_settings(detector, what)}."


def _settings(model: Any, what: str) -> str:
    variance = "" if model.measure == "mean" else f", {model.variance_method_} variance"
    return f"{model.n_features_in_:,} {what}, {model.measure} by {model.inference}{variance}, noise {model.noise_:g}"
