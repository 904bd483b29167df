"""The sharpness of class probabilities, from training examples as if each had not been there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade.inference.posterior.gp import GP
from saccade.scores.probability import fit_sharpness

Decide = Callable[[Array, Array], Array]  # mean and variance -> decisions


class Calibration(NamedTuple):
    """What training examples show when each is left out."""

    mean: Array  # (n, m): NaN for examples that an approximate mean cannot leave out
    decision: Array  # (n, m)
    sharpness: float


def calibrate(
    gp: GP,
    label: Array,  # (n,)
    weight: Array | None,  # (n,)
    decide: Decide | None,  # None: the mean is the decision
) -> Calibration:
    """Decisions about all training examples, each as if it had not been there, and the sharpness they deserve."""
    variance = None
    if gp.by.mean == "exact":
        rows, (mean, variance) = np.arange(label.size), gp.leave_one_out()
    else:
        rows, mean = gp.comparable(limits.EXAMPLES_COMPARED), np.full(gp.sites.targets.shape, np.nan)
        mean[rows] = gp.left_out_mean(rows)
    decision = mean.copy()
    if decide is None:
        return Calibration(mean, decision, fit_sharpness(decision[rows], label[rows], of_rows(weight, rows)))
    if variance is not None:
        decision = decide(mean, variance)
    rows, found, sharpness = sharpen(gp, mean, variance, label, weight, decide)
    decision[rows] = found
    gp.prepare()
    return Calibration(mean, decision, sharpness)


def sharpen(
    gp: GP,
    mean: Array,  # (n, m): without each example, where the mean is exact
    exact: Array | None,  # (n, 1) or (n, m): the variance without each example, where it is known
    label: Array,  # (n,)
    weight: Array | None,  # (n,)
    decide: Decide,
) -> tuple[Array, Array, float]:  # (b,), (b, m)
    """The sharpness where decisions take the variance: on the kind of variance that new examples will have.

    Returns also numbers of training examples and their decisions, each as if it had not been there.
    """
    rows, variance = gp.left_out_variance(exact, limits.EXAMPLES_COMPARED)
    mean = mean[rows] if gp.by.mean == "exact" else gp.left_out_mean(rows)
    decision = decide(mean, variance)
    return rows, decision, fit_sharpness(decision, label[rows], of_rows(weight, rows))


def of_rows(weight: Array | None, rows: Array) -> Array | None:
    """The weights of some examples."""
    return None if weight is None else weight[rows]
