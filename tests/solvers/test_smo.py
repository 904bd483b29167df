"""SVDD's solver against generic quadratic programming, its optimality conditions and its slow twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels import HIK, RBF, Linear
from saccade.kernels.dense_gram import StreamedGram
from saccade.operators.base import Dense
from saccade.solvers import loops, smo
from saccade.solvers.smo import SVDDResult, solve_svdd
from tests.solvers import reference
from tests.solvers.problems import Array, Problem, coded_problems, correlated, hik, random_problem
from tests.tolerances import TOL, assert_close

NUS = [0.05, 0.1, 0.29, 0.5, 0.77, 0.9, 1.0]
nus = st.sampled_from([0.01, 0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 0.999, 1.0])


def objective(K: Array, alpha: Array) -> float:
    """What is minimised, the negative of O (10)."""
    return float(alpha @ K @ alpha - K.diagonal() @ alpha)


def generic(K: Array, nu: float) -> Array:
    """α by sequential quadratic programming: another method, of another library."""
    n = len(K)
    found = minimize(
        lambda a: objective(K, a),
        np.full(n, 1.0 / n),
        jac=lambda a: 2.0 * K @ a - K.diagonal(),
        method="SLSQP",
        bounds=[(0.0, 1.0 / (nu * n))] * n,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1.0, "jac": lambda a: np.ones(n)},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return np.asarray(found.x)


def distances(K: Array, alpha: Array) -> Array:
    """‖Φ(x_i) − c‖²."""
    return np.asarray(K.diagonal() - 2.0 * K @ alpha + alpha @ K @ alpha)


def assert_optimal(K: Array, nu: float, tol: float, result: SVDDResult) -> None:
    """The conditions of Karush, Kuhn and Tucker: feasible, and R² between those inside and those outside."""
    n, alpha = len(K), result.alpha
    bound = 1.0 / (nu * n)
    spread = K.diagonal().mean() - K.mean()
    slack = max(tol * spread, 10 * smo.ROUNDING * K.diagonal().max())
    assert result.converged
    assert result.gap <= slack
    assert alpha.min() >= 0.0
    assert alpha.max() <= bound * (1 + 1e-9)
    assert_close(alpha.sum(), 1.0)
    assert_close(result.centre_norm2, alpha @ K @ alpha)
    distance, close = distances(K, alpha), 1e-9 * bound
    assert (distance[alpha <= close] <= result.radius2 + slack).all()
    assert (distance[alpha >= bound - close] >= result.radius2 - slack).all()
    on_surface = (alpha > close) & (alpha < bound - close)
    assert (abs(distance[on_surface] - result.radius2) <= slack).all()
    # Weak duality: no ball is cheaper than O (10) promises, and this one costs no more, up to the gap.
    cost = result.radius2 + np.maximum(distance - result.radius2, 0.0).sum() * bound
    assert -objective(K, alpha) - slack <= cost <= -objective(K, alpha) + 2 * slack


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("kind", ["coded", "sorted", "dense"])
def test_equals_a_generic_quadratic_program(kind: str, nu: float) -> None:
    problem = random_problem(kind)
    K = problem.K[:40, :40]
    result = solve_svdd(Dense(K), nu, tol=1e-10)
    expected = generic(K, nu)
    assert objective(K, result.alpha) <= objective(K, expected) + 1e-10  # whose sum is not quite one
    np.testing.assert_allclose(result.alpha, expected, atol=1e-5)
    np.testing.assert_allclose(distances(K, result.alpha), distances(K, expected), atol=1e-5 * K.max())
    assert_optimal(K, nu, 1e-10, result)


@settings(max_examples=100)
@given(problem=coded_problems(), nu=nus)
def test_optimality_on_awkward_histograms(problem: Problem, nu: float) -> None:
    """Ties, copies, empty rows, one example: the ball need not be unique, but it must be a best one."""
    by_products = solve_svdd(problem.operator, nu, submatrix=lambda rows: problem.K[np.ix_(rows, rows)])
    assert_optimal(problem.K, nu, 1e-6, by_products)
    assert_optimal(problem.K, nu, 1e-6, solve_svdd(Dense(problem.K), nu))


@settings(max_examples=50)
@given(nu=nus, seed=st.integers(0, 1000), n=st.integers(1, 30), gamma=st.sampled_from([1e-3, 0.1, 3.0, 1e3]))
def test_optimality_for_local_and_global_kernels(nu: float, seed: int, n: int, gamma: float) -> None:
    X = np.random.default_rng(seed).standard_normal((n, 3))
    K = RBF(length_scale=gamma)(X)
    assert_optimal(K, nu, 1e-6, solve_svdd(Dense(K), nu))


@pytest.mark.parametrize("nu", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("way", ["submatrix", "products", "streamed"])
def test_working_sets_find_the_ball_of_the_whole_matrix(way: str, nu: float) -> None:
    problem = correlated(300)
    whole = solve_svdd(Dense(problem.K), nu, tol=1e-9)
    if way == "streamed":
        result = solve_svdd(StreamedGram(HIK(scale=1.0), problem.X), nu, tol=1e-9, working_set=24)
    else:
        submatrix = (lambda rows: problem.K[np.ix_(rows, rows)]) if way == "submatrix" else None
        result = solve_svdd(problem.operator, nu, tol=1e-9, submatrix=submatrix, working_set=24)
    assert_optimal(problem.K, nu, 1e-9, result)
    np.testing.assert_allclose(result.alpha, whole.alpha, atol=1e-4 / (nu * 300))
    np.testing.assert_allclose(result.radius2, whole.radius2, rtol=1e-6)


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), steps=st.integers(0, 40), nu=st.sampled_from([0.2, 0.5, 1.0]))
def test_loop_equals_its_twin(seed: int, n: int, steps: int, nu: float) -> None:
    rng = np.random.default_rng(seed)
    K = Linear()(rng.standard_normal((n, 4)))
    diag, start, bound = K.diagonal().copy(), np.full(n, 1.0 / n), 1.0 / (nu * n)
    found = []
    for module in (loops, reference):
        alpha, g = start.copy(), 2.0 * K @ start - diag
        found.append((*module.smo_steps(K, diag, bound, 1e-9, steps, g, alpha), alpha, g))
        assert found[-1][0] <= steps
        assert_close(g, 2.0 * K @ alpha - diag)
    assert found[0][0] == found[1][0]
    for fast, slow in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-7, atol=1e-9)


def test_a_known_ball() -> None:
    """Three points on a line: the outer two decide; a share of a half leaves one outside."""
    X = np.array([[0.0], [1.0], [4.0]])
    hard = solve_svdd(Dense(X @ X.T), 0.1)
    assert_close(hard.alpha, [0.5, 0.0, 0.5])
    assert_close(hard.radius2, 4.0)
    assert_close(hard.centre_norm2, 4.0)
    all_outside = solve_svdd(Dense(X @ X.T), 1.0)  # the centre is the mean
    assert_close(all_outside.alpha, np.full(3, 1 / 3))
    assert_close(all_outside.radius2, (1.0 - 5 / 3) ** 2)  # up to the nearest example
    assert (all_outside.iterations, all_outside.gap) == (0, 0.0)


def test_no_example_on_the_surface_leaves_the_middle() -> None:
    """ν = 2/4: two of four are outside with all the weight there is, and R² is free between them and the others."""
    X = np.array([[-3.0], [-1.0], [1.0], [3.0]])
    result = solve_svdd(Dense(X @ X.T), 0.5)
    assert_close(result.alpha, [0.5, 0.0, 0.0, 0.5])
    assert_close(result.radius2, (9.0 + 1.0) / 2)


@pytest.mark.parametrize("nu", [0.3, 1.0])
def test_one_example_and_copies_have_a_ball_of_no_size(nu: float) -> None:
    for X in (np.array([[2.0, 1.0]]), np.tile([2.0, 1.0], (7, 1)), np.zeros((5, 2))):
        result = solve_svdd(hik(X).operator, nu)
        assert result.converged
        assert abs(result.radius2) <= 10 * TOL[np.float64].atol
        assert_close(result.alpha.sum(), 1.0)


@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e12])
def test_scale_and_shift_change_nothing(factor: float) -> None:
    """Neither a multiple of K nor an offset of all features is seen by weights or by when to stop."""
    X = np.random.default_rng(0).standard_normal((60, 5))
    plain = solve_svdd(Dense(Linear()(X)), 0.3, tol=1e-8)
    other = solve_svdd(Dense(factor * Linear()(X)), 0.3, tol=1e-8)
    moved = solve_svdd(Dense(Linear()(X + 3.0)), 0.3, tol=1e-8)
    np.testing.assert_allclose(other.alpha, plain.alpha, atol=1e-6)
    np.testing.assert_allclose(moved.alpha, plain.alpha, atol=1e-6)
    np.testing.assert_allclose(other.radius2, factor * plain.radius2, rtol=1e-6)
    np.testing.assert_allclose(moved.radius2, plain.radius2, rtol=1e-6)


def test_stopping_early_is_said_and_feasible() -> None:
    problem = correlated(100)
    result = solve_svdd(Dense(problem.K), 0.3, max_iter=3)
    assert not result.converged
    assert result.iterations == 3
    assert result.gap > 0
    assert_close(result.alpha.sum(), 1.0)
    slopes = 2.0 * problem.K @ result.alpha - problem.K.diagonal()
    bound = 1.0 / 30
    assert_close(result.gap, slopes[result.alpha > 0].max() - slopes[result.alpha < bound].min())


def test_strides_do_not_change_the_way() -> None:
    K = random_problem("dense").K
    at_once = solve_svdd(Dense(K), 0.3)
    in_strides = solve_svdd(Dense(K), 0.3, steps_at_once=2)
    assert in_strides.iterations == at_once.iterations > 2
    np.testing.assert_array_equal(in_strides.alpha, at_once.alpha)


@pytest.mark.parametrize("nu", [0.0, -0.1, 1.0001, np.nan, np.inf, "half", True, None])
def test_nu_out_of_range(nu: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"`nu` must be above 0 and at most 1, got "):
        solve_svdd(Dense(np.eye(3)), nu)


def test_values_that_are_not_finite() -> None:
    with pytest.raises(InvalidInput, match="must be finite"):
        solve_svdd(Dense(np.array([[1.0, np.nan], [np.nan, 1.0]])), 0.5)
