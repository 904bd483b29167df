"""Closed-form leave-one-out against leaving out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade._core.errors import InvalidInput
from saccade.inference.approximations.by_name import Approximating
from saccade.inference.likelihoods.infer import Solving
from saccade.inference.posterior.gp import GP
from saccade.inference.solving.closed_form import leave_one_out, turning_points
from saccade.kernels import HIK, RBF
from tests.tolerances import assert_close

KNOWN = Solving(leave_one_out=True)


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


@pytest.mark.parametrize("m", [1, 3])
def test_turning_points_are_where_the_own_class_begins_to_win(m: int) -> None:
    rng = np.random.default_rng(0)
    label = np.arange(20) % max(m, 2)
    Y = np.where(label[:, None] == np.arange(m), 1.0, -1.0) if m > 1 else np.where(label == 1, 1.0, -1.0)[:, None]
    alpha = rng.standard_normal((20, m)) + 0.5 * Y
    turns = turning_points(Y, alpha)
    for factor, wins in ((1.01, True), (0.99, False)):
        d = factor * np.where(turns > 0, turns, np.nan)[:, None]
        mean = Y - alpha / d
        found = (mean[:, 0] * Y[:, 0] > 0) if m == 1 else mean.argmax(axis=1) == label
        assert (found == wins)[turns > 0].all()
    assert 5 < (turns > 0).sum() < 20


def test_what_cannot_leave_out_says_so() -> None:
    X = np.random.default_rng(0).gamma(0.7, 1.0, (40, 5))
    Y = np.sign(X[:, :1] - X[:, 1:2])
    gp = GP.fit(HIK().gram(X), Y, np.full((40, 1), 0.1), approximation=Approximating("exact", "fine"), solving=KNOWN)
    with pytest.raises(InvalidInput, match='variance="fine" cannot leave examples out'):
        gp.left_out(np.arange(40))
    exact = gp.leave_one_out()[1]
    rows, variance = gp.left_out_variance(exact, 10)
    assert rows.size == 10
    np.testing.assert_allclose(variance, np.maximum(exact[rows], gp.variance(X[rows])))
    mean = gp.left_out_mean(rows)
    np.testing.assert_allclose(mean, gp.leave_one_out()[0][rows])


@pytest.mark.parametrize("mean", ["exact", "sod"])
def test_mean_and_variance_may_be_by_two_ways(mean: str) -> None:
    """Each is left out as new examples are judged: by its own approximation."""
    X = np.random.default_rng(0).gamma(0.7, 1.0, (30, 5))
    Y, noise = np.sign(X[:, :1] - X[:, 1:2]), np.full((30, 1), 0.1)
    approximation = Approximating(mean, "exact", inducing=np.arange(15))
    gp = GP.fit(RBF(1.0).gram(X), Y, noise, approximation=approximation, solving=KNOWN)
    found = gp.left_out(np.arange(30))
    for i in (3, 20):
        rest = np.delete(np.arange(30), i)
        some = rest if mean == "exact" else rest[rest < 15]
        K, K_mean = RBF(1.0)(X[rest]), RBF(1.0)(X[some])
        k, k_mean = RBF(1.0)(X[rest], X[[i]]), RBF(1.0)(X[some], X[[i]])
        wanted = k_mean.T @ np.linalg.solve(K_mean + 0.1 * np.eye(some.size), Y[some])
        assert_close(found[0][i], wanted[0])
        assert_close(found[1][i, 0], 1.0 - (k.T @ np.linalg.solve(K + 0.1 * np.eye(29), k)).item())
