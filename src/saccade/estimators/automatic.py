"""What "auto" stands for in a classifier: the noise, and the kernel, that leave-one-out predictions prefer."""

from __future__ import annotations

from typing import Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.blas import blas_threads_for
from saccade._core.errors import InvalidParameter
from saccade._core.progress import report
from saccade.estimators.class_answers import ClassAnswers
from saccade.estimators.losses import ClassLosses
from saccade.inference.tuning.choice import NOISE, NOISES, Candidate, JudgedOn, best_candidate
from saccade.inference.tuning.options import check_tune
from saccade.kernels import HIK, Kernel
from saccade.kernels.candidates import candidates
from saccade.kernels.gram import Gram


class Automatic(ClassAnswers):
    """The part of `GPClassifier` that settles noise="auto" and kernel="auto"."""

    def _check_parameters(self) -> Kernel:
        if self.kernel == "auto" and check_tune(self.tune) is not None:
            raise InvalidParameter(
                '`kernel` is "auto", which chooses among kernels of its own, and `tune` is given too. Leave `tune` '
                "out, or pass the kernel to tune, such as HIK(Power(1.0))."
            )
        return super()._check_parameters()

    def _given_noise(self) -> float:
        return NOISE if self.noise == "auto" else super()._given_noise()

    def _given_kernel(self) -> Kernel:
        return HIK() if self.kernel == "auto" else super()._given_kernel()

    def _chosen(self, X: Any, gram: Gram, Y: Array, seed: int) -> Gram:
        plain = self.inference == "regression" and not self.balanced and self.approximation in ("auto", "exact")
        learns = self.noise == "auto" and plain and self.tuning_ is None
        losses = ClassLosses(self._label, self._weight)
        if self.kernel == "auto" and len(Y) <= limits.AUTO_KERNEL_UP_TO:
            kernel, self.noise_ = chosen_kernel(X, Y, losses, self.noise_, learns, seed)
            options: dict[str, Any] = {
                "levels": self.levels,
                "binning": self.binning,
                "seed": seed,
                "engine": self.engine,
            }
            return kernel.gram(X, weight=self._weight, **options)
        if learns:
            self.noise_ = learned_noise(gram, Y, losses, self.noise_, seed)
        return gram


def learned_noise(
    gram: Gram,
    Y: Array,  # (n, m)
    losses: ClassLosses,
    noise: float,  # where the examples cannot tell a better one
    seed: int,
) -> float:
    """The noise for this kernel matrix; of many examples, a sample tells it."""
    report("choosing the noise", 0.0)
    rows = _sample(len(Y), limits.NOISE_EXAMPLES, seed)
    examples = _examples(Y, losses, rows)
    if examples.count < limits.CHOICE_FROM:
        return noise
    with blas_threads_for(rows.size):
        return best_candidate([Candidate(gram.kernel, gram.between(rows, rows))], examples, NOISES, noise).noise


def chosen_kernel(
    X: Any,  # (n, d)
    Y: Array,  # (n, m)
    losses: ClassLosses,
    noise: float,
    learns_noise: bool,
    seed: int,
) -> tuple[Kernel, float]:
    """The kernel, with numbers that a sample told, and the noise that goes with it."""
    report("choosing the kernel", 0.0)
    rows = _sample(len(Y), limits.KERNEL_EXAMPLES, seed)
    examples = _examples(Y, losses, rows)
    every = (Candidate(*found) for found in candidates(X[rows].astype(np.float64), examples.weight))
    if examples.count < limits.CHOICE_FROM:
        return next(every).kernel, noise
    with blas_threads_for(rows.size):
        found = best_candidate(every, examples, NOISES if learns_noise else (noise,), noise)
    return found.kernel, found.noise


def _sample(n: int, most: int, seed: int) -> Array:  # ascending row numbers
    return np.sort(np.random.default_rng(seed).permutation(n)[:most])


def _examples(Y: Array, losses: ClassLosses, rows: Array) -> JudgedOn:
    some = losses.subset(rows)
    return JudgedOn(Y[rows], some.weight, some.costs)
