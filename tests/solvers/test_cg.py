"""Conjugate gradients against dense algebra."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade._core import limits
from saccade._core.progress import listening
from saccade.kernels import HIK
from saccade.operators.base import Dense
from saccade.solvers import nystrom
from saccade.solvers.cg import CGResult, solve_cg
from saccade.solvers.rank_one import leading
from tests.operators.plain_backend import DenseOnDevice
from tests.solvers.problems import Array, Problem, coded_problems, correlated, random_problem
from tests.tolerances import assert_close

KINDS = ["coded", "sorted", "dense"]


def true_residual(problem: Problem, noise: Array, B: Array, x: Array) -> Array:
    return np.asarray(np.abs(B - problem.K @ x - noise * x).max(axis=0))


def check(problem: Problem, noise: Array, B: Array, tol: float, result: CGResult) -> None:
    """The residual is the true one and within `tol`; so is the solution, through the smallest eigenvalue."""
    assert result.converged
    assert (result.residual <= tol).all()
    worst = true_residual(problem, noise, B, result.x)
    scale = np.finfo(float).eps * 100 * (np.abs(problem.K).sum(axis=1).max() + noise.max()) * np.abs(result.x).max()
    np.testing.assert_allclose(result.residual, worst, rtol=1e-3, atol=scale)
    for k in range(B.shape[1]):
        N = noise[:, min(k, noise.shape[1] - 1)]
        x = np.linalg.solve(problem.K + np.diag(N), B[:, k])
        assert np.linalg.norm(result.x[:, k] - x) <= 1.01 * tol * np.sqrt(len(x)) / N.min() + scale


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("kind", KINDS)
def test_many_columns_each_with_its_noise(kind: str, tol: float) -> None:
    problem = random_problem(kind)
    rng = np.random.default_rng(1)
    n = len(problem.K)
    B = rng.standard_normal((n, 5)) * [1.0, 10.0, 1e-3, 1.0, 0.0]
    noise = rng.uniform(0.05, 1.0, (n, 5))
    check(problem, noise, B, tol, solve_cg(problem.operator, noise, B, tol=tol))


@pytest.mark.parametrize("tol", [1e-3, 1e-9])
@pytest.mark.parametrize("kind", KINDS)
def test_shared_noise(kind: str, tol: float) -> None:
    problem = random_problem(kind)
    n = len(problem.K)
    B = np.random.default_rng(2).choice([-1.0, 1.0], (n, 3))
    noise = np.full((n, 1), 0.1)
    check(problem, noise, B, tol, solve_cg(problem.operator, noise, B, tol=tol))


@given(
    coded_problems(), st.sampled_from([1e-3, 1e-9]), st.sampled_from([1e-2, 1.0]), st.integers(1, 4), st.integers(0, 99)
)
def test_ties_zeros_copies_and_single_rows(problem: Problem, tol: float, sigma: float, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = len(problem.K)
    B = rng.choice([-1.0, 0.0, 1.0, 0.3], (n, columns))
    noise = sigma * rng.uniform(1.0, 2.0, (n, columns if seed % 2 else 1))
    check(problem, noise, B, tol, solve_cg(problem.operator, noise, B, tol=tol))


def test_single_precision_is_not_taken_at_its_word() -> None:
    """Large right-hand sides drown a tolerance of 1e-3 in float32 rounding; the answer must hold all the same."""
    problem = random_problem("coded", n=150, D=40)
    n = len(problem.K)
    B = 1e5 * np.random.default_rng(0).standard_normal((n, 2))
    noise = np.full((n, 1), 1e-2)
    check(problem, noise, B, 1e-3, solve_cg(problem.operator, noise, B, tol=1e-3, max_iter=3000))


class Watched(Dense):
    """Says how many products it made in float32 and in float64; those in float32 may be off by a share."""

    def __init__(self, K: Array, off: float = 0.0) -> None:
        super().__init__(K)
        self.off, self.made = off, {np.dtype(np.float32): 0, np.dtype(np.float64): 0}

    def matmul(self, V: Array) -> Array:
        self.made[V.dtype] += 1
        wrong = 1.0 + self.off * np.cos(np.arange(len(V), dtype=V.dtype))[:, None] if V.dtype == np.float32 else 1.0
        return np.asarray(super().matmul(V) * wrong, V.dtype)


@pytest.mark.parametrize("tol", [1e-6, 1e-9])
def test_many_numbers_are_read_in_single_precision_whatever_the_tolerance(tol: float) -> None:
    """The residual is made anew each time it has fallen a thousandfold, that of x and that of y."""
    K = correlated(750).K
    assert K.size >= limits.SINGLE_FROM
    noise, B = np.full((750, 1), 0.01), np.sign(np.random.default_rng(0).standard_normal((750, 2)))
    expected = np.linalg.solve(K + 0.01 * np.eye(750), B)
    for off in (0.0, 1e-2):
        operator = Watched(K, off)
        result = solve_cg(operator, noise, B, tol=tol)
        assert result.converged
        assert np.abs(B - (K @ result.x + noise * result.x)).max() <= tol
        np.testing.assert_allclose(result.x, expected, atol=1e3 * tol)
        single, double = operator.made.values()
        if not off:
            assert double <= 1 + 2 * np.log10(1.0 / tol) / 3
            assert single > 5 * double
        else:  # products that lead astray are found out, and float64 ends it
            assert double > 10


def test_warm_start_saves_iterations() -> None:
    problem = correlated()
    n = len(problem.K)
    B = np.random.default_rng(0).choice([-1.0, 1.0], (n, 2))
    noise = np.full((n, 1), 0.01)
    cold = solve_cg(problem.operator, noise, B, tol=1e-6)
    near = cold.x * (1 + 1e-4)
    kept = near.copy()
    warm = solve_cg(problem.operator, noise, B, tol=1e-6, x0=near)
    assert cold.converged
    assert warm.converged
    assert warm.iterations < cold.iterations
    np.testing.assert_array_equal(near, kept)
    again = solve_cg(problem.operator, noise, B, tol=1e-6, x0=cold.x)
    assert again.iterations == 0
    np.testing.assert_array_equal(again.x, cold.x)


@pytest.mark.parametrize("tol", [1e-3, 1e-9])
@pytest.mark.parametrize("limit", [0, 1, 7])
def test_limit_reached(limit: int, tol: float) -> None:
    problem = correlated()
    n = len(problem.K)
    B = np.random.default_rng(0).standard_normal((n, 2))
    noise = np.full((n, 1), 1e-4)
    result = solve_cg(problem.operator, noise, B, tol=tol, max_iter=limit)
    assert not result.converged
    assert result.iterations == limit
    np.testing.assert_allclose(result.residual, true_residual(problem, noise, B, result.x), rtol=1e-6)
    assert (result.residual > tol).any()


def test_a_tolerance_below_rounding_ends_without_a_lie() -> None:
    problem = random_problem("coded")
    n = len(problem.K)
    B = np.random.default_rng(0).standard_normal((n, 2))
    noise = np.full((n, 1), 0.1)
    result = solve_cg(problem.operator, noise, B, tol=1e-30, max_iter=200)
    assert not result.converged
    assert result.iterations <= 200
    assert (result.residual < 1e-12).all()
    assert np.isfinite(result.x).all()


def test_a_tolerance_for_each_column() -> None:
    problem = random_problem("coded")
    n = len(problem.K)
    B = np.random.default_rng(0).standard_normal((n, 3))
    noise, tol = np.full((n, 1), 0.1), np.array([1e-2, 1e-8, 10.0])
    result = solve_cg(problem.operator, noise, B, tol=tol)
    assert result.converged
    assert (result.residual <= tol).all()
    assert not result.x[:, 2].any()
    assert result.residual[0] > 1e-6


def test_zero_right_hand_side() -> None:
    problem = random_problem("coded")
    n = len(problem.K)
    result = solve_cg(problem.operator, np.ones((n, 1)), np.zeros((n, 3)))
    assert result.converged
    assert result.iterations == 0
    assert not result.x.any()
    assert not result.residual.any()


def test_one_example() -> None:
    result = solve_cg(Dense(np.array([[2.0]])), np.array([[0.5]]), np.array([[5.0, -1.0]]), tol=1e-9)
    np.testing.assert_allclose(result.x, [[2.0, -0.4]])
    assert result.converged


def test_examples_that_are_all_alike() -> None:
    result = solve_cg(Dense(np.ones((6, 6))), np.full((6, 1), 1e-3), np.ones((6, 1)), tol=1e-9)
    np.testing.assert_allclose(result.x, 1.0 / 6.001)
    assert result.iterations <= 2


def test_a_perfect_preconditioner_takes_one_step() -> None:
    problem = random_problem("dense")
    n = len(problem.K)
    noise = np.full((n, 1), 0.01)
    inverse = np.linalg.inv(problem.K + np.diag(noise[:, 0]))
    B = np.random.default_rng(0).standard_normal((n, 2))
    result = solve_cg(problem.operator, noise, B, tol=1e-8, precondition=lambda R: inverse @ R)
    check(problem, noise, B, 1e-8, result)
    assert result.iterations <= 2


@pytest.mark.parametrize("tol", [1e-3, 1e-9])
def test_every_iteration_reports_how_far_it_is(tol: float) -> None:
    problem = random_problem("coded")
    n = len(problem.K)
    heard: list[float] = []
    B = np.random.default_rng(0).standard_normal((n, 2))
    with listening(lambda what, done: heard.append(done)):
        result = solve_cg(problem.operator, np.full((n, 1), 0.1), B, tol=tol)
    assert len(heard) == result.iterations
    assert all(0.0 <= done <= 1.0 for done in heard)
    assert max(heard) > 0.9


def test_the_inputs_stay_as_they_are() -> None:
    problem = random_problem("coded")
    n = len(problem.K)
    B, noise = np.ones((n, 2)), np.full((n, 1), 0.1)
    before: Any = (B.copy(), noise.copy())
    solve_cg(problem.operator, noise, B, tol=1e-9)
    np.testing.assert_array_equal(B, before[0])
    np.testing.assert_array_equal(noise, before[1])


def test_noise_over_many_decades_is_no_obstacle() -> None:
    """Sites of Laplace and EP that say next to nothing stand beside sure ones, and differ from column to column."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(300, 20))
    K = HIK(scale=1.0).resolved(X)(X)
    noise, B = 10.0 ** rng.uniform(-1, 7, (300, 3)), rng.standard_normal((300, 3))
    result = solve_cg(Dense(K), noise, B, tol=1e-8, max_iter=300)
    assert result.converged
    for j in range(3):
        expected = np.linalg.solve(K + np.diag(noise[:, j]), B[:, j])
        np.testing.assert_allclose(K @ result.x[:, j], K @ expected, atol=1e-6)


