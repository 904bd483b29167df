"""What K Fig. 4, 5 and 6 share: kernel values of Caltech-101 and K's questions, by dense algebra.

A Gaussian process with labels ±1 and noise σ² = 1e-5 (K §7) for each class against the rest. K (7) asks about the
picture with the smallest |μ|/√(v + σ²). tests/experiments/test_asking.py compares these questions with
`saccade.active.query`.
"""

from pathlib import Path
from typing import Any

import numpy as np
from ask_data import Collection, collection
from ask_tasks import similarities
from common import Array

NOISE = 1e-5  # K §7
FEATURES = {"pyramid": "caltech-101-pyramid", "deep": "caltech-101"}
TITLES = {"pyramid": "pyramid match", "deep": "deep features"}


def similarity(features: str, cache: Path | None, classes: list[str] | None = None) -> tuple[Array, Array, list[str]]:
    """(n, n) kernel values with a mean self-similarity of 1, class numbers, names; all classes or these."""
    whole: Collection = collection(FEATURES[features], None, cache)
    names = whole.names if classes is None else classes
    rows = np.flatnonzero(np.isin(np.array(whole.names)[whole.y], names))
    kept = None if cache is None or classes is not None else cache / f"ask_{FEATURES[features]}_all_kernel.npy"
    K = similarities(whole.X[rows], kept)
    y = np.searchsorted(np.sort(names), np.array(whole.names)[whole.y[rows]])
    return K / np.diagonal(K).mean(), y, sorted(names)


class Detector:
    """The regressions of all columns of ±1 on some rows."""

    def __init__(
        self,
        K: Array,  # (n, n)
        targets: Array,  # (n, m)
    ) -> None:
        from saccade.solvers.cholesky import factorise

        self.factor = factorise(K, np.full(len(K), NOISE))
        self.alpha = self.factor.solve(targets)

    def mean(
        self,
        k_star: Array,  # (t, n)
    ) -> Array:  # (t, m)
        return np.asarray(k_star @ self.alpha)

    def doubt(
        self,
        k_star: Array,  # (t, n)
        prior: Array,  # (t,)
    ) -> Array:  # (t, m), smallest where most uncertain
        """|μ|/√(v + σ²), K (7)."""
        half = self.factor.half_solve(k_star.T)
        variance = np.maximum(prior - np.einsum("nt,nt->t", half, half), 0.0)
        return np.asarray(np.abs(self.mean(k_star)) / np.sqrt(variance + NOISE)[:, None])


def add_options(parser: Any) -> None:
    parser.add_argument("--features", nargs="*", default=list(FEATURES), help=f"some of {list(FEATURES)}")
