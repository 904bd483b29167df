"""The boxes that a search asks for next: candidates by its policy, and shares from the prior and at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade.localize.boxes import clip, pairs_iou
from saccade.localize.priors.box_prior import BoxPrior
from saccade.localize.search.belief import Belief
from saccade.localize.search.checks import FIRST
from saccade.localize.search.misfits import Misfits
from saccade.localize.search.score_model import Views
from saccade.scores.acquisition import TIE, decaying_xi, maximum_variance, thompson, upper_confidence_bound

if TYPE_CHECKING:
    from saccade.localize.search.localizer import Localizer


Policy = Literal["ei", "pi", "ucb", "variance", "thompson"]


def choose_boxes(
    policy: Policy,
    mean: Annotated[Array, "c, h"],  # score of each candidate if each hypothesis is true; hypotheses count alike
    variance: Annotated[Array, "c, h"],
    best: Annotated[Array, "h"],  # the highest score that was looked at, if each hypothesis is true
    count: int,
    xi: float,
    noise: float,  # variance
    rng: np.random.Generator,
) -> Array:  # (count,) or fewer
    """Rows of the candidates to look at, best first."""
    count = min(count, len(mean))
    if policy == "thompson":
        draws = rng.choice(mean.shape[1], count)
        return thompson(mean[:, draws].T + rng.standard_normal((count, len(mean))) * np.sqrt(variance[:, draws].T))
    if policy in ("ucb", "variance"):
        return _by_moments(policy, mean, variance, count, noise)
    return _by_improvement(int(policy == "pi"), mean, variance, best, count, xi)


def most_overlapping(
    boxes: Annotated[Array, "n, 4"], objects: Annotated[Array, "h, 4"], count: int
) -> Annotated[Array, "at most count, 4"]:
    """The boxes that overlap the objects most on average, in their order; it keeps huge pools quick."""
    if len(boxes) <= count:
        return boxes
    parts = np.array_split(boxes, -(-len(boxes) // count))
    overlap = np.concatenate([pairs_iou(part, objects).mean(axis=1) for part in parts])
    return np.asarray(boxes[np.sort(np.argsort(-overlap, kind="stable")[:count])])


def _by_improvement(kind: int, mean: Array, variance: Array, best: Array, count: int, xi: float) -> Array:
    """Greedy by `expected_improvement` or `probability_of_improvement`, averaged over the hypotheses.

    A chosen candidate raises what the next ones have to exceed, if its hypothesis is true: a batch spreads by itself.
    """
    from saccade.localize.search import loops as look_loops

    taken, gains = np.empty(count, np.int64), np.empty(len(mean))
    numbers = (np.ascontiguousarray(mean), np.ascontiguousarray(variance), np.array(best, np.float64))
    look_loops.greedy(kind, *numbers, float(xi), TIE, gains, taken)
    return taken


def _by_moments(policy: Policy, mean: Array, variance: Array, count: int, noise: float) -> Array:
    """Greedy, by the Gaussian process that has the mixture's mean and covariance, conditioned on the batch so far.

    Beyond what the hypotheses share, candidates count as independent.
    """
    middle = mean.mean(axis=1)
    off = (mean - middle[:, None]) / np.sqrt(mean.shape[1])
    covariance = off @ off.T
    covariance[np.diag_indices_from(covariance)] += variance.mean(axis=1)
    taken = list[int]()
    while len(taken) < count:
        left = covariance.diagonal()
        score = maximum_variance(left) if policy == "variance" else upper_confidence_bound(middle, left)
        score = np.where(np.isin(np.arange(score.size), taken), -np.inf, score)
        place = int(np.flatnonzero(score >= score.max() - TIE * abs(score.max()))[0])
        taken.append(place)
        column = covariance[:, place]
        covariance = covariance - np.outer(column, column) / (column[place] + noise)
    return np.array(taken, np.int64)


HEDGE = 0.1  # share of a learned prior that is replaced by nothing known
HALF_LIFE = 20.0  # looks after which ξ is half as large


def random_numbers(search: Localizer, stream: int) -> np.random.Generator:
    """Random numbers that depend only on the seed and on the number of looks; each use has its own stream."""
    return np.random.default_rng([search.random_state, search.looks, len(search.failures), stream])


def next_boxes(
    search: Localizer, belief: Belief, n: int
) -> Annotated[Array, "n, 4"]:  # or fewer where proposals run out
    rng, free = random_numbers(search, 1), search.looks > 0 and search.proposals is None
    prior, random = (int(n * share + 0.5) if free else 0 for share in (search.from_prior, search.at_random))
    random = min(random, n - prior)  # both may have been rounded up
    found = [_by_policy(search, belief, n - prior - random, rng)]
    for count, source in ((prior, prior_of(search)), (random, _sized(search, BoxPrior.unknown(search.bounds)))):
        found.append(_fresh(search, source.sample(count, rng), found))
    return np.concatenate(found)


def belief_of(search: Localizer) -> Belief:
    """What the looks so far say; scores are in units of their range."""
    low, unit = units(search)
    looks = Views.of(search.bounds, search.boxes, (search.told - low) / unit)
    noise = None if search.noise is None else float(np.sqrt(search.noise)) / unit
    judge, rng = search.response or Misfits.of(noise, search.scores is not None), random_numbers(search, 0)
    return Belief.after(looks, prior_of(search), judge, search.absent, rng, search.proposals, search.crowd)


def units(search: Localizer) -> tuple[float, float]:
    """About the score far from the object, and a unit of scores: the range, or the largest difference so far."""
    if search.scores is not None:
        return search.scores[0], search.scores[1] - search.scores[0]
    low = float(np.median(search.told[:FIRST])) if search.looks else 0.0
    return low, float(np.abs(search.told - low).max(initial=0.0)) or 1.0


def prior_of(search: Localizer) -> BoxPrior:
    """Where the object may be before any look; a learned prior is hedged."""
    if search.prior is None:
        return _sized(search, BoxPrior.unknown(search.bounds))
    return _sized(search, search.prior).hedged(HEDGE)


def _sized(search: Localizer, prior: BoxPrior) -> BoxPrior:
    return prior if search.size is None else prior.of_size(search.size)


def _by_policy(search: Localizer, belief: Belief, count: int, rng: np.random.Generator) -> Annotated[Array, "count, 4"]:
    objects = belief.where.boxes[belief.where.resampled(limits.HYPOTHESES_TO_CHOOSE, rng)]
    candidates = _candidates(search, objects, rng)
    xi = decaying_xi(search.xi, search.looks, HALF_LIFE)
    mean, variance, best, noise = belief.choices(candidates, objects)
    places = choose_boxes(search.policy, mean, variance, best, count, xi, noise, rng)
    return candidates[places]


def _candidates(search: Localizer, objects: Array, rng: np.random.Generator) -> Array:
    if search.proposals is not None:
        return most_overlapping(_fresh(search, search.proposals, []), objects, limits.PROPOSALS_TO_CHOOSE)
    return _fresh(search, np.vstack([objects, prior_of(search).sample(limits.CANDIDATES_OF_PRIOR, rng)]), [])


def _fresh(search: Localizer, boxes: Array, others: list[Array]) -> Array:
    """Boxes, on the grid if there is one, that were not looked at and are not among the others."""
    if search.step is not None and len(boxes):
        boxes = clip(np.round(boxes / search.step) * search.step, search.bounds)[0]
    failed = np.array([failure.box for failure in search.failures]).reshape(-1, 4)
    seen = {tuple(box) for box in np.vstack([search.boxes, failed, *others])}
    kept = list[Array]()
    for box in boxes:
        if tuple(box) not in seen:
            seen.add(tuple(box))
            kept.append(box)
    return np.array(kept).reshape(-1, 4)
