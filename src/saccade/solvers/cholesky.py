"""The direct solver: exact up to rounding, for small problems and for kernels without a fast product."""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgWarning, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpocon, dpotri, dtrtri

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput

FEW_DIGITS = 100 * float(np.finfo(np.float64).eps)  # reciprocal condition number that leaves two digits


@dataclass(frozen=True)
class Factor:
    """K + N = L Lᵀ."""

    L: Array  # (n, n) lower

    def solve(
        self,
        B: Array,  # (n, m)
    ) -> Array:
        """(K + N)⁻¹ B."""
        return np.asarray(cho_solve((self.L, True), B))

    def half_solve(
        self,
        B: Array,  # (n, m)
    ) -> Array:
        """L⁻¹ B, whose squared columns are bᵀ(K + N)⁻¹b."""
        return np.asarray(solve_triangular(self.L, B, lower=True))

    def inverse_diagonal(self) -> Array:  # (n,)
        """The diagonal of (K + N)⁻¹: squared columns of L⁻¹, half the work of the whole inverse."""
        inverse, _ = dtrtri(self.L, lower=1)
        return np.asarray(np.einsum("ij,ij->j", inverse, inverse))

    def inverse(self) -> Array:  # (n, n)
        """(K + N)⁻¹, exactly symmetric."""
        inverse, _ = dpotri(self.L, lower=1)
        lower = np.tril(inverse)
        return np.asarray(lower + np.tril(lower, -1).T)

    def log_determinant(self) -> float:
        """log |K + N|."""
        return float(2.0 * np.log(self.L.diagonal()).sum())


def factorise(
    K: Array,  # (n, n)
    noise: Array,  # (n,)
) -> Factor:
    """The factor of K + diag(noise)."""
    A = K.copy()
    A[np.diag_indices_from(A)] += noise
    try:
        return Factor(cholesky(A, lower=True, overwrite_a=True))
    except np.linalg.LinAlgError:
        largest = float(np.abs(K).max(initial=0.0))
        enough = max(1e-12 * largest, 10.0 * float(noise.max()))
        raise InvalidInput(
            f"The kernel matrix with noise {noise.min():.3g} is not positive definite in float64 "
            f"(its largest entry is {largest:.3g}). Raise `noise` to {enough:.1g} or more, "
            "or drop repeated examples."
        ) from None


def warn_if_ill_conditioned(
    factor: Factor,  # of K + N
    K: Array,  # (n, n)
    noise: Array,  # (n,)
) -> None:
    """Warn where rounding may change what is solved for by a percent or more."""
    largest = float((np.abs(K).sum(axis=1) + noise).max(initial=0.0))
    rcond = float(dpocon(factor.L, largest, uplo="L")[0])
    if rcond < FEW_DIGITS:
        warnings.warn(
            f"The kernel matrix with noise {noise.min():.3g} is ill-conditioned (reciprocal condition number "
            f"{rcond:.1g}): rounding may change the answer by more than a percent. Raise `noise` to "
            f"{FEW_DIGITS * largest:.1g} or more, drop repeated examples, or scale the features to about [0, 1].",
            LinAlgWarning,
            stacklevel=2,
        )
