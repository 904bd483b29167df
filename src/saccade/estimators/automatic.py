"""What "auto" stands for in a classifier: the noise, and the kernel, that leave-one-out predictions prefer."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.blas import blas_threads_for
from saccade._core.progress import report
from saccade.estimators.losses import ClassLosses
from saccade.inference.tuning.choice import NOISES, Candidate, JudgedOn, best_candidate
from saccade.inference.tuning.objective import Losses
from saccade.kernels import Kernel
from saccade.kernels.candidates import candidates
from saccade.kernels.gram import Gram


class Choice(NamedTuple):
    """What "auto" became: another kernel or None, and the noise."""

    kernel: Kernel | None
    noise: float


class Automatic(NamedTuple):
    """Which of kernel and noise are "auto"."""

    kernel: bool = False  # is chosen
    noise: bool = False  # is "auto": a model that goes on learning keeps it
    learns_noise: bool = False  # leave-one-out predictions choose it: for label regression with an exact mean

    def choose(self, X: Any, gram: Gram, Y: Array, losses: Losses, noise: float, seed: int) -> Choice:
        """Kernel and noise for the rows X (n, d) with targets Y (n, m); numbers and members of a class choose none."""
        if not isinstance(losses, ClassLosses):
            return Choice(None, noise)
        if self.kernel and len(Y) <= limits.AUTO_KERNEL_UP_TO:
            return Choice(*chosen_kernel(X, Y, losses, noise, self.learns_noise, seed))
        return Choice(None, learned_noise(gram, Y, losses, noise, seed) if self.learns_noise else noise)


def learned_noise(
    gram: Gram,
    Y: Annotated[Array, "n, m"],
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
    X: Annotated[Any, "n, d"],
    Y: Annotated[Array, "n, m"],
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
