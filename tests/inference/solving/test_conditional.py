"""A Gaussian given values of it: by a factor, by one that grew, and iterated, against dense algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from saccade._core.arrays import Array
from saccade.inference.solving.conditional import ByFactor, ByIteration, Conditional, unexplained
from saccade.kernels import RBF
from saccade.operators.base import Dense
from saccade.solvers.bordered import Bordered
from saccade.solvers.cholesky import factorise
from tests.tolerances import assert_close

rng = np.random.default_rng(0)
X, NEW, NOISE = rng.random((12, 2)), rng.random((5, 2)), rng.uniform(0.1, 0.3, 12)
K, k, Y = RBF(0.5)(X), RBF(0.5)(X, NEW), rng.standard_normal((12, 3))
TRUE = K + np.diag(NOISE)


def grown() -> Bordered:
    first = Bordered.of(np.linalg.cholesky(TRUE[:7, :7]))
    return first.grown(first.half_solve(TRUE[:7, 7:]), TRUE[7:, 7:])


MADE: dict[str, Any] = {
    "factor": lambda: ByFactor(factorise(K, NOISE)),
    "grown": lambda: ByFactor(grown()),
    "iterated": lambda: ByIteration(Dense(K), NOISE, 1e-12, 100),
}
every = pytest.mark.parametrize("made", [make() for make in MADE.values()], ids=MADE)


@every
def test_conformance(made: Conditional) -> None:
    inverse, rows = np.linalg.inv(TRUE), np.array([0, 3, 11])
    assert_close(made.solve(Y), inverse @ Y)
    assert_close(made.solve(Y, inverse @ Y), inverse @ Y)
    assert_close(made.explained(k), np.einsum("ij,ij->j", k, inverse @ k))
    assert_close(made.explained(k[:, :1]), (k.T @ inverse @ k).diagonal()[:1])
    assert_close(made.explained_covariance(k), k.T @ inverse @ k)
    alpha, diagonal = made.alpha_and_diagonal(rows, Y)
    assert_close(alpha, (inverse @ Y)[rows])
    assert_close(diagonal, inverse.diagonal()[rows])
    np.testing.assert_allclose(made.inverse_diagonal(), inverse.diagonal(), rtol=0.2)  # estimated where iterated


@pytest.mark.parametrize("name", ["factor", "grown"])
def test_a_factor_has_halves_and_a_density(name: str) -> None:
    made: ByFactor = MADE[name]()
    half: Array = made.half(k)
    assert_close(half.T @ half, k.T @ np.linalg.solve(TRUE, k))
    assert_close(unexplained(RBF(0.5).diag(NEW), half), 1.0 - (k.T @ np.linalg.solve(TRUE, k)).diagonal())
    assert_close(made.inverse_diagonal(), np.linalg.inv(TRUE).diagonal())
    wanted = sum(multivariate_normal(np.zeros(12), TRUE).logpdf(column) for column in Y.T)
    assert made.log_density(made.half(Y)) == pytest.approx(wanted, abs=1e-9)


def test_no_values_say_nothing() -> None:
    made = ByFactor(Bordered.of(np.zeros((0, 0))))
    assert made.half(np.zeros((0, 4))).shape == (0, 4)
    np.testing.assert_array_equal(unexplained(2.0, np.zeros((0, 4))), np.full(4, 2.0))


def test_rounding_leaves_no_negative_variance() -> None:
    assert unexplained(1.0, np.full((1, 1), 1.0 + 1e-12))[0] == 0.0


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_a_rough_iteration_explains_no_more_than_there_is(steps: int) -> None:
    rough, exact = ByIteration(Dense(K), NOISE, 1e-12, steps), k.T @ np.linalg.solve(TRUE, k)
    assert (rough.explained(k) <= exact.diagonal() + 1e-12).all()
    assert (rough.explained(k) < exact.diagonal() - 1e-9).any()


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_a_rough_diagonal_is_from_below_and_off_by_a_square(steps: int) -> None:
    rough, rows = ByIteration(Dense(K), NOISE, 1e-12, steps), np.array([0, 3, 11])
    exact, x = np.linalg.inv(TRUE).diagonal()[rows], rough.solve(np.eye(12)[:, rows])
    diagonal = rough.alpha_and_diagonal(rows, Y)[1]
    assert_close(diagonal, 2.0 * x[rows, np.arange(3)] - np.einsum("ij,ij->j", x, TRUE @ x))
    assert (diagonal <= exact + 1e-12).all()
