"""What new examples are compared with to tell whether they are of a known class: the training examples, left out."""

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.fields import Maybe, number, whole
from saccade.estimators.calibration import Calibration, Decisions
from saccade.estimators.normal_scores import ASCENDING
from saccade.estimators.part import Part, part_record
from saccade.estimators.targets import ClassTargets
from saccade.estimators.unknown_classes import EVEN, FEWEST, choose_weight
from saccade.inference.posterior.base import Posterior
from saccade.inference.posterior.gp import GP
from saccade.scores.novelty import ROUNDING, fisher_product, own_p_values, p_values, quantiles, repeated, unexplained


@dataclass(frozen=True, eq=False)
class KnownClasses(Part):
    """Two signs of novelty at training examples, each as if it had not been there, and both together.

    >>> known = KnownClasses(np.array([-0.9, -0.1]), np.array([0.5, 0.9]), np.array([0.2, 0.8]), 2)
    >>> known.novelty(unexplained=np.array([1.0, 0.0]), confidence=np.array([0.4, 1.0])).round(2)
    array([0.78, 0.  ])
    """

    # Ascending; of many examples, quantiles.
    explained: Array  # how much of the variance training explains, less 1
    confidence: Array  # the largest class probability
    both: Array  # the product of their p-values
    known: int  # training examples that they stand for
    confidence_weight: float = EVEN  # how much the confidence counts beside the variance, from 0 to 1
    optional = True

    @classmethod
    def of(cls, gp: GP, targets: ClassTargets, calibration: Calibration, decisions: Decisions) -> Self:
        gp.prepare()
        rows = gp.comparable(limits.EXAMPLES_COMPARED)
        X = gp.gram.as_given(rows)
        mean, variance = gp.left_out(rows, X)
        left = unexplained(variance.mean(axis=1), gp.kernel.diag(X))
        confidence = calibration.probabilities(decisions(mean, variance)).max(axis=1)
        weight = None if targets.weight is None else targets.weight[rows]
        signs = {"explained": -left - ROUNDING, "confidence": confidence - ROUNDING}
        explained, sure = (repeated(signs[name], weight) for name in ("explained", "confidence"))
        of_confidence = _weight_of_confidence(gp, targets, calibration.sharpness, decisions.noise)
        signs["both"] = fisher_product(own_p_values(-left, explained), own_p_values(confidence, sure), of_confidence)
        n = rows.size if weight is None else max(1, round(weight.sum()))
        scores = {name: quantiles(repeated(sign, weight)) for name, sign in signs.items()}
        return cls(**scores, known=n, confidence_weight=of_confidence)

    def novelty(self, unexplained: Array, confidence: Array) -> Annotated[Array, "b"]:
        """How little new examples are like these: 1 less the p-value of both signs together."""
        signs = p_values(-unexplained, self.explained, self.known), p_values(confidence, self.confidence, self.known)
        rare = fisher_product(*signs, self.confidence_weight)
        return np.asarray(1.0 - p_values(np.log(rare), np.log(self.both), self.known))

    def novelty_at(
        self, gp: Posterior, X: Array, calibration: Calibration, decisions: Decisions
    ) -> Annotated[Array, "b"]:
        """For new rows X (b, d)."""
        mean, variance = gp.mean_and_variance(X)
        left = unexplained(variance.mean(axis=1), gp.kernel.diag(X))
        return self.novelty(left, calibration.probabilities(decisions(mean, variance)).max(axis=1))


def _weight_of_confidence(gp: GP, targets: ClassTargets, sharpness: float, noise: float) -> float:
    """From some of the training examples, where there are classes enough."""
    if targets.classes.size < FEWEST:
        return EVEN
    some = np.random.default_rng(0).permutation(targets.label.size)[: limits.EXAMPLES_HIDDEN]
    X = gp.gram.as_given(some)
    return choose_weight(gp.kernel(X), gp.kernel.diag(X), targets.label[some], noise, sharpness)


KnownClasses.record = part_record(
    KnownClasses,
    {
        "known": whole(1),
        "confidence_weight": Maybe(number(0.0, 1.0), EVEN),  # not in files of earlier versions
        **dict.fromkeys(("explained", "confidence", "both"), ASCENDING),
    },
)
