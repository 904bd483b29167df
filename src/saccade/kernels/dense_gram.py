"""Kernel matrices of any kernel: held in memory, or made a block of rows at a time and never held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Self

import numpy as np

from saccade._core import limits
from saccade._core.chunks import batches
from saccade._core.errors import InvalidInput
from saccade.kernels.base import Array, Kernel, Matrix, Rows
from saccade.kernels.gram import Gram, check_kind, stack_rows
from saccade.kernels.space import DenseSpace

FEW = 16  # one of so many values is computed alone: of more, the next question is mostly about the whole matrix


class StreamedGram(Gram):
    """Never held: a product takes n² kernel values, and memory for a block of them."""

    def __init__(
        self, kernel: Annotated[Kernel, "settled"], X: Rows, at_once: int = limits.KERNEL_VALUES_AT_ONCE
    ) -> None:
        self.kernel, self.X, self._at_once, self._most = kernel, X, at_once, at_once

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.X.shape[0]

    @property
    def work(self) -> int:
        """n² kernel values, each from a row of X."""
        n, d = self.X.shape
        return int(n * n * max(1, d))

    def rows(self, numbers: Array) -> Matrix:
        return self.X[numbers]

    def row_blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """One: all rows are in memory, and kernels that are settled on rows prepare them once for each block."""
        yield slice(0, self.shape[0]), self.X

    def cross(self, X: Matrix, rows: Array | None = None) -> Array:
        return self.kernel(self.X if rows is None else self.X[rows], X)

    def cross_and_own(self, X: Matrix, rows: Array | None = None) -> tuple[Array, Array]:
        return self.kernel(self.X if rows is None else self.X[rows], X), self.kernel.diag(X)

    def columns(self, rows: Array) -> Array:
        return self.kernel(self.X, self.X[rows])

    def append(self, X: Matrix, weight: Array | None) -> Self:
        return self._with(self.kernel, stack_rows(self.X, X))

    def with_kernel(self, kernel: Kernel, weight: Array | None = None) -> Self:
        check_kind(self, kernel)
        return self._with(kernel.resolved(self.X, weight), self.X)

    def subset(self, rows: Array) -> Self:
        return self._with(self.kernel, self.X[rows])

    def _with(self, kernel: Kernel, X: Matrix) -> Self:
        """Another kernel or other rows, held in the same way."""
        return type(self)(kernel, X, self._most)

    def space(self, kernel: Kernel, weight: Array | None = None) -> DenseSpace:
        return DenseSpace(kernel, self, weight)

    def diag(self) -> Array:
        return np.asarray(self.kernel.diag(self.X), np.float64)

    def matmul(self, V: Array) -> Array:
        out = np.empty((self.shape[0], V.shape[1]), V.dtype)
        for rows, block in self._blocks():
            out[rows] = block @ V
        return out

    def matmul_rows(self, rows: Array, V: Array, at: Array | None = None) -> Array:
        here = self.X if at is None else self.X[at]
        out = np.zeros((here.shape[0], V.shape[1]), V.dtype)
        if out.size and rows.size:
            for some in batches(here.shape[0], max(1, self._at_once // rows.size)):
                out[some] = self.kernel(here[some], self.X[rows]) @ V
        return out

    def row_sums(self) -> tuple[Array, float]:
        sums, smallest = np.empty(self.shape[0]), 0.0
        for rows, block in self._blocks():
            sums[rows] = block.sum(axis=1)
            smallest = min(smallest, float(block.min(initial=0.0)))
        return sums, smallest

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """The rows of K, some at a time."""
        n = self.shape[0]
        for rows in batches(n, max(1, self._at_once // max(n, 1))):
            yield rows, self.kernel(self.X[rows], self.X)


class DenseGram(StreamedGram):
    """Made once, when it is first needed; a solver that factorises it takes it away."""

    in_memory = True

    def __init__(self, kernel: Kernel, X: Matrix, limit: int | None = None) -> None:
        super().__init__(kernel, X)
        self._most, n = limits.DENSE_UP_TO if limit is None else limit, X.shape[0]
        if n > self._most:
            raise InvalidInput(
                f"{type(kernel).__name__} needs the whole {n} × {n} kernel matrix, too large beyond {self._most} "
                "examples. Use HIK(), which needs none, or fewer examples."
            )
        self._K: Array | None = None

    @property
    def work(self) -> int:
        return self.shape[0] ** 2

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies: without K, which can be made again."""
        return self.__dict__ | {"_K": None}

    def columns(self, rows: Array) -> Array:
        K = self._K
        return self.kernel(self.X, self.X[rows]) if K is None else np.asarray(K[:, rows])

    def matmul_rows(self, rows: Array, V: Array, at: Array | None = None) -> Array:
        product: Array = (self._held()[:, rows] if at is None else self._held()[np.ix_(at, rows)]) @ V
        return product.astype(V.dtype, copy=False)

    def between(self, a: Array, b: Array) -> Array:
        if self._K is None and a.size * b.size * FEW <= self.work:
            return super().between(a, b)
        return np.asarray(self._held()[np.ix_(a, b)])

    def matmul(self, V: Array) -> Array:
        product: Array = self._held() @ V
        return product.astype(V.dtype, copy=False)

    def _held(self) -> Array:
        K = self._K  # another thread may take it away
        if K is None:
            K = self._K = self.kernel(self.X)
        return K

    def to_dense(self) -> Array:
        """The matrix itself. It is not kept here: nothing holds K beside its factor."""
        K = self.kernel(self.X) if self._K is None else self._K
        self._K = None
        return K
