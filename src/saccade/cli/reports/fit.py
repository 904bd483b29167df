"""The page of `saccade fit --report`: what was learned, which held-out pictures were taken for what, and duplicates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saccade._core import limits
from saccade._core.progress import report
from saccade.cli import console
from saccade.cli.reports import html_page

if TYPE_CHECKING:
    from saccade._core.arrays import Array
    from saccade.cli.duplicates import Pairs
    from saccade.features import Pictures


class HeldOut(NamedTuple):
    """Held-out pictures and what the model said of them."""

    pictures: Pictures
    truth: Array  # (t,) numbers of classes
    said: Array  # (t,)
    probability: Array  # (t,) of what was said


def judged(
    estimator: Any,  # a fitted classifier
    pictures: Pictures,
    X: Any,  # their vectors
    y: Array,  # their labels
) -> HeldOut:
    p = estimator.predict_proba(X)
    return HeldOut(pictures, np.searchsorted(estimator.classes_, y), p.argmax(axis=1), p.max(axis=1))


def write_fit_report(
    path: Path,
    source: Path,
    facts: list[tuple[str, str]],  # as the command prints them
    classes: Array,  # (M,)
    tested: HeldOut | None,
    pictures: Pictures,  # all that were labelled
    y: Array,  # their labels
    pairs: Pairs | None,
) -> None:
    """One page that needs nothing else."""
    page = html_page.render(
        "fit.html",
        source=source.resolve().name or str(source),
        facts=facts,
        matrix=None if tested is None else _matrix(path, classes, tested),
        compared=pairs is not None,
        pairs=[] if pairs is None else _pairs(path, pictures, y, pairs),
        pair_count=0 if pairs is None else console.count(len(pairs.first), "pair"),
        most=limits.REPORT_FIRST,
    )
    html_page.write(path, page)


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
        cards = [_card(tested, row, links[row]) for row in shown]
        cells.append(
            {
                "row": i,
                "column": j,
                "said": console.count(len(rows), "picture"),
                "hidden": len(rows) - len(shown),
                "cards": cards,
            }
        )
        report("drawing", done / len(wrong_first))
    heads = [str(c) for c in classes]
    totals = counts.sum(axis=1)
    right = np.divide(np.diag(counts), totals, out=np.zeros(M), where=totals > 0).tolist()
    largest = int(max(counts.max(), 1))
    return {
        **{"heads": heads, "counts": counts.tolist(), "right": right, "cells": cells, "largest": largest},
        **{"all": console.count(len(tested.truth), "held-out picture"), "all_right": f"{int(np.trace(counts)):,}"},
    }


def _card(tested: HeldOut, row: int, link: str) -> dict[str, Any]:
    return {
        "picture": html_page.thumbnail(tested.pictures[row]),
        "name": tested.pictures.names[row],
        "probability": float(tested.probability[row]),
        "link": link,
    }


def _pairs(path: Path, pictures: Pictures, y: Array, pairs: Pairs) -> list[list[dict[str, Any]]]:
    links, found = html_page.links(path, pictures), []
    for pair in zip(pairs.first[: limits.REPORT_FIRST].tolist(), pairs.second.tolist(), strict=False):
        found.append(
            [
                {
                    "picture": html_page.thumbnail(pictures[i]),
                    "name": pictures.names[i],
                    "label": str(y[i]),
                    "link": links[i],
                }
                for i in pair
            ]
        )
    return found
