"""A matrix known by its products: what the solvers need to know of a kernel matrix, and no more."""

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array, PerRow
from saccade._core.chunks import batches
from saccade.operators.backend import ON_CPU, Backend


class Operator(ABC):
    """A symmetric positive semi-definite matrix K."""

    in_memory: ClassVar[bool] = False
    """Whether K is held as n² numbers, so that a factor of it costs no further kernel values."""

    @property
    def backend(self) -> Backend:
        """Where conjugate gradients keep their vectors, and what they work on them with."""
        return ON_CPU

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n, n)."""

    @property
    @abstractmethod
    def work(self) -> int:
        """Stored numbers that one product reads: the choice of a preconditioner depends on it."""

    @abstractmethod
    def diag(self) -> PerRow:
        """The diagonal of K."""

    def squared_parts(self) -> PerRow | None:
        """Σ_d k_d(x, x)² where K is a sum of kernels k_d, one for each dimension; None where it is not.

        Large for an example that has much in few dimensions: others tell little about it.
        """
        return None

    @abstractmethod
    def matmul(
        self, V: Annotated[Array, "n, m: of the host; also of `backend` where that is another"]
    ) -> Annotated[Array, "n, m"]:  # of V's dtype, where V is
        """K V. float32 in, float32 work and float32 out; float64 likewise."""

    def matmul_rows(
        self,
        rows: Annotated[Array, "b"],  # example numbers, each once
        V: Annotated[Array, "b, m"],
        at: Annotated[Array, "p"] | None = None,  # example numbers; None for all
    ) -> Annotated[Array, "n, m"]:  # or (p, m)
        """K[at, rows] V: what values at some examples add up to at others."""
        every = np.zeros((self.shape[0], V.shape[1]), V.dtype)
        every[rows] = V
        found = self.matmul(every)
        return found if at is None else np.asarray(found[at])

    def columns(self, rows: Annotated[Array, "b: example numbers"]) -> Annotated[Array, "n, b"]:
        """K[:, rows], here by products with unit vectors."""
        found = np.empty((self.shape[0], rows.size))
        for part in batches(rows.size, limits.UNIT_COLUMNS):
            unit = np.zeros((self.shape[0], rows[part].size))
            unit[rows[part], np.arange(rows[part].size)] = 1.0
            found[:, part] = self.matmul(unit)
        return found

    def block(self, rows: Annotated[Array, "b: example numbers"]) -> Annotated[Array, "b, b"]:
        """K[rows, rows]."""
        return np.asarray(self.columns(rows)[rows])

    def to_dense(self) -> Annotated[Array, "n, n"]:
        """A copy of the whole matrix that the caller may change."""
        return self.matmul(np.eye(self.shape[0]))

    def row_sums(self) -> tuple[PerRow, float]:
        """Σ_j K_ij, and the smallest K_ij if it is below zero, else zero."""
        K = self.to_dense()
        return K.sum(axis=1), float(K.min(initial=0.0))


class Single(Operator):
    """K with float32 products alone: they read half of what float64 ones do, and are right to about 1e-6."""

    def __init__(self, K: Operator) -> None:
        self.K = K

    @property
    def backend(self) -> Backend:
        return self.K.backend

    @property
    def shape(self) -> tuple[int, int]:
        return self.K.shape

    @property
    def work(self) -> int:
        return self.K.work

    def diag(self) -> Array:
        return self.K.diag()

    def matmul(self, V: Array) -> Array:
        return self.K.matmul(V.astype("float32", copy=False))


class Dense(Operator):
    """A matrix in memory."""

    in_memory = True

    def __init__(self, K: Annotated[Array, "n, n"]) -> None:
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

    def matmul_rows(self, rows: Array, V: Array, at: Array | None = None) -> Array:
        product: Array = (self.K[:, rows] if at is None else self.K[np.ix_(at, rows)]) @ V
        return product.astype(V.dtype, copy=False)

    def columns(self, rows: Array) -> Array:
        return np.asarray(self.K[:, rows])

    def to_dense(self) -> Array:
        return self.K.copy()
