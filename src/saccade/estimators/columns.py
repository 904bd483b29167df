"""Columns of different units made comparable: what `OneClassGP` does with tables of measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput

Scale = Literal["auto", "columns"] | None
SCALES: tuple[Scale, ...] = ("auto", "columns", None)
MANY = 50  # columns from which on some may spread little, as pixels at the border of pictures do
UNEQUAL = 10.0  # times the smallest spread: in a table with fewer columns, the largest has another unit
FEW_COUNT = 0.4  # in wider rows, units differ if fewer than this share of the columns make up the differences of rows
CONSTANT = 1e-12  # of the largest value of a column: a smaller spread is rounding


@dataclass(frozen=True, eq=False)
class Columns:
    """Each column as two: how far x lies above the least and below the greatest training value, in its own unit.

    With z = x / spread, the intersection of both is min(z, z') − low + high − max(z, z') = (high − low) − |z − z'|: as
    similar as near, wherever in the range, and no column counts more than another. Beyond the range a part is negative,
    and HIK lets it share nothing with what is known.
    """

    spread: Array  # (d,): standard deviations, positive
    low: Array  # (d,): the least training values, divided by the spread
    high: Array  # (d,): the greatest

    @classmethod
    def of(cls, X: Any) -> Columns:
        """From training examples. Where all values of a column are the same, its unit is their size, or 1 for zeros."""
        X = _dense(X)
        spread = spreads(X)
        largest = np.abs(X).max(axis=0)
        unit = np.where(spread > CONSTANT * largest, spread, np.where(largest > 0, largest, 1.0))
        return cls(unit, X.min(axis=0) / unit, X.max(axis=0) / unit)

    def __call__(self, X: Any) -> Array:  # (n, 2d)
        with np.errstate(over="ignore", invalid="ignore"):
            z = _dense(X) / self.spread
            found = np.hstack([z - self.low, self.high - z])
        if not np.isfinite(found).all():
            raise InvalidInput("Values are too large for float64 once columns are scaled. Scale the features first.")
        return found


def spreads(
    X: Array,  # (n, d)
) -> Array:  # (d,)
    """Standard deviations of the columns, of any finite numbers."""
    largest = np.abs(X).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    return np.asarray((X / unit).std(axis=0) * unit)  # from −1 to 1: no sum or square overflows


def have_one_unit(
    X: Any,  # (n, d)
) -> bool:
    """Whether the columns can be compared as they are, like those of histograms and pictures.

    Sparse rows can. In dense ones with fewer than 50 columns no column may spread ten times as much as another; in
    wider ones, the spreads s of d columns have (Σ s)² / Σ s², the number of columns that count, of 0.4 d or more.
    Columns that do not vary tell nothing.

    >>> have_one_unit(np.array([[0.0, 3.0], [1.0, 5.0]])), have_one_unit(np.array([[0.0, 300.0], [1.0, 500.0]]))
    (True, False)
    """
    if sp.issparse(X):
        return True
    X = _dense(X)
    spread = spreads(X)
    spread = spread[spread > CONSTANT * np.abs(X).max(axis=0)]
    if spread.size < 2:
        return True
    share = spread / spread.max()
    if X.shape[1] < MANY:
        return bool(share.min() * UNEQUAL >= 1.0)
    return bool(share.sum() ** 2 >= FEW_COUNT * share.size * np.square(share).sum())


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X, np.float64)
