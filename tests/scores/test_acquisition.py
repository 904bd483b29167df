"""Where to look next, against integrals, exact fractions and the formulas as printed."""

from decimal import Decimal, localcontext
from itertools import pairwise
from math import exp, log, pi, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from saccade._core.errors import InvalidInput
from saccade.scores import acquisition
from tests.tolerances import TOL, assert_close

Array = np.ndarray[Any, np.dtype[Any]]


def log_h(z: float) -> float:
    """log ∫₀^∞ t φ(t − z) dt in 60 digits: the continued fraction of Mills' ratio, with decimal arithmetic.

    Φ(z)/φ(z) = 1/(x + 1/(x + 2/(x + 3/(x + …)))) for x = −z > 0, and h = φ (1 − x Φ/φ).
    """
    with localcontext() as context:
        context.prec = 60
        x = Decimal(-z)
        tail = x
        for k in range(int(4000 / min(-z, 20.0)) + 200, 0, -1):
            tail = x + Decimal(k) / tail
        return float(-x * x / 2 - (2 * Decimal(pi)).ln() / 2 + (1 - x / tail).ln())


def value(z: float, xi: float = 0.0) -> float:
    return float(acquisition.log_expected_improvement(np.array([z + xi]), np.ones(1), 0.0, xi)[0])


@pytest.mark.parametrize(
    "z", [-3.0, -5.0, -9.1, -19.0, -19.999, -20.0, -20.001, -38.0, -100.0, -1e4, -1e6, -1e8, -1e12]
)
def test_log_ei_keeps_all_digits_far_out(z: float) -> None:
    assert abs(value(z) - log_h(z)) <= TOL[np.float64].atol + 2.0 * np.spacing(z * z / 2)


@pytest.mark.parametrize("z", [-1e4, -1e5, -1e6])
def test_log_ei_without_its_largest_term(z: float) -> None:
    """log h + z²/2 → −log √2π − 2 log |z| + log(1 − 3/z²): what is left is exact to the rounding of z²/2."""
    left = value(z) + z * z / 2
    assert abs(left - (-0.5 * log(2 * pi) - 2 * log(-z) + np.log1p(-3.0 / z**2))) <= 2.0 * np.spacing(z * z / 2)


@pytest.mark.parametrize("z", [8.0, 2.0, 0.0, -0.5, -0.999, -1.0, -1.001, -2.0, -6.0, -15.0, -25.0, -37.0])
def test_ei_is_the_integral_of_the_improvement(z: float) -> None:
    """exp(−z²/2) is taken out, so that the integral is of order one: ∫ t exp(−t²/2 + tz) dt."""
    area, _ = quad(lambda t: t * exp(-t * t / 2 + t * min(z, 0.0)) * exp(t * max(z, 0.0) - max(z, 0.0) ** 2 / 2), 0, 50)
    assert_close(value(z) + min(z, 0.0) ** 2 / 2, log(area / sqrt(2 * pi)))


@given(z=st.floats(-1e7, 50.0), step=st.floats(1e-3, 10.0))
def test_log_ei_rises_with_the_mean_and_stays_finite(z: float, step: float) -> None:
    assert np.isfinite(value(z))
    assert value(z + step) > value(z)


def test_log_ei_beyond_every_number() -> None:
    assert value(-1e154) < value(-1e150) < value(-1e100)
    assert value(-1e200) == -np.inf
    tiny = np.array([5e-324, 1e-300])
    found = acquisition.log_expected_improvement(np.array([-1.0, 1e10]), tiny, 0.0)
    assert found[0] == -np.inf or found[0] < -1e300
    assert_close(found[1], log(1e10))


