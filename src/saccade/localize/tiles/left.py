"""How many hits are left: an expectation with an interval from the model and random looks, and a bound without a model.

Some looks are random: one tile from each cell of a coarse grid, in a random order, drawn before the search. How many of
them are taken after so many looks does not depend on any answer, so they are a random sample of the picture.

From both. The model expects M hits in the tiles without an answer. It is wrong by an unknown factor λ, beforehand
Γ(`TRUST`, `TRUST`) with the mean 1. The random looks test it: of those that, by all other answers, are no likelier to
have a hit than the likeliest tile that is left, it expects E to have one, and R have. These are as the tiles that are
left, but for being taken at random. With Poisson numbers λ is Γ(TRUST + R, TRUST + E) afterwards, and the number left
is a negative binomial of the mean Mλ. Few random looks without a hit say little: they do not lower the upper end below
that of the model alone. The bound without a model does, and is the upper end as long as few hits are known.

Without a model. The number of hits among the random looks is a sum of independent draws (also where not all cells had
their turn: its generating function has real roots only), whose mean is at least (tiles with hits) / (tiles in the
largest cell) a cell, and below its mean such a sum is more concentrated than a binomial (Hoeffding 1956). So the upper
limit of Clopper and Pearson bounds all tiles with hits, whatever the picture is, at every one number of looks.
"""

from typing import Annotated, NamedTuple

import numpy as np
from scipy.stats import beta, nbinom, poisson

from saccade._core.arrays import Array
from saccade.localize.tiles.answers import TileAnswers
from saccade.localize.tiles.model import TileBelief

CONFIDENCE = 0.95
TRUST = 1.0  # hits in random looks that count as much as what the model expected (docs/decisions/053)
FEW = 4  # hits below which the model is not trusted with an upper end


class Left(NamedTuple):
    """Hits in tiles without an answer."""

    expected: float  # by the model, corrected by the random looks
    low: int  # interval of 95 % by both, checked on pictures of several kinds (docs/decisions/053)
    high: int
    at_most_tiles: int  # with hits, with 95 % confidence for any picture, by the random looks alone


def hits_left(belief: TileBelief, answers: TileAnswers, random: Annotated[Array, "r"], cell: int) -> Left:
    """The hits in tiles without an answer; `random` looks were one in each cell of up to `cell` tiles."""
    free, counts = answers.without(), answers.hits_in_a_tile()
    if not free.size:
        return Left(0.0, 0, 0, 0)
    p, left_out = belief.probability[free], belief.left_out
    own = np.isin(answers.rows, random) & (left_out <= p.max())
    seen, at_most = float(answers.has_hit(answers.rows[own]).sum()), _at_most(answers, random, cell, free.size)
    before, after = float(p.sum()), float(p.sum()) * (TRUST + seen) / (TRUST + float(left_out[own].sum()))
    many, spread, most = float(counts.mean()), float(counts.var()), max(at_most, round(counts.max() * at_most))
    (_, model), (low, high) = (
        interval(mean * many, (mean + mean**2 / shape) * many**2 + mean * spread, most)
        for mean, shape in ((before, TRUST), (after, TRUST + seen))
    )
    few = answers.has_hit(answers.rows).sum() < FEW
    return Left(min(after * many, float(most)), low, most if few else max(model, high), at_most)


def _at_most(answers: TileAnswers, random: Array, cell: int, free: int) -> int:
    """The bound without a model; a tile without an answer counts as a hit, for it may be one."""
    hits = int((answers.has_hit(random) | np.isnan(answers.hits[random])).sum())
    every = all_tiles_at_most(hits, random.size, cell, len(answers.tiles.boxes))
    return max(0, min(free, every - int(answers.has_hit(answers.rows).sum())))


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
