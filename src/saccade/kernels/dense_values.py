"""Steps that dense kernels share: values from distances, checks of distances, exact symmetry."""

from typing import Annotated

import numpy as np

from .._core import limits
from .._core.arrays import Array, PerRow
from .._core.chunks import batches
from .._core.errors import InvalidInput

VANISHED = 1e3  # t from which e^−t is 0 in float64, and with it any power of t times e^−t


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
