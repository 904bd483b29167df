"""Coordinate descent on the tables: against dense algebra, and the compiled loops against their twins."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from experiments import coordinate_descent as loops
from experiments.coordinate_descent import _rows, solve_coordinate
from saccade._core.errors import InvalidParameter
from saccade.kernels import HIK, Power
from saccade.operators.binned_intersection import BinnedIntersection
from saccade.operators.codes import encode
from saccade.operators.sorted_intersection import SortedIntersection
from tests.experiments import coordinate_reference as reference
from tests.solvers.problems import Problem, coded_problems, correlated, hik, random_problem
from tests.tolerances import assert_close


@given(coded_problems(), st.sampled_from([1e-3, 1e-9]), st.booleans(), st.integers(0, 99))
def test_against_dense_algebra(problem: Problem, tol: float, random: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = len(problem.K)
    noise, b = rng.uniform(0.1, 1.0, n), rng.standard_normal(n)
    order = np.random.default_rng(0) if random else None
    result = solve_coordinate(problem.operator, noise, b, tol=tol, max_iter=20_000, rng=order)
    x = np.linalg.solve(problem.K + np.diag(noise), b)
    assert result.converged
    assert result.residual <= tol
    assert np.abs(b - problem.K @ result.x - noise * result.x).max() <= tol * (1 + 1e-6)
    assert np.linalg.norm(result.x - x) <= 1.01 * tol * np.sqrt(n) / noise.min()


@pytest.mark.parametrize("density", [0.05, 0.6])  # rows with their numbers, rows in full
def test_both_layouts_with_transformed_levels(density: float) -> None:
    rng = np.random.default_rng(0)
    X = sp.random(80, 30, density, format="csr", random_state=0)
    operator = HIK(Power(0.5), scale=2.0).operator(encode(X, levels=8))
    assert isinstance(operator, BinnedIntersection)
    assert (operator.codes.rows is None) == (density > 0.5)
    noise, b = np.full(80, 0.5), rng.standard_normal(80)
    result = solve_coordinate(operator, noise, b, tol=1e-10, max_iter=5000)
    K = operator.matmul(np.eye(80))
    np.testing.assert_allclose(result.x, np.linalg.solve(K + np.diag(noise), b), atol=1e-8)


@given(coded_problems(), st.integers(0, 99))
def test_loops_equal_their_twins(problem: Problem, seed: int) -> None:
    operator = problem.operator
    assert isinstance(operator, BinnedIntersection)
    rng = np.random.default_rng(seed)
    n = len(problem.K)
    rows, noise, b = _rows(operator.codes), rng.uniform(0.0, 1.0, n), rng.standard_normal(n)
    noise[0] = 0.0
    pivots, order = operator.diag() + noise, rng.permutation(n)
    data = (rows.indptr, rows.indices, rows.data, operator.codes.level_starts, operator.levels)
    start, found = rng.standard_normal(n), []
    for twin in (loops, reference):
        alpha, F, product = start.copy(), np.zeros((operator.levels.size, 2)), np.empty(n)
        twin.table_from(*data, alpha, F)
        twin.table_product(*data, F, product)
        assert_close(product, problem.K @ alpha)
        worst = [twin.coordinate_sweep(*data, pivots, noise, b, order, alpha, F) for _ in range(2)]
        twin.table_product(*data, F, product)
        assert_close(product, problem.K @ alpha)
        found.append(np.append(alpha, worst))
    assert_close(found[0], found[1])


def test_limit_reached_and_callback() -> None:
    problem = correlated()
    n = len(problem.K)
    noise, b = np.full(n, 1e-3), np.random.default_rng(0).standard_normal(n)
    heard: list[tuple[int, float]] = []

    def callback(sweep: int, residual: float) -> None:
        heard.append((sweep, residual))

    result = solve_coordinate(problem.operator, noise, b, tol=1e-9, max_iter=5, callback=callback)
    assert not result.converged
    assert result.sweeps == 5
    assert result.residual == pytest.approx(np.abs(b - problem.K @ result.x - noise * result.x).max())
    assert [sweep for sweep, _ in heard] == [1, 2, 3, 4, 5]
    assert heard[-1][1] == result.residual
    assert heard[-1][1] < heard[0][1]


def test_zero_right_hand_side() -> None:
    problem = random_problem("coded")
    result = solve_coordinate(problem.operator, np.ones(len(problem.K)), np.zeros(len(problem.K)))
    assert result.converged
    assert result.sweeps == 0
    assert not result.x.any()


def test_an_empty_row_without_noise_is_passed_over() -> None:
    operator = hik(np.array([[0.0, 0.0], [1.0, 2.0]])).operator
    result = solve_coordinate(operator, np.zeros(2), np.array([1.0, 6.0]), max_iter=3)
    np.testing.assert_allclose(result.x, [0.0, 2.0])
    assert not result.converged
    assert result.residual == 1.0


@pytest.mark.parametrize("kind", ["sorted", "dense"])
def test_needs_codes(kind: str) -> None:
    problem = random_problem(kind)
    n = len(problem.K)
    assert kind == "dense" or isinstance(problem.operator, SortedIntersection)
    with pytest.raises(InvalidParameter, match=rf"got {type(problem.operator).__name__}.*levels=255"):
        solve_coordinate(problem.operator, np.ones(n), np.ones(n))
