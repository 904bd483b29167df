"""Steps of Laplace and EP: what labels ask for, the share of a step, and what is recorded of several columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saccade._core.errors import InvalidInput
from saccade.inference.likelihoods.ep import ep
from saccade.inference.likelihoods.laplace import laplace
from saccade.inference.likelihoods.newton import ROUNDING, Labels, Means, _share, newton_step
from saccade.inference.likelihoods.sites import Regression
from saccade.inference.solving.regression import Solution
from saccade.kernels import RBF
from tests.inference.likelihoods.textbook import answered, infer, infer_regression

Array = np.ndarray[Any, np.dtype[Any]]


def labels(variance: float, seed: int = 0) -> tuple[Labels, Array]:
    rng = np.random.default_rng(seed)
    Y, copies = rng.choice([-1.0, 1.0], (8, 2)), np.array([0.2, 0.5, 1.0, 1.0, 2.0, 3.0, 1.0, 0.7])[:, None]
    return Labels(Y, np.full((8, 2), 0.3), np.full((8, 2), variance), copies, 1e9), 1.5 * rng.standard_normal((8, 2))


@pytest.mark.parametrize("variance", [0.0, 0.4])
def test_the_pull_of_labels_is_that_of_their_sites(variance: float) -> None:
    """Also of labels that count several times, or less than once."""
    given, f = labels(variance)
    targets, noise = given.sites(f)
    np.testing.assert_allclose(given.pull(f), (targets - f) / noise, rtol=1e-10)


@pytest.mark.parametrize("variance", [0.0, 0.4])
def test_near_the_minimum_the_whole_step_is_taken(variance: float) -> None:
    """There slopes are rounding alone, of either sign."""
    given, f = labels(variance)
    pull = given.pull(f)
    rng = np.random.default_rng(1)
    for size in (1e-13, 1e-15):
        for _ in range(20):
            step = size * rng.standard_normal(f.shape)
            blurred = pull * (1.0 + 0.1 * ROUNDING * rng.standard_normal(f.shape))
            assert (_share(given, f, blurred, pull, (step, 0.0 * step)) == 1.0).all()


def test_a_step_too_far_is_halved_in_its_column_alone() -> None:
    given, f = labels(0.0)
    pull = given.pull(f)
    ahead = given.Y * np.array([50.0, 1e-3])  # what labels ask for falls on the way
    share = _share(given, f, 0.5 * pull, pull, (ahead, 0.5 * pull + 5.0 * given.Y))
    assert 0.0 < share[0] < 1.0
    assert _share(given, f, 0.5 * pull, pull, (1e-6 * ahead, 0.0 * ahead)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("find", [laplace, ep])
def test_the_change_of_a_step_is_the_largest_of_all_columns(find: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((30, 2))
    K, hard = 30.0 * RBF(0.3)(X), np.sign(X[:, 0] - 0.5)
    Y = np.column_stack([hard, rng.choice([-1.0, 1.0], 30)])
    both, apart = infer(find, K, Y)[0].changes, [infer(find, K, Y[:, [k]])[0].changes for k in (0, 1)]
    assert len(both) == max(map(len, apart))
    shared = min(map(len, apart))
    np.testing.assert_allclose(both[:shared], np.maximum(apart[0][:shared], apart[1][:shared]), rtol=1e-3)
    assert not np.allclose(apart[0][:shared], apart[1][:shared], rtol=0.01)


def test_a_posterior_that_overflows_is_an_error() -> None:
    """Sites are finite and the mean is not: nothing must be taken from it."""
    given, _ = labels(0.0)
    K = np.eye(8)

    def solve(asked: Regression) -> Solution:
        found = infer_regression(K, asked.noise, asked.targets)
        found.alpha[3, 0] = np.inf
        return found

    with pytest.raises(InvalidInput, match="Raise `noise`"):
        answered(newton_step(given, Means.start(given), np.arange(2), None), solve)
