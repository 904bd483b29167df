"""The kernel matrix of the training rows: the one thing that a kernel gives to inference, solvers and estimators.

`kernel.gram(X)` makes it, by an engine (engines.py). What kind of kernel it is, nothing above asks: it asks what the
matrix can do. Another way of holding it (on disk, on other machines, on a GPU) passes tests/kernels/test_gram.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pickle import PicklingError
from typing import TYPE_CHECKING, Annotated, Any, Self

import joblib
import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.chunks import batches
from saccade._core.errors import InvalidParameter
from saccade.operators.base import Operator

if TYPE_CHECKING:
    from saccade.kernels.base import Array, Kernel, Matrix, PerRow, Rows
    from saccade.kernels.intersection import HIK
    from saccade.kernels.slope import KernelSlope
    from saccade.kernels.space import Space
    from saccade.operators.norms import NormTables
    from saccade.operators.tables import PiecewiseTables


class Gram(Operator):
    """K_ij = k(x_i, x_j) of the training rows, and k(x_i, x) for new rows x."""

    kernel: Kernel
    """k with every data-dependent part settled."""

    @abstractmethod
    def rows(self, numbers: Annotated[Array, "b: ascending, each once"]) -> Annotated[Matrix, "b, d"]:
        """Some training rows as K knows them: with a number of levels, rounded to these."""

    def row_blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """All training rows, as many at a time as memory has room for."""
        for some in batches(self.shape[0], limits.ROWS_AT_ONCE):
            yield some, self.rows(np.arange(some.start, some.stop))

    def all_rows(self) -> Rows:
        """All training rows at once, for those who cannot work on blocks."""
        return stack_rows(*(block for _, block in self.row_blocks()))

    @abstractmethod
    def append(
        self,
        X: Annotated[Matrix, "b, d"],
        weight: Annotated[Array, "n + b"] | None,  # how many copies each row stands for
    ) -> Self:
        """With the rows of X behind the others, for the same kernel."""

    @abstractmethod
    def with_kernel(self, kernel: Kernel, weight: PerRow | None = None) -> Self:
        """These rows under another kernel, which is settled on them first."""

    @abstractmethod
    def subset(self, rows: Annotated[Array, "b: ascending row numbers"]) -> Self:
        """Some of the rows, for the same kernel."""

    @abstractmethod
    def space(self, kernel: Annotated[Kernel, "not settled yet"], weight: PerRow | None = None) -> Space:
        """The kernels on these rows that tuning may choose from when it starts at `kernel`."""

    def extends_to(self, other: Gram) -> bool:
        """Whether K is the upper left corner of another, which has further rows, because the kernel is the same."""
        try:
            return bool(joblib.hash(self.kernel) == joblib.hash(other.kernel))
        except (PicklingError, TypeError):  # a kernel that cannot be compared
            return False

    def cross(
        self,
        X: Annotated[Matrix, "b, d"],
        rows: Annotated[Array, "p"] | None = None,  # at least one, in any order; None for all n
    ) -> Annotated[Array, "n, b"]:  # or (p, b)
        """k(x_i, x) of training rows and new ones; no value of another training row is computed."""
        if rows is None:
            return np.concatenate([self.kernel(block, X) for _, block in self.row_blocks()])
        some, places = np.unique(rows, return_inverse=True)
        K = self.kernel(self.rows(some), X)
        return np.asarray(K if np.array_equal(some, rows) else K[places])

    def cross_and_own(
        self, X: Annotated[Matrix, "b, d"], rows: Annotated[Array, "p"] | None = None
    ) -> tuple[Array, Array]:  # as `cross`, and (b,)
        """`cross`, and k(x, x) of the new rows."""
        return self.cross(X, rows), self.kernel.diag(X)

    def columns(self, rows: Array) -> Array:
        some, places = np.unique(rows, return_inverse=True)
        return np.asarray(self.cross(self.rows(some))[:, places])

    def between(self, a: Annotated[Array, "p: row numbers"], b: Annotated[Array, "q"]) -> Annotated[Array, "p, q"]:
        """K[a, b], from the rows alone."""
        if a is b:
            return self.block(a)
        (first, places), (second, others) = (np.unique(rows, return_inverse=True) for rows in (a, b))
        return np.asarray(self.kernel(self.rows(first), self.rows(second))[np.ix_(places, others)])

    def block(self, rows: Array) -> Array:
        some, places = np.unique(rows, return_inverse=True)
        K = self.kernel(self.rows(some))
        return np.asarray(K if np.array_equal(some, rows) else K[np.ix_(places, places)])

    @property
    def given(self) -> Array | None:  # ascending
        """Numbers of the rows that `as_given` has; None where `rows` has them all, unrounded."""
        return None

    def as_given(self, numbers: Annotated[Array, "b: ascending"]) -> Annotated[Matrix, "b, d"]:
        """Training rows as they came, before any rounding to levels."""
        return self.rows(numbers)


class TabledGram(Gram):
    """Of a kernel that is a sum over features: functions Σ_i v_i k(x_i, ·) are tables, one per feature."""

    kernel: HIK
    tops: Array
    """The largest value of each dimension."""
    width: int
    """The number of features; dimensions are twice as many where some are negative."""

    @abstractmethod
    def tables(self, V: Annotated[Array, "n, m"]) -> PiecewiseTables:
        """x ↦ Σ_i V_i k(x_i, x)."""

    @abstractmethod
    def norm_tables(
        self, Ws: Annotated[Sequence[Annotated[Array, "n, r"]], "each, the leading direction first"]
    ) -> tuple[NormTables, ...]:
        """x ↦ ‖Wᵀk(X, x)‖ of each W, as tables that bound it from below."""

    @abstractmethod
    def level_gradient(self, slope: KernelSlope) -> Annotated[Array, "L"]:
        """The derivative of a number with respect to every level, from that with respect to K."""

    @abstractmethod
    def level_counts(self, weight: PerRow) -> Annotated[Array, "L"]:
        """The weight of the training rows at each level of `tables`; rows at zero count nowhere."""

    @abstractmethod
    def features(self, X: Annotated[Matrix, "b, d"]) -> sp.csr_matrix:
        """The rows that tables are walked with."""


def check_kind(gram: Gram, kernel: Kernel) -> None:
    """Complain of a kernel whose matrix is held in another way."""
    if kernel.has_tables != isinstance(gram, TabledGram):
        raise InvalidParameter("`kernel` must stay of one kind between calls of partial_fit. Call fit instead.")


def own_rows(X: Any) -> Any:
    """X in float64, in memory that nobody else writes to: predictions need the rows as they are now.

    Rows are copied unless they are float64 already and cannot be written to, such as a memory map opened for reading.
    """
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return X if X.dtype == np.float64 and all(map(_is_frozen, parts)) else X.astype(np.float64)


def _is_frozen(values: Any) -> bool:
    """Whether neither the array nor one that it is a view of can be written to."""
    while isinstance(values, np.ndarray):
        if values.flags.writeable:
            return False
        values = values.base
    return True


def stack_rows(*parts: Any) -> Any:
    """Rows one below the other: sparse if one of them is."""
    if len(parts) == 1:
        return parts[0]
    return sp.vstack(parts, format="csr") if any(map(sp.issparse, parts)) else np.vstack(parts)
