"""What `solve` asks of products, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning

from saccade._core import limits
from saccade._core.errors import InvalidParameter
from saccade.inference.solving.diagonal_estimate import known_of
from saccade.inference.solving.inverse_diagonal import LANES, WANTED, Probes
from saccade.inference.solving.regression import Solving, grown, is_direct, precondition, solve
from saccade.kernels import HIK
from saccade.operators.base import Dense
from saccade.solvers.cg import solve_cg
from saccade.solvers.nystrom import Nystrom

Array = np.ndarray[Any, np.dtype[Any]]
N = 500


def problem() -> tuple[Any, Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.gamma(0.7, 1.0, (N, 8))
    Y = np.column_stack([np.sign(X[:, 0] - X[:, 1]), np.sign(X[:, 2] - X[:, 3])])
    return HIK().gram(X), np.full((N, 1), 0.1), Y


@pytest.mark.parametrize("wanted", [True, False])
def test_probes_are_solved_beside_targets_only_where_their_answer_is_wanted(wanted: bool) -> None:
    K, noise, Y = problem()
    widths, product = list[int](), K.matmul
    K._operator.matmul = lambda V: widths.append(V.shape[1]) or product(V)
    found = solve(K, noise, Y, Solving("cg", leave_one_out=wanted))
    assert (max(widths) > Y.shape[1]) == wanted
    assert np.isnan(found.error) != wanted
    assert np.isnan(found.inverse_diagonal).any() != wanted


@pytest.mark.parametrize("targets", range(1, 10))
def test_probes_fill_the_lanes_of_a_product(targets: int) -> None:
    K, noise, _ = problem()
    Z = Probes(K, noise, None, 100, np.random.default_rng(0)).beside(targets)
    assert Z.shape[1] >= 2
    assert (targets + Z.shape[1]) % LANES == 0
    assert Z.shape[1] < 2 + LANES
    assert set(np.unique(Z)) == {-1.0, 0.0, 1.0}


def test_labels_of_many_columns_have_the_noise_of_each() -> None:
    """No probes then beside them: each column has its own diagonal."""
    K, _, Y = problem()
    noise = np.tile([0.1, 0.4], (N, 1))
    found = solve(K, noise, Y, Solving("cg", tol=1e-9, leave_one_out=True))
    dense = K.to_dense()
    for j in range(2):
        inverse = np.linalg.inv(dense + np.diag(noise[:, j]))
        np.testing.assert_allclose(found.alpha[:, j], inverse @ Y[:, j], atol=1e-6)
        ratio = found.inverse_diagonal[:, j] / inverse.diagonal() - 1.0
        assert np.sqrt(np.square(ratio).mean()) < 2.0 * max(found.error, 0.02)


def test_a_low_rank_where_few_directions_hold_the_kernel() -> None:
    """And none where the noise is far above all of them."""
    factors = np.random.default_rng(0).standard_normal((2000, 20))
    K, rng = Dense(factors @ factors.T), np.random.default_rng(0)
    assert isinstance(precondition(K, np.full(2000, 1e-3), 50, rng), Nystrom)
    assert not isinstance(precondition(K, np.full(2000, 1e6), 50, rng), Nystrom)


def test_a_factor_too_large_is_refused() -> None:
    class Large(Dense):
        shape = (limits.DENSE_UP_TO + 1, limits.DENSE_UP_TO + 1)

    K = Large(np.eye(2))
    with pytest.raises(InvalidParameter, match='Use "auto" or "cg"'):
        is_direct(K, "cholesky")
    assert not is_direct(K, "cg")


def test_a_factor_takes_the_place_of_probes_that_would_be_many() -> None:
    K, _, _ = problem()
    noise = np.tile([0.01, 0.04], (N, 1))
    probes = Probes(K, noise, None, 1000, np.random.default_rng(0), most_work=1e15)
    value, error = probes._by_probes(known_of(K, noise, None), 2, each=1e9)
    assert error == 0.0
    dense = K.to_dense()
    for j in range(2):
        np.testing.assert_allclose(value[:, j], np.linalg.inv(dense + np.diag(noise[:, j])).diagonal(), rtol=1e-8)


def test_nothing_more_is_solved_where_the_check_is_enough() -> None:
    """With much noise every example has nearly the same leverage."""
    K, _, Y = problem()
    noise = np.full((N, 1), 100.0)
    probes = Probes(K, noise, None, 1000, np.random.default_rng(0))
    Z = probes.beside(2)
    inverse = np.linalg.inv(K.to_dense() + np.diag(noise[:, 0]))
    targets = 0.5 * Y  # no labels, at which decisions turn
    found = solve_cg(K, noise, np.hstack([targets, Z]), tol=1e-9)
    products, product = list[int](), K.matmul
    K._operator.matmul = lambda V: products.append(1) or product(V)
    value, error = probes.settle(targets, Z, found)
    assert len(products) <= 1  # the row sums, which tell examples apart
    np.testing.assert_allclose(value, probes._by_regression(known_of(K, noise, None))[0], rtol=1e-9)
    assert error <= WANTED
    assert np.sqrt(np.square(inverse.diagonal() / value[:, 0] - 1.0).mean()) <= error


@pytest.mark.parametrize("noise", [(1.0, 1e-13), (1e-13, 1.0)])
def test_more_examples_warn_of_the_column_with_the_least_noise(noise: tuple[float, float]) -> None:
    """Rows repeat others, and two columns have noise of their own: one of the two matrices is nearly singular."""
    X = np.random.default_rng(0).gamma(0.7, 1.0, (40, 8))
    K, both = HIK(scale=1.0).gram(np.vstack([X, X[:3]])), np.tile(noise, (43, 1))
    Y = np.sign(np.random.default_rng(1).standard_normal((43, 2)))
    first = solve(HIK(scale=1.0).gram(X), both[:40], Y[:40], Solving("cholesky"))
    with pytest.warns(LinAlgWarning, match="noise 1e-13"):
        grown(first, K, both, Y)
