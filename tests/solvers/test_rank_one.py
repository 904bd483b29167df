"""One direction as a preconditioner: sound, and fewer iterations where an eigenvalue stands out."""

import numpy as np
import pytest

from saccade.datasets.synthetic import histograms
from saccade.kernels import HIK
from saccade.operators.base import Dense
from saccade.operators.codes import encode
from saccade.solvers.cg import solve_cg
from saccade.solvers.rank_one import leading


def problem(n: int = 800):
    X, y = histograms(n, D=100, nonzeros=30, rng=np.random.default_rng(0))
    return HIK(scale=1.0).operator(encode(X)), np.where(y == 1, 1.0, -1.0)[:, None]


def test_brings_the_leading_eigenvalue_down_to_the_others() -> None:
    operator, _ = problem(200)
    K = operator.matmul(np.eye(200)) + 0.01 * np.eye(200)
    M = leading(operator, np.full(200, 0.01))
    assert M is not None
    inverse = M(np.eye(200))
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-12)
    assert np.linalg.eigvalsh(inverse).min() > 0
    before, after = np.linalg.eigvalsh(K), np.sort(np.linalg.eigvals(inverse @ K).real)
    assert before[-1] > 5 * before[-2]
    assert after[-1] < 1.5 * before[-2]


@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_the_same_solution_in_fewer_iterations(tol: float) -> None:
    operator, Y = problem()
    N = np.full((800, 1), 0.01)
    plain = solve_cg(operator, N, Y, tol=tol)
    led = solve_cg(operator, N, Y, tol=tol, precondition=leading(operator, N[:, 0]))
    assert led.converged
    assert led.iterations < plain.iterations
    K = operator.matmul(np.eye(800)) + np.diag(N[:, 0])
    assert np.abs(K @ led.x - Y).max() <= tol


@pytest.mark.parametrize("K", [np.zeros((5, 5)), np.eye(6), np.ones((1, 1)), np.ones((2, 2))])
def test_none_where_nothing_stands_out(K: np.ndarray) -> None:
    assert leading(Dense(K), np.full(len(K), 0.1)) is None
