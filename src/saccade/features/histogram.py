"""Sparse histograms: the columns that are not zero, ascending, and their counts."""

from typing import Annotated

import numpy as np

from saccade._core.arrays import Array


def counted(columns: Annotated[Array, "m"], weights: Annotated[Array, "m"]) -> tuple[Array, Array]:
    """The distinct columns, ascending, and the sum of the weights of each."""
    distinct, inverse = np.unique(columns, return_inverse=True)
    sums = np.bincount(inverse, weights, minlength=len(distinct))
    return distinct[sums > 0], sums[sums > 0]


def normed(columns: Array, counts: Array, norm: str | None) -> tuple[Array, Array]:
    """With "l1", the counts divided by their sum, which is the vector's intersection with itself."""
    return columns, counts / counts.sum() if norm == "l1" and len(counts) else counts


def nonzero(vector: Annotated[Array, "d"]) -> tuple[Array, Array]:
    """The columns that are not zero, and their values."""
    columns = np.flatnonzero(vector)
    return columns, vector[columns]
