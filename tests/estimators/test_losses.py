"""Losses of left-out predictions: the densities they stand for, and slopes that are those of differences."""

import numpy as np
import pytest
from scipy.stats import norm

from saccade.estimators.losses import DensityLosses
from tests.tolerances import assert_close


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_left_out_densities_and_their_slopes(weighted: bool, shared: bool) -> None:
    rng = np.random.default_rng(0)
    mean, weight = rng.normal(size=(6, 2)), rng.uniform(0.5, 3.0, 6) if weighted else None
    Y = mean + rng.normal(size=(6, 2))
    variance = rng.uniform(0.5, 2.0, (6, 1 if shared else 2))
    losses = DensityLosses.of(Y, weight)
    value, by_mean, by_variance = losses.left_out(mean, variance)
    w = np.ones((6, 1)) if weight is None else (weight / weight.mean())[:, None]
    assert value == pytest.approx(-(w * norm.logpdf(Y, mean, np.sqrt(variance))).sum())
    assert losses.score(mean) == pytest.approx((w * (Y - mean) ** 2).mean())
    for found, at in ((by_mean, mean), (by_variance, variance)):
        slope = np.zeros_like(at)
        for place in np.ndindex(*at.shape):
            step = np.zeros_like(at)
            step[place] = 1e-5
            ends = [
                losses.left_out(*((mean + s * step, variance) if at is mean else (mean, variance + s * step)))[0]
                for s in (1.0, -1.0)
            ]
            slope[place] = (ends[0] - ends[1]) / 2e-5
        assert_close(found, slope, np.float32)
