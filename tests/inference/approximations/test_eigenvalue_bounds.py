"""The bound of the largest eigenvalue: above it, and not by much."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from saccade.inference.approximations.eigenvalue_bounds import LUCK, PROBES, above, largest_eigenvalue

Array = np.ndarray[Any, np.dtype[Any]]


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 30), decay=st.floats(0.0, 3.0), size=st.floats(1e-6, 1e6), seed=st.integers(0, 10**6))
def test_above_the_largest_and_within_a_tenth(n: int, decay: float, size: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((n, n)))[0]
    spectrum = size * (1.0 + np.arange(n)) ** -decay
    A = (U * spectrum) @ U.T
    found = largest_eigenvalue(lambda V: A @ V, n, rng)
    assert size * (1 - 1e-12) <= found <= 1.1 * size


def test_one_eigenvalue_far_from_many() -> None:
    """Hidden from most random vectors: a direction of its own among two thousand."""
    for seed in range(5):
        diagonal = np.full(2000, 1.0)
        diagonal[7] = 1.5
        found = largest_eigenvalue(lambda V, d=diagonal: d[:, None] * V, 2000, np.random.default_rng(seed))
        assert 1.5 <= found <= 1.65


def test_nothing_at_all() -> None:
    assert largest_eigenvalue(np.zeros_like, 5, np.random.default_rng(0)) == pytest.approx(0.0)


@pytest.mark.parametrize("probes", [1, 2])
def test_too_small_as_often_as_is_said(probes: int) -> None:
    """One eigenvalue far above b and of the others is the worst case: a probe is as long as its share of that one.

    The bound then fails where every share is below √(π/2)/LUCK. How often it does is known exactly, it is a little less
    than LUCK^−probes, and the bound must fail neither more often nor never.
    """
    seeds, diagonal = 3000, np.array([[10.0], [0.0]])
    too_small = sum(
        above(lambda V: diagonal * V, 1.0, 2, np.random.default_rng(seed), probes) < 10.0 for seed in range(seeds)
    )
    expected = (2.0 * norm.cdf(np.sqrt(np.pi / 2.0) / 4.0) - 1.0) ** probes
    assert expected < 4.0**-probes
    assert abs(too_small / seeds - expected) < 4.0 * np.sqrt(expected * (1.0 - expected) / seeds)


def test_the_probability_that_is_stated() -> None:
    assert LUCK**-PROBES <= 2.4e-10
