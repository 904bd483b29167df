"""Where the object is by all looks: hypotheses weighed by prior and likelihood, and every answer that comes of them.

The likelihood of a hypothesis is that of `score_model` or of `response`, which know nothing of the hypotheses;
`importance` draws and weighs these. What is said of places, probabilities and further boxes is said here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
from scipy.interpolate import make_interp_spline

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.chunks import batches
from saccade._core.errors import InvalidParameter
from saccade.localize.boxes import pairs_iou
from saccade.localize.priors.box_prior import BoxPrior
from saccade.localize.search.importance import Hypotheses, hypotheses, hypotheses_of_pool
from saccade.localize.search.response import Judgement, Response
from saccade.localize.search.score_model import GivenObjects, Misfit, ScoreModel, Smooth, Views


@dataclass(frozen=True)
class Location:
    """Where the object is, by the looks so far.

    Parameters
    ----------
    box : array of shape (4,)
        x0, y0, x1, y1.
    score : float
        Expected score of this box, in the judge's units.
    probability : float
        That the box overlaps the object by a half or more, if the judge does not take something else for the object.
    present : float
        Probability that there is an object at all.
    looks : int
        Number of scores behind it.

    Examples
    --------
    >>> from saccade.localize import Localizer
    >>> found = Localizer((640, 480), random_state=0).best()
    >>> found.box.shape, found.looks, found.present
    ((4,), 0, 1.0)
    """

    box: Annotated[Array, "4"]
    score: float
    probability: float
    present: float
    looks: int


class Failure(NamedTuple):
    """A look for which the judge gave no score."""

    box: Annotated[Array, "4"]
    why: str


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


COARSE = 48  # places a side: a fifth of the distance over which clutter changes


def grid_boxes(
    bounds: Annotated[Array, "4"], size: Annotated[Array, "width, height"], rows: int, columns: int
) -> Annotated[Array, "rows · columns, 4"]:
    """Boxes of one size around places in the middle of rows · columns equal cells; at the edge they extend beyond."""
    return _boxes(bounds, size, _middles(rows), _middles(columns))


def grid_moments(
    belief: Belief, size: Annotated[Array, "2"], rows: int, columns: int, rng: np.random.Generator
) -> tuple[Array, Array]:  # (rows, columns) each
    """Mean and variance of the score of such boxes over hypotheses drawn by their weights."""
    bounds = belief.evidence.looks.bounds
    objects = belief.where.boxes[belief.where.resampled(limits.HYPOTHESES_FOR_MAPS, rng)]
    given, weights = belief.evidence.given(objects), np.full(len(objects), 1.0 / len(objects))
    if rows * columns > limits.MAP_CELLS:
        raise InvalidParameter(f"A map has at most {limits.MAP_CELLS:,} cells, got {rows} x {columns}.")
    boxes = grid_boxes(bounds, size, rows, columns)
    if isinstance(given, Judgement):
        mean, variance = belief.moments(boxes)
    else:
        mean, variance = given.mixed(boxes, objects, weights, _spread(given, bounds, size, rows, columns))
    return mean.reshape(rows, columns), variance.reshape(rows, columns)


def _spread(given: GivenObjects, bounds: Array, size: Array, rows: int, columns: int) -> Smooth:
    """What clutter and offset say of every place: they are smooth, and a cubic spline carries it from a coarse grid."""
    down, right = (np.linspace(0.0, 1.0, min(COARSE, max(4, side))) for side in (rows, columns))
    coarse = given.smooth(_boxes(bounds, size, down, right))
    parts = np.concatenate([coarse.known.transpose(0, 2, 1).reshape(-1, len(coarse.base)), [coarse.base, coarse.own]])
    table = parts.reshape(len(parts), down.size, right.size)
    up, across = (make_interp_spline(at, np.eye(at.size))(_middles(n)) for at, n in ((down, rows), (right, columns)))
    fine = (up @ table @ across.T).reshape(len(parts), -1)
    known = fine[:-2].reshape(2, -1, fine.shape[1]).swapaxes(1, 2)
    return Smooth(np.ascontiguousarray(known), fine[-2], np.maximum(fine[-1], 0.0))


def _middles(n: int) -> Array:
    return (np.arange(n) + 0.5) / n


def _boxes(bounds: Array, size: Array, down: Array, right: Array) -> Array:
    y, x = np.meshgrid(down, right, indexing="ij")
    centres = bounds[:2] + np.column_stack([x.ravel(), y.ravel()]) * (bounds[2:] - bounds[:2])
    return np.hstack([centres - 0.5 * size, centres + 0.5 * size])
