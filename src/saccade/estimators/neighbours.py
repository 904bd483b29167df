"""Rows as a graph, each linked to those most like it, and what spreads along the links.

    d(x, z) = 2 − 2 k̃(x, z)/√(k̃(x, x) k̃(z, z))     k̃: the kernel, centred in feature space over the rows of the graph
    w(x, z) = exp(−d(x, z)/√(d_x d_z))              d_x: the distance from x to the last of its nearest rows
    S = D^−½ W D^−½,   (I − αS) F = seeds

Centred, and scaled to a unit diagonal, what all rows share counts for nothing. The widths d_x are those of Zelnik-Manor
and Perona (2004), the spreading is that of Zhou et al. (2003): "Learning with local and global consistency".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.chunks import batches
from saccade.kernels import Kernel
from saccade.operators.base import Operator
from saccade.solvers.cg import solve_cg

NEAREST = 7  # rows that each row is linked to
FEWEST = 16  # rows that are worth a graph
ALPHA = 0.9  # share of what a row has that it passes on
TINY = 1e-9  # distance that is rounding, where a unit is the length of a row
TOL = 1e-7  # largest residual of F, where seeds are at most 1


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The graph of some rows, and the links of further rows into it.

    Parameters
    ----------
    kernel : Kernel
        k, with a number for every "auto".
    X : array or sparse matrix of shape (n, d)
        The rows.
    means : array of shape (n,)
        mean_j k(x, x_j) of each row.
    length, width, degree : array of shape (n,)
        √k̃(x, x), d_x and the sum of links of each row.
    links : sparse matrix of shape (n, n)
        S.

    Examples
    --------
    >>> from saccade.kernels import RBF
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> spread = Neighbours.of(RBF(), X, nearest=2).spread(np.eye(6)[:, :1])
    >>> np.round(spread[:, 0], 1)
    array([3.6, 3.2, 2.8, 0. , 0. , 0. ])
    """

    kernel: Kernel
    X: Any
    means: Array
    length: Array
    width: Array
    degree: Array
    links: Any

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        X: Annotated[Any, "n, d"],
        K: Annotated[Array, "n, n"] | None = None,  # the kernel matrix, where it is known
        nearest: int = NEAREST,
    ) -> Neighbours:
        """The graph of two or more rows."""
        K, n = kernel(X) if K is None else K, X.shape[0]
        means, own = K.mean(axis=1), np.diagonal(K)
        length = _length(own, means, float(means.mean()))
        D = _distances(K, means, length, means, length)
        np.fill_diagonal(D, np.inf)
        near, far = _nearest(D, min(nearest, n - 1))
        width = far.max(axis=1)
        W = _sparse(_alike(far, width, width[near]), near, n)
        W = W.maximum(W.T)
        degree = np.maximum(np.asarray(W.sum(axis=1)).ravel(), TINY)
        scale = sp.diags(1.0 / np.sqrt(degree))
        return cls(kernel, X, means, length, width, degree, (scale @ W @ scale).tocsr())

    def reach(self, X: Annotated[Any, "b, d"]) -> Annotated[Any, "b, n"]:
        """The links of rows into the graph; a row of the graph is the nearest to itself."""
        some = batches(X.shape[0], max(1, limits.KERNEL_VALUES_AT_ONCE // self.X.shape[0]))
        return sp.vstack([self._reach(X[rows]) for rows in some]).tocsr()

    def _reach(self, X: Annotated[Any, "b, d"]) -> Annotated[Any, "b, n"]:
        K, n = self.kernel(X, self.X), self.width.size
        means = K.mean(axis=1)
        length = _length(self.kernel.diag(X), means, float(self.means.mean()))
        near, far = _nearest(_distances(K, means, length, self.means, self.length), min(NEAREST, n))
        found = _alike(far, far.max(axis=1), self.width[near])
        degree = np.maximum(found.sum(axis=1, keepdims=True), TINY)
        return _sparse(found / np.sqrt(degree * self.degree[near]), near, n)

    def spread(self, seeds: Annotated[Array, "n, l"]) -> Annotated[Array, "n, l"]:
        """F: what seeds become when every row has passed on its share."""
        noise = np.ones((seeds.shape[0], 1))
        return np.maximum(solve_cg(_Passing(self.links), noise, seeds, tol=TOL).x, 0.0)


def drawn(rows: Annotated[Array, "u: numbers"], seed: int, most: int = limits.NEIGHBOURS) -> Array:
    """As many of them as a graph has, at random."""
    return rows if rows.size <= most else np.sort(np.random.default_rng(seed).permutation(rows)[:most])


class _Passing(Operator):
    """−αS, to which a solver adds the identity."""

    def __init__(self, links: Any) -> None:
        self.links = -ALPHA * links

    @property
    def shape(self) -> tuple[int, int]:
        return self.links.shape[0], self.links.shape[0]

    @property
    def work(self) -> int:
        return int(self.links.nnz)

    def diag(self) -> Array:
        return np.zeros(self.shape[0])

    def matmul(self, V: Array) -> Array:
        return np.asarray(self.links @ V, V.dtype)


def _length(own: Array, means: Array, mean: float) -> Array:
    return np.asarray(np.sqrt(np.maximum(own - 2.0 * means + mean, TINY * np.maximum(own, TINY))))


def _distances(K: Array, left: Array, left_length: Array, right: Array, right_length: Array) -> Array:
    """d(x, z) for all pairs."""
    D = K - left[:, None]
    D += right.mean() - right
    D *= -2.0 / left_length[:, None]
    D /= right_length
    D += 2.0
    return np.asarray(np.maximum(D, 0.0, out=D))


def _nearest(D: Array, count: int) -> tuple[Array, Array]:  # (b, count) numbers and distances
    near = np.argpartition(D, count - 1, axis=1)[:, :count]
    return near, np.take_along_axis(D, near, axis=1)


def _alike(far: Annotated[Array, "b, k"], width: Annotated[Array, "b"], theirs: Annotated[Array, "b, k"]) -> Array:
    """w(x, z); rows without any distance are alike."""
    return np.asarray(np.exp(-far / np.maximum(np.sqrt(width[:, None] * theirs), TINY)))


def _sparse(values: Annotated[Array, "b, k"], near: Annotated[Array, "b, k"], n: int) -> Annotated[Any, "b, n"]:
    b, k = near.shape
    return sp.csr_matrix((values.ravel(), near.ravel(), np.arange(0, b * k + 1, k)), shape=(b, n))
