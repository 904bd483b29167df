"""The demo as one page that needs nothing else: no server, no network, no other file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from examples.demo.figures import data_uri, growth, most_doubtful, reliability
from examples.demo.find import FaceSearch
from examples.demo.trials import Demo, FaceTrial, Trial
from saccade.cli import console
from saccade.cli.reports.find import player
from saccade.cli.reports.html_page import percent, render

DOUBTFUL_DIGITS, CERTAIN_DIGITS = 16, 8
DOUBTFUL_FACES, CERTAIN_FACES = 24, 12

WHAT_NEXT = """\
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
import saccade

X, y = load_digits(return_X_y=True)  # or your own: one row of numbers per picture
X, X_new, y, y_new = train_test_split(X, y, random_state=0)
model = saccade.GPClassifier().fit(X, y)
probability = model.predict_proba(X_new)
doubtful = probability.max(axis=1).argsort()[:10]  # worth a second look
model.partial_fit(X_new[doubtful], y_new[doubtful])  # learn from them; new classes are welcome
model.save("digits.saccade")
model = saccade.load("digits.saccade")
"""


class Column(NamedTuple):
    head: str
    value: Callable[[Any], float]
    show: Callable[[float], str]
    best: Callable[[Iterable[float]], float] | None = None  # min, max, or no best


COLUMNS = (
    Column("trained on", lambda t: t.examples, lambda v: f"{v:.0f}"),
    Column("accuracy", lambda t: t.accuracy, percent, max),
    Column("mean confidence", lambda t: t.confidence, percent),
    Column("calibration error", lambda t: t.calibration_error, lambda v: f"{v:.3f}", min),
    Column("log loss", lambda t: t.log_loss, lambda v: f"{v:.3f}", min),
    Column("fit, s", lambda t: t.fit_seconds, lambda v: f"{v:.2f}", min),
    Column("predict, µs each", lambda t: t.predict_microseconds, lambda v: f"{v:.0f}", min),
)
FACE_COLUMNS = (
    Column("accuracy", lambda t: t.accuracy, percent, max),
    Column("± over splits", lambda t: t.spread, percent),
    Column("log loss", lambda t: t.log_loss, lambda v: f"{v:.3f}", min),
)


def page(demo: Demo) -> str:
    """The whole report; every number in it comes from the run."""
    return render(
        Path(__file__).with_name("report.html"),
        seconds=console.duration(demo.seconds),
        machine=demo.machine,
        warm_up=console.duration(demo.warm_up_seconds),
        what_next=WHAT_NEXT,
        **_digits(demo) | _faces(demo) | _saving(demo) | _growing(demo) | _finding(demo),
    )


def _digits(demo: Demo) -> dict[str, Any]:
    data, trials = demo.data, demo.digits
    ours = trials[0]
    surest = ours.probability.max(axis=1).argsort(kind="stable")[::-1]
    return {
        "first": ours.method,
        "accuracy": percent(ours.accuracy),
        "confidence": percent(ours.confidence),
        "fit": console.duration(ours.fit_seconds),
        "train": len(data.y),
        "test": len(data.y_test),
        "digits": len(data.y) + len(data.y_test),
        "digit_table": _table(trials, COLUMNS),
        "notes": [(t.method, t.note) for t in trials if t.note],
        "reliability": reliability(trials, data.y_test),
        "doubtful_count": DOUBTFUL_DIGITS,
        "certain_count": CERTAIN_DIGITS,
        "doubtful_digits": [_digit(demo, i) for i in most_doubtful(ours.probability, DOUBTFUL_DIGITS).tolist()],
        "certain_digits": [_digit(demo, i) for i in surest[:CERTAIN_DIGITS].tolist()],
    }


def _faces(demo: Demo) -> dict[str, Any]:
    faces = demo.faces
    first, P = faces.trials[0], faces.trials[0].probability
    doubt, by_face = np.abs(P - 0.5).argsort(kind="stable"), P.argsort(kind="stable")
    wrong = doubt[(P[doubt] > 0.5) != (faces.y[doubt] == 1)]
    return {
        "faces": len(faces.y),
        "face_count": int((faces.y == 1).sum()),
        "background_count": int((faces.y == 0).sum()),
        "splits": faces.splits,
        "held_out": faces.splits // 2,
        "face_table": _table(faces.trials, FACE_COLUMNS),
        "face_first": f"{first.method} on {first.features}",
        "wrong": len(wrong),
        "wrong_faces": [_face(demo, i) for i in wrong.tolist()],
        "doubtful_faces": [_face(demo, i) for i in doubt[:DOUBTFUL_FACES].tolist()],
        "certain_faces": [_face(demo, i) for i in by_face[::-1][:CERTAIN_FACES].tolist()],
        "certain_backgrounds": [_face(demo, i) for i in by_face[:CERTAIN_FACES].tolist()],
    }


def _saving(demo: Demo) -> dict[str, Any]:
    return {
        "size": console.size(demo.saving.bytes),
        "load_time": f"{demo.saving.load_seconds * 1000:.1f} ms",
        "same": "exactly the same" if demo.saving.identical else "NOT the same",
    }


def _growing(demo: Demo) -> dict[str, Any]:
    growing = demo.growing
    return {
        "growth": growth(growing),
        "nines": growing.examples[-1],
        "new_right": percent(growing.new_right[-1]),
        "old_right": percent(growing.old_right[-1]),
        "old_before": percent(growing.old_right[0]),
        "update": console.duration(growing.update_seconds),
        "difference": f"{growing.difference:.0e}",
    }


def _finding(demo: Demo) -> dict[str, Any]:
    finding = demo.finding
    return {
        "player": player(finding.search, "face"),
        "finding_crops": f"{finding.crops:,}",
        "finding_text": finding_text(finding),
        "windows": f"{finding.windows:,}",
    }


def finding_text(finding: FaceSearch) -> str:
    """What the search of the demo came to, whether it found the face or not."""

    def came(looks: int | None) -> str:
        return f"missed in {finding.looks} looks" if looks is None else f"found after {looks} looks"

    overlap = f"overlap {finding.overlap:.2f} after {finding.looks}"
    anywhere = came(finding.looks_to_half_anywhere)
    return f"{came(finding.looks_to_half)} ({overlap}); {anywhere} if it may be anywhere."


def best_text(rows: list[Any], column: Column) -> str | None:
    """What the best cell of a column shows; others that show the same are as good."""
    return None if column.best is None else column.show(column.best(map(column.value, rows)))


def _table(rows: list[Any], columns: tuple[Column, ...]) -> dict[str, Any]:
    return {
        "heads": [column.head for column in columns],
        "best": [best_text(rows, column) for column in columns],
        "rows": [{**_names(row), "cells": [column.show(column.value(row)) for column in columns]} for row in rows],
    }


def _names(trial: Trial | FaceTrial) -> dict[str, Any]:
    if isinstance(trial, FaceTrial):
        return {"name": f"{trial.method}, {trial.features}", "code": "", "ours": trial.ours}
    return {"name": trial.method, "code": trial.code, "ours": trial.ours}


def _digit(demo: Demo, i: int) -> dict[str, Any]:
    p, truth = demo.digits[0].probability[i], int(demo.data.y_test[i])
    top = p.argsort()[::-1][:3]
    return {
        "picture": data_uri(demo.data.pictures[i], "gray_r"),
        "alternative": f"a handwritten {truth}",
        "answers": [(c, p[c], percent(p[c])) for c in top],
        "wrong": top[0] != truth,
        "text": f"is {truth}",
    }


def _face(demo: Demo, i: int) -> dict[str, Any]:
    p, is_face = demo.faces.trials[0].probability[i], demo.faces.y[i] == 1
    return {
        "picture": data_uri(demo.faces.pictures[i], "gray"),
        "alternative": "a face" if is_face else "background",
        "wrong": (p > 0.5) != is_face,
        "text": percent(p),
    }
