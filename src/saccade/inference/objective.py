"""What tuning makes small: the negative log evidence, its bound, or the leave-one-out loss, in nats an example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.inference.evidence import EXACT_UP_TO, log_marginal_likelihood, of_copies
from saccade.inference.evidence_slope import Judged, exact_evidence, stochastic_evidence
from saccade.inference.loo_slope import Loss, StochasticLOO, exact_loo
from saccade.inference.parameters import Space
from saccade.inference.regression import solve
from saccade.kernels import Kernel
from saccade.operators.base import Operator

NOISE = (1e-4, 1e2)  # where the noise may go, or a hundred times beyond where it starts
FEW = 10  # coordinates that few probes are enough for
TOL = {"evidence": 1e-2, "loo": 1e-3}  # residuals: the paper's stop, and what leave-one-out means need
PROBES = {"evidence": (7, 15), "loo": (24, 32)}  # for few coordinates and for many


@dataclass(frozen=True)
class Task:
    """The examples to tune on, as inference sees them."""

    space: Callable[[Array | None], Space]  # example numbers, None for all -> kernels on them
    Y: Array  # (n, m)
    shape: Array  # (n, 1) or (n, m): the noise of each example for noise 1
    noise: float  # to start from
    loss: Callable[[Array], Loss]  # example numbers -> leave-one-out loss, summed
    score: Callable[[Array, Array], float]  # example numbers, means -> loss of predictions for them, an example
    loss_has_scale: bool  # whether the loss depends on the scale of the kernel when the noise moves with it
    weight: Array | None  # (n,): how many equal copies each example stands for
    max_iter: int
    seed: int


class Value(NamedTuple):
    """The objective in nats an example, its standard error, and its derivative."""

    value: float
    error: float
    gradient: Array  # (p,)


class Objective:
    """The objective on some examples as a function of coordinates: those of the kernel, then the noise."""

    def __init__(self, task: Task, rows: Array | None, kind: str) -> None:
        some = np.arange(len(task.Y)) if rows is None else rows
        self.task, self.kind, self.rows = task, kind, some
        self.space = task.space(rows)
        self.Y, self.shape, self.loss = task.Y[some], task.shape[some], task.loss(some)
        # evidence counts copies; a leave-one-out loss has its weights already
        self.weight = task.weight[some] if task.weight is not None and kind == "evidence" else None
        self._total = float(len(some) if self.weight is None else self.weight.sum())
        names, table = self.space.coordinates
        lower, upper = min(NOISE[0], task.noise / 100), max(NOISE[1], task.noise * 100)
        self.names = [*names, "noise"]
        self.table = np.vstack([table, [*np.log([task.noise, lower, upper]), 1.0]])
        self._alpha: Array | None = None
        self._loo = StochasticLOO(self._probes(), task.seed)

    @property
    def n(self) -> int:
        return len(self.Y)

    def kernel(self, theta: Array) -> Kernel:
        return self.space.kernel(theta[:-1])

    def noise(self, theta: Array) -> float:
        return float(np.exp(theta[-1]))

    def __call__(self, theta: Array, strength: float = 0.0) -> Value:
        """With `strength` times the prior's penalty."""
        kernel = self.kernel(theta)
        K, noise = self.space.operator(kernel), self.noise(theta) * self.shape
        judged = self._judge(K, noise)
        by_kernel = self.space.pull(theta[:-1], K, judged.slope)
        by_noise = float(np.einsum("ij,ij->", judged.slope.noise, noise))
        copies, by_copies = of_copies(noise, self.Y.shape[1], self.weight)
        penalty, by_penalty = self.space.penalty(theta[:-1])
        gradient = np.append(by_kernel + strength * by_penalty, by_noise + by_copies) / self._total
        value = judged.value + copies + strength * penalty
        found = checked(Value(value / self._total, judged.error / self._total, gradient))
        self._alpha = judged.alpha
        return found

    def _judge(self, K: Operator, noise: Array) -> Judged:
        columns = noise.shape[1]
        if K.in_memory or (self.n <= EXACT_UP_TO and self.n**2 * columns <= 8 * EXACT_UP_TO**2):
            evidence = self.kind == "evidence"
            return exact_evidence(K, noise, self.Y) if evidence else exact_loo(K, noise, self.Y, self.loss)
        options: dict[str, Any] = {
            "start": self._alpha,
            "tol": self._tol(noise),
            "max_iter": self.task.max_iter,
        }
        if self.kind == "evidence":
            return stochastic_evidence(K, noise, self.Y, probes=self._probes(), seed=self.task.seed, **options)
        return self._loo(K, noise, self.Y, self.loss, **options)

    def _probes(self) -> int:
        return PROBES[self.kind][len(self.names) > FEW]

    def _tol(self, noise: Array) -> float:
        """The residual to solve to: leave-one-out means become small where the noise is large."""
        return TOL[self.kind] / (1.0 if self.kind == "evidence" else 1.0 + float(noise.mean()))

    def bound(self, theta: Array) -> Value:
        """H §5.2: the negative log evidence with the upper bound of the determinant; no derivative."""
        kernel = self.kernel(theta)
        K, noise = self.space.operator(kernel), self.noise(theta) * self.shape
        rng = np.random.default_rng(self.task.seed)
        alpha = self.solved(kernel, K, noise)
        found = log_marginal_likelihood(K, noise, self.Y, alpha, method="bound", rng=rng, weight=self.weight)
        return checked(Value(-found.value / self._total, 0.0, np.zeros_like(theta)))

    def solved(self, kernel: Kernel, K: Operator, noise: Array) -> Array:  # (n, m)
        """(K + N)⁻¹Y."""
        posterior = solve(
            K,
            noise,
            self.Y,
            tol=self._tol(noise),
            max_iter=self.task.max_iter,
            rng=np.random.default_rng(self.task.seed),
            start=self._alpha,
            leave_one_out=False,
        )
        self._alpha = posterior.alpha
        return posterior.alpha


def checked(value: Value) -> Value:
    """The value, unless rounding has eaten it."""
    if np.isfinite(value.value) and np.isfinite(value.gradient).all():
        return value
    raise InvalidInput(
        f"The objective of tuning is {value.value} at this kernel and noise. Scale the features to about [0, 1], "
        "raise `noise`, or drop repeated examples."
    )
