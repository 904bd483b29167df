"""The diagonal approximation of A §5: K̃⁻¹ replaced by the inverse of a diagonal matrix above K̃."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from saccade.operators.base import Dense, Operator

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Diagonal:
    """D̃⁻¹, one column for each column of the noise."""

    inverse: Array  # (n, 1) or (n, m)

    def explained(
        self,
        k_star: Array,  # (n, b)
    ) -> Array:  # (b, 1) or (b, m)
        """Σ_j (k*_j)² / D̃_jj, A (12): a lower bound of k*ᵀK̃⁻¹k*."""
        return np.asarray(np.square(k_star).T @ self.inverse)


def diagonal(
    K: Operator,
    noise: Array,  # (n, 1) or (n, m)
) -> Diagonal:
    """A (12): D̃_jj = Σ_i |K̃_ij|, one product for the intersection kernel, which is never negative.

    D̃ − K̃ is diagonally dominant, hence positive semi-definite, and D̃⁻¹ is below K̃⁻¹.
    """
    sums = np.abs(K.K).sum(axis=1)[:, None] if isinstance(K, Dense) else K.matmul(np.ones((K.shape[0], 1)))
    return Diagonal(1.0 / (sums + noise))
