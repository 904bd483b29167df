"""Columns of different units made comparable: what `OneClassGP` does with tables of measurements."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np
import scipy.sparse as sp

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.fields import Numbers
from saccade.estimators.part import Part, part_record

Scale = Literal["auto", "columns"] | None
SCALES: tuple[Scale, ...] = ("auto", "columns", None)
MANY = 50  # columns: histograms, words, pixels and deep features have as many, most tables of measurements have not
FEW_COUNT = 0.4  # in wide rows, units differ if fewer than this share of the columns make up the differences of rows
EQUAL = 1e-6  # by which the sums of normalised histograms differ at most
CONSTANT = 1e-12  # of the largest value of a column: a smaller spread is rounding


@dataclass(frozen=True, eq=False)
class ColumnScales(Part):
    """Each column as two: how far x lies above the least and below the greatest training value, in its own unit.

    With z = x / spread, the intersection of both is min(z, z') − low + high − max(z, z') = (high − low) − |z − z'|: as
    similar as near, wherever in the range, and no column counts more than another. Beyond the range a part is negative,
    and HIK lets it share nothing with what is known.
    """

    spread: Annotated[Array, "d"]  # standard deviations, positive
    low: Annotated[Array, "d"]  # the least training values, divided by the spread
    high: Annotated[Array, "d"]  # the greatest
    optional = True

    def __post_init__(self) -> None:
        if (self.spread <= 0).any():
            raise ValueError("columns cannot be scaled by these numbers")

    @classmethod
    def of(cls, X: Any) -> Self:
        """From training examples. Where all values of a column are the same, its unit is their size, or 1 for zeros."""
        X = _dense(X)
        spread = spreads(X)
        largest = np.abs(X).max(axis=0)
        unit = np.where(spread > CONSTANT * largest, spread, np.where(largest > 0, largest, 1.0))
        low, high = X.min(axis=0) / unit, X.max(axis=0) / unit
        some = 0.0 if (high > low).any() else 1.0  # equal rows have a range too, or nothing would be like anything
        return cls(unit, low - some, high + some)

    def __call__(self, X: Any) -> Annotated[Array, "n, 2d"]:
        with np.errstate(over="ignore", invalid="ignore"):
            z = _dense(X) / self.spread
            found = np.hstack([z - self.low, self.high - z])
        if not np.isfinite(found).all():
            raise InvalidInput("Values are too large for float64 once columns are scaled. Scale the features first.")
        return found


def spreads(X: Annotated[Array, "n, d"]) -> Annotated[Array, "d"]:
    """Standard deviations of the columns, of any finite numbers."""
    largest = np.abs(X).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    return np.asarray((X / unit).std(axis=0) * unit)  # from −1 to 1: no sum or square overflows


def have_one_unit(X: Annotated[Any, "n, d"]) -> bool:
    """Whether the columns can be compared as they are, like those of histograms and pictures.

    Rows that are not negative and have equal sums are histograms: theirs can. Otherwise fewer than 50 columns are those
    of a table: they cannot. Wide rows can if they are sparse, or if many columns count: (Σ s)² / Σ s² of the standard
    deviations s is 0.4 of the number of columns that vary, or more.

    >>> have_one_unit(np.array([[0.2, 0.8], [0.5, 0.5]])), have_one_unit(np.array([[0.2, 300.0], [0.5, 500.0]]))
    (True, False)
    """
    if X.min() >= 0 and X.shape[0] > 1:
        with np.errstate(over="ignore", invalid="ignore"):  # sums beyond float64 are not equal
            sums = np.asarray(X.sum(axis=1), np.float64).ravel()
            if sums.max() < np.inf and np.ptp(sums) <= EQUAL * sums.max():
                return True
    if X.shape[1] < MANY:
        return False
    if sp.issparse(X):
        return True
    X = _dense(X)
    spread, largest = spreads(X), np.abs(X).max(axis=0)
    spread = spread[spread > CONSTANT * largest]
    share = spread / spread.max(initial=1e-300)
    return bool(share.sum() ** 2 >= FEW_COUNT * share.size * np.square(share).sum())


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X, np.float64)


ColumnScales.record = part_record(ColumnScales, dict.fromkeys(("spread", "low", "high"), Numbers("d")))
