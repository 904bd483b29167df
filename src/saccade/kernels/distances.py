"""Euclidean distances of scaled rows with all their digits, and what dense kernels make of distances."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.extmath import row_norms

from saccade._core import limits
from saccade._core.checks import canonical
from saccade._core.chunks import batches
from saccade._core.errors import InvalidInput
from saccade.kernels.base import Array, Matrix, PerRow, Rows

VANISHED = 1e3  # t from which e^−t is 0 in float64, and with it any power of t times e^−t
NEAR = 1e-6  # share of ‖a‖² + ‖b‖² below which ‖a−b‖² has lost too many digits for a square root


def scaled_rows(
    X: Rows, Z: Annotated[Matrix, "m, d"] | None, scales: Annotated[Array, "1 | d"]
) -> tuple[Matrix, Matrix | None]:
    """(X − centre) / scales and the same of Z, sparse where they are.

    ‖a−b‖² = ‖a‖² + ‖b‖² − 2aᵀb cancels far from the origin; moving there changes no distance. A sparse matrix would
    fill up, so it stays where it is.
    """
    B = X if Z is None else Z
    with np.errstate(over="ignore"):
        centre = None if sp.issparse(X) or sp.issparse(B) else B.mean(axis=0)
    return _scaled(X, centre, scales), None if Z is None else _scaled(Z, centre, scales)


def _scaled(X: Rows, centre: Annotated[Array, "d"] | None, scales: Annotated[Array, "1 | d"]) -> Matrix:
    with np.errstate(over="ignore", invalid="ignore"):
        if not sp.issparse(X):
            return check_distances((X if centre is None else X - centre) / scales)
        scaled = canonical(X).astype(np.float64)  # a copy
        scaled.data /= np.broadcast_to(scales, X.shape[1])[scaled.indices]
    check_distances(scaled.data)
    return scaled


def squared_euclidean(A: Rows, B: Annotated[Matrix, "m, d"] | None) -> Annotated[Array, "n, m"]:
    """‖a − b‖² for all pairs of rows, never NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        squared: Array = euclidean_distances(A, B, squared=True)
    check_not_nan(squared)
    return squared


def refined(
    squared: Annotated[Array, "n, m"],  # overwritten
    A: Rows,
    B: Annotated[Matrix, "m, d"] | None,
    numbers_at_once: int = limits.DIFFERENCES_AT_ONCE,
) -> Array:
    """Squared distances; from the differences of the rows where they are near, so that √ is right too.

    Rounding of 1e-16 in the square would be 1e-8 in the distance of two equal rows.
    """
    other = A if B is None else B
    if sp.issparse(A) or sp.issparse(other):
        A, other = sp.csr_matrix(A), sp.csr_matrix(other)
    norms = row_norms(A, squared=True)[:, None] + row_norms(other, squared=True)[None, :]
    norms *= NEAR
    rows, columns = np.nonzero(squared < norms)
    at_once = max(1, numbers_at_once // max(1, A.shape[1]))
    for first in range(0, rows.size, at_once):
        i, j = rows[first : first + at_once], columns[first : first + at_once]
        squared[i, j] = row_norms(A[i] - other[j], squared=True)
    return squared


def decay(distance: Annotated[Array, "n, m: overwritten"], rate: float) -> Array:
    """exp(−rate · distance), in place; rounding below zero is clipped, NaN is never passed on."""
    check_not_nan(distance)
    np.maximum(distance, 0.0, out=distance)
    with np.errstate(over="ignore"):  # farther than float64 can say: exp(−inf) = 0
        distance *= -rate
    return np.exp(distance, out=distance)


def decay_gradient(
    distance: Annotated[Array, "n, n: overwritten"], rate: float, A: Annotated[Array, "n, n"]
) -> dict[str, Array]:
    """The derivative of Σ_ij A_ij exp(−rate · distance_ij) with respect to log rate, where `gamma` is the rate."""
    check_not_nan(distance)
    with np.errstate(over="ignore"):
        distance *= rate
    np.clip(distance, 0.0, VANISHED, out=distance)
    return {"gamma": np.asarray(-np.einsum("ij,ij,ij->", A, distance, np.exp(-distance)))}


def check_not_nan(distance: Array) -> None:
    """Complain of NaN, without a mask for a matrix that has none."""
    if distance.size and np.isnan(distance.min()):
        check_distances(distance)


def check_distances(values: Array) -> Array:
    """The values, or an error where one is not finite."""
    if not np.isfinite(values).all():
        raise InvalidInput(
            "A distance between rows must be finite, got nan or inf. The values overflow float64: divide the data by "
            "its largest value and adapt the scale of the kernel."
        )
    return values


def symmetric(K: Annotated[Array, "n, n: overwritten"], diagonal: PerRow | float) -> Array:
    """K with the upper triangle copied onto the lower and the diagonal set, in place.

    Both triangles hold the same sums, but BLAS and SIMD loops may round them differently.
    """
    for rows in batches(K.shape[0], limits.MIRRORED_ROWS):
        K[rows.stop :, rows] = K[rows, rows.stop :].T
        block = K[rows, rows]
        lower = np.tril_indices(block.shape[0], -1)
        block[lower] = block.T[lower]
    np.fill_diagonal(K, diagonal)
    return K
