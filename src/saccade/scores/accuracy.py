"""How sure an accuracy is: intervals for a share, the error of leave-one-out, and what repeated looks may spend.

Pure functions.
"""

from typing import Annotated

import numpy as np
from scipy.special import betaincinv, ndtr, rel_entr, xlogy

from saccade._core.arrays import Array, PerRow

FIRST_LOOK = 16  # audited examples; fewer say next to nothing, so the looks before it cost next to nothing
EARLY, EARLY_SHARE = 4, 0.2  # looks before it, and what they have of the error that it would have alone
GROWTH = 4  # the next look is a quarter further on
FLATNESS = 10  # so many looks share half of the error; measured: docs/decisions/022
LOW_SIDE = 0.8  # share of the error that the lower end gets: it decides about the stop, and so comes sooner

BETTER = (0.2, 0.5, 0.75)  # errors of a better model, as multiples of the error that is allowed
WORSE = (5.0, 2.0, 4 / 3)
LUCKY = 1 / 6  # how often an accuracy is better than a test hopes for


def looks_until(audited: int) -> int:
    """How many scheduled looks lie at or below this number of audited examples: 1, 2, 4, 8, 16, 20, 25, 32, 40, …

    Whole numbers only, so that all computers have the same schedule.

    >>> [looks_until(n) for n in (0, 1, 15, 16, 19, 20, 63)]
    [0, 1, 4, 5, 5, 6, 11]
    """
    count, at = 0, 1
    while at <= audited:
        count, at = count + 1, at + (at if at < FIRST_LOOK else -(-at // GROWTH))
    return count


def error_spent(audited: int) -> float:
    """Share of the allowed error that all looks up to this number of audited examples may spend together.

    From FIRST_LOOK on it is J/(J + FLATNESS) after J looks, so look j has 10/((j + 9)(j + 10)); the sum over all looks
    is 1, however many there will be. Earlier looks share a fifth of what look 1 has, and leave it to that look where
    they were not taken. Where it is known how many there will be at most, divide by what these spend.

    >>> error_spent(0), round(error_spent(15), 3), round(error_spent(16), 3), error_spent(155)
    (0.0, 0.018, 0.091, 0.524)
    """
    looks = looks_until(audited)
    if looks <= EARLY:
        return EARLY_SHARE * looks / EARLY / (1 + FLATNESS)
    return (looks - EARLY) / (looks - EARLY + FLATNESS)


def share_interval(
    right: int,
    n: int,
    error: float,  # probability that the interval may miss, both sides together
    low_side: float = LOW_SIDE,
) -> tuple[float, float]:
    """Exact interval of Clopper and Pearson (1934) for a share of which `right` in `n` independent draws were seen.

    The ends are quantiles of beta distributions. The lower end gets `low_side` of the error, the upper end the rest, so
    the probability that the share lies outside is at most `error`, whatever the share is.

    >>> share_interval(0, 0, 0.05)
    (0.0, 1.0)
    >>> low, high = share_interval(95, 100, 0.05)
    >>> round(low, 3), round(high, 3)
    (0.894, 0.987)
    """
    low = float(betaincinv(right, n - right + 1, low_side * error)) if right > 0 else 0.0
    high = float(betaincinv(right + 1, n - right, 1.0 - (1.0 - low_side) * error)) if right < n else 1.0
    return low, high


def share_evidence(right: int, n: int, share: float, factors: tuple[float, ...] = BETTER) -> float:
    """The log of how much likelier these guesses are for a model that is better than `share` than for one just as good.

    The better ones have g times the error e = 1 − share, for the factors g with equal weights; factors above 1 are of
    worse models. In a draw with error a, the ratio is multiplied by a g + (1 − a)(1 − g e)/(1 − e) in expectation. That
    is 1 for a = e, and less for all a > e: so for any model that is no better than `share`, the ratio ever reaches 1/ε
    with a probability of at most ε (Ville, 1939). Whoever stops at that moment, whenever it is, errs so rarely.

    >>> round(share_evidence(60, 60, 0.9), 2), round(share_evidence(54, 60, 0.9), 2)
    (4.18, -1.02)
    """
    e = 1.0 - share
    times = np.minimum(factors, 1.0 / e)
    terms = xlogy(n - right, times) + xlogy(right, np.maximum(1.0 - times * e, 0.0) / share)
    return float(np.logaddexp.reduce(terms) - np.log(times.size))


def share_sequence(right: int, n: int, error: float, low_side: float) -> tuple[float, float]:
    """Interval for the share of right guesses that holds at all numbers n of draws together: a confidence sequence.

    Its ends are where the evidence for a better or a worse model is log(1/error), `low_side` of the error at the lower
    one. The evidence for a better model falls as the share grows, and that for a worse one rises.

    >>> low, high = share_sequence(95, 100, 0.05, 0.8)
    >>> round(low, 3), round(high, 3)
    (0.864, 0.994)
    """
    if n == 0:
        return 0.0, 1.0

    def end(inside: float, outside: float, level: float, factors: tuple[float, ...]) -> float:
        for _ in range(40):
            middle = (inside + outside) / 2
            kept = share_evidence(right, n, middle, factors) < -np.log(level)
            inside, outside = (middle, outside) if kept else (inside, middle)
        return outside

    low = end(right / n, 0.0, low_side * error, BETTER) if right > 0 else 0.0
    high = end(right / n, 1.0, (1.0 - low_side) * error, WORSE) if right < n else 1.0
    return low, high


def draws_to_show(right: int, n: int, share: float, error: float, accuracy: float | None = None) -> float:
    """About how many more draws show that a model with this accuracy is better than `share`.

    Each draw adds the Kullback-Leibler divergence of the two. Infinite where the accuracy is too low. None: the
    accuracy is as high as may be hoped, the upper end of an interval of the draws so far that lies too low once in six
    times.

    >>> round(draws_to_show(0, 0, 0.9, 0.05, 0.95)), round(draws_to_show(57, 60, 0.9, 0.05))
    (179, 51)
    >>> draws_to_show(40, 60, 0.9, 0.05)
    inf
    """
    if accuracy is None:
        accuracy = float(betaincinv(right + 1, n - right, 1.0 - LUCKY)) if right < n else 1.0
    if accuracy <= share:
        return float("inf")
    speed = float(rel_entr(accuracy, share) + rel_entr(1.0 - accuracy, 1.0 - share))
    return float(max(0.0, -np.log(error) - share_evidence(right, n, share)) / speed)


def left_out_accuracy(
    decision: Annotated[Array, "n, M"],  # a mean for each class without the example; NaN where it is not known
    label: PerRow,  # class numbers
    error: float,  # relative, of labels ±1 minus these means
) -> tuple[float, float]:
    """Share of examples that get their own class when left out, and its standard error.

    The share of n examples has an error of its own, that of (right + 1)/(n + 2), so that it is not 0 where all are
    right. And a label minus its mean is known up to a factor 1 + ε, ε ~ N(0, error²), which moves a margin m over the
    best other class by (2 − m)ε. Where such noise is in the means, it has changed the share by about what further noise
    would change it: that is added.

    >>> share, error = left_out_accuracy(np.array([[0.9, -0.9], [0.5, -0.5], [-0.2, 0.2]]), np.zeros(3, int), 0.0)
    >>> round(share, 3), round(error, 3)
    (0.667, 0.283)
    """
    known = ~np.isnan(decision).any(axis=1)
    decision, label = decision[known], label[known]
    own = decision[np.arange(label.size), label]
    rivals = np.where(np.arange(decision.shape[1]) == label[:, None], -np.inf, decision)
    margin = own - rivals.max(axis=1)
    share = float((decision.argmax(axis=1) == label).mean())
    moved = error * np.abs(2.0 - margin) + 1e-300
    shift = float(ndtr(margin / moved).mean() - (margin > 0).mean()) if error > 0 else 0.0
    even = (share * label.size + 1.0) / (label.size + 2.0)
    return share, float(np.sqrt(even * (1.0 - even) / label.size + shift**2))
