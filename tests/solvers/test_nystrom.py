"""The preconditioner against the matrix M that it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from saccade._core import limits
from saccade.kernels import HIK
from saccade.operators.base import Dense
from saccade.solvers import nystrom
from saccade.solvers.cg import solve_cg
from saccade.solvers.rank_one import Leading
from tests.solvers.problems import Array, correlated, random_problem
from tests.tolerances import assert_close


def to_dense(M: nystrom.Nystrom) -> Array:
    B = M.B.astype(np.float64)
    return np.asarray(B @ B.T + np.diag(M.S[:, 0]))


def built(kind: str, rank: int = 20, **options: int) -> nystrom.Nystrom:
    problem = random_problem(kind, n=60)
    n = len(problem.K)
    noise = np.random.default_rng(1).uniform(0.05, 0.2, n)
    return nystrom.build(problem.operator, noise, np.random.default_rng(0).permutation(n)[:rank], **options)


@pytest.mark.parametrize("kind", ["coded", "sorted", "dense"])
def test_apply_is_the_inverse_of_M(kind: str) -> None:
    M = built(kind)
    R = np.random.default_rng(2).standard_normal((len(M.S), 3))
    kept = R.copy()
    assert_close(M(R), np.linalg.solve(to_dense(M), R))
    np.testing.assert_array_equal(R, kept)


def test_single_precision_storage() -> None:
    M = built("coded", most=100)
    assert M.B.dtype == np.float32
    R = np.random.default_rng(2).standard_normal((len(M.S), 3))
    assert_close(M(R), np.linalg.solve(to_dense(M), R), np.float32)


def test_all_examples_give_the_matrix_itself() -> None:
    problem = random_problem("dense", n=50)
    n = len(problem.K)
    M = nystrom.build(problem.operator, np.full(n, 0.1), np.arange(n))
    np.testing.assert_allclose(to_dense(M), problem.K + 0.1 * np.eye(n), atol=1e-4)


def test_what_the_low_rank_leaves_is_in_S() -> None:
    problem = correlated(n=200)
    n = len(problem.K)
    M = nystrom.build(problem.operator, np.full(n, 0.1), np.arange(0, n, 10))
    assert to_dense(M).trace() == pytest.approx(problem.K.trace() + 0.1 * n)
    assert_close(M.left, problem.K.diagonal() - (M.B**2).sum(axis=1), np.float32)
    assert M.left[::10].max() < 1e-3 * M.left.mean()  # a landmark leaves nothing of itself


def test_copies_and_empty_rows_among_the_landmarks() -> None:
    K = np.ones((8, 8))
    K[7], K[:, 7] = 0.0, 0.0
    M = nystrom.build(Dense(K), np.full(8, 0.1), np.arange(8))
    assert_close(M(np.ones((8, 1))), np.linalg.solve(to_dense(M), np.ones((8, 1))))


def test_no_rank_for_a_flat_spectrum() -> None:
    assert nystrom.choose_rank(np.eye(512), n=512, noise=0.1, work=100_000, columns=1) == 0


@pytest.mark.parametrize("columns", [1, 10])
def test_a_rank_for_a_steep_spectrum(columns: int) -> None:
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((512, 512)))
    spectrum = 512.0 * 0.9 ** np.arange(512)
    K_mm = (Q * spectrum) @ Q.T
    rank = nystrom.choose_rank(K_mm, n=50_000, noise=1e-3, work=10_000_000, columns=columns)
    assert rank > 0
    assert rank in nystrom.RANKS


def test_never_more_memory_than_allowed() -> None:
    spectrum = 512.0 * 0.97 ** np.arange(512)
    rank = nystrom.choose_rank(np.diag(spectrum), n=10_000_000, noise=1e-3, work=10**9, columns=1)
    assert rank * 10_000_000 <= limits.PRECONDITIONER_NUMBERS


@pytest.mark.parametrize("sigma", [1e-1, 1e-3])
def test_fewer_iterations_on_correlated_data(sigma: float) -> None:
    problem = correlated()
    n = len(problem.K)
    B = np.random.default_rng(0).choice([-1.0, 1.0], (n, 1))
    noise = np.full((n, 1), sigma)
    plain = solve_cg(problem.operator, noise, B, tol=1e-6, max_iter=3000)
    M = nystrom.build(problem.operator, noise[:, 0], np.random.default_rng(0).permutation(n)[:100])
    helped = solve_cg(problem.operator, noise, B, tol=1e-6, max_iter=3000, precondition=M)
    assert plain.converged
    assert helped.converged
    assert helped.iterations < plain.iterations / 1.5


def test_the_rank_does_not_fall_with_the_noise() -> None:
    X, _ = load_digits(return_X_y=True)
    K_mm = HIK()(X[:1024])
    ranks = [nystrom.choose_rank(K_mm, 50_000, noise, 50_000 * 1000, 10) for noise in (1e-1, 1e-2, 1e-3, 1e-4)]
    assert ranks == sorted(ranks)
    assert ranks[-1] > 0


def random_leading() -> Leading:
    u = np.random.default_rng(0).random((60, 1))
    return Leading(u / np.linalg.norm(u), 0.9)


@pytest.mark.parametrize("M", [built("coded"), random_leading()], ids=["nystrom", "leading"])
def test_samples_and_determinant_are_those_of_M(M: nystrom.Nystrom | Leading) -> None:
    n = 60
    inverse = M(np.eye(n))
    assert M.log_determinant() == pytest.approx(-np.linalg.slogdet(inverse)[1], rel=1e-9)
    Z = M.sample(60_000, np.random.default_rng(1))
    truth = np.linalg.inv(inverse)
    assert np.abs(Z @ Z.T / 60_000 - truth).max() < 0.05 * np.abs(truth).max()
