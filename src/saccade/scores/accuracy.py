"""How sure an accuracy is: intervals for a share, the error of leave-one-out, and what repeated looks may spend.

Pure functions.
"""

from typing import Annotated

import numpy as np
from scipy.special import betaincinv, ndtr

from saccade._core.arrays import Array, PerRow

FIRST_LOOK = 16  # audited examples; fewer say next to nothing
GROWTH = 4  # the next look is a quarter further on
FLATNESS = 10  # so many looks share half of the error; measured: docs/decisions/022
LOW_SIDE = 0.8  # share of the error that the lower end gets: it decides about the stop, and so comes sooner


def looks_until(audited: int) -> int:
    """How many scheduled looks lie at or below this number of audited examples: 16, 20, 25, 32, 40, 50, 63, …

    Whole numbers only, so that all computers have the same schedule.

    >>> [looks_until(n) for n in (0, 15, 16, 19, 20, 63)]
    [0, 0, 1, 1, 2, 7]
    """
    count, at = 0, FIRST_LOOK
    while at <= audited:
        count, at = count + 1, at + -(-at // GROWTH)
    return count


def error_spent(audited: int) -> float:
    """Share of the allowed error that all looks up to this number of audited examples may spend together.

    After J looks it is J/(J + FLATNESS), so look j has 10/((j + 9)(j + 10)); the sum over all looks is 1, however many
    there will be. Where it is known how many there will be at most, divide by what these spend.

    >>> error_spent(15), error_spent(16), error_spent(155)
    (0.0, 0.09, 0.52)
    """
    looks = looks_until(audited)
    return looks / (looks + FLATNESS)


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