@pytest.mark.parametrize("tol", [1e-3, 1e-9])
@pytest.mark.parametrize("by", ["nothing", "uneven noise", "one direction", "low rank", "low rank in float32"])
def test_vectors_may_live_elsewhere(by: str, tol: float) -> None:
    """An operator with a backend of its own: no vector meets an array of the host, and the solution is the same."""
    problem = correlated(n=120)
    K, rng = problem.K, np.random.default_rng(1)
    B, start = rng.standard_normal((120, 4)) * [1.0, 1e-6, 10.0, 1.0], rng.standard_normal((120, 4))
    noise = np.full((120, 1), 0.05) if by != "uneven noise" else 10.0 ** rng.uniform(-2, 3, (120, 4))
    M: Any = None
    if by == "one direction":
        M = leading(DenseOnDevice(K), noise[:, 0])
    elif by.startswith("low rank"):
        most = 100 if by == "low rank in float32" else limits.PRECONDITIONER_NUMBERS
        M = nystrom.build(DenseOnDevice(K), noise[:, 0], np.arange(0, 120, 6), most)
        assert M.B.dtype == (np.float32 if by == "low rank in float32" else np.float64)
    assert (M is None) == (by in ("nothing", "uneven noise"))
    found = solve_cg(DenseOnDevice(K), noise, B, tol=tol, precondition=M, x0=start)
    check(problem, noise, B, tol, found)
    assert_close(found.left, B - K @ found.x - noise * found.x)
    ours = solve_cg(Dense(K), noise, B, tol=tol, x0=start)
    assert np.linalg.norm(found.x - ours.x, axis=0).max() <= 2.0 * tol * np.sqrt(120) / noise.min()


def test_an_energy_may_be_enough_elsewhere_too() -> None:
    problem = correlated(n=120)
    B, noise = np.random.default_rng(0).standard_normal((120, 3)), np.full((120, 1), 0.01)
    energy_tol = np.array([0.0, 1e-2, 1e-2])
    few = [solve_cg(kind(problem.K), noise, B, tol=1e-9, energy_tol=energy_tol) for kind in (Dense, DenseOnDevice)]
    for result in few:
        check(problem, noise, B[:, :1], 1e-9, replace(result, x=result.x[:, :1], residual=result.residual[:1]))
        wanted = np.einsum("ij,ij->j", B, np.linalg.solve(problem.K + 0.01 * np.eye(120), B))
        assert (np.einsum("ij,ij->j", B, result.x)[1:] >= 0.98 * wanted[1:]).all()
        assert (result.residual[1:] > 1e-9).all()  # they ended early
