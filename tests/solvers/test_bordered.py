"""A factor that grows, against one of the whole matrix."""

from typing import Any

import numpy as np
import pytest

from saccade._core import limits
from saccade.solvers.bordered import Bordered
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture
def K() -> Array:
    A = np.random.default_rng(0).random((30, 40))
    return A @ A.T / 40 + 0.1 * np.eye(30)


def test_growing_and_shortening(K: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FACTOR_BORDER", 9)
    factor, n = Bordered.of(np.zeros((0, 0))), 0
    for b in (1, 3, 1, 4, 2, 7, 12):
        new = n + b
        factor = factor.grown(factor.half_solve(K[:n, n:new]), K[n:new, n:new])
        n = new
        L = np.linalg.cholesky(K[:n, :n])
        B = np.random.default_rng(n).random((n, 2))
        assert factor.size == n
        assert_close(factor.L, L)
        assert_close(factor.half_solve(B), np.linalg.solve(L, B))
        assert_close(factor.back_solve(B), np.linalg.solve(L.T, B))
        assert_close(factor.solve(B), np.linalg.solve(K[:n, :n], B))
        assert_close(factor.inverse_diagonal(), np.linalg.inv(K[:n, :n]).diagonal())
        assert len(factor.S) <= 9
    for size in (28, 18, 5, 0):
        assert_close(factor.shortened(size).L, np.linalg.cholesky(K)[:size, :size])
