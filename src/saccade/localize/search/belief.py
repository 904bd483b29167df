"""Where the object is by all looks: hypotheses weighed by prior and likelihood, and every answer that comes of them.

The likelihood of a hypothesis is that of `score_model` or of `response`, which know nothing of the hypotheses;
`importance` draws and weighs these. What is said of places, probabilities and further boxes is said here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from scipy.interpolate import make_interp_spline

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.chunks import batches
from saccade._core.errors import InvalidParameter
from saccade._core.threads import ranged, share_calls, thread_count
from saccade.localize.priors.box_prior import BoxPrior
from saccade.localize.search.importance import Hypotheses, hypotheses, hypotheses_of_pool
from saccade.localize.search.misfits import Misfits, Mixture, together
from saccade.localize.search.response import Judgement, Response
from saccade.localize.search.score_model import Misfit, Smooth, Views, WithMisfit


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
        That the box overlaps the object by a half or more, by the weights of all hypotheses. It holds for a judge whose
        scores grow with the overlap, plus noise and smooth clutter; with a judge that takes other things for the object
        it is too large, unless a `Response` was learned.
    present : float
        Probability that there is an object at all, on the same condition.
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


NOTHING = 1e-3  # of the probability may be left out by leaving out the least hypotheses


class Choices(NamedTuple):
    """What candidates promise under each of several hypotheses, which count alike."""

    mean: Annotated[Array, "c, h"]  # of the object's part of their score ...
    variance: Annotated[Array, "c, h"]  # ... and its variance
    best: Annotated[Array, "h"]  # the largest mean among boxes looked at
    noise: float  # variance of a look


BEST_LOOKS = 5  # those that scored highest: near them, hypotheses are drawn at first


@dataclass(frozen=True)
class Belief:
    """Where the object may be after the looks, and what other boxes would score."""

    evidence: Mixture | Judgement
    where: Hypotheses
    present: float  # probability that there is one

    @classmethod
    def after(
        cls,
        looks: Views,
        prior: BoxPrior,
        judge: Misfits | Response,
        absent: float,
        rng: np.random.Generator,
        pool: Annotated[Array, "p, 4"] | None = None,
        crowd: bool = True,
    ) -> Belief:
        def where_by(evidence: Mixture | Judgement) -> Hypotheses:
            many = limits.HYPOTHESES_PRODUCTS // max(len(evidence.looks.boxes), 1) ** 2
            count = min(limits.HYPOTHESES, max(limits.HYPOTHESES_LEAST, many))
            if pool is None:
                highest = np.argsort(-evidence.looks.scores, kind="stable")[:BEST_LOOKS]
                return hypotheses(prior, evidence.log_likelihood, count, rng, evidence.looks.boxes[highest])
            return hypotheses_of_pool(pool, prior, evidence.log_likelihood, count, crowd, rng)

        if isinstance(judge, Response):
            evidence: Mixture | Judgement = Judgement(looks, judge)
        else:
            if (n := len(looks.boxes)) > limits.LOOKS_TO_MIX:  # so many tell the misfit
                some = Mixture(looks.some(np.linspace(0, n - 1, limits.LOOKS_TO_MIX).astype(np.int64)), judge)
                places = where_by(some)
                given = some.given(places.boxes[places.resampled(limits.HYPOTHESES_TO_COMPARE)])
                judge = judge.likeliest(given.each.mean(axis=1))
            evidence = Mixture(looks, judge)
        where = where_by(evidence)
        odds = np.log1p(-absent) - np.log(absent) if absent > 0 else np.inf
        against = evidence.log_likelihood_of_none() - where.log_evidence
        return cls(evidence, where, float(1.0 / (1.0 + np.exp(np.clip(against - odds, -700.0, 700.0)))))

    def choices(self, candidates: Annotated[Array, "c, 4"], objects: Annotated[Array, "h, 4"]) -> Choices:
        """What candidates promise, if each object is the one.

        Clutter is left out: what the judge takes for the object is not worth a look, and no reason to be content with.
        """
        given, looked = self.evidence.given(objects), self.evidence.looks.boxes
        mean, variance = given.of_object(candidates, objects)
        best = given.of_object(looked, objects)[0].max(axis=0) if len(looked) else np.zeros(len(objects))
        noise = Misfit().noise ** 2 if isinstance(given, Judgement) else given.noise
        return Choices(mean, variance, best, noise)

    def moments(self, boxes: Annotated[Array, "c, 4"]) -> tuple[Array, Array]:  # (c,), (c,)
        """Mean and variance of the score of boxes over hypotheses drawn evenly by their weights."""
        objects = self.where.boxes[self.where.resampled(limits.HYPOTHESES_TO_COMPARE)]
        given, weights = self.evidence.given(objects), np.full(len(objects), 1.0 / len(objects))
        mean, variance = np.empty(len(boxes)), np.empty(len(boxes))
        for rows in batches(len(boxes), limits.BOXES_AT_ONCE):
            mean[rows], variance[rows] = given.moments(boxes[rows], objects, weights)
        return mean, variance

    def best(self) -> tuple[Array, float]:
        """The box with the largest expected overlap, and how probable it is that it overlaps by a half or more.

        Both are sums over all hypotheses; the candidates are some of them, and all boxes that were looked at.
        """
        from saccade.localize.search import loops as look_loops

        some = self.where.boxes[np.unique(self.where.resampled(limits.CANDIDATES_TO_ANSWER))]
        candidates = np.ascontiguousarray(np.vstack([some, self.evidence.looks.boxes]))
        kept = np.flatnonzero(self.where.weights > NOTHING / len(self.where.weights))
        read = candidates, np.ascontiguousarray(self.where.boxes[kept]), self.where.weights[kept]
        overlap, half = np.empty(len(candidates)), np.empty(len(candidates))
        share_calls(ranged(look_loops.overlaps, read, (overlap, half)), len(candidates), thread_count())
        place = int(np.argmax(overlap))
        return candidates[place], min(1.0, float(half[place]))


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
        mean, variance = together(
            given.parts(weights),
            lambda part: part.given.mixed(
                boxes, objects, part.weights, _spread(part.given, bounds, size, rows, columns)
            ),
        )
    return mean.reshape(rows, columns), variance.reshape(rows, columns)


def _spread(given: WithMisfit, bounds: Array, size: Array, rows: int, columns: int) -> Smooth:
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
