"""The matrix of an intersection kernel by codes and levels: products and tables in the time of reading the data."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._core import limits
from .._core.checks import check_range
from ..operators.append import append
from ..operators.block import intersections
from ..operators.codes import Codes, column_max, encode, split_signs
from ..operators.decode import decode
from ..operators.intersection import intersection
from ..operators.intersection_base import Intersection
from ..operators.subset import sorted_columns, subset
from ..operators.tables import PiecewiseTables
from .base import Array, Kernel, Matrix
from .gram import Gram, TabledGram, check_kind
from .intersection import HIK
from .intersection_space import IntersectionSpace
from .raw_rows import RawRows, raw_rows


class IntersectionGram(TabledGram):
    """K of codes, which every kernel on the same rows shares; another kernel changes the levels alone."""

    kernel: HIK

    def __init__(
        self,
        kernel: HIK,  # settled
        codes: Codes,
        tops: Array,  # (D,)
        how: tuple[int | None, str],  # levels and binning, for rows that come later
        raw: RawRows | None,
        width: int,  # features of a row
        seed: int = 0,
        levels: Array | None = None,  # (L,), where they are made already
    ) -> None:
        self.kernel, self.codes, self.tops, self.raw = kernel, codes, tops, raw
        transform = kernel.levels if levels is None else lambda values, starts: levels
        self.operator: Intersection = intersection(codes, transform)
        self._how, self._seed, self.width = how, seed, width
        self._part = np.zeros(0, np.int64), sp.csr_matrix((0, codes.shape[1]))  # row numbers and their features
        with np.errstate(over="ignore"):
            check_range(self.operator.diag())

    @classmethod
    def of_rows(
        cls,
        kernel: HIK,
        X: Matrix,  # (n, d)
        levels: int | None,
        binning: str,
        weight: Array | None,  # (n,)
        seed: int,
    ) -> IntersectionGram:
        """Code the rows, and settle the kernel on the codes."""
        kernel.check_width(X.shape[1])
        split = split_signs(X)
        codes = encode(split, levels, binning, weight)
        raw = None if levels is None else raw_rows(X, np.random.default_rng(seed))
        return cls(
            kernel.resolved_on_codes(codes, weight), codes, column_max(split), (levels, binning), raw, X.shape[1], seed
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self.operator.shape

    @property
    def work(self) -> int:
        return self.operator.work

    def diag(self) -> Array:
        return self.operator.diag()

    def squared_parts(self) -> Array:
        return self.operator.squared_parts()

    def matmul(self, V: Array) -> Array:
        return self.operator.matmul(V)

    def matmul_rows(self, rows: Array, V: Array, at: Array | None = None) -> Array:
        return self.operator.matmul_rows(rows, V, at)

    def row_sums(self) -> tuple[Array, float]:
        return self.operator.row_sums()

    def tables(self, V: Array) -> PiecewiseTables:
        return self.operator.tables(V)

    def features(self, X: Matrix) -> sp.csr_matrix:
        return self.kernel.features(X)

    def rows(self, numbers: Array | None = None) -> sp.csr_matrix:
        return decode(self.codes, numbers)

    @cached_property
    def _features(self) -> sp.csr_matrix:
        """Those of the training rows, for comparisons one by one."""
        return self.kernel.features(self.rows())

    def _features_of(self, rows: Array) -> sp.csr_matrix:
        """Those of some training rows in any order. The last ones are kept: predictions ask for the same rows again."""
        if "_features" in self.__dict__:
            return self._features[rows]
        numbers, features = self._part
        if not np.array_equal(numbers, rows):
            some, places = np.unique(rows, return_inverse=True)
            features = self.kernel.features(self.rows(some))[places]
            self._part = rows.copy(), features
        return features

    def cross(self, X: Matrix, rows: Array | None = None) -> Array:
        return self.cross_and_own(X, rows)[0]

    def cross_and_own(self, X: Matrix, rows: Array | None = None) -> tuple[Array, Array]:
        features = self.features(X)
        own = self._features if rows is None else self._features_of(rows)
        return intersections(own, features), np.asarray(features.sum(axis=1)).ravel()

    def columns(self, rows: Array) -> Array:
        return intersections(self._features, self._features[rows])

    def to_dense(self) -> Array:
        """From pairs of rows, each once: a quarter of the time of products with unit vectors."""
        return self.block(np.arange(self.shape[0]))

    def extends_to(self, other: Gram) -> bool:
        """The first negative values bring new dimensions, and chosen levels are then chosen anew for all rows."""
        same = self.raw is None or (isinstance(other, IntersectionGram) and other.codes.shape[1] == self.codes.shape[1])
        return same and super().extends_to(other)

    @property
    def given(self) -> Array | None:
        return None if self.raw is None else self.raw.numbers

    def as_given(self, numbers: Array) -> Any:
        return self.rows(numbers) if self.raw is None else self.raw[numbers]

    def append(self, X: Matrix, weight: Array | None) -> Self:
        split, before = split_signs(X), self.shape[0]
        raw = self.raw
        if raw is not None:
            raw = raw_rows(X, np.random.default_rng(self._seed), raw, before)
        codes = append(self.codes, split, *self._how, weight)
        return self._with(codes, raw, tops=_larger(self.tops, column_max(split)))

    def subset(self, rows: Array) -> Self:
        """Levels and tops stay those of all rows."""
        return self._with(subset(self.codes, rows), None if self.raw is None else self.raw.subset(rows))

    def with_kernel(self, kernel: Kernel, weight: Array | None = None) -> Self:
        check_kind(self, kernel)
        assert isinstance(kernel, HIK)
        return self._with(self.codes, self.raw, kernel=kernel.resolved_on_codes(self.codes, weight))

    def with_levels(self, kernel: HIK, levels: Array) -> Self:
        return type(self)(kernel, self.codes, self.tops, self._how, self.raw, self.width, self._seed, levels)

    def space(self, kernel: Kernel, weight: Array | None = None) -> IntersectionSpace:
        check_kind(self, kernel)
        assert isinstance(kernel, HIK)
        few = self.shape[0] <= limits.SORTED_COLUMNS_UP_TO
        gram = self._with(sorted_columns(self.codes), self.raw) if few else self
        return IntersectionSpace(kernel, gram, weight)

    def _with(self, codes: Codes, raw: RawRows | None, *, kernel: HIK | None = None, tops: Array | None = None) -> Self:
        kernel, tops = self.kernel if kernel is None else kernel, self.tops if tops is None else tops
        return type(self)(kernel, codes, tops, self._how, raw, self.width, self._seed)


def _larger(a: Array, b: Array) -> Array:
    """The elementwise maximum; the shorter one counts as zero beyond its end."""
    out = np.zeros(max(a.size, b.size))
    out[: a.size] = a
    out[: b.size] = np.maximum(out[: b.size], b)
    return out
