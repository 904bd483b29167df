"""What tuning makes small: the negative log evidence, its bound, or the leave-one-out loss, in nats per example."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.blas import one_blas_thread
from saccade._core.errors import InvalidInput
from saccade.inference.solving.evidence import log_marginal_likelihood, of_copies
from saccade.inference.solving.regression import Solving, solve
from saccade.inference.tuning.evidence_slope import Judged, exact_evidence, stochastic_evidence
from saccade.inference.tuning.loo_centre import centred_loo, has_moving_centre
from saccade.inference.tuning.loo_slope import StochasticLOO, exact_loo
from saccade.kernels import Kernel
from saccade.kernels.gram import Gram

NOISE = (1e-4, 1e2)  # bounds of the noise; at least a hundred times each way from where it starts
FEW = 10  # coordinates for which few probes are enough
TOL = {"evidence": 1e-2, "loo": 1e-3}  # residuals: as in the paper, and what leave-one-out means need
TOL_CORRECTED = 1e-3  # the same relative to the spread of these means, where their loss is corrected for residuals
ERROR = 5e-4  # of the leave-one-out loss, in nats per example: what few probes must reach
PROBES = {"evidence": (7, 15), "loo": (24, 32)}  # for few coordinates and for many
ObjectiveKind = Literal["evidence", "loo"]


class Losses(Protocol):
    """How predictions for the examples of a task are judged."""

    has_scale: ClassVar[bool]
    """Whether `left_out` changes when kernel and noise are multiplied by the same number."""

    def subset(self, rows: Array) -> Self:
        """For some of the examples."""

    def left_out(
        self, mean: Annotated[Array, "n, m"], variance: Annotated[Array, "n, 1 | n, m"]
    ) -> tuple[float, Array, Array]:
        """The loss of leave-one-out predictions, summed over examples, and its derivatives with respect to both."""

    def score(self, mean: Annotated[Array, "n, m"]) -> float:
        """The loss of predictions, per example."""


@dataclass(frozen=True)
class Task:
    """The examples to tune on."""

    kernel: Kernel  # to start from, not settled yet
    gram: Gram
    Y: Annotated[Array, "n, m"]
    shape: Annotated[Array, "n, 1 | n, m"]  # the noise of each example for noise 1
    noise: float  # to start from
    losses: Losses
    weight: Annotated[Array, "n"] | None = None  # how many equal copies each example stands for
    max_iter: int = 1000
    seed: int = 0
    scatter: Annotated[Array, "n, m"] | None = (
        None  # Σ (y − ȳ)² of the copies of each example, where their targets differ
    )

    def subset(
        self,
        rows: Annotated[Array, "b"],  # ascending
    ) -> Task:
        """Some of the examples."""
        return replace(
            self,
            gram=self.gram.subset(rows),
            Y=self.Y[rows],
            shape=self.shape[rows],
            losses=self.losses.subset(rows),
            weight=None if self.weight is None else self.weight[rows],
            scatter=None if self.scatter is None else self.scatter[rows],
        )


class Value(NamedTuple):
    """The objective in nats per example, its standard error, and its derivative."""

    value: float
    error: float
    gradient: Annotated[Array, "p"]


class Objective:
    """The objective as a function of coordinates: those of the kernel, then the logarithm of the noise."""

    def __init__(self, task: Task, kind: ObjectiveKind) -> None:
        self.task, self.kind, self.n = task, kind, len(task.Y)
        if task.noise == 0.0 and self.n > limits.FACTOR_UP_TO and not task.gram.in_memory:
            raise InvalidInput(
                f"`noise` is 0, which tunes up to {limits.FACTOR_UP_TO} examples of this kernel, got {self.n}. Pass a "
                "small `noise` such as 1e-6, or tune on fewer examples."
            )
        self.space = task.gram.space(task.kernel, task.weight)
        # evidence counts copies; a leave-one-out loss has its weights already
        self.weight = task.weight if kind == "evidence" else None
        self._total = float(self.n if self.weight is None else self.weight.sum())
        names, table, self.plain = self.space.coordinates
        self.names = [*names, "noise"]
        self.table = np.vstack([table, self._noise_row()])
        self._alpha: Array | None = None
        wanted = ERROR * self.n if len(self.names) <= FEW else 0.0
        self._loo = StochasticLOO(self._probes(), task.seed, wanted)

    def _noise_row(self) -> list[float]:
        """Start, bounds and typical step of the log noise. A noise of 0 stays 0."""
        start = self.task.noise
        if start == 0.0:
            return [-np.inf, -np.inf, -np.inf, 1.0]
        lower, upper = min(NOISE[0], start / 100), max(NOISE[1], start * 100)
        return [*np.log([start, lower, upper]), 1.0]

    def noise(self, theta: Array) -> float:
        return float(np.exp(theta[-1]))

    def __call__(self, theta: Array, strength: float = 0.0) -> Value:
        """With `strength` times the penalty of the prior."""
        K, noise = self.space.gram(theta[:-1]), self.noise(theta) * self.task.shape
        judged = self._judge(K, noise)
        by_kernel = self.space.pull(theta[:-1], K, judged.by_kernel)
        by_noise = float(np.einsum("ij,ij->", judged.by_noise, noise))
        copies, by_copies = of_copies(noise, self.task.Y.shape[1], self.weight, self.task.scatter)
        penalty, by_penalty = self.space.penalty(theta[:-1])
        gradient = np.append(by_kernel + strength * by_penalty, by_noise + by_copies) / self._total
        value = judged.value + copies + strength * penalty
        found = checked(Value(value / self._total, judged.error / self._total, gradient))
        self._alpha = judged.alpha
        return found

    def _judge(self, K: Gram, noise: Array) -> Judged:
        Y, loss = self.task.Y, self.task.losses.left_out
        few = self.n <= limits.FACTOR_UP_TO and self.n**2 * noise.shape[1] <= limits.FACTOR_NUMBERS
        if self.kind == "loo" and has_moving_centre(K):
            return centred_loo(K, noise, Y, loss, self.task.weight)
        if K.in_memory or few:
            return exact_evidence(K, noise, Y) if self.kind == "evidence" else exact_loo(K, noise, Y, loss)
        max_iter = self.task.max_iter
        with one_blas_thread():  # its threads would take cores from those of the products
            if self.kind == "loo":
                return self._loo(K, noise, Y, loss, tol=TOL_CORRECTED, max_iter=max_iter)
            more: dict[str, Any] = {"start": self._alpha, "tol": self._tol(noise), "max_iter": max_iter}
            return stochastic_evidence(K, noise, Y, probes=self._probes(), seed=self.task.seed, **more)

    def _probes(self) -> int:
        return PROBES[self.kind][len(self.names) > FEW]

    def _tol(self, noise: Array) -> float:
        """The residual to solve to: leave-one-out means become small where the noise is large."""
        return TOL[self.kind] / (1.0 if self.kind == "evidence" else 1.0 + float(noise.mean()))

    def bound(self, theta: Array) -> Value:
        """H §5.2: the negative log evidence with the upper bound of the determinant; no derivative."""
        K, noise, alpha = self.solved(theta)
        rng = np.random.default_rng(self.task.seed)
        found = log_marginal_likelihood(K, noise, self.task.Y, alpha, method="bound", rng=rng)
        apart = of_copies(noise, self.task.Y.shape[1], self.weight, self.task.scatter)[0]
        return checked(Value((apart - found.value) / self._total, 0.0, np.zeros_like(theta)))

    def solved(self, theta: Array) -> tuple[Gram, Array, Array]:
        """K, N and α = (K + N)⁻¹Y."""
        K, noise = self.space.gram(theta[:-1]), self.noise(theta) * self.task.shape
        solving = Solving("auto", self._tol(noise), self.task.max_iter, self.task.seed, start=self._alpha)
        self._alpha = solve(K, noise, self.task.Y, solving).alpha
        return K, noise, self._alpha


def checked(value: Value) -> Value:
    """The value, or an error where it or its derivative is not finite."""
    if np.isfinite(value.value) and np.isfinite(value.gradient).all():
        return value
    raise InvalidInput(
        f"The objective of tuning is {value.value} at this kernel and noise. Scale the features to about [0, 1], "
        "raise `noise`, or drop repeated examples."
    )
