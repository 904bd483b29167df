"""A matrix known by its products: what the solvers need to know of a kernel matrix, and no more."""

from typing import Protocol

import numpy as np

from saccade._core.arrays import Array


class Operator(Protocol):
    """A symmetric positive semi-definite matrix K."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""

    @property
    def work(self) -> int:
        """Stored numbers that one product reads: what the choice of a preconditioner weighs."""

    def diag(self) -> Array:  # (n,)
        """The diagonal of K."""

    def matmul(
        self,
        V: Array,  # (n, m)
    ) -> Array:  # (n, m), of V's dtype
        """K V. float32 in, float32 work and float32 out; float64 likewise."""


def written_out(K: Operator) -> Array:  # (n, n)
    """The matrix itself, by n products where it is not there."""
    return K.K if isinstance(K, Dense) else K.matmul(np.eye(K.shape[0]))


class Dense:
    """A kernel matrix written out."""

    def __init__(
        self,
        K: Array,  # (n, n)
    ) -> None:
        self.K = K

    @property
    def shape(self) -> tuple[int, int]:
        return self.K.shape[0], self.K.shape[1]

    @property
    def work(self) -> int:
        return self.K.size

    def diag(self) -> Array:
        return self.K.diagonal().copy()

    def matmul(self, V: Array) -> Array:
        product: Array = self.K @ V
        return product.astype(V.dtype, copy=False)
