"""Greedy block coordinate descent against dense algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import block_descent
from experiments.block_descent import BlockwiseResult, solve_blockwise
from saccade._core.errors import InvalidParameter
from tests.solvers.problems import Array, Problem, coded_problems, correlated, random_problem
from tests.tolerances import assert_close


def solve(K: Array, noise: Array, b: Array, **options: Any) -> BlockwiseResult:
    return solve_blockwise(lambda some: K[some], K.diagonal(), noise, b, **options)


@given(coded_problems(), st.sampled_from([1e-3, 1e-9]), st.sampled_from([(1, 1), (1, 4), (3, 4), (10, 20)]))
def test_against_dense_algebra(problem: Problem, tol: float, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    K, n = problem.K, len(problem.K)
    noise, b = rng.uniform(0.1, 1.0, n), rng.standard_normal(n)
    result = solve(K, noise, b, tol=tol, size=sizes[0], candidates=sizes[1])
    assert result.converged
    assert result.residual <= tol
    assert_close(result.residual, np.abs(b - K @ result.x - noise * result.x).max())
    x = np.linalg.solve(K + np.diag(noise), b)
    assert np.linalg.norm(result.x - x) <= 1.01 * tol * np.sqrt(n) / noise.min()


@pytest.mark.parametrize("kind", ["coded", "sorted", "dense"])
def test_any_kernel(kind: str) -> None:
    K = random_problem(kind).K
    noise, b = np.full(len(K), 3.0), np.random.default_rng(0).standard_normal(len(K))
    result = solve(K, noise, b, tol=1e-7)
    np.testing.assert_allclose(result.x, np.linalg.solve(K + 3.0 * np.eye(len(K)), b), atol=1e-6)


def test_a_block_as_large_as_the_problem_is_a_direct_solve() -> None:
    K = random_problem("dense", n=15).K
    b = np.random.default_rng(0).standard_normal(15)
    result = solve(K, np.full(15, 0.1), b, tol=1e-9, size=15, candidates=15)
    assert result.iterations == 1


def test_the_rule_of_the_block() -> None:
    """Every member is the candidate that lowers the objective most, given those before it."""
    rng = np.random.default_rng(0)
    K, noise = random_problem("dense", n=30).K, rng.uniform(0.1, 0.2, 30)
    A, r = K + np.diag(noise), rng.standard_normal(30)
    block, rows, change = block_descent._solve_block(lambda some: K[some], A.diagonal(), noise, r, 4, 8)
    candidates = list(np.argsort(-(r**2) / A.diagonal())[:8])
    expected: list[int] = []
    for _ in range(4):
        gains = {}
        for i in set(candidates) - set(expected):
            S = [*expected, i]
            gains[i] = r[S] @ np.linalg.solve(A[np.ix_(S, S)], r[S])
        expected.append(max(gains, key=lambda i: gains[i]))
    assert block.tolist() == expected
    np.testing.assert_array_equal(rows, K[block])
    assert_close(change, np.linalg.solve(A[np.ix_(block, block)], r[block]))


def test_copies_do_not_fill_the_block() -> None:
    K = np.ones((6, 6))
    K[5, :5] = K[:5, 5] = 0.5
    result = solve(K, np.zeros(6), np.array([1.0, 1.0, 1.0, 1.0, 1.0, 3.0]), tol=1e-9, size=3, candidates=6)
    assert result.converged
    assert result.iterations == 1


def test_the_objective_never_rises() -> None:
    problem = correlated(n=120)
    K, noise = problem.K, np.full(120, 0.01)
    b = np.random.default_rng(0).choice([-1.0, 1.0], 120)
    A, values = K + np.diag(noise), [0.0]
    for limit in range(1, 15):
        x = solve(K, noise, b, tol=1e-12, max_iter=limit).x
        values.append(0.5 * x @ A @ x - b @ x)
    assert (np.diff(values) <= 1e-12).all()


def test_limit_reached_and_callback() -> None:
    problem = correlated(n=120)
    noise, b = np.full(120, 1e-3), np.random.default_rng(0).standard_normal(120)
    heard: list[tuple[int, float]] = []

    def callback(iteration: int, residual: float) -> None:
        heard.append((iteration, residual))

    result = solve(problem.K, noise, b, tol=1e-9, max_iter=3, callback=callback)
    assert not result.converged
    assert result.iterations == 3
    assert result.residual == pytest.approx(np.abs(b - problem.K @ result.x - noise * result.x).max())
    assert [iteration for iteration, _ in heard] == [1, 2, 3]
    assert heard[-1][1] == result.residual


def test_zero_right_hand_side_and_one_example() -> None:
    nothing = solve(np.eye(3), np.ones(3), np.zeros(3))
    assert nothing.converged
    assert nothing.iterations == 0
    one = solve(np.array([[2.0]]), np.array([0.5]), np.array([5.0]), tol=1e-9)
    np.testing.assert_allclose(one.x, [2.0])


def test_nothing_to_solve_with() -> None:
    result = solve(np.zeros((3, 3)), np.zeros(3), np.ones(3))
    assert not result.converged
    assert result.residual == 1.0
    assert result.iterations <= 1


@pytest.mark.parametrize(("size", "candidates"), [(0, 20), (21, 20), (-1, 0)])
def test_sizes_out_of_range(size: int, candidates: int) -> None:
    with pytest.raises(InvalidParameter, match=rf"`size` must be from 1 to `candidates`, got size={size}"):
        solve(np.eye(3), np.ones(3), np.ones(3), size=size, candidates=candidates)
