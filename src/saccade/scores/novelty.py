"""How new an example is: pure functions of the mean and the doubt about it."""

from typing import Any

import numpy as np
from scipy.special import log_ndtr

Array = np.ndarray[Any, np.dtype[Any]]
MEASURES = ("probability", "variance", "mean", "ratio")
LEAST = 1e-12  # share of k(x, x) below which "ratio" sees rounding of the variance
ROUNDING = 1e-12  # share of the largest score below which differences mean nothing


def membership(
    measure: str,
    mean: Array | None,  # (n,); None for "variance"
    variance: Array | None,  # (n,) of the latent function; None for "mean"
    noise: float,
    *,
    sign: bool = False,  # whether a label is the sign of f plus noise, instead of f plus noise
    prior: Array | float = 1.0,  # (n,): k(x, x), for "ratio"
) -> Array:  # (n,)
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


def unexplained(
    variance: Array,  # (n,) of the latent function
    prior: Array,  # (n,) k(x, x), its variance before any training
) -> Array:  # (n,)
    """The share of the prior variance that training left: 0 for an example seen often, 1 for one like no other.

    An example without any feature (k(x, x) = 0) is like no other.

    >>> unexplained(np.array([0.2, 0.0]), np.array([0.8, 0.0]))
    array([0.25, 1.  ])
    """
    share = np.divide(variance, prior, out=np.ones_like(prior, float), where=prior > 0)
    return np.asarray(np.clip(share, 0.0, 1.0))


def threshold(
    scores: Array,  # (n,): of training examples, each as if it had not been there
    contamination: float,
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
    scores: Array,  # (b,): of new examples
    normal: Array,  # (q,): ascending, of training examples, each as if it had not been there
    n: int | None = None,  # training examples, where `normal` are quantiles of their scores
) -> Array:  # (b,)
    """How often a normal example scores no higher: (1 + how many of the training examples do) / (n + 1).

    >>> p_values(np.array([0.0, 2.5, 9.0]), np.array([1.0, 2.0, 3.0]))
    array([0.25, 0.75, 1.  ])
    """
    n = normal.size if n is None else n
    equal = ROUNDING * float(np.abs(normal).max())  # where leaving out changes nothing, scores are equal but for this
    no_higher = np.searchsorted(normal, scores + equal, side="right") * (n / normal.size)
    return np.asarray((1.0 + no_higher.round()) / (n + 1.0))


def quantiles(
    scores: Array,  # (n,)
    count: int = 501,
) -> Array:  # (count,)
    """So many of the scores in ascending order, evenly from the smallest to the largest."""
    places = ((np.arange(count) + 0.5) * (scores.size / count)).astype(int)  # each as often as any other
    places[0], places[-1] = 0, scores.size - 1
    return np.asarray(np.sort(scores)[places])
