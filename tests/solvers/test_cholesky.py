"""The direct solver against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade._core.errors import InvalidInput
from saccade.solvers.cholesky import factorise
from tests.solvers.problems import Array, Problem, coded_problems, random_problem
from tests.tolerances import assert_close


def check(problem: Problem, noise: Array) -> None:
    factor = factorise(problem.K, noise)
    A = problem.K + np.diag(noise)
    B = np.random.default_rng(0).standard_normal((len(A), 3))
    assert_close(factor.L @ factor.L.T, A)
    assert_close(factor.solve(B), np.linalg.solve(A, B))
    assert_close((factor.half_solve(B) ** 2).sum(axis=0), np.einsum("ij,ij->j", B, np.linalg.solve(A, B)))
    assert_close(factor.inverse_diagonal(), np.linalg.inv(A).diagonal())
    assert_close(factor.log_determinant(), np.linalg.slogdet(A)[1])


@pytest.mark.parametrize("kind", ["coded", "sorted", "dense"])
def test_against_numpy(kind: str) -> None:
    problem = random_problem(kind)
    check(problem, np.random.default_rng(1).uniform(0.1, 1.0, len(problem.K)))


@given(coded_problems(), st.sampled_from([0.1, 1.0]))
def test_ties_zeros_copies_and_single_rows(problem: Problem, sigma: float) -> None:
    check(problem, np.full(len(problem.K), sigma))


def test_half_solve_is_the_lower_factor() -> None:
    factor = factorise(np.array([[4.0, 2.0], [2.0, 3.0]]), np.zeros(2))
    assert_close(factor.L, np.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 3.0]])))
    assert_close(factor.L @ factor.half_solve(np.eye(2)), np.eye(2))


def test_the_inputs_stay_as_they_are() -> None:
    K = random_problem("dense").K
    kept = K.copy()
    factor = factorise(K, np.full(len(K), 0.1))
    L = factor.L.copy()
    factor.inverse_diagonal()
    np.testing.assert_array_equal(K, kept)
    np.testing.assert_array_equal(factor.L, L)


def test_not_positive_definite() -> None:
    with pytest.raises(InvalidInput, match=r"not positive definite.*largest entry is 2.*Raise `noise`"):
        factorise(np.full((3, 3), 2.0), np.full(3, -0.1))
    with pytest.raises(InvalidInput, match=r"noise 0 is not positive definite"):
        factorise(np.zeros((2, 2)), np.zeros(2))
