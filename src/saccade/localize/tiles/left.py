"""How many hits are left: an expectation with an interval from the model, and a bound that needs no model.

From the model. With p the probability of a hit at each tile not looked at, their number has the mean Σp and the
variance Σp(1 − p) + Σ_{i≠j} cov_ij. Two tiles with correlated f have, with h = mean/√(1 + variance) and ρ the
correlation of f plus noise, cov = Σ_{k≥1} (ρᵏ/k!) (He_{k−1}(h_i) φ(h_i)) (He_{k−1}(h_j) φ(h_j)) (the tetrachoric
series). A negative binomial with this mean and variance gives the interval: skewed, as the number in clusters that were
not found yet is.

Without a model. The first looks are one random tile from each cell of a coarse grid. The number of hits among them is a
sum of independent draws whose mean is at least (tiles with hits) / (tiles in the largest cell), and below its mean such
a sum is more concentrated than a binomial (Hoeffding 1956). So the upper limit of Clopper and Pearson bounds all tiles
with hits, whatever the picture is.
"""

from typing import Annotated, NamedTuple

import numpy as np
from scipy.stats import beta, nbinom, poisson

from saccade._core.arrays import Array
from saccade.localize.tiles.answers import TileAnswers
from saccade.localize.tiles.model import Pool, TileBelief

CONFIDENCE = 0.95
TERMS = 6  # of the tetrachoric series
SAMPLED = 512  # tiles whose covariances with all others are summed, for all of them
WIDER = 1.25  # factor of the deviation: 1 missed the truth in places on pictures of other seeds (docs/decisions/028)


class Left(NamedTuple):
    """Hits in tiles without an answer."""

    expected: float  # by the model
    low: int  # interval of 95 % by the model, checked on pictures of several kinds (docs/decisions/028)
    high: int
    at_most_tiles: int  # with hits, with 95 % confidence for any picture; it needs the looks of the start


def hits_left(belief: TileBelief, answers: TileAnswers, first: Array, cell: int, rng: np.random.Generator) -> Left:
    """The hits in tiles without an answer; the `first` looks were one in each cell of up to `cell` tiles."""
    free, counts = answers.without(), answers.hits_in_a_tile()
    mean, variance = moments(belief, free, rng)
    many, spread = float(counts.mean()), float(counts.var())
    mean, variance = mean * many, variance * many**2 + mean * spread
    low, high = interval(mean, WIDER**2 * variance, max(free.size, round(counts.max() * free.size)))
    return Left(mean, low, high, _at_most(answers, first, cell, free.size))


def _at_most(answers: TileAnswers, first: Array, cell: int, free: int) -> int:
    """The bound without a model; a tile without an answer counts as a hit, for it may be one."""
    if not np.isin(first, [*answers.told, *answers.failed]).all():
        return free  # before all of the first looks are taken nothing is known
    hits = int((answers.has_hit(first) | np.isnan(answers.hits[first])).sum())
    every = all_tiles_at_most(hits, first.size, cell, len(answers.tiles.boxes))
    return max(0, min(free, every - int(answers.has_hit(answers.rows).sum())))


def moments(belief: TileBelief, free: Annotated[Array, "f"], rng: np.random.Generator) -> tuple[float, float]:
    """Mean and variance of the number of free tiles with a hit."""
    if not free.size:
        return 0.0, 0.0
    parts = np.array([_moments(pool, free, rng) for pool in belief.pools])
    mean = float(belief.weights @ parts[:, 0])
    between = float(belief.weights @ np.square(parts[:, 0] - mean))
    return mean, float(belief.weights @ parts[:, 1]) + between


def _moments(pool: Pool, free: Array, rng: np.random.Generator) -> tuple[float, float]:
    p = pool.probability[free]
    some = np.arange(free.size) if free.size <= SAMPLED else np.sort(rng.choice(free.size, SAMPLED, replace=False))
    root = np.sqrt(1.0 + pool.variance[free])
    rho = pool.covariance(free[some], free) / (root[some, None] * root)
    rho[np.arange(some.size), some] = 0.0
    h = pool.mean[free] / root
    density = np.exp(-0.5 * h * h) / np.sqrt(2.0 * np.pi)
    before, hermite = np.zeros_like(h), np.ones_like(h)
    total, power = 0.0, np.ones_like(rho)
    for k in range(1, TERMS + 1):
        power *= rho / k  # ρᵏ/k!
        g = hermite * density
        total += float(g[some] @ power @ g)
        before, hermite = hermite, h * hermite - (k - 1) * before
    pairs = total * free.size / some.size
    return float(p.sum()), float((p * (1.0 - p)).sum()) + max(pairs, 0.0)


def interval(mean: float, variance: float, most: int, confidence: float = CONFIDENCE) -> tuple[int, int]:
    """Quantiles of the negative binomial with these moments, or of a Poisson where the variance is not larger."""
    if mean <= 0.0:
        return 0, 0
    tails = np.array([0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence])
    if variance > 1.001 * mean:
        found = nbinom.ppf(tails, mean * mean / (variance - mean), mean / variance)
    else:
        found = poisson.ppf(tails, mean)
    low, high = (int(each) for each in np.minimum(found, most))
    return low, high


def all_tiles_at_most(hits: int, looks: int, cell: int, tiles: int, confidence: float = CONFIDENCE) -> int:
    """Upper limit for tiles with hits, from looks at one random tile per cell; a cell has at most `cell` tiles."""
    if looks == 0 or hits >= looks:
        return tiles
    share = float(beta.ppf(confidence, hits + 1, looks - hits))
    return min(tiles, int(np.floor(share * looks * cell)))
