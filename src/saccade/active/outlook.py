"""What is known of some candidates, and how it changes when one of them joins the batch.

A label that is asked for is not known yet, so the mean stays. Variance and covariance need no label: they are
conditioned on what is in the batch already, by one step of a pivoted Cholesky factor per choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np

from saccade._core.arrays import Array
from saccade.active.cover import Gains
from saccade.inference.posterior.pool import PoolPosterior
from saccade.scores.value import Stakes

TIE = 1e-9  # relative: scores closer than this are equal, and the first row is taken, on every processor
TIE_SINGLE = 1e-4  # likewise, where sums are in float32


@dataclass(eq=False)
class CandidateState:
    """What is known of the candidates, one row each; `take` changes it."""

    rows: Annotated[Array, "s"]  # in the pool
    noise: float
    prior: Annotated[Array, "s"]  # k(x, x)
    variance: Annotated[Array, "s"]  # σ²
    means: Callable[[], Annotated[Array, "s, m"]]  # made when first wanted, as are
    calibrated: Callable[[], Annotated[Array, "s, m"]]  # the class probabilities
    sums: Annotated[Array, "s"]  # Σ c over all targets
    squares: Annotated[Array, "s"]  # Σ c² over all targets, perhaps estimated: see `saccade.inference.posterior.sketch`
    given: Annotated[Array, "s"] | None = None  # the scores of a one-class model, or what else a strategy is given
    tie: float = TIE
    covariance: Annotated[Array, "s, t"] | None = None  # with some of the targets
    target_variance: Annotated[Array, "t"] | None = None
    stakes: Stakes | None = None  # for a strategy that weighs costs
    chosen: list[int] = field(default_factory=list)
    among: CandidateCovariance | None = None
    gains: Gains | None = None

    @cached_property
    def mean(self) -> Annotated[Array, "s, m"]:
        return self.means()

    @cached_property
    def probability(self) -> Annotated[Array, "s, m"]:
        return self.calibrated()

    def take(self, j: int) -> None:
        """Add candidate j to the batch; if `among` is given, variances and covariances are conditioned on it."""
        self.chosen.append(j)
        if self.gains is not None:
            self.gains.take(j)
        if self.among is None:
            return
        h, root = self.among.condition(j)
        self.among.sketch -= np.outer(h, self.among.sketch[j] / root)
        self.sums, self.squares = self.among.totals()
        self.variance = np.maximum(self.variance - h * h, 0.0)
        if self.covariance is not None and self.target_variance is not None:
            shared = self.covariance[j] / root
            self.covariance = self.covariance - np.outer(h, shared)
            self.target_variance = np.maximum(self.target_variance - shared * shared, 0.0)

    @property
    def left(self) -> Annotated[Array, "s"]:
        """The share of the prior variance that labels and batch leave; it keeps the batch from repeating itself."""
        return np.divide(self.variance, self.prior, out=np.zeros_like(self.variance), where=self.prior > 0)


class CandidateCovariance:
    """The posterior covariance among candidates, column by column."""

    def __init__(self, known: PoolPosterior, rows: Array, sketch: Array) -> None:
        self.known, self.rows, self.sketch = known, rows, sketch  # the sketch is changed
        self.K = known.gram.between(rows, rows)
        self.beside = known.gram.between(rows, known.rows) if known.rows.size else np.zeros((rows.size, 0))
        self.steps = np.zeros((16, rows.size))  # doubles where it is full
        self.taken = 0

    def totals(self) -> tuple[Array, Array]:  # (s,), (s,)
        """Sums of covariances over all targets, and of their squares."""
        return self.sketch[:, 0].copy(), np.einsum("ij,ij->i", self.sketch[:, 1:], self.sketch[:, 1:])

    def condition(self, j: int) -> tuple[Annotated[Array, "s"], float]:
        """c(·, x_j)/√(c(x_j, x_j) + noise) conditioned on all that came before, and the root."""
        column: Array = self.K[j] - self.steps[: self.taken, j] @ self.steps[: self.taken]
        if self.beside.size:
            column -= self.beside @ self.known.observed.solve(self.beside[[j]].T)[:, 0]
        if self.taken == len(self.steps):
            self.steps = np.concatenate([self.steps, np.zeros_like(self.steps)])
        root = float(np.sqrt(max(column[j], 0.0) + self.known.noise))
        self.steps[self.taken] = column / root
        self.taken += 1
        return np.asarray(self.steps[self.taken - 1]), root
