"""`saccade predict`: labels and probabilities for new examples, as CSV."""

import csv
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TextIO

import numpy as np
import typer

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.chunks import batches
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.cli import console, pictures
from saccade.cli import options as o
from saccade.cli.reports.contact_sheet import Answers, write_sheet
from saccade.cli.reports.why import check_explains, class_to_explain, write_why
from saccade.cli.tables.csv_out import cell, name_cell, writing
from saccade.cli.tables.read import Examples, read_matching
from saccade.cli.targets import check_targets


@dataclass(frozen=True)
class AnswerOptions:
    """What is written."""

    out: o.Out = "-"
    all_: bool = o.option(False, "Add the probability of every class.", "--all")
    sheet: Path | None = o.option(
        None, "Also write an .html page of the pictures, the most doubtful first.", metavar="FILE"
    )
    why: Path | None = o.option(
        None, "Also write an .html page that shows what spoke for each answer, and where.", metavar="FILE"
    )
    why_class: str | None = o.option(
        None, "With --why: explain this class in every picture instead of the answer.", metavar="CLASS"
    )
    score: bool = o.option(False, "Compare with the labels in DATA.", "--score")
    force: o.Force = False


@o.grouped
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `saccade fit` wrote.")],
    data: o.Data,
    wanted: AnswerOptions,
    shown: o.PictureOptions,
    table: o.TableOptions,
) -> None:
    """Predict DATA with MODEL: a label, its probability, variance and novelty per example, as CSV.

    The variance is large where the training examples say little about an example. Novelty joins it with the doubt
    between the classes: with novelty 0.95, about 5 of 100 examples of the known classes look as new. If the model
    predicts numbers, each comes with its standard deviation.
    """
    from saccade.estimators.model_file import load_with_header

    targets = {"--out": wanted.out, "--sheet": wanted.sheet, "--why": wanted.why}
    check_targets(targets, wanted.force, (model, data))
    with console.progress():
        estimator, told = load_with_header(model)
        if hasattr(estimator, "offset_"):
            raise InvalidInput(f"{model} is a model of what is normal. Use `saccade novelty {model} {data}`.")
        examples = _examples(estimator, model, data, wanted, shown, table, bool(told.get("pictures")))
        if wanted.why is not None:
            check_explains(estimator, examples.X)
        about = class_to_explain(estimator, wanted.why_class, page=wanted.why is not None)
    crossing = wanted.out == "-" and sys.stdout.isatty()  # a bar would cross the lines
    with nullcontext() if crossing else console.progress(), writing(wanted.out) as file:
        answers = _write(file, estimator, examples, wanted.all_)
    if wanted.out != "-":
        console.note(f"{console.count(len(answers.label), 'prediction')} in {wanted.out}.")
    if wanted.sheet is not None:
        with console.progress():
            write_sheet(wanted.sheet, data, examples.X.pictures, answers)
        console.note(f"Pictures with their answers in {wanted.sheet}.")
    if wanted.why is not None:
        with console.progress():
            write_why(wanted.why, data, estimator, examples, about)
        console.note(f"What spoke for each answer is in {wanted.why}.")
    if wanted.score:
        console.note(_score(estimator, answers.label, examples.y))


def _examples(
    estimator: Any,
    model: Path,
    data: Path,
    wanted: AnswerOptions,
    shown: o.PictureOptions,
    table: o.TableOptions,
    of_pictures: bool,
) -> Examples:
    """The examples of DATA, or an error if options do not suit them."""
    if wanted.sheet is not None and not hasattr(estimator, "classes_"):
        raise InvalidInput("--sheet sorts pictures by the probability of a class, and the model predicts numbers.")
    if pictures.are_pictures(data) and data.exists():
        if table.files:
            raise InvalidInput("--labels is for tables: --score compares pictures with the names of their folders.")
        return pictures.examples(pictures.chain_of(model, shown), data, shown, wanted.score)
    if wanted.sheet is not None:
        raise InvalidInput(f"--sheet shows pictures, and {data} is a table. Leave it out.")
    return read_matching(data, table.how, estimator, need_labels=wanted.score, of_pictures=of_pictures)


def _write(file: TextIO, estimator: Any, examples: Examples, every: bool) -> Answers:
    """Write the CSV; returns the predictions."""
    n = examples.X.shape[0]
    writer = csv.writer(file, lineterminator="\n")
    parts: list[Answers] = []
    for rows in batches(n, getattr(examples.X, "block_rows", limits.ROWS_AT_ONCE)):
        answers, lines = _lines(estimator, examples.X[rows], every)
        if not parts:
            writer.writerow([cell(examples.id_name), *_names(estimator, every)])
        ids = [name_cell(examples.name(i), examples.id_name) for i in range(rows.start, rows.stop)]
        writer.writerows([name, *line] for name, line in zip(ids, lines, strict=True))
        parts.append(answers)
        report("predicting", rows.stop / n)
    return Answers(*(None if part[0] is None else np.concatenate(part) for part in zip(*parts, strict=True)))  # type: ignore[arg-type]


def _names(estimator: Any, every: bool) -> list[str]:
    if hasattr(estimator, "classes_"):
        all_ = [f"p({c})" for c in estimator.classes_] if every else []
        return ["label", "probability", *_doubts(estimator), *all_]
    m = estimator.n_outputs_
    names = ["value", "deviation"] if estimator.variance_method_ is not None else ["value"]
    return names if m == 1 else [f"{name} {k + 1}" for name in names for k in range(m)]


def _doubts(estimator: Any) -> list[str]:
    """What a model file knows beside the classes; an older one has no novelty."""
    if getattr(estimator, "variance_method_", None) is None:
        return []
    return ["variance", "novelty"] if getattr(estimator, "novelty_reference_", None) is not None else ["variance"]


def _lines(estimator: Any, X: Any, every: bool) -> tuple[Answers, Iterator[list[Any]]]:
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
    assert y is not None
    if hasattr(estimator, "classes_"):
        if (predicted.dtype.kind == "U") != (y.dtype.kind == "U"):
            y, predicted = y.astype(str), predicted.astype(str)
        right = int((predicted == y).sum())
        return f"accuracy {right / len(y):.4f} ({right:,} of {len(y):,})"
    if y.dtype.kind == "U":
        raise InvalidInput(f"The model predicts numbers, and the label {str(y[0])!r} is not a number.")
    from sklearn.metrics import r2_score

    return f"R² {r2_score(y, predicted):.4f}, error (RMS) {np.sqrt(np.mean((predicted - y) ** 2)):.4g}"
