"""`saccade predict`: labels and probabilities for new examples, as CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

import typer

from saccade._core import limits
from saccade.cli import console, pictures
from saccade.cli import options as o
from saccade.cli.option_groups import grouped
from saccade.cli.tables.csv_out import cell, name_cell, writing
from saccade.cli.targets import check_targets

if TYPE_CHECKING:
    from saccade._core.arrays import Array
    from saccade.cli.tables.columns import Reading
    from saccade.cli.tables.read import Examples


@dataclass(frozen=True)
class AnswerOptions:
    """What is written."""

    out: o.Out = "-"
    all_: Annotated[bool, typer.Option("--all", help="Add the probability of every class.")] = False
    sheet: Annotated[
        Path | None,
        typer.Option(
            "--sheet", metavar="FILE", help="Also an .html contact sheet of pictures, the most doubtful first."
        ),
    ] = None
    why: Annotated[
        Path | None,
        typer.Option(
            "--why", metavar="FILE", help="Also an .html page that shows what spoke for each answer, and where."
        ),
    ] = None
    score: Annotated[bool, typer.Option("--score", help="Compare with the labels in DATA.")] = False
    force: o.Force = False

    def check(self, *sources: Path) -> None:
        """Complain of files that must not or cannot be written."""
        wanted = {"--out": None if self.out == "-" else Path(self.out), "--sheet": self.sheet, "--why": self.why}
        check_targets({name: path for name, path in wanted.items() if path is not None}, self.force, sources)


@grouped
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `saccade fit` wrote.")],
    data: o.Data,
    wanted: AnswerOptions,
    shown: o.PictureOptions,
    table: o.TableOptions,
) -> None:
    """Predict DATA with MODEL, as CSV: for each example its label, how probable that label is, variance and novelty.

    The variance tells how little the training examples say about an example. Novelty joins it with the doubt between
    the classes: 0.95 means that of 100 examples of the known classes about 5 look as new. Where the model predicts
    numbers, each comes with its standard deviation.
    """
    wanted.check(model, data)
    with console.progress():
        from saccade.estimators.model_file import load_with_header

        estimator, told = load_with_header(model)
        _check_predicts(estimator, model, data)
        seeing = pictures.NewPictures(model, shown.cache, shown.max_pixels)
        examples = _examples(estimator, data, table.how, wanted, seeing, bool(told.get("pictures")))
        if wanted.why is not None:
            from saccade.cli.reports.why import check_explains

            check_explains(estimator, examples.X)
    crossing = wanted.out == "-" and sys.stdout.isatty()  # a bar would cross the lines
    with nullcontext() if crossing else console.progress(), writing(wanted.out) as file:
        answers = _write(file, estimator, examples, wanted.all_)
    if wanted.out != "-":
        console.note(f"{console.count(len(answers.label), 'prediction')} in {wanted.out}.")
    _write_pages(wanted, data, estimator, examples, answers)
    if wanted.score:
        console.note(_score(estimator, answers.label, examples.y))


def _write_pages(wanted: AnswerOptions, data: Path, estimator: Any, examples: Examples, answers: Answers) -> None:
    if wanted.sheet is not None:
        from saccade.cli.reports.contact_sheet import write_sheet

        with console.progress():
            write_sheet(wanted.sheet, data, examples.X.pictures, answers)
        console.note(f"Contact sheet in {wanted.sheet}.")
    if wanted.why is not None:
        from saccade.cli.reports.why import write_why

        with console.progress():
            write_why(wanted.why, data, estimator, examples)
        console.note(f"What spoke for each answer is in {wanted.why}.")


def _check_predicts(estimator: Any, model: Path, data: Path) -> None:
    from saccade._core.errors import InvalidInput

    if hasattr(estimator, "offset_"):
        raise InvalidInput(
            f"{model} knows one class and tells what is not of it. Use `saccade novelty {model} {data}`."
        )


class Answers(NamedTuple):
    """What was predicted: one entry per example."""

    label: Array
    probability: Array | None  # of that label
    novelty: Array | None


def _examples(
    estimator: Any, data: Path, how: Reading, wanted: AnswerOptions, seeing: pictures.NewPictures, of_pictures: bool
) -> Examples:
    from saccade._core.errors import InvalidInput

    if wanted.sheet is not None and not hasattr(estimator, "classes_"):
        raise InvalidInput("--sheet sorts pictures by the probability of a class, and the model predicts numbers.")
    if pictures.are_pictures(data) and data.exists():
        if how.labels:
            raise InvalidInput("--labels is for tables: --score compares pictures with the names of their folders.")
        return pictures.examples(seeing, data, wanted.score)
    if wanted.sheet is not None:
        raise InvalidInput(f"--sheet shows pictures, and {data} is a table. Leave it out.")
    from saccade.cli.tables.read import read_matching

    return read_matching(data, how, estimator, need_labels=wanted.score, of_pictures=of_pictures)


def _write(file: TextIO, estimator: Any, examples: Examples, every: bool) -> Answers:
    """Write the CSV; returns the predictions."""
    import numpy as np

    from saccade._core.chunks import batches
    from saccade._core.progress import report
    from saccade.cli.commands.novelty import name_of

    n = examples.X.shape[0]
    writer = csv.writer(file, lineterminator="\n")
    first = _names(estimator, every)
    writer.writerow([cell(examples.id_name), *first])
    parts = []
    for rows in batches(n, getattr(examples.X, "block_rows", limits.ROWS_AT_ONCE)):
        answers, lines = _lines(estimator, examples.X[rows], every)
        ids = [name_cell(name_of(examples, i), examples.id_name) for i in range(rows.start, rows.stop)]
        writer.writerows([name, *line] for name, line in zip(ids, lines, strict=True))
        parts.append(answers)
        report("predicting", rows.stop / n)
    return Answers(*(None if part[0] is None else np.concatenate(part) for part in zip(*parts, strict=True)))  # type: ignore[arg-type]


def _names(estimator: Any, every: bool) -> list[str]:
    if hasattr(estimator, "classes_"):
        return [
            "label",
            "probability",
            *_doubts(estimator),
            *([f"p({c})" for c in estimator.classes_] if every else []),
        ]
    m = estimator.n_outputs_
    names = ["value", "deviation"] if estimator.variance_method_ is not None else ["value"]
    return names if m == 1 else [f"{name} {k + 1}" for name in names for k in range(m)]


def _doubts(estimator: Any) -> list[str]:
    """What a model file knows beside the classes; an older one has no novelty."""
    if getattr(estimator, "variance_method_", None) is None:
        return []
    return ["variance", "novelty"] if getattr(estimator, "novelty_reference_", None) is not None else ["variance"]


def _lines(estimator: Any, X: Any, every: bool) -> tuple[Answers, Iterator[list[Any]]]:
    import numpy as np

    if not hasattr(estimator, "classes_"):
        return _measurements(estimator, X)
    p = estimator.predict_proba(X)
    predicted, best = estimator.classes_[p.argmax(axis=1)], p.max(axis=1)
    doubts = _doubts(estimator)
    variance = [estimator.latent_mean_and_variance(X)[1]] if "variance" in doubts else []
    novelty = estimator.novelty(X) if "novelty" in doubts else None
    numbers = np.column_stack([best, *variance, *([] if novelty is None else [novelty]), *([p] if every else [])])
    return Answers(predicted, best, novelty), (
        [cell(str(name)), *(f"{number:.6g}" for number in row)]
        for name, row in zip(predicted.tolist(), numbers.tolist(), strict=True)
    )


def _measurements(estimator: Any, X: Any) -> tuple[Answers, Iterator[list[Any]]]:
    """Predicted numbers with their deviations, where the model has these."""
    known = estimator.variance_method_ is not None
    predicted, deviation = estimator.predict(X, return_std=True) if known else (estimator.predict(X), None)
    n = len(predicted)
    deviations = [[]] * n if deviation is None else deviation.reshape(n, -1).tolist()
    return Answers(predicted, None, None), (
        [*map(repr, values), *(f"{number:.6g}" for number in doubts)]
        for values, doubts in zip(predicted.reshape(n, -1).tolist(), deviations, strict=True)
    )


def _score(estimator: Any, predicted: Array, y: Array | None) -> str:
    import numpy as np

    from saccade._core.errors import InvalidInput

    assert y is not None
    if hasattr(estimator, "classes_"):
        if (predicted.dtype.kind == "U") != (y.dtype.kind == "U"):
            y, predicted = y.astype(str), predicted.astype(str)
        right = int((predicted == y).sum())
        return f"accuracy {right / len(y):.4f} ({right:,} of {len(y):,})"
    if y.dtype.kind == "U":
        raise InvalidInput(f"The model predicts numbers and the label {str(y[0])!r} is none.")
    from sklearn.metrics import r2_score

    return f"R² {r2_score(y, predicted):.4f}, error (RMS) {np.sqrt(np.mean((predicted - y) ** 2)):.4g}"
