"""From latent means to decisions and class probabilities, as sharp as left-out training examples deserve."""

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.fields import number
from saccade.estimators.part import Part, part_record
from saccade.inference.posterior.base import Posterior
from saccade.inference.posterior.gp import GP
from saccade.scores.probability import fit_sharpness, probabilities, standardized_mean


@dataclass(frozen=True)
class Decisions:
    """What is decided from: the latent mean, or with "laplace" and "ep" μ/√(v + σ²), which takes the variance."""

    take_variance: bool
    noise: float

    def __call__(self, mean: Array, variance: Array) -> Annotated[Array, "b, m"]:
        return standardized_mean(mean, variance, self.noise) if self.take_variance else mean

    def at(self, gp: Posterior, X: Array) -> Annotated[Array, "b, m"]:
        """For new rows X, without the variance where it is not needed."""
        return self(*gp.mean_and_variance(X)) if self.take_variance else gp.mean(X)


@dataclass(frozen=True, eq=False)
class Calibration(Part):
    """What decisions are multiplied with to become probabilities, and the left-out decisions it comes from.

    >>> Calibration(2.0).probabilities(np.array([[0.0], [1.0]])).round(2)
    array([[0.5 , 0.5 ],
           [0.02, 0.98]])
    """

    sharpness: float  # the softmax of decision times sharpness is the probability
    # Of the training examples, each as if it had not been there; NaN for examples that an approximate mean cannot
    # leave out. None in a loaded model.
    mean: Annotated[Array, "n, m"] | None = None
    decision: Annotated[Array, "n, m"] | None = None
    error: float = np.nan  # how far a label minus its leave-one-out mean is off, relatively

    def probabilities(self, decision: Array) -> Annotated[Array, "b, M"]:
        """Class probabilities from decisions (b, m); two classes share one decision."""
        return probabilities(decision, self.sharpness)

    @classmethod
    def of(
        cls, gp: GP, label: Annotated[Array, "n"], weight: Annotated[Array, "n"] | None, decisions: Decisions
    ) -> Self:
        """Decisions about all training examples, each as if it had not been there, and the sharpness they deserve."""
        variance = None
        if gp.approximation.mean == "exact":
            rows, (mean, variance) = np.arange(label.size), gp.leave_one_out()
        else:
            rows, mean = gp.comparable(limits.EXAMPLES_COMPARED), np.full(gp.sites.targets.shape, np.nan)
            mean[rows] = gp.left_out_mean(rows)
        decision, error = mean.copy(), gp.solution.error
        if not decisions.take_variance:
            return cls(_sharpness(decision[rows], label, weight, rows), mean, decision, error)
        if variance is not None:
            decision = decisions(mean, variance)
        return cls(np.nan, mean, decision, error).sharpened(gp, label, weight, decisions, variance)

    def sharpened(
        self,
        gp: GP,
        label: Annotated[Array, "n"],
        weight: Annotated[Array, "n"] | None,
        decisions: Decisions,
        exact: Annotated[Array, "n, 1 | n, m"] | None = None,  # the variance without each example, where it is known
    ) -> Self:
        """With the sharpness for the variance that new examples will have, and the decisions that go with it."""
        rows, variance = gp.left_out_variance(exact, limits.EXAMPLES_COMPARED)
        assert self.mean is not None
        assert self.decision is not None
        mean = self.mean[rows] if gp.approximation.mean == "exact" else gp.left_out_mean(rows)
        decision = self.decision.copy()
        decision[rows] = decisions(mean, variance)
        return replace(self, sharpness=_sharpness(decision[rows], label, weight, rows), decision=decision)


def _sharpness(decision: Array, label: Array, weight: Array | None, rows: Array) -> float:
    return fit_sharpness(decision, label[rows], None if weight is None else weight[rows])


Calibration.record = part_record(Calibration, {"sharpness": number(above=0.0)})