@given(mean=st.floats(-3, 3), sigma=st.floats(0.01, 3), best=st.floats(-2, 2), xi=st.floats(0, 0.5))
def test_formulas_as_printed(mean: float, sigma: float, best: float, xi: float) -> None:
    m, v = np.array([mean]), np.array([sigma**2])
    z = (mean - best - xi) / sigma
    printed = (mean - best - xi) * norm.cdf(z) + sigma * norm.pdf(z)
    np.testing.assert_allclose(acquisition.expected_improvement(m, v, best, xi), printed, rtol=1e-9, atol=1e-12)
    assert_close(acquisition.probability_of_improvement(m, v, best, xi), norm.cdf(z))
    assert_close(acquisition.log_probability_of_improvement(m, v, best, xi), norm.logcdf(z))
    assert_close(acquisition.upper_confidence_bound(m, v, 1.5), mean + 1.5 * sigma)


def test_what_is_known_needs_no_look() -> None:
    mean, variance = np.array([0.2, 0.5, 0.9, 0.5]), np.array([0.0, 0.0, -1e-17, 1e-4])
    assert acquisition.expected_improvement(mean, variance, 0.5)[:3].tolist() == [0.0, 0.0, 0.0]
    assert acquisition.probability_of_improvement(mean, variance, 0.5).tolist() == [0.0, 0.0, 0.0, 0.5]
    assert acquisition.log_expected_improvement(mean, variance, 0.5)[:3].tolist() == [-np.inf] * 3
    assert acquisition.log_probability_of_improvement(mean, variance, 0.5)[:3].tolist() == [-np.inf] * 3
    assert acquisition.log_expected_improvement(mean, variance, 0.5).argmax() == 3
    assert acquisition.upper_confidence_bound(mean, variance)[:3].tolist() == [0.2, 0.5, 0.9]
    assert acquisition.maximum_variance(variance).tolist() == [0.0, 0.0, 0.0, 1e-4]


def test_equal_candidates_have_equal_scores() -> None:
    mean, variance = np.full(5, 0.3), np.full(5, 0.02)
    for score in (
        acquisition.probability_of_improvement,
        acquisition.expected_improvement,
        acquisition.log_expected_improvement,
    ):
        assert np.unique(score(mean, variance, 0.7, 0.01)).size == 1


def test_scores_keep_the_shape_of_a_map() -> None:
    mean, variance = np.zeros((3, 4)), np.ones((3, 4))
    assert acquisition.log_expected_improvement(mean, variance, 0.1).shape == (3, 4)
    assert acquisition.probability_of_improvement(mean, np.ones(4), 0.1).shape == (3, 4)


def test_xi_explores() -> None:
    """A near certain small gain against an unsure larger one."""
    mean, variance = np.array([0.52, 0.4]), np.array([1e-4, 0.04])
    assert acquisition.probability_of_improvement(mean, variance, 0.5).argmax() == 0
    assert acquisition.probability_of_improvement(mean, variance, 0.5, xi=0.1).argmax() == 1


def test_xi_decays() -> None:
    found = [acquisition.decaying_xi(0.05, looks, 10) for looks in range(50)]
    assert found[0] == 0.05
    assert_close(found[10], 0.025)
    assert all(b < a for a, b in pairwise(found))


def test_thompson_takes_candidates_as_often_as_they_are_best() -> None:
    rng = np.random.default_rng(0)
    mean, sigma = np.array([0.0, 0.3, 0.1]), np.array([1.0, 0.5, 0.1])
    draws = mean + sigma * rng.standard_normal((4000, 3))
    first = np.array([acquisition.thompson(draw[None])[0] for draw in draws])
    assert np.array_equal(first, draws.argmax(axis=1))


def test_thompson_gives_a_batch_without_repeats_and_ties_to_the_first() -> None:
    draws = np.array([[0.0, 2.0, 2.0 * (1 + 1e-13), 1.0]] * 4)
    assert acquisition.thompson(draws).tolist() == [1, 2, 3, 0]
    assert acquisition.thompson(np.zeros((2, 3))).tolist() == [0, 1]


@pytest.mark.parametrize("draws", [np.zeros(3), np.zeros((4, 3)), np.array([[0.0, np.nan]])])
def test_thompson_says_what_is_wrong(draws: Array) -> None:
    with pytest.raises(InvalidInput, match="no more draws than candidates"):
        acquisition.thompson(draws)
