"""What the demo measures: pictures in, numbers out; no printing, no drawing."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from skimage.feature import hog
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split
from threadpoolctl import threadpool_limits

from examples.demo.contenders import SEED, Contender, TunedSVC, contenders
from examples.demo.find import FaceSearch, find_face
from saccade import GPClassifier, load
from saccade._core.arrays import Array
from saccade._core.threads import thread_count
from saccade.cli import console
from saccade.datasets import embedded
from saccade.kernels import HIK, GeneralizedRBF
from saccade.scores.probability import expected_calibration_error

Say = Callable[[str], None]

REPEATS = 5  # of a half/half split of the faces: each picture is held out five times
NEW_CLASS = 9
NINES = (0, 1, 2, 5, 10, 20, 40)  # after how many examples of the new class to look


@dataclass(frozen=True)
class Trial:
    """One classifier on the digits: a row of the table."""

    method: str
    code: str
    ours: bool
    examples: int
    accuracy: float
    confidence: float
    calibration_error: float
    log_loss: float
    fit_seconds: float
    predict_microseconds: float  # per example
    note: str
    probability: Array = field(repr=False)  # (n, M), of the test examples


class Split(NamedTuple):
    """Half of the digits to learn from, half to be asked about."""

    X: Array  # (n, d)
    y: Array  # (n,)
    X_test: Array
    y_test: Array
    pictures: Array  # (n_test, 8, 8)


def edges(
    pictures: Array,  # (n, h, w)
) -> Array:  # (n, 4hw)
    """Slopes of the grey values in four directions, with their sign, which HIK takes apart."""
    P = np.pad(pictures, ((0, 0), (1, 1), (1, 1)), mode="edge")
    steps = (
        P[:, 1:-1, 2:] - P[:, 1:-1, :-2],
        P[:, 2:, 1:-1] - P[:, :-2, 1:-1],
        P[:, 2:, 2:] - P[:, :-2, :-2],
        P[:, 2:, :-2] - P[:, :-2, 2:],
    )
    return np.hstack([0.5 * step.reshape(len(pictures), -1) for step in steps])


def split_digits() -> Split:
    X, y = embedded.digits()
    pictures = X.reshape(-1, *embedded.DIGIT_SHAPE)
    train, test = train_test_split(np.arange(y.size), test_size=0.5, stratify=y, random_state=SEED)
    F = edges(pictures)
    return Split(F[train], y[train], F[test], y[test], pictures[test])


def warm_up() -> float:
    """Seconds to compile or load every loop the demo runs, so that no timing below includes it."""
    start = time.perf_counter()
    data = split_digits()
    for kernel in (HIK(), GeneralizedRBF(HIK())):
        GPClassifier(kernel).fit(data.X[:60], data.y[:60]).predict_proba(data.X_test[:60])
    return time.perf_counter() - start


def try_digits(data: Split, say: Say) -> list[Trial]:
    trials = []
    for contender in contenders(data.X):
        say(f"Digits: {contender.method}")
        trials.append(_try(contender, data))
    return trials


def _try(contender: Contender, data: Split) -> Trial:
    n = contender.examples or len(data.X)
    X, y = data.X[:n], data.y[:n]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model, fit_seconds = _timed(lambda: clone(contender.model).fit(X, y))
        P, predict_seconds = _timed(lambda: model.predict_proba(data.X_test))
    note = contender.note
    if n < len(data.X):
        squared, cubed = (fit_seconds * (len(data.X) / n) ** p for p in (2, 3))
        note += f". All would take an estimated {squared:.0f} to {cubed:.0f} s (square or cube of the number)"
    return Trial(
        method=contender.method,
        code=contender.code,
        ours=contender.ours,
        examples=n,
        accuracy=float((P.argmax(axis=1) == data.y_test).mean()),
        confidence=float(P.max(axis=1).mean()),
        calibration_error=expected_calibration_error(P, data.y_test),
        log_loss=float(log_loss(data.y_test, P)),
        fit_seconds=fit_seconds,
        predict_microseconds=predict_seconds / len(P) * 1e6,
        note=note,
        probability=P,
    )


def _timed(work: Callable[[], Any], enough: float = 0.5, most: int = 5) -> tuple[Any, float]:
    """The result and the median seconds of up to `most` runs, fewer when they take long."""
    seconds: list[float] = []
    while not seconds or (len(seconds) < most and sum(seconds) < enough):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return result, median(seconds)


@dataclass(frozen=True)
class FaceTrial:
    features: str
    method: str
    ours: bool
    accuracy: float  # mean over the splits
    spread: float  # standard deviation over the splits
    log_loss: float
    probability: Array = field(repr=False)  # (n,) of a face, mean over the times the picture was held out


@dataclass(frozen=True)
class Faces:
    trials: list[FaceTrial]
    splits: int
    pictures: Array = field(repr=False)  # (n, 25, 25)
    y: Array = field(repr=False)  # (n,)


def try_faces(say: Say) -> Faces:
    X, y = embedded.faces()
    pictures = X.reshape(-1, *embedded.FACE_SHAPE)
    say("Faces: features")
    oriented = [hog(p, orientations=8, pixels_per_cell=(5, 5), cells_per_block=(2, 2)) for p in pictures]
    models = {
        "saccade HIK": GPClassifier(random_state=SEED),
        "saccade exp-HIK": GPClassifier(GeneralizedRBF(HIK()), random_state=SEED),
        "SVC sigmoid": TunedSVC(),
    }
    trials = []
    for features, F in (("edges", edges(pictures)), ("HOG", np.array(oriented))):
        for method, model in models.items():
            say(f"Faces: {method} on {features}")
            trials.append(_try_faces(features, method, model, F, y))
    return Faces(trials, 2 * REPEATS, pictures, y)


def _try_faces(features: str, method: str, model: Any, F: Array, y: Array) -> FaceTrial:
    accuracy, loss, P = [], [], np.zeros(y.size)
    for train, test in RepeatedStratifiedKFold(n_splits=2, n_repeats=REPEATS, random_state=SEED).split(F, y):
        p = clone(model).fit(F[train], y[train]).predict_proba(F[test])
        accuracy.append((p.argmax(axis=1) == y[test]).mean())
        loss.append(log_loss(y[test], p))
        P[test] += p[:, 1] / REPEATS
    ours = method.startswith("saccade")
    return FaceTrial(features, method, ours, float(np.mean(accuracy)), float(np.std(accuracy)), float(np.mean(loss)), P)


@dataclass(frozen=True)
class Saving:
    bytes: int
    examples: int
    identical: bool
    load_seconds: float


def try_saving(data: Split, path: Path) -> Saving:
    """Write a model, read it back and ask both about the whole test half."""
    model = GPClassifier(random_state=SEED).fit(data.X, data.y)
    model.save(path)
    start = time.perf_counter()
    again = load(path)
    seconds = time.perf_counter() - start
    identical = np.array_equal(model.predict_proba(data.X_test), again.predict_proba(data.X_test))
    return Saving(path.stat().st_size, len(data.X), identical, seconds)


@dataclass(frozen=True)
class Growing:
    examples: list[int]  # of the new class, so far
    new_right: list[float]  # share of the new class's test pictures recognised
    old_right: list[float]  # share of the other test pictures
    update_seconds: float  # the last partial_fit
    difference: float  # largest |Δ probability| from a model fitted on everything at once


def try_growing(data: Split) -> Growing:
    """Learn the digits 0 to 8, then meet the nines a few at a time."""
    new, test_new = data.y == NEW_CLASS, data.y_test == NEW_CLASS
    X_new, y_new = data.X[new], data.y[new]
    model = GPClassifier(random_state=SEED).fit(data.X[~new], data.y[~new])
    counts = [*(n for n in NINES if n < len(y_new)), len(y_new)]
    new_right, old_right, seconds = [], [], 0.0
    for before, count in zip([0, *counts], counts, strict=False):
        if count:
            start = time.perf_counter()
            model.partial_fit(X_new[before:count], y_new[before:count])
            seconds = time.perf_counter() - start
        right = model.predict(data.X_test) == data.y_test
        new_right.append(float(right[test_new].mean()))
        old_right.append(float(right[~test_new].mean()))
    at_once = GPClassifier(random_state=SEED).fit(data.X, data.y)
    difference = np.abs(model.predict_proba(data.X_test) - at_once.predict_proba(data.X_test)).max()
    return Growing(counts, new_right, old_right, seconds, float(difference))


@dataclass(frozen=True)
class Demo:
    """All that one run found out."""

    data: Split = field(repr=False)
    digits: list[Trial]
    faces: Faces
    saving: Saving
    growing: Growing
    finding: FaceSearch
    machine: str
    warm_up_seconds: float
    seconds: float  # everything before the drawing


def run_all(folder: Path, say: Say) -> Demo:
    """Every measurement, one after the other; the model file is left in the folder."""
    start = time.perf_counter()
    # One BLAS thread for every method: on a busy machine several wait for each other on small matrices.
    with threadpool_limits(1, "blas"):
        say("Compiling (the first time only)")
        warm = warm_up()
        data = split_digits()
        digits = try_digits(data, say)
        faces = try_faces(say)
        say("Saving and loading a model")
        saving = try_saving(data, folder / "digits.saccade")
        say("Adding a new class to a fitted model")
        growing = try_growing(data)
        say("Finding a face in a photograph")
        finding = find_face()
    return Demo(data, digits, faces, saving, growing, finding, machine(), warm, time.perf_counter() - start)


def machine() -> str:
    """Cores and versions, for whoever reads the times."""
    versions = (f"{name} {version(name)}" for name in ("saccade", "numpy", "scikit-learn", "numba"))
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{console.count(thread_count(), 'core')}, {system}, {', '.join(versions)}"


def numbers(demo: Demo) -> dict[str, Any]:
    """What a program would want to read: every number of the run, without the pictures and the probabilities."""
    return {
        "machine": demo.machine,
        "seconds": demo.seconds,
        "warm_up_seconds": demo.warm_up_seconds,
        "digits": {
            "train": len(demo.data.y),
            "test": len(demo.data.y_test),
            "rows": [_plain(trial) for trial in demo.digits],
        },
        "faces": {"splits": demo.faces.splits, "rows": [_plain(trial) for trial in demo.faces.trials]},
        "saving": _plain(demo.saving),
        "growing": _plain(demo.growing),
        "finding": _plain(demo.finding),
    }


def _plain(record: Any) -> dict[str, Any]:
    return {f.name: getattr(record, f.name) for f in fields(record) if f.repr}
