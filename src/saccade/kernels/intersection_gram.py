"""The matrix of an intersection kernel by codes and levels: products and tables in the time of reading the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.checks import check_range
from saccade.kernels.base import Array, Kernel, Matrix, PerRow, Rows, shares
from saccade.kernels.distances import symmetric
from saccade.kernels.gram import Gram, TabledGram, check_kind
from saccade.kernels.intersection import HIK
from saccade.kernels.intersection_space import IntersectionSpace
from saccade.kernels.raw_rows import RawRows, raw_rows
from saccade.kernels.slope import KernelSlope, MatrixSlope, VectorSlope
from saccade.kernels.transform import Transform
from saccade.operators.append import append
from saccade.operators.block import intersections
from saccade.operators.codes import Codes, SortedColumns, column_max, encode, split_signs
from saccade.operators.decode import decode
from saccade.operators.intersection import intersection
from saccade.operators.intersection_base import Intersection
from saccade.operators.norms import NormTables, all_norm_tables
from saccade.operators.subset import sorted_columns, subset


class Coding(NamedTuple):
    """How values become codes, also those of rows that come later."""

    levels: int | None = None  # per dimension; None for all values
    binning: str = "quantile"
    seed: int = 0  # of the rows that are kept as they came


Operate: TypeAlias = Callable[[Codes, Array], Intersection]  # (codes, levels) -> their products


def _answered(name: str) -> Any:
    """What the operator answers, without a step between."""
    return property(attrgetter(f"_operator.{name}"))


@dataclass(eq=False)
class IntersectionGram(TabledGram):
    """K of codes, which every kernel on the same rows shares; another kernel changes the levels alone."""

    kernel: HIK
    _operator: Intersection  # with the levels of the kernel
    tops: Annotated[Array, "D"]
    width: int  # features of a row
    coding: Coding
    raw: RawRows | None = None
    operate: Operate = intersection  # where an engine has its own place for codes, or its own products
    _part: tuple[Array | None, Any] = field(default=(None, None), init=False)  # row numbers and their features

    def __post_init__(self) -> None:
        with np.errstate(over="ignore"):
            check_range(self._operator.sums[:, 0])

    codes, shape, work = _answered("codes"), _answered("shape"), _answered("work")
    diag, squared_parts, row_sums = _answered("diag"), _answered("squared_parts"), _answered("row_sums")
    matmul, matmul_rows, tables = _answered("matmul"), _answered("matmul_rows"), _answered("tables")
    level_sums = _answered("level_sums")

    def features(self, X: Matrix) -> sp.csr_matrix:
        return self.kernel.features(X)

    def norm_tables(self, Ws: Sequence[Array]) -> tuple[NormTables, ...]:
        return all_norm_tables(self._operator, Ws)

    def level_gradient(self, slope: KernelSlope) -> Array:
        if isinstance(slope, VectorSlope):
            both = self._operator.level_gradient(slope.left, slope.right)
            return both - self._operator.level_gradient(slope.squares) if slope.squares.size else both
        assert isinstance(slope, MatrixSlope)  # a kernel of levels has no centred part
        return self._operator.matrix_gradient(slope.A)

    def level_counts(self, weight: Array) -> Array:
        counts = self.level_sums(weight)
        if isinstance(self.codes, SortedColumns):  # tables of exact codes have a zero before each dimension's levels
            counts = np.insert(counts, self.codes.starts[:-1], 0.0)
        return np.asarray(counts)

    def rows(self, numbers: Array) -> sp.csr_matrix:
        return decode(self.codes, numbers)

    def all_rows(self) -> sp.csr_matrix:
        return decode(self.codes)

    @cached_property
    def _features(self) -> sp.csr_matrix:
        """Those of the training rows, for comparisons one by one."""
        return self.kernel.features(self.all_rows())

    def _features_of(self, rows: Array) -> sp.csr_matrix:
        """Those of some training rows in any order. The last ones are kept: predictions ask for the same rows again."""
        if "_features" in self.__dict__:
            return self._features[rows]
        numbers, features = self._part
        if numbers is None or not np.array_equal(numbers, rows):
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
        rows = self.kernel.features(decode(self.codes))
        return symmetric(intersections(rows), np.asarray(rows.sum(axis=1)).ravel())

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
        raw, (levels, binning, seed) = self.raw, self.coding
        if raw is not None:
            raw = raw_rows(X, np.random.default_rng(seed), raw, before)
        codes = append(self.codes, split, levels, binning, weight)
        return self._on(codes, raw=raw, tops=_larger(self.tops, column_max(split)))

    def subset(self, rows: Array) -> Self:
        """Levels and tops stay those of all rows."""
        return self._on(subset(self.codes, rows), raw=None if self.raw is None else self.raw.subset(rows))

    def with_kernel(self, kernel: Kernel, weight: Array | None = None) -> Self:
        check_kind(self, kernel)
        assert isinstance(kernel, HIK)
        return self.with_levels(*resolved_on_codes(kernel, self._operator, weight))

    def with_levels(
        self, kernel: Annotated[HIK, "settled"], levels: Annotated[Array, "L: kernel.levels of the codes"]
    ) -> Self:
        """The rows with another kernel, whose levels are made already."""
        return replace(self, kernel=kernel, _operator=self._operator.with_levels(levels))

    def space(self, kernel: Kernel, weight: Array | None = None) -> IntersectionSpace:
        check_kind(self, kernel)
        assert isinstance(kernel, HIK)
        few = self.shape[0] <= limits.SORTED_COLUMNS_UP_TO
        return IntersectionSpace(kernel, self._on(sorted_columns(self.codes)) if few else self, weight)

    def _on(self, codes: Codes, **changes: Any) -> Self:
        """The kernel on other codes."""
        return replace(self, _operator=self.operate(codes, self.kernel.levels(codes)), **changes)


def intersection_gram(
    kernel: HIK,  # not settled yet
    X: Rows,
    weight: PerRow | None,
    coding: Coding,
    operate: Operate = intersection,
) -> IntersectionGram:
    """Code the rows, and settle the kernel on the codes."""
    kernel.check_width(X.shape[1])
    split, (levels, binning, seed) = split_signs(X), coding
    codes = encode(split, levels, binning, weight)
    raw = None if levels is None else raw_rows(X, np.random.default_rng(seed))
    plain = operate(codes, codes.values)
    kernel, scaled = resolved_on_codes(kernel, plain, weight)
    return IntersectionGram(kernel, plain.with_levels(scaled), column_max(split), X.shape[1], coding, raw, operate)


def resolved_on_codes(
    kernel: HIK, K: Annotated[Intersection, "of the codes, with any levels"], weight: PerRow | None = None
) -> tuple[HIK, Array]:  # and (L,)
    """As `kernel.resolved`, from coded data, and the levels, which are transformed once and then scaled."""
    levels = K.codes.values

    def mean(steps: list[Transform]) -> float:
        nonlocal levels
        levels = HIK(steps, scale=1.0).levels(K.codes)
        return float(K.level_sums(shares(K.shape[0], weight)) @ levels)

    resolved = kernel.scaled(mean)
    if not isinstance(kernel.scale, str):
        return resolved, resolved.levels(K.codes)
    with np.errstate(over="ignore"):  # the matrix complains
        return resolved, np.asarray(levels * resolved.check_scale())  # `mean` saw all transforms last


def _larger(a: Array, b: Array) -> Array:
    """The elementwise maximum; the shorter one counts as zero beyond its end."""
    out = np.zeros(max(a.size, b.size))
    out[: a.size] = a
    out[: b.size] = np.maximum(out[: b.size], b)
    return out
