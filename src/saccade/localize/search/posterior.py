"""Where the object is by all looks: hypotheses weighed by prior and likelihood, and every answer that comes of them.

The likelihood of a hypothesis is that of `belief` or of `learned_response`, which know nothing of the hypotheses;
`importance` draws and weighs these. What is said of places, probabilities and further boxes is said here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.chunks import batches
from saccade.localize.boxes import pairs_iou
from saccade.localize.priors.box_prior import BoxPrior
from saccade.localize.search.belief import ScoreModel, Views
from saccade.localize.search.importance import Hypotheses, hypotheses, hypotheses_of_pool
from saccade.localize.search.learned_response import Judgement, Response
from saccade.localize.search.response import Misfit

STEPS = (0.4, 2.5)  # factors by which noise or clutter are changed to find better ones ...
GAIN = 0.1  # ... and the least gain of log evidence for which they are: rounding never decides
NOISES, CLUTTERS = (1e-3, 1.0), (0.02, 0.5)  # least and most standard deviation that are tried


@dataclass(frozen=True)
class Belief:
    """Where the object may be after the looks, and what other boxes would score."""

    evidence: ScoreModel | Judgement
    where: Hypotheses
    present: float  # probability that there is one

    @classmethod
    def after(
        cls,
        looks: Views,
        prior: BoxPrior,
        judge: Misfit | Response,
        absent: float,
        rng: np.random.Generator,
        pool: Annotated[Array, "p, 4"] | None = None,
        crowd: bool = True,
    ) -> Belief:
        evidence = Judgement(looks, judge) if isinstance(judge, Response) else ScoreModel(looks, judge)
        many = limits.HYPOTHESES_PRODUCTS // max(len(looks.boxes), 1) ** 2
        count = min(limits.HYPOTHESES, max(limits.HYPOTHESES_LEAST, many))
        if pool is None:
            where = hypotheses(prior, evidence.log_likelihood, count, rng)
        else:
            where = hypotheses_of_pool(pool, prior, evidence.log_likelihood, count, crowd, rng)
        odds = np.log1p(-absent) - np.log(absent) if absent > 0 else np.inf
        against = evidence.log_likelihood_of_none() - where.log_evidence
        return cls(evidence, where, float(1.0 / (1.0 + np.exp(np.clip(against - odds, -700.0, 700.0)))))

    def choices(
        self, candidates: Annotated[Array, "c, 4"], objects: Annotated[Array, "h, 4"]
    ) -> tuple[Array, Array, Array]:  # (c, h), (c, h), (h,)
        """The object's part of the candidates' scores, mean and variance, and the largest among boxes looked at.

        If each object is the one. Clutter is left out: what the judge takes for the object is not worth a look, and no
        reason to be content with.
        """
        given, looked = self.evidence.given(objects), self.evidence.looks.boxes
        mean, variance = given.of_object(candidates, objects)
        best = given.of_object(looked, objects)[0].max(axis=0) if len(looked) else np.zeros(len(objects))
        return mean, variance, best

    def moments(self, boxes: Annotated[Array, "c, 4"]) -> tuple[Array, Array]:  # (c,), (c,)
        """Mean and variance of the score of boxes over all hypotheses."""
        objects, weights = self._likeliest(limits.HYPOTHESES_TO_COMPARE)
        given = self.evidence.given(objects)
        mean, variance = np.empty(len(boxes)), np.empty(len(boxes))
        for rows in batches(len(boxes), limits.BOXES_AT_ONCE):
            mean[rows], variance[rows] = given.moments(boxes[rows], objects, weights)
        return mean, variance

    def _likeliest(self, count: int) -> tuple[Array, Array]:  # (k, 4), (k,)
        """Hypotheses with the largest weights, which sum to 1 again."""
        most = np.argsort(-self.where.weights, kind="stable")[:count]
        return self.where.boxes[most], self.where.weights[most] / self.where.weights[most].sum()

    def better_misfit(self) -> Misfit:
        """Noise and clutter near the present ones under which the looks are likelier, if there are."""
        assert isinstance(self.evidence, ScoreModel)
        looks, now = self.evidence.looks, self.evidence.misfit
        objects, weights = self._likeliest(limits.HYPOTHESES_TO_TUNE)
        base = np.log(np.maximum(weights, 1e-300)) - self.evidence.log_likelihood(objects)
        tried = [now]
        tried += [replace(now, noise=float(np.clip(now.noise * step, *NOISES))) for step in STEPS]
        tried += [replace(now, clutter=float(np.clip(now.clutter * step, *CLUTTERS))) for step in STEPS]
        found = [np.logaddexp.reduce(base + ScoreModel(looks, misfit).log_likelihood(objects)) for misfit in tried]
        best = int(np.argmax(found))
        return tried[best] if found[best] > found[0] + GAIN else now

    def best(self) -> tuple[Array, float]:
        """The box with the largest expected overlap, and how probable it is that it overlaps by a half or more."""
        boxes, weights = self._likeliest(limits.HYPOTHESES_TO_COMPARE)
        overlap = pairs_iou(boxes, boxes)
        place = int(np.argmax(overlap @ weights))
        return boxes[place], min(1.0, float((overlap[place] >= 0.5) @ weights))
