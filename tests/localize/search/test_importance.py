"""Weighted hypotheses against a posterior that is known."""

from typing import Any

import numpy as np
import pytest

from saccade._core.arrays import Array
from saccade.localize import BoxPrior
from saccade.localize.boxes import to_coordinates
from saccade.localize.priors.densities import Normals
from saccade.localize.search.importance import Hypotheses, hypotheses, hypotheses_of_pool

BOUNDS = np.array([0.0, 0.0, 1000.0, 800.0])
PRIOR_MEAN, PRIOR_SD = np.array([0.5, 0.5, -4.0, 0.1]), np.array([0.06, 0.06, 0.4, 0.2])


def normal_prior() -> BoxPrior:
    return BoxPrior(BOUNDS, Normals(np.ones(1), PRIOR_MEAN[None], np.diag(PRIOR_SD**2)[None]))


@pytest.mark.parametrize("sharp", [1.0, 0.2, 0.02])
def test_mean_and_evidence_of_a_normal_posterior(sharp: float) -> None:
    at, sd = PRIOR_MEAN + PRIOR_SD, PRIOR_SD * sharp

    def log_likelihood(boxes: Array) -> Array:
        return np.asarray(-0.5 * np.square((to_coordinates(boxes, BOUNDS) - at) / sd).sum(axis=1))

    found = hypotheses(normal_prior(), log_likelihood, 1500, np.random.default_rng(0))
    u, share = to_coordinates(found.boxes, BOUNDS), 1.0 / (1.0 + sharp**2)
    expected = PRIOR_MEAN + share * PRIOR_SD
    spread = PRIOR_SD * sharp * np.sqrt(share)
    np.testing.assert_allclose((found.weights @ u - expected) / spread, 0.0, atol=0.2)
    np.testing.assert_allclose(np.sqrt(found.weights @ np.square(u - expected)) / spread, 1.0, atol=0.25)
    evidence = 4 * (np.log(sharp) + 0.5 * np.log(share)) - 0.5 * 4 * share
    assert found.log_evidence == pytest.approx(evidence, abs=0.3)
    assert found.weights.sum() == pytest.approx(1.0)


def test_two_places_share_the_belief() -> None:
    """A likelihood with two narrow peaks, one three times as high."""
    places = np.array([[0.3, 0.4], [0.7, 0.6]])

    def log_likelihood(boxes: Array) -> Array:
        u = to_coordinates(boxes, BOUNDS)[:, :2]
        peaks = -0.5 * np.square((u[:, None] - places) / 0.02).sum(axis=2) + np.log([3.0, 1.0])
        return np.asarray(np.logaddexp(peaks[:, 0], peaks[:, 1]))

    shares = []
    for seed in range(8):
        prior = BoxPrior.unknown(BOUNDS)
        found = hypotheses(prior, log_likelihood, 1500, np.random.default_rng(seed))
        shares.append(found.weights[to_coordinates(found.boxes, BOUNDS)[:, 0] < 0.5].sum())
    assert np.mean(shares) == pytest.approx(0.75, abs=0.07)


def test_a_known_size_stays() -> None:
    found = hypotheses(
        BoxPrior.unknown(BOUNDS).of_size((100.0, 50.0)),
        lambda boxes: -0.5 * np.square((boxes[:, 0] - 300.0) / 5.0),
        500,
        np.random.default_rng(0),
    )
    inside = (found.boxes[:, :2] > 0).all(axis=1) & (found.boxes[:, 2] < 1000) & (found.boxes[:, 3] < 800)
    np.testing.assert_allclose((found.boxes[:, 2:] - found.boxes[:, :2])[inside], [[100.0, 50.0]] * inside.sum())
    assert found.weights @ found.boxes[:, 0] == pytest.approx(300.0, abs=2.0)


def test_resampling_is_even() -> None:
    some = Hypotheses(np.zeros((4, 4)), np.array([0.5, 0.25, 0.0, 0.25]), 0.0)
    np.testing.assert_array_equal(np.bincount(some.resampled(8, np.random.default_rng(0)), minlength=4), [4, 2, 0, 2])


class Wide(np.random.Generator):
    """Places ten times as far off as usual: centres leave the picture, as they do once in some million draws."""

    def standard_normal(self, *size: Any, **options: Any) -> Any:
        return super().standard_normal(*size, **options) * np.array([10.0, 10.0, 1.0, 1.0])


def test_objects_near_a_pool_have_their_centre_in_the_picture() -> None:
    """Draws around proposals at the edges end at the edge, where the prior knows them; beyond it they would be lost."""
    prior = BoxPrior.unknown((100, 50))
    pool = np.array([[0, 20, 20, 30], [80, 20, 100, 30], [40, 0, 60, 10], [40, 40, 60, 50]], np.float64)
    found = hypotheses_of_pool(pool, prior, lambda boxes: np.zeros(len(boxes)), 800, True, Wide(np.random.PCG64(0)))
    assert (found.weights > 0).all()
    places = to_coordinates(found.boxes, prior.bounds)[:, :2].reshape(4, 200, 2)
    for own, axis, left in zip(places, (0, 0, 1, 1), (True, False, True, False), strict=True):
        assert np.unique(own[:, axis].round(9)).size > 50  # not all at the edge
        assert bool(np.median(own[:, axis]) < 0.5) is left
    width = (found.boxes[:, 2] - found.boxes[:, 0]).reshape(4, 200)
    assert np.median(width) < 30.0


def test_evidence_of_a_prior_that_reaches_over_the_edge() -> None:
    """The mean likelihood of boxes drawn from the prior, whose centres are in the picture."""
    mean, sd = np.array([0.02, 0.97, -3.0, 0.1]), np.array([0.2, 0.3, 0.4, 0.2])
    prior = BoxPrior(BOUNDS, Normals(np.ones(1), mean[None], np.diag(sd**2)[None]))

    def log_likelihood(boxes: Array) -> Array:
        return np.asarray(-0.5 * np.square((to_coordinates(boxes, BOUNDS) - mean) / (2.0 * sd)).sum(axis=1))

    expected = np.log(np.exp(log_likelihood(prior.sample(100_000, np.random.default_rng(1)))).mean())
    found = [hypotheses(prior, log_likelihood, 1500, np.random.default_rng(seed)).log_evidence for seed in range(5)]
    np.testing.assert_allclose(found, expected, atol=0.1)
