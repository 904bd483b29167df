"""The kernels that `kernel="auto"` compares: HIK, and the generalised RBF of L1 and of squared L2 distances.

Columns as they are suit pixels and histograms. Columns over their standard deviations suit tables, whose columns have
units of their own; both kinds see differences only, so the offset of a column does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse as sp

from saccade.kernels.base import Array, Kernel, Matrix, PerRow, Rows, shares
from saccade.kernels.distances import decay, scaled_rows, squared_euclidean, symmetric
from saccade.kernels.generalized import GeneralizedRBF, mean_distance
from saccade.kernels.intersection import HIK
from saccade.kernels.stationary import RBF
from saccade.kernels.transforms import Power, Weights

__all__ = ["candidates"]

FACTORS = (1.0, 0.25, 4.0, 16.0)  # of the β that GeneralizedRBF has for "auto"
CONSTANT = 1e-9  # deviation of a column, as a share of its size, below which rounding makes it


class Family(NamedTuple):
    """Kernels exp(−β D)."""

    squared: Annotated[Array, "n, n"]  # D
    make: Callable[[float], Kernel]  # from β


def candidates(X: Rows, weight: PerRow | None = None) -> Iterator[tuple[Kernel, Array, float]]:
    """Each kernel, its matrix, and the log of the factor of its β. The first serves where nothing can be learned."""
    for family in _families(X, weight):
        typical = 0.5 / (mean_distance(family.squared, X, weight) or 0.5)
        for factor in FACTORS:
            beta = factor * typical
            yield family.make(beta), symmetric(decay(family.squared.copy(), beta), 1.0), float(np.log(factor))
    for hik in (HIK(), HIK(Power(0.5))):
        resolved = hik.resolved(X, weight)
        yield hik, resolved(X), 0.0


def _families(X: Matrix, weight: Array | None) -> Iterator[Family]:
    """L1 and L2, on columns over their deviations and on columns as they are; L1 on the former is first."""
    deviation = deviations(X, weight)
    for w in (1.0 / deviation, None):
        base = HIK(None if w is None else Weights(w), scale=1.0)
        yield Family(base.squared_distances(X)[0], lambda beta, base=base: GeneralizedRBF(base, beta))  # type: ignore[misc]
    for scales in (deviation, np.ones(1)):
        rows, _ = scaled_rows(X, None, scales)
        yield Family(squared_euclidean(rows, None), lambda beta, scales=scales: _rbf(scales, beta))  # type: ignore[misc]


def _rbf(scales: Array, beta: float) -> RBF:
    lengths = scales / np.sqrt(2.0 * beta)
    return RBF(float(lengths[0]) if lengths.size == 1 else lengths)


def deviations(X: Rows, weight: PerRow | None = None) -> Annotated[Array, "d"]:
    """The standard deviation of each column; of one without any, its size, or 1."""
    share = shares(X.shape[0], weight)
    mean = np.asarray(share @ X).ravel()
    if sp.issparse(X):
        size = np.asarray(abs(X).max(axis=0).todense()).ravel()
        variance = np.asarray(share @ sp.csr_matrix(X).power(2)).ravel() - mean**2
    else:
        size, variance = np.abs(X).max(axis=0), share @ (X - mean) ** 2
    found = np.sqrt(np.maximum(variance, 0.0))
    return np.asarray(np.where(found > CONSTANT * size, found, np.where(size > 0, size, 1.0)))
