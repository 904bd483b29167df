"""Which tile next: hits now and hits later under the budget.

Efficient nonmyopic search (Jiang, Malkomes, Converse, Shofner, Moseley, Garnett 2017): a tile is worth its own
probability of a hit plus, averaged over its two answers, the sum of the largest probabilities that the rest of the
budget could then look at. What an answer does to the others is one moment-matching step: with c the posterior
covariance with the tile, and β and γ slope and minus curvature of the log probability of the answer, mean += cβ and
variance −= c²γ.
"""

from typing import Annotated, Literal

import numpy as np
from scipy.special import ndtr

from saccade._core.arrays import Array
from saccade.inference.likelihoods.probit import log_average
from saccade.localize.tiles.model import Pool, TileBelief

Policy = Literal["auto", "likeliest", "nonmyopic"]
LIKELY, OPEN = 16, 32  # candidates: the likeliest, and those that could be likely: mean + deviation


def choose_tiles(belief: TileBelief, free: Array, n: int, budget: int) -> Annotated[Array, "n"]:
    """The next n of the free tiles, chosen one after the other with `budget` looks left, these included.

    The answers for chosen tiles are not known yet, so a choice lowers variances and leaves means.
    """
    n = min(n, free.size)
    candidates = _candidates(belief, free, n)
    plans = [_Plan(pool, candidates, free) for pool in belief.pools]
    left, chosen = np.ones(candidates.size, bool), list[int]()
    while len(chosen) < n:
        score = _scores(belief.weights, plans, left, budget - len(chosen))
        best = int(score.argmax())
        chosen.append(best)
        left[best] = False
        for plan in plans:
            plan.observe(best)
    return np.asarray(candidates[chosen])


def _candidates(belief: TileBelief, free: Array, n: int) -> Array:
    """Tiles worth a closer look, in order of tile number, so that ties are resolved alike on every machine."""
    p = belief.probability[free]
    high = belief.weights @ np.array([ndtr((pool.mean + np.sqrt(pool.variance))[free]) for pool in belief.pools])
    likely, maybe = np.argsort(-p, kind="stable"), np.argsort(-high, kind="stable")
    return np.asarray(np.sort(free[np.union1d(likely[: n + LIKELY], maybe[: n + OPEN])]))


class _Plan:
    """One setting's means, variances and covariances at the free tiles, as looks are planned."""

    def __init__(self, pool: Pool, candidates: Array, free: Array) -> None:
        self.mean, self.variance = pool.mean[free].copy(), pool.variance[free].copy()
        self.c = pool.covariance(candidates, free)  # (q, f)
        self.at = np.searchsorted(free, candidates)
        self.open = np.ones(free.size, bool)

    def outcomes(self, which: Array) -> tuple[Array, Array]:  # (2, q), (2, q, f)
        """Probability of a hit and of none at some candidates, and of hits everywhere after each."""
        at, c = self.at[which], self.c[which]
        m, v = self.mean[at], 1.0 + self.variance[at]
        p, after = [], []
        for y in (1.0, -1.0):
            log_p, slope, bend = log_average(np.full(m.size, y), m, v)
            mean = self.mean + c * slope[:, None]
            variance = np.maximum(self.variance - np.square(c) * bend[:, None], 0.0)
            p.append(np.exp(log_p))
            after.append(ndtr(mean / np.sqrt(1.0 + variance)))
        later = np.array(after)
        later[:, np.arange(at.size), at] = 0.0  # looked at by then
        later[:, :, ~self.open] = 0.0
        return np.array(p), later

    def observe(self, which: int) -> None:
        """The candidate is looked at; on average over its answers the means stay and the covariances fall."""
        at, c = self.at[which], self.c[which].copy()
        p = ndtr(self.mean[at] / np.sqrt(1.0 + self.variance[at]))
        bends = [log_average(np.array([y]), self.mean[[at]], 1.0 + self.variance[[at]])[2][0] for y in (1.0, -1.0)]
        bend = p * bends[0] + (1.0 - p) * bends[1]
        self.variance = np.maximum(self.variance - bend * np.square(c), 0.0)
        self.c = self.c - bend * self.c[:, [at]] * c
        self.open[at] = False


def _scores(weights: Array, plans: list[_Plan], left: Array, budget: int) -> Annotated[Array, "q"]:
    """Expected hits of each candidate and of the best looks after it; −∞ for those already chosen."""
    which = np.flatnonzero(left)
    parts = [(weight, *plan.outcomes(which)) for weight, plan in zip(weights, plans, strict=True)]
    p = np.sum([weight * own for weight, own, _ in parts], axis=0)  # (2, q)
    later = np.sum([weight * own[:, :, None] * after for weight, own, after in parts], axis=0)  # (2, q, f)
    tiles = later.shape[2]
    first = max(0, tiles - max(budget - 1, 0))  # the largest of `later`, one for each further look
    best = np.partition(later, min(first, tiles - 1), axis=2)[:, :, first:]
    score = np.full(left.size, -np.inf)
    score[which] = p[0] + best.sum(axis=(0, 2))  # `later` is already weighed by the answers' probabilities
    return score
