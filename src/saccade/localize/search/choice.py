"""The next boxes to look at: a batch that is best together, by one of the policies of `scores.acquisition`."""

from typing import Annotated, Literal

import numpy as np

from saccade._core.arrays import Array
from saccade.localize.boxes import pairs_iou
from saccade.scores.acquisition import TIE, maximum_variance, thompson, upper_confidence_bound

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
