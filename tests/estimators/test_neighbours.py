"""The graph of rows: its links and what spreads along them, against the formulas in plain loops."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from saccade._core.arrays import Array
from saccade.estimators.neighbours import ALPHA, NEAREST, Neighbours
from saccade.kernels import HIK, RBF, Kernel
from tests.tolerances import assert_close


def rows(n: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).gamma(0.7, size=(n, 6))


def distance(kernel: Kernel, X: Array, a: Array, b: Array) -> float:
    """By an origin in the middle of the rows of X."""
    K = kernel(np.vstack([X, a, b]))
    n = len(X)
    middle = np.append(np.full(n, 1.0 / n), [0.0, 0.0])
    va, vb = np.eye(n + 2)[n] - middle, np.eye(n + 2)[n + 1] - middle
    return float(2.0 - 2.0 * (va @ K @ vb) / np.sqrt((va @ K @ va) * (vb @ K @ vb)))


def dense_links(kernel: Kernel, X: Array) -> tuple[Array, Array, Array]:
    """S, widths and degrees."""
    n = len(X)
    D = np.array([[np.inf if i == j else distance(kernel, X, X[i], X[j]) for j in range(n)] for i in range(n)])
    nearest = np.argsort(D, axis=1)[:, :NEAREST]
    width = np.array([D[i, nearest[i, -1]] for i in range(n)])
    W = np.zeros((n, n))
    for i in range(n):
        for j in nearest[i]:
            W[i, j] = W[j, i] = np.exp(-D[i, j] / np.sqrt(width[i] * width[j]))
    degree = W.sum(axis=1)
    return W / np.sqrt(np.outer(degree, degree)), width, degree


@pytest.mark.parametrize("kernel", [HIK(scale=2.0), RBF(0.5)], ids=repr)
def test_links_and_spread(kernel: Kernel) -> None:
    X = rows(25)
    S, width, degree = dense_links(kernel, X)
    found = Neighbours.of(kernel, X)
    np.testing.assert_allclose(found.links.toarray(), S, atol=1e-8)
    np.testing.assert_allclose([found.width, found.degree], [width, degree], atol=1e-8)
    seeds = np.eye(25)[:, [3, 8]]
    np.testing.assert_allclose(found.spread(seeds), np.linalg.solve(np.eye(25) - ALPHA * S, seeds), atol=1e-5)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_links_of_further_rows(kind: Any) -> None:
    X, new, kernel = rows(25), rows(4, 1), HIK(scale=1.0)
    _, width, degree = dense_links(kernel, X)
    wanted = np.zeros((4, 25))
    for i, x in enumerate(new):
        D = np.array([distance(kernel, X, x, z) for z in X])
        nearest = np.argsort(D)[:NEAREST]
        w = np.exp(-D[nearest] / np.sqrt(D[nearest[-1]] * width[nearest]))
        wanted[i, nearest] = w / np.sqrt(w.sum() * degree[nearest])
    found = Neighbours.of(kernel, kind(X)).reach(kind(new))
    np.testing.assert_allclose(found.toarray(), wanted, atol=1e-8)


def test_a_row_of_the_graph_is_nearest_to_itself() -> None:
    X = rows(40)
    found = Neighbours.of(HIK(scale=1.0), X)
    weight = found.reach(X).toarray() * np.sqrt(found.degree)
    np.testing.assert_array_equal(weight.argmax(axis=1), np.arange(40))


def test_the_scale_of_the_kernel_is_nothing() -> None:
    X = rows(30)
    a, b = (Neighbours.of(HIK(scale=scale), X).links.toarray() for scale in (1.0, 1e-3))
    np.testing.assert_allclose(a, b, atol=1e-9)


@pytest.mark.parametrize(
    "X",
    [np.ones((20, 3)), np.repeat(rows(2), 10, axis=0), rows(2), np.vstack([rows(20), 1e6 * np.ones((1, 6))])],
    ids=["all equal", "two kinds", "two rows", "one far away"],
)
def test_extremes_stay_finite(X: Array) -> None:
    found = Neighbours.of(HIK(scale=1.0), X)
    spread = found.spread(np.eye(len(X))[:, :1])
    assert np.isfinite(spread).all()
    assert np.isfinite(found.reach(np.vstack([X, np.zeros_like(X[:1])])).toarray()).all()


def test_a_known_matrix_is_not_made_again() -> None:
    X = rows(20)
    kernel = HIK(scale=1.0)
    a, b = Neighbours.of(kernel, X), Neighbours.of(kernel, X, kernel(X))
    assert_close(a.links.toarray(), b.links.toarray())
