"""The page of `saccade fit --report`: what was learned, which held-out pictures were taken for what, and duplicates."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.cli import console
from saccade.cli.duplicates import Pairs
from saccade.cli.reports import html_page


class HeldOut(NamedTuple):
    """Held-out pictures and what the model said of them."""

    pictures: Any
    truth: Annotated[Array, "t"]  # numbers of classes
    said: Annotated[Array, "t"]
    probability: Annotated[Array, "t"]  # of what was said


def judged(
    estimator: Any,  # a fitted classifier
    pictures: Any,
    X: Any,  # their vectors
    y: Array,  # their labels
) -> HeldOut:
    p = estimator.predict_proba(X)
    return HeldOut(pictures, np.searchsorted(estimator.classes_, y), p.argmax(axis=1), p.max(axis=1))


def write_fit_report(
    path: Path,
    source: Path,
    facts: list[tuple[str, str]],  # as the command prints them
    classes: Annotated[Array, "M"],
    tested: HeldOut | None,
    pictures: Any,  # all that were labelled
    y: Array,  # their labels
    pairs: Pairs | None,
) -> None:
    html_page.write_page(
        path,
        "fit.html",
        source=html_page.short(source),
        facts=facts,
        matrix=None if tested is None else _matrix(path, classes, tested),
        compared=pairs is not None,
        pairs=[] if pairs is None else _pairs(path, pictures, y, pairs),
        pair_count=0 if pairs is None else console.count(len(pairs.first), "pair"),
        most=limits.REPORT_FIRST,
    )


def _matrix(path: Path, classes: Array, tested: HeldOut) -> dict[str, Any]:
    """Counts by true class and answer; the pictures of each cell, mistakes first in full, of right answers some."""
    M = len(classes)
    counts = np.zeros((M, M), int)
    np.add.at(counts, (tested.truth, tested.said), 1)
    links, cells = html_page.links(path, tested.pictures), []
    wrong_first = sorted(zip(*np.nonzero(counts), strict=True), key=lambda cell: (cell[0] == cell[1], *cell))
    for done, (i, j) in enumerate(wrong_first, 1):
        rows = np.flatnonzero((tested.truth == i) & (tested.said == j))
        rows = rows[np.argsort(tested.probability[rows], kind="stable")]
        shown = rows[: limits.REPORT_FIRST if i != j else limits.CELL_PICTURES].tolist()
        cards = [
            {**html_page.card(tested.pictures, row, links[row]), "probability": float(tested.probability[row])}
            for row in shown
        ]
        said = {"said": console.count(len(rows), "picture"), "hidden": len(rows) - len(shown), "cards": cards}
        cells.append({"row": i, "column": j, **said})
        report("drawing", done / len(wrong_first))
    heads = [str(c) for c in classes]
    totals = counts.sum(axis=1)
    right = np.divide(np.diag(counts), totals, out=np.zeros(M), where=totals > 0).tolist()
    largest = int(max(counts.max(), 1))
    return {
        **{"heads": heads, "counts": counts.tolist(), "right": right, "cells": cells, "largest": largest},
        **{"all": console.count(len(tested.truth), "held-out picture"), "all_right": f"{int(np.trace(counts)):,}"},
    }


def _pairs(path: Path, pictures: Any, y: Array, pairs: Pairs) -> list[list[dict[str, Any]]]:
    links = html_page.links(path, pictures)
    shown = zip(pairs.first[: limits.REPORT_FIRST].tolist(), pairs.second.tolist(), strict=False)
    return [[{**html_page.card(pictures, i, links[i]), "label": str(y[i])} for i in pair] for pair in shown]
