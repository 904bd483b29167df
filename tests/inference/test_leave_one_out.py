"""Closed-form leave-one-out against leaving out, and the large-n estimate against the closed form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from saccade.inference.leave_one_out import leave_one_out
from saccade.inference.regression import solve
from saccade.kernels import HIK
from saccade.operators.base import Dense
from tests.tolerances import assert_close


@given(st.integers(0, 10_000), st.integers(1, 3))
def test_removing_one_copy(seed: int, copies: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.random((6, 3))
    K = np.minimum(X[:, None], X[None]).sum(axis=2)
    Y = rng.standard_normal((6, 2))
    weight = np.ones(6)
    weight[2] = copies
    noise = (0.3 / weight)[:, None]
    inverse = np.linalg.inv(K + np.diag(noise[:, 0]))
    mean, variance = leave_one_out(Y, inverse @ Y, inverse.diagonal()[:, None], noise, weight)

    left = weight.copy()
    left[2] -= 1
    rest = left > 0
    A = K[np.ix_(rest, rest)] + np.diag(0.3 / left[rest])
    k = K[2, rest]
    assert_close(mean[2], k @ np.linalg.solve(A, Y[rest]))
    assert_close(variance[2, 0], K[2, 2] - k @ np.linalg.solve(A, k))


@pytest.mark.parametrize("columns", [1, 3])
def test_estimated_diagonal_is_near_the_exact_one(columns: int) -> None:
    rng = np.random.default_rng(0)
    X, _ = load_digits(return_X_y=True)
    K = HIK()(X)
    Y = rng.choice([-1.0, 1.0], (len(X), columns))
    noise = np.full((len(X), 1), 0.1) if columns == 1 else rng.uniform(0.05, 0.2, (len(X), columns))
    arguments = {"submatrix": lambda rows: K[np.ix_(rows, rows)], "rng": rng}
    exact = solve(Dense(K), noise, Y, solver="cholesky", **arguments)
    estimated = solve(Dense(K), noise, Y, solver="cg", tol=1e-4, **arguments)
    np.testing.assert_allclose(estimated.alpha, exact.alpha, atol=2e-3)
    ratio = estimated.inverse_diagonal / exact.inverse_diagonal
    assert np.median(np.abs(ratio - 1.0)) < 0.1
    assert ratio.mean() == pytest.approx(1.0, abs=0.05)
