"""What "auto" stands for in a classifier: the noise, and the kernel, that leave-one-out predictions prefer."""

from collections.abc import Iterator
from itertools import starmap
from typing import Any, NamedTuple

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
        """Kernel and noise for the rows X (n, d) with targets Y (n, m), by a sample of them.

        Numbers and members of one class choose none, and so do few examples, which cannot tell a better one.
        """
        kernels = self.kernel and len(Y) <= limits.AUTO_KERNEL_UP_TO
        if not isinstance(losses, ClassLosses) or not (kernels or self.learns_noise):
            return Choice(None, noise)
        what, most = ("kernel", limits.KERNEL_EXAMPLES) if kernels else ("noise", limits.NOISE_EXAMPLES)
        report(f"choosing the {what}", 0.0)
        rows = np.sort(np.random.default_rng(seed).permutation(len(Y))[:most])
        some = losses.subset(rows)
        examples = JudgedOn(Y[rows], some.weight, some.costs)
        every: Iterator[Candidate]
        with blas_threads_for(rows.size):
            if kernels:
                every = starmap(Candidate, candidates(X[rows].astype(np.float64), examples.weight))
            else:
                every = iter([Candidate(gram.kernel, gram.between(rows, rows))])
            if examples.count < limits.CHOICE_FROM:
                return Choice(next(every).kernel if kernels else None, noise)
            best = best_candidate(every, examples, NOISES if self.learns_noise else (noise,), noise)
        return Choice(best.kernel if kernels else None, best.noise)
