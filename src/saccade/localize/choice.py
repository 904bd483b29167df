"""The next boxes to look at: a batch that is best together, by one of the policies of `scores.acquisition`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from saccade._core.arrays import Array
from saccade.scores.acquisition import (
    TIE,
    expected_improvement,
    maximum_variance,
    probability_of_improvement,
    thompson,
    upper_confidence_bound,
)

Policy = Literal["ei", "pi", "ucb", "variance", "thompson"]


def choose(
    policy: Policy,
    mean: Array,  # (c, h): score of each candidate if each hypothesis is true; hypotheses count alike
    variance: Array,  # (c, h)
    best: Array,  # (h,): the highest score that was looked at, if each hypothesis is true
    count: int,
    xi: float,
    noise: float,  # variance
    rng: np.random.Generator,
) -> Array:  # (count,) or fewer
    """Places of candidates."""
    count = min(count, len(mean))
    if policy == "thompson":
        draws = rng.choice(mean.shape[1], count)
        return thompson(mean[:, draws].T + rng.standard_normal((count, len(mean))) * np.sqrt(variance[:, draws].T))
    if policy in ("ucb", "variance"):
        return _by_moments(policy, mean, variance, count, noise)
    return _by_improvement(
        expected_improvement if policy == "ei" else probability_of_improvement, mean, variance, best, count, xi
    )


def _by_improvement(
    score: Callable[[Array, Array, float | Array, float], Array],
    mean: Array,
    variance: Array,
    best: Array,
    count: int,
    xi: float,
) -> Array:
    """Greedy. A chosen candidate raises what the next ones have to exceed, if its hypothesis is true.

    So improvements only fall while the batch grows, and a candidate is scored again only when its last score is the
    highest: this gives the same batch as scoring all of them again.
    """
    bound = score(mean, variance, best, xi).mean(axis=1)
    fresh = np.ones(len(bound), bool)
    taken = list[int]()
    while len(taken) < count:
        place = int(np.flatnonzero(bound >= bound.max() - TIE * abs(bound.max()))[0])
        if fresh[place]:
            taken.append(place)
            best = np.maximum(best, mean[place])
            fresh[:] = False
            bound[place] = -np.inf
        else:
            bound[place] = score(mean[place], variance[place], best, xi).mean()
            fresh[place] = True
    return np.array(taken, np.int64)


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
