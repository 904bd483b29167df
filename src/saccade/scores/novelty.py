"""How new an example is: pure functions of mean and variance."""

from typing import Annotated, Literal, get_args

import numpy as np
from scipy.special import log_ndtr

from saccade._core import limits
from saccade._core.arrays import Array, PerRow

Measure = Literal["probability", "variance", "mean", "ratio"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
LEAST = 1e-12  # share of k(x, x) below which "ratio" sees rounding of the variance
NOTHING = 0.01  # share of the usual k(x, x) up to which an example has nothing to compare
ROUNDING = 1e-12  # of the prior variance, of a label and of a score: smaller differences are left to the processor


def membership(
    measure: Measure,
    mean: PerRow | None,  # None for "variance"
    variance: PerRow | None,  # of the latent function; None for "mean"
    noise: float,
    *,
    sign: bool = False,  # whether a label is the sign of f plus noise, instead of f plus noise
    prior: PerRow | float = 1.0,  # k(x, x), for "ratio"
) -> PerRow:
    """O Table 1: M = μ, V = −σ², P = log p(y = 1), H = μ/σ. Higher is more like the training examples.

    P is the density N(1; μ, σ² + noise) of the label in a regression, and Φ(μ/√(σ² + noise)) for Laplace and EP; its
    logarithm ranks alike and does not vanish far away.

    >>> membership("ratio", np.array([0.5]), np.array([0.25]), 0.1)
    array([1.])
    """
    if measure == "variance" and variance is not None:
        return -variance
    assert mean is not None
    if measure == "mean":
        return mean
    assert variance is not None
    if measure == "ratio":
        known = np.sqrt(np.maximum(variance, LEAST * prior))
        return np.divide(mean, known, out=np.zeros_like(mean), where=known > 0)  # no features, no mean
    spread = variance + noise
    if sign:
        return np.asarray(log_ndtr(mean / np.sqrt(spread)))
    return np.asarray(-0.5 * (np.square(1.0 - mean) / spread + np.log(2.0 * np.pi * spread)))


def lowest_membership(
    measure: Measure,
    mean: PerRow,
    variance: PerRow,
    prior: PerRow,  # k(x, x)
    noise: float,
    *,
    sign: bool = False,
) -> PerRow:
    """The least that `membership` can be when rounding moves mean and variance.

    Equal examples have means and variances that are equal but for rounding, which may make them differ by any factor
    where the variance itself is next to nothing. A score is compared with this one, so that equal examples are equal.

    >>> lowest_membership("variance", np.zeros(1), np.array([0.25]), np.ones(1), 0.1) < -0.25
    array([ True])
    """
    off, wide = ROUNDING * np.maximum(1.0, np.abs(mean)), ROUNDING * prior
    found = [
        membership(measure, mean + a * off, np.maximum(variance + b * wide, 0.0), noise, sign=sign, prior=prior)
        for a in (-1.0, 1.0)
        for b in (-1.0, 1.0)
    ]
    return np.asarray(np.minimum.reduce(found))


def unexplained(
    variance: PerRow,  # of the latent function
    prior: PerRow,  # k(x, x), its variance before any training
) -> PerRow:
    """The share of the prior variance that training left: 0 for an example seen often, 1 for one like no other.

    An example without any feature (k(x, x) = 0) is like no other.

    >>> unexplained(np.array([0.2, 0.0]), np.array([0.8, 0.0]))
    array([0.25, 1.  ])
    """
    share = np.divide(variance, prior, out=np.ones_like(prior, float), where=prior > 0)
    return np.asarray(np.clip(share, 0.0, 1.0))


def threshold(
    scores: Annotated[Array, "n: of training examples, each as if it had not been there"], contamination: float
) -> float:
    """The score that the given share of them, rounded down, falls below.

    >>> threshold(np.array([3.0, 1.0, 2.0, 4.0]), 0.25), threshold(np.array([3.0, 1.0, 2.0, 4.0]), 0.0)
    (2.0, 1.0)
    >>> threshold(np.arange(100.0), 0.29)
    29.0
    """
    below = contamination * scores.size
    below = round(below) if abs(below - round(below)) < 1e-9 else int(below)  # 0.29 · 100 is 28.999999999999996
    return float(np.sort(scores)[below])


def p_values(
    scores: Annotated[Array, "b"],  # of new examples
    normal: Annotated[Array, "q"],  # ascending, of training examples, each as if it had not been there
    n: int | None = None,  # training examples, where `normal` are quantiles of their scores
) -> Annotated[Array, "b"]:
    """How often a normal example scores no higher: (1 + how many of the training examples do) / (n + 1).

    Below all of them it is less than 1/(n + 1), and the less the farther below: such scores are still ranked. In units
    of the distance from the lowest to the middle training score, x below the lowest is 1/(1 + log(1 + x)) of 1/(n + 1).

    >>> p_values(np.array([2.5, 9.0]), np.array([1.0, 2.0, 3.0]))
    array([0.75, 1.  ])
    >>> p_values(np.array([1.0, 0.5, 0.0]), np.array([1.0, 2.0, 3.0])).round(3)
    array([0.5  , 0.178, 0.148])
    """
    n = normal.size if n is None else n
    no_higher, tail = _place(scores, normal, n)
    return np.asarray((tail + no_higher) / (n + 1.0))


def own_p_values(
    scores: Annotated[Array, "b"],  # of training examples, each as if it had not been there
    normal: PerRow,  # ascending, of all of them, less what rounding may do
) -> Annotated[Array, "b"]:
    """p-values of the training examples themselves, each compared with the n − 1 others.

    >>> own_p_values(np.array([1.0, 2.0, 2.0]), np.array([1.0, 2.0, 2.0])).round(3)
    array([0.333, 1.   , 1.   ])
    """
    return np.asarray(np.maximum(*_place(scores, normal, normal.size)) / normal.size)


def _place(scores: Array, normal: Array, n: int) -> tuple[Array, Array]:  # (b,), (b,)
    """How many of n training examples score no higher, and 1, or less below all of them."""
    high, lowest = scores + ROUNDING * np.abs(scores), float(normal[0])
    no_higher = np.searchsorted(normal, high, side="right") * (n / normal.size)
    unit = float(normal[normal.size // 2]) - lowest or abs(lowest) or 1.0
    return no_higher.round(), 1.0 / (1.0 + np.log1p(np.maximum(lowest - high, 0.0) / unit))


def fisher_product(
    explained: PerRow,  # p-values of one sign of novelty
    confidence: PerRow,  # of the other
    weight: float = 0.5,  # of the other, from 0 to 1
) -> PerRow:
    """One number of two p-values: their product (Fisher's method), or with a weight of 0 or 1 the square of one.

    >>> fisher_product(np.array([0.5]), np.array([0.1])), fisher_product(np.array([0.5]), np.array([0.1]), 1.0)
    (array([0.05]), array([0.01]))
    """
    return np.asarray(explained ** (2.0 * (1.0 - weight)) * confidence ** (2.0 * weight))


def quantiles(scores: PerRow, count: int = 501) -> Annotated[Array, "count"]:
    """So many of the scores in ascending order, evenly from the smallest to the largest."""
    places = ((np.arange(count) + 0.5) * (scores.size / count)).astype(int)  # each as often as any other
    places[0], places[-1] = 0, scores.size - 1
    return np.asarray(np.sort(scores)[places])


def repeated(
    scores: PerRow,
    weight: PerRow | None,  # how many equal examples each score stands for, a fraction perhaps; None for one
) -> Annotated[Array, "k"]:
    """The scores in ascending order, each as often as its weight says.

    There are as many as the weights sum to, and at most limits.WEIGHTED_SCORES.

    >>> repeated(np.array([3.0, 1.0]), np.array([1.0, 2.0]))
    array([1., 1., 3.])
    """
    order = np.argsort(scores, kind="stable")
    if weight is None:
        return np.asarray(scores[order])
    ends = np.cumsum(weight[order])
    count = int(np.clip(np.round(ends[-1]), 1, limits.WEIGHTED_SCORES))
    places = np.searchsorted(ends, (np.arange(count) + 0.5) * (ends[-1] / count), side="right")
    return np.asarray(scores[order[np.minimum(places, scores.size - 1)]])
