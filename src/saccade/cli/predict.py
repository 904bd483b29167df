"""`saccade predict`: labels and probabilities for new examples, as CSV."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from saccade.cli import options as o
from saccade.cli import say

if TYPE_CHECKING:
    from saccade.cli.columns import Reading
    from saccade.cli.read import Array, Examples

BLOCK_ROWS = 16_384  # examples predicted and written at a time


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `saccade fit` wrote.")],
    data: o.Data,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The .csv file to write; - is the terminal.")
    ] = "-",
    all_: Annotated[bool, typer.Option("--all", help="Add the probability of every class.")] = False,
    score: Annotated[bool, typer.Option("--score", help="Compare with the labels in DATA.")] = False,
    force: o.Force = False,
    label: o.Label = None,
    labels: o.Labels = None,
    x: o.XName = None,
    y: o.YName = None,
    id_: o.Id = None,
    drop: o.Drop = None,
    header: o.Header = None,
    zero_based: o.ZeroBased = False,
) -> None:
    """Predict DATA with MODEL: for each example its label and the probability of that label, as CSV."""
    if out != "-":
        o.check_target(Path(out), force, (model, data))
    with say.progress():
        from saccade import load
        from saccade.cli.columns import Reading

        how = Reading(label, labels, x, y, id_, tuple(drop or ()), header, zero_based)
        estimator = load(model)
        examples = _matching(estimator, data, how, score)
        if out != "-":
            predicted = _to_file(Path(out), estimator, examples, all_)
    if out == "-":
        predicted = _write(sys.stdout, estimator, examples, all_)
    else:
        say.note(f"{say.count(len(predicted), 'prediction')} in {out}.")
    if score:
        say.note(_score(estimator, predicted, examples.y))


def _matching(estimator: Any, data: Path, how: Reading, score: bool) -> Examples:
    """The examples with the features of the model, in its order."""
    from saccade._core.errors import InvalidInput
    from saccade.cli.read import read

    width = estimator.n_features_in_
    wanted = tuple(estimator.__dict__.pop("feature_names_in_", ()))  # else scikit-learn asks for a data frame
    examples = read(data, how, need_labels=score, width=width, wanted=wanted)
    if examples.X.shape[1] != width:
        raise InvalidInput(
            f"{data} has {say.count(examples.X.shape[1], 'feature')} and the model was trained on {width:,}. "
            "Use the columns of the training data."
        )
    if examples.ignored:
        say.note(
            f"Left out {say.count(len(examples.ignored), 'column')} that the model does not know: {_few(examples)}."
        )
    return examples


def _few(examples: Examples) -> str:
    from saccade.cli.columns import listed

    return listed(list(examples.ignored))


def _to_file(path: Path, estimator: Any, examples: Examples, every: bool) -> Array:
    from saccade._core.atomic import replacing

    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        predicted = _write(text, estimator, examples, every)
        text.flush()
        text.detach()
    return predicted


def _write(file: TextIO, estimator: Any, examples: Examples, every: bool) -> Array:
    """Write the CSV; returns the predictions."""
    import numpy as np
    from sklearn.utils import gen_batches

    from saccade._core.progress import report

    n = examples.X.shape[0]
    writer = csv.writer(file, lineterminator="\n")
    first = _names(estimator, every)
    writer.writerow([examples.id_name, *first])
    parts = []
    for rows in gen_batches(n, BLOCK_ROWS):
        predicted, lines = _lines(estimator, examples.X[rows], every)
        ids = examples.ids[rows] if examples.ids is not None else range(rows.start + 1, rows.stop + 1)
        writer.writerows([name, *line] for name, line in zip(ids, lines, strict=True))
        parts.append(predicted)
        report("predicting", rows.stop / n)
    return np.concatenate(parts)


def _names(estimator: Any, every: bool) -> list[str]:
    if hasattr(estimator, "classes_"):
        return ["label", "probability", *([f"p({c})" for c in estimator.classes_] if every else [])]
    m = estimator.tables_.T.shape[1]
    return ["value"] if m == 1 else [f"value {k + 1}" for k in range(m)]


def _lines(estimator: Any, X: Any, every: bool) -> tuple[Array, Iterator[list[Any]]]:
    predicted = estimator.predict(X)
    if not hasattr(estimator, "classes_"):
        return predicted, ([repr(value) for value in row] for row in predicted.reshape(len(predicted), -1).tolist())
    p = estimator.predict_proba(X)
    best = p.max(axis=1).tolist()
    rest = p.tolist() if every else [[]] * len(best)
    return predicted, (
        [name, f"{b:.6g}", *(f"{q:.6g}" for q in others)]
        for name, b, others in zip(predicted.tolist(), best, rest, strict=True)
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
