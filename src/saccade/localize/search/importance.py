"""Weighted draws from the posterior of a hidden box: importance sampling that adapts in a few rounds.

The first draws are from the prior. Every later round draws around the best so far, at first for a tempered posterior,
prior · likelihood^τ, whose τ rises to 1 as fast as enough different draws stay alive. In the end every draw has the
weight prior · likelihood / (the mixture of all densities that were drawn from): Cappé, Guillin, Marin, Robert (2004);
Owen and Zhou (2000) for the mixture. The mean of the weights estimates the evidence.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from saccade._core.arrays import Array
from saccade.localize.boxes import pairs_iou, to_coordinates
from saccade.localize.priors.box_prior import BoxPrior
from saccade.localize.priors.densities import Held, Inside, log_sum

ROUNDS = 7  # at most
CENTRES = 150  # of the normals that a round draws from
ALIVE = 50.0  # effective number of draws that a round starts from
TRUSTED = 5.0  # effective number of draws that answers come from, at least
HALVINGS = 10  # of the range of log τ
# Standard deviations of an object from the nearest proposal: centre in shares of the box, log size, log shape.
JITTER = np.array([0.1, 0.1, 0.2, 0.2])
BESIDE = np.array([0.2, 0.2, 0.4, 0.4])  # of first draws from a box that scored high
NOWHERE = np.zeros((0, 4))
SAME_PLACE = 0.5  # overlap of proposals that crowd one place
WIDTHS = 0.3, 0.05  # of these normals, in turn: shares of the posterior's covariance, which may be bent


@dataclass(frozen=True)
class Hypotheses:
    """Boxes that may be the object's, each with its share of belief."""

    boxes: Annotated[Array, "h, 4"]
    weights: Annotated[Array, "h"]  # which sum to 1
    log_evidence: float  # log of the mean likelihood under the prior

    def resampled(self, count: int, rng: np.random.Generator | None = None) -> Annotated[Array, "count"]:
        """Rows of hypotheses, drawn in proportion to their weights; equal steps make the draws even."""
        ends = np.cumsum(self.weights)
        steps = (np.arange(count) + (0.5 if rng is None else rng.random())) / count * ends[-1]
        return np.asarray(np.minimum(np.searchsorted(ends, steps), ends.size - 1))


@dataclass(frozen=True)
class Normal:
    """An equal mixture of normals with one covariance: what a round draws from."""

    centres: Annotated[Array, "k, d"]
    covariance: Annotated[Array, "d, d"]

    def log_density(self, v: Array) -> Annotated[Array, "n"]:
        L = np.linalg.cholesky(np.linalg.inv(self.covariance))
        middle = self.centres.mean(axis=0)
        a, b = (v - middle) @ L, (self.centres - middle) @ L
        logs = a @ b.T  # each step below works in place: it is read and written once for every draw and centre
        logs -= 0.5 * np.square(b).sum(axis=1)
        top = logs.max(axis=1)
        logs -= top[:, None]
        np.exp(logs, out=logs)
        constant = np.log(L.diagonal()).sum() - 0.5 * v.shape[1] * np.log(2.0 * np.pi) - np.log(len(b))
        return np.asarray(np.log(logs.sum(axis=1)) + top - 0.5 * np.square(a).sum(axis=1) + constant)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        L = np.linalg.cholesky(self.covariance)
        v = self.centres[rng.integers(len(self.centres), size=n)]
        return np.asarray(v + rng.standard_normal(v.shape) @ L.T)


@dataclass(frozen=True)
class Sources:
    """The densities that all draws so far came from."""

    counts: list[int]
    densities: list[Inside | Normal]
    logs: Annotated[Array, "sources, n"]  # log density of every draw under every source

    def log_density(self) -> Annotated[Array, "n"]:
        """Log density of every draw under the mixture of all sources."""
        counts = np.array(self.counts, np.float64)
        return np.asarray(log_sum(self.logs + np.log(counts / counts.sum())[:, None], axis=0))

    def and_from(self, density: Normal, old: Array, new: Array) -> Self:
        """With new draws from one more density; old densities of old draws are kept, not computed again."""
        of_new = np.array([source.log_density(new) for source in self.densities])
        logs = np.vstack([np.hstack([self.logs, of_new]), density.log_density(np.concatenate([old, new]))])
        return type(self)([*self.counts, len(new)], [*self.densities, density], logs)


