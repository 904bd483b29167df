"""The matrix of any kernel, made by blocks of rows and never kept: n² time per product, memory for one block."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from sklearn.utils import gen_batches

from saccade._core.arrays import Array
from saccade.operators.base import Dense, Operator

AT_ONCE = 4_000_000  # kernel values held at a time: 32 MB
UNIT_COLUMNS = 64  # unit vectors in one product


class Covariance(Protocol):
    """What of a kernel is needed here."""

    def __call__(self, X: Any, Z: Any) -> Array:
        """k(x_i, z_j) for all pairs of rows."""

    def diag(self, X: Any) -> Array:
        """k(x_i, x_i) for every row."""


class Streamed:
    """K of a kernel and its examples, known by its products."""

    def __init__(
        self,
        kernel: Covariance,
        X: Any,  # (n, d), dense or CSR
    ) -> None:
        self.kernel, self.X = kernel, X

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.X.shape[0]

    @property
    def work(self) -> int:
        """n² kernel values, each from a row of X."""
        n, d = self.X.shape
        return int(n * n * max(1, d))

    def diag(self) -> Array:  # (n,)
        return np.asarray(self.kernel.diag(self.X), np.float64)

    def matmul(
        self,
        V: Array,  # (n, m)
    ) -> Array:  # (n, m), of V's dtype
        """K V."""
        out = np.empty((self.shape[0], V.shape[1]), V.dtype)
        for rows, block in self._blocks():
            out[rows] = block @ V
        return out

    def row_sums(self) -> tuple[Array, float]:  # (n,)
        """Σ_j K_ij, and the smallest K_ij, in one pass."""
        sums, smallest = np.empty(self.shape[0]), np.inf
        for rows, block in self._blocks():
            sums[rows] = block.sum(axis=1)
            smallest = min(smallest, float(block.min(initial=np.inf)))
        return sums, smallest

    def columns(
        self,
        some: Array,  # (b,) example numbers
    ) -> Array:  # (n, b)
        """K[:, some], without a product."""
        return np.asarray(self.kernel(self.X, self.X[some]))

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """The rows of K, some at a time."""
        n = self.shape[0]
        for rows in gen_batches(n, max(1, AT_ONCE // max(n, 1))):
            yield rows, self.kernel(self.X[rows], self.X)


def columns(
    K: Operator,
    some: Array,  # (b,) example numbers
) -> Array:  # (n, b)
    """K[:, some] of any operator; where it cannot give them, by products with unit vectors."""
    if isinstance(K, Dense):
        return np.asarray(K.K[:, some])
    if isinstance(K, Streamed):
        return K.columns(some)
    found = np.empty((K.shape[0], some.size))
    for part in gen_batches(some.size, UNIT_COLUMNS):
        unit = np.zeros((K.shape[0], some[part].size))
        unit[some[part], np.arange(some[part].size)] = 1.0
        found[:, part] = K.matmul(unit)
    return found
