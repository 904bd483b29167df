"""Every tolerance of the tests, in one place, by dtype.

``rtol`` and ``atol`` bound the rounding of sums of a few thousand terms of order one; ``psd`` is
how far below zero rounding may push the smallest eigenvalue, as a share of the largest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Tolerance(NamedTuple):
    """What rounding alone may change."""

    rtol: float
    atol: float
    psd: float


TOL: dict[type[np.floating[Any]], Tolerance] = {
    np.float32: Tolerance(rtol=1e-4, atol=1e-5, psd=1e-5),
    np.float64: Tolerance(rtol=1e-10, atol=1e-12, psd=1e-12),
}


def assert_close(
    actual: ArrayLike,
    expected: ArrayLike,
    dtype: type[np.floating[Any]] = np.float64,
) -> None:
    """Equal up to the rounding of the dtype."""
    tol = TOL[dtype]
    np.testing.assert_allclose(actual, expected, rtol=tol.rtol, atol=tol.atol)


def assert_positive_semidefinite(
    K: np.ndarray[Any, np.dtype[Any]],  # (n, n)
    dtype: type[np.floating[Any]] = np.float64,
) -> None:
    """No eigenvalue below zero but for the rounding of the dtype."""
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] >= -TOL[dtype].psd * max(eigenvalues[-1], 0.0), eigenvalues
