"""Closed-form leave-one-out against leaving out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from saccade.inference.leave_one_out.closed_form import leave_one_out
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


def test_less_than_one_copy_is_left_out_whole() -> None:
    """A weight below one has no copy to spare: what goes is the example, as if it had no weight."""
    rng = np.random.default_rng(0)
    X, Y = rng.random((6, 3)), rng.standard_normal((6, 2))
    K = np.minimum(X[:, None], X[None]).sum(axis=2)
    weight = np.array([0.01, 0.2, 0.5, 0.9, 1.0, 3.0])
    noise = (0.3 / weight)[:, None]
    inverse = np.linalg.inv(K + np.diag(noise[:, 0]))
    arguments = Y, inverse @ Y, inverse.diagonal()[:, None], noise
    mean, variance = leave_one_out(*arguments, weight)
    for i in range(5):
        rest = np.arange(6) != i
        A, k = K[np.ix_(rest, rest)] + np.diag(noise[rest, 0]), K[i, rest]
        assert_close(mean[i], k @ np.linalg.solve(A, Y[rest]))
        assert_close(variance[i, 0], K[i, i] - k @ np.linalg.solve(A, k))
    assert np.abs(mean[5] - leave_one_out(*arguments)[0][5]).min() > 1e-3