def hypotheses(
    prior: BoxPrior,
    log_likelihood: Callable[[Array], Array],  # boxes (n, 4) -> (n,)
    count: int,  # of the first draws; a later round has half as many
    rng: np.random.Generator,
    near: Annotated[Array, "k, 4"] = NOWHERE,
) -> Hypotheses:
    """Boxes with weights that stand for the posterior; besides the prior, boxes near some are drawn at first."""
    free, known = _free(prior)
    v = prior.draw(count, rng)[:, : 4 - known.size]
    drawn = Sources([count], [free], free.log_density(v)[None])
    boxes, likely, before = _judged(v, prior, free, known, log_likelihood)
    if not np.ptp(likely):  # nothing is known yet
        return Hypotheses(boxes, np.full(count, 1.0 / count), float(likely[0]))
    beside = _beside(near, prior.bounds, v.shape[1])
    for turn in range(ROUNDS):
        weights, tempered = _tempered(likely, before - drawn.log_density())
        around = beside if beside and tempered and not turn else _around(v, weights, WIDTHS[turn % 2], rng)
        new = around.draw(count // 2, rng)
        drawn = drawn.and_from(around, v, new)
        parts = _judged(new, prior, free, known, log_likelihood)
        v, boxes, likely, before = (
            np.concatenate(pair) for pair in zip((v, boxes, likely, before), (new, *parts), strict=True)
        )
        if not tempered:
            break
    base = before - drawn.log_density()
    # A few draws that stand for a narrow posterior would be far too sure of themselves: it is widened until enough do.
    return Hypotheses(boxes, _tempered(likely, base, TRUSTED)[0], float(log_sum(likely + base) - np.log(len(base))))


def hypotheses_of_pool(
    pool: Annotated[Array, "p, 4"],
    prior: BoxPrior,
    log_likelihood: Callable[[Array], Array],
    count: int,
    crowd: bool,
    rng: np.random.Generator,
) -> Hypotheses:
    """Boxes near those of a pool of proposals: an object far from all of them cannot be found anyway.

    They are drawn once, and weighed by prior · likelihood: no rounds are needed in a pool. Unless the crowd counts,
    proposals that overlap each other share the weight of one.
    """
    if len(pool) > count:
        pool = pool[np.sort(rng.choice(len(pool), count, replace=False))]
    near = np.repeat(to_coordinates(pool, prior.bounds), max(1, count // len(pool)), axis=0)
    spread = np.exp(0.5 * (near[:, 2:3] + near[:, 3:4] * np.array([1.0, -1.0])))  # sides, in shares of the picture
    v = near + JITTER * rng.standard_normal(near.shape) * np.hstack([spread, np.ones_like(spread)])
    v[:, :2] = np.clip(v[:, :2], 0.0, 1.0)
    boxes = prior.boxes(v)
    before = np.zeros(len(v))
    if not crowd:
        alone = -np.log((pairs_iou(pool, pool) >= SAME_PLACE).sum(axis=1))
        before = np.repeat(alone, len(v) // len(pool))
    density = prior.density.log_density(v)
    if np.isfinite(density).any():  # else no proposal is where the prior has the object
        before = before + density
    logs = log_likelihood(boxes) + before
    # They were not drawn from the prior: their weights before any look have to be made to sum to 1.
    return Hypotheses(boxes, _weights(logs), float(log_sum(logs) - log_sum(before)))


def _free(prior: BoxPrior) -> tuple[Inside, Array]:
    """The density of the coordinates that are not known, and the values of those that are."""
    density = prior.density
    free, known = (density.free, density.known) if isinstance(density, Held) else (density, np.zeros(0))
    return Inside.of(free), known


def _judged(
    v: Array, prior: BoxPrior, free: Inside, known: Array, log_likelihood: Callable[[Array], Array]
) -> tuple[Array, Array, Array]:
    """Boxes, log likelihoods and log prior densities of free coordinates."""
    inside = np.hstack([np.clip(v[:, :2], 0.0, 1.0), v[:, 2:], np.tile(known, (len(v), 1))])
    boxes = prior.boxes(inside)
    return boxes, log_likelihood(boxes), free.log_density(v)


def _tempered(likely: Annotated[Array, "n"], base: Annotated[Array, "n"], alive: float = ALIVE) -> tuple[Array, bool]:
    """Weights by exp(base) · likelihood^τ with the largest τ up to 1 that keeps enough draws alive; whether τ < 1."""
    weights, low, high = _weights(likely + base), -12.0, 0.0  # of log τ
    if _alive(weights) >= alive:
        return weights, False
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        weights = _weights(np.exp(middle) * likely + base)
        low, high = (middle, high) if _alive(weights) >= alive else (low, middle)
    return weights, True


def _weights(logs: Array) -> Array:
    return np.asarray(np.exp(logs - log_sum(logs)))


def _alive(weights: Array) -> float:
    """The effective number of draws."""
    return float(1.0 / np.square(weights).sum())


def _beside(boxes: Annotated[Array, "k, 4"], bounds: Array, free: int) -> Normal | None:
    """Boxes a little beside these, where the first ones are free; None of none."""
    if not len(boxes):
        return None
    sides = np.append(((boxes[:, 2:] - boxes[:, :2]) / (bounds[2:] - bounds[:2])).mean(axis=0), [1.0, 1.0])
    return Normal(to_coordinates(boxes, bounds)[:, :free], np.diag(np.square(BESIDE * sides))[:free, :free])


def _around(v: Array, weights: Array, width: float, rng: np.random.Generator) -> Normal:
    places = rng.choice(len(v), CENTRES, p=weights / weights.sum())
    off = v - weights @ v
    covariance = width * (off.T @ (off * weights[:, None]))
    return Normal(v[places], covariance + np.diag(np.full(v.shape[1], 1e-8)))
