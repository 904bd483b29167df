"""Who competes in the demo: ours, and what a newcomer would try instead, each as its own documentation proposes."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import pairwise_distances
from sklearn.svm import SVC

from saccade import GPClassifier
from saccade.kernels import HIK, GeneralizedRBF

Array = np.ndarray[Any, np.dtype[Any]]

SEED = 0
FEW = 250  # examples for a competitor whose cost grows with their cube
TEMPERATURE_SINCE = (1, 8)  # scikit-learn's version


class Contender(NamedTuple):
    method: str
    code: str
    model: Any
    ours: bool = False
    examples: int | None = None  # None: all
    note: str = ""


def contenders(X: Array) -> list[Contender]:
    """Ours, and what a newcomer would try instead, each as its own documentation proposes."""
    distance = float(np.median(pairwise_distances(X[:FEW])))
    tuned = f"only {FEW} of the {len(X)} examples; starts at their median distance and tunes the kernel itself"
    sigmoid = "CalibratedClassifierCV(SVC(), ensemble=False)"
    rows = [
        Contender("saccade HIK", "GPClassifier()", GPClassifier(random_state=SEED), True),
        Contender(
            "saccade exp-HIK",
            "GPClassifier(GeneralizedRBF(HIK()))",
            GPClassifier(GeneralizedRBF(HIK()), random_state=SEED),
            True,
            note="exp(−distance), the distance being HIK's; predicts from its training examples, not from tables",
        ),
        Contender("GPC default", "GaussianProcessClassifier()", GaussianProcessClassifier()),
        Contender(
            "GPC tuned",
            f"GaussianProcessClassifier(1.0 * RBF({distance:.1f}))",
            GaussianProcessClassifier(1.0 * RBF(distance), random_state=SEED),
            examples=FEW,
            note=tuned,
        ),
        Contender("SVC sigmoid", sigmoid, calibrated(SVC())),
        Contender("SVC isotonic", sigmoid[:-1] + ', method="isotonic")', calibrated(SVC(), "isotonic")),
    ]
    if tuple(map(int, version("scikit-learn").split(".")[:2])) >= TEMPERATURE_SINCE:
        model = calibrated(SVC(), "temperature")
        rows.append(Contender("SVC temperature", sigmoid[:-1] + ', method="temperature")', model))
    code = "CalibratedClassifierCV(SVC(kernel=HIK(scale=1.0)), ensemble=False)"
    rows.append(
        Contender(
            "SVC HIK sigmoid",
            code,
            calibrated(SVC(kernel=HIK(scale=1.0))),
            note="saccade's kernel in scikit-learn's SVC",
        )
    )
    return rows


def calibrated(svc: Any, method: str = "sigmoid") -> Any:
    return CalibratedClassifierCV(svc, ensemble=False, method=method)
