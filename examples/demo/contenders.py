"""Who competes in the demo: ours untuned, and what people would use instead, each set up with care.

The SVMs choose C, and with RBF γ, by cross-validation on the training examples, then calibrate; scikit-learn's GP
starts at the median distance and learns its kernel by evidence. All features have the same
unit, so that no method needs a scaler.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from saccade import GPClassifier
from saccade._core.arrays import Array
from saccade.kernels import HIK, GeneralizedRBF

SEED = 0
FEW = 250  # examples for a competitor whose cost grows with their cube
TEMPERATURE_SINCE = (1, 8)  # scikit-learn's version
COSTS, FACTORS, FOLDS = (1.0, 10.0, 100.0), (0.25, 1.0, 4.0), 3  # of C, of γ relative to "scale", of cross-validation


class Contender(NamedTuple):
    method: str
    code: str
    model: Any
    ours: bool = False
    examples: int | None = None  # None: all
    note: str = ""


def contenders(X: Array) -> list[Contender]:
    """The rows of the table."""
    distance = float(np.median(pairwise_distances(X[:FEW])))
    tuned = f"only {FEW} of the {len(X)} examples; starts at their median distance and tunes the kernel itself"
    chosen = (
        f"C of {COSTS} and γ of {FACTORS} times the usual, by cross-validation on the training examples, in the time"
    )
    rows = [
        Contender("saccade HIK", "GPClassifier()", GPClassifier(random_state=SEED), True),
        Contender(
            "saccade exp-HIK",
            "GPClassifier(GeneralizedRBF(HIK()))",
            GPClassifier(GeneralizedRBF(HIK()), random_state=SEED),
            True,
            note="exp(−distance), the distance being HIK's; predicts from its training examples, not from tables",
        ),
        Contender(
            "GPC tuned",
            f"GaussianProcessClassifier(1.0 * RBF({distance:.1f}))",
            GaussianProcessClassifier(1.0 * RBF(distance), random_state=SEED),
            examples=FEW,
            note=tuned,
        ),
        Contender("SVC sigmoid", code_of("SVC()"), TunedSVC(), note=chosen),
        Contender("SVC isotonic", code_of("SVC()", "isotonic"), TunedSVC(method="isotonic")),
    ]
    if tuple(map(int, version("scikit-learn").split(".")[:2])) >= TEMPERATURE_SINCE:
        rows.append(Contender("SVC temperature", code_of("SVC()", "temperature"), TunedSVC(method="temperature")))
    note = "saccade's kernel in scikit-learn's SVC, C chosen likewise"
    rows.append(
        Contender(
            "SVC HIK sigmoid", code_of("SVC(kernel=HIK())"), TunedSVC(HIK(scale=1.0 / own_similarity(X))), note=note
        )
    )
    return rows


def own_similarity(X: Array) -> float:
    """Mean of k(x, x) with scale 1, as HIK(scale="auto") takes it: C then means the same as for RBF."""
    return float(np.abs(X).sum(axis=1).mean())


def code_of(svc: str, method: str | None = None) -> str:
    """What a user would write."""
    how = f', method="{method}"' if method else ""
    return f"CalibratedClassifierCV(tuned {svc}, ensemble=False{how})"


class TunedSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An SVC with C, and γ of an RBF, chosen by cross-validation, then calibrated."""

    def __init__(self, kernel: Any = "rbf", method: str = "sigmoid") -> None:
        self.kernel = kernel
        self.method = method

    def fit(self, X: Array, y: Array) -> Self:
        grid: dict[str, Any] = {"C": COSTS}
        if self.kernel == "rbf":
            usual = 1.0 / (X.shape[1] * X.var())  # gamma="scale"
            grid["gamma"] = [usual * factor for factor in FACTORS]
        best = GridSearchCV(SVC(kernel=self.kernel), grid, cv=FOLDS, refit=False).fit(X, y).best_params_
        svc = SVC(kernel=self.kernel, **best)
        self.model_ = CalibratedClassifierCV(svc, ensemble=False, method=self.method).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Array) -> Array:
        return np.asarray(self.model_.predict_proba(X))
