"""The kernel matrix of the training rows: the one thing that a kernel gives to inference, solvers and estimators.

`kernel.gram(X)` makes it. What kind of kernel it is, nothing above asks: it asks what the matrix can do. A new way of
holding it (on disk, on other machines, on a GPU) is a further class here, and passes tests/kernels/test_gram.py.
"""

from __future__ import annotations

from abc import abstractmethod
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, ClassVar, Self

import joblib
import numpy as np
import scipy.sparse as sp

from .._core.errors import InvalidParameter
from ..operators.base import Operator

if TYPE_CHECKING:
    from ..operators.intersection_base import Intersection
    from ..operators.tables import PiecewiseTables
    from .base import Array, Kernel, Matrix
    from .intersection import HIK
    from .space import Space


class Gram(Operator):
    """K_ij = k(x_i, x_j) of the training rows, and k(x_i, x) for new rows x."""

    has_tables: ClassVar[bool] = False
    """Whether it is a TabledGram."""
    kernel: Kernel
    """k with every data-dependent part settled."""

    @abstractmethod
    def rows(
        self,
        numbers: Array | None = None,  # (b,) ascending, each once; None for all
    ) -> Matrix:  # (b, d)
        """Training rows as K knows them: with a number of levels, rounded to these."""

    @abstractmethod
    def append(
        self,
        X: Matrix,  # (b, d)
        weight: Array | None,  # (n + b,): how many copies each row stands for
    ) -> Self:
        """With the rows of X behind the others, for the same kernel."""

    @abstractmethod
    def with_kernel(
        self,
        kernel: Kernel,
        weight: Array | None = None,  # (n,)
    ) -> Self:
        """The same rows under another kernel, which is settled on them first."""

    @abstractmethod
    def subset(
        self,
        rows: Array,  # (b,) ascending row numbers
    ) -> Self:
        """Some of the rows, for the same kernel."""

    @abstractmethod
    def space(
        self,
        kernel: Kernel,  # not settled yet
        weight: Array | None = None,  # (n,)
    ) -> Space:
        """The kernels on these rows that tuning may choose from when it starts at `kernel`."""

    def extends_to(self, other: Gram) -> bool:
        """Whether K is the upper left corner of another, which has further rows, because the kernel is the same."""
        try:
            return bool(joblib.hash(self.kernel) == joblib.hash(other.kernel))
        except (PicklingError, TypeError):  # a kernel that cannot be compared
            return False

    def cross(
        self,
        X: Matrix,  # (b, d)
        rows: Array | None = None,  # (p,), at least one, in any order; None for all n
    ) -> Array:  # (n, b), or (p, b)
        """k(x_i, x) of training rows and new ones; no value of another training row is computed."""
        if rows is None:
            return self.kernel(self.rows(), X)
        some, places = np.unique(rows, return_inverse=True)
        K = self.kernel(self.rows(some), X)
        return np.asarray(K if np.array_equal(some, rows) else K[places])

    def cross_and_own(
        self,
        X: Matrix,  # (b, d)
        rows: Array | None = None,  # (p,)
    ) -> tuple[Array, Array]:  # as `cross`, and (b,)
        """`cross`, and k(x, x) of the new rows."""
        return self.cross(X, rows), self.kernel.diag(X)

    def columns(self, rows: Array) -> Array:
        return self.kernel(self.rows(), self.rows(rows))

    def between(
        self,
        a: Array,  # (p,) row numbers
        b: Array,  # (q,)
    ) -> Array:  # (p, q)
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

    def as_given(
        self,
        numbers: Array,  # (b,) ascending
    ) -> Matrix:  # (b, d)
        """Training rows as they came, before any rounding to levels."""
        return self.rows(numbers)


class TabledGram(Gram):
    """Of a kernel that is a sum over features: functions Σ_i v_i k(x_i, ·) are tables, one per feature."""

    has_tables = True
    kernel: HIK
    operator: Intersection
    """The products, with the levels of the kernel."""
    tops: Array
    """The largest value of each dimension."""
    width: int
    """The number of features; dimensions are twice as many where some are negative."""

    @abstractmethod
    def with_levels(
        self,
        kernel: HIK,  # settled
        levels: Array,  # (L,): kernel.levels of the values of the codes
    ) -> Self:
        """The same rows with another kernel, whose levels are made already."""

    @abstractmethod
    def tables(
        self,
        V: Array,  # (n, m)
    ) -> PiecewiseTables:
        """x ↦ Σ_i V_i k(x_i, x)."""

    @abstractmethod
    def features(
        self,
        X: Matrix,  # (b, d)
    ) -> sp.csr_matrix:
        """The rows that tables are walked with."""


def check_kind(gram: Gram, kernel: Kernel) -> None:
    """Complain of a kernel whose matrix is held in another way."""
    if kernel.has_tables != gram.has_tables:
        raise InvalidParameter("`kernel` must stay of one kind between calls of partial_fit. Call fit instead.")


def stack_rows(*parts: Any) -> Any:
    """Rows one below the other: sparse if one of them is."""
    return sp.vstack(parts, format="csr") if any(map(sp.issparse, parts)) else np.vstack(parts)
