"""The direct solver: exact up to rounding, for small problems and for kernels without a fast product."""

import warnings
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.linalg import LinAlgWarning, cho_solve, solve_triangular
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpocon, dpotrf, dpotri, dtrtri

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput

FEW_DIGITS = 100 * float(np.finfo(np.float64).eps)  # reciprocal condition number that leaves two digits


@dataclass(frozen=True)
class Factor:
    """K + N = L Lᵀ."""

    L: Annotated[Array, "n, n"]  # lower

    @property
    def size(self) -> int:
        return len(self.L)

    def solve(self, B: Annotated[Array, "n, m"]) -> Array:
        """(K + N)⁻¹ B."""
        return np.asarray(cho_solve((self.L, True), B))

    def product(self, V: Annotated[Array, "n, m"]) -> Array:
        """L Lᵀ V, which is (K + N) V but for the rounding of the factor."""
        return np.asarray(dtrmm(1.0, self.L, dtrmm(1.0, self.L, V, lower=1, trans_a=1), lower=1))

    def half_solve(self, B: Annotated[Array, "n, m"]) -> Array:
        """L⁻¹ B, whose squared columns are bᵀ(K + N)⁻¹b."""
        return np.asarray(solve_triangular(self.L, B, lower=True))

    def inverse_diagonal(self) -> Annotated[Array, "n"]:
        """The diagonal of (K + N)⁻¹: squared columns of L⁻¹, half the work of the whole inverse."""
        inverse, _ = dtrtri(self.L, lower=1)
        return np.asarray(np.einsum("ij,ij->j", inverse, inverse))

    def inverse(self) -> Annotated[Array, "n, n"]:
        """(K + N)⁻¹, exactly symmetric."""
        inverse, _ = dpotri(self.L, lower=1)
        lower = np.tril(inverse)
        return np.asarray(lower + np.tril(lower, -1).T)

    def grown(
        self,
        beside: Annotated[Array, "n, b"],  # K between the old examples and the new ones
        corner: Annotated[Array, "b, b"],  # K + N of the new ones
    ) -> "Factor":
        """The factor with b more rows, in time n²b: L of [[K + N, B], [Bᵀ, C]] is [[L, 0], [(L⁻¹B)ᵀ, chol(C − …)]]."""
        n, b = beside.shape
        L = np.zeros((n + b, n + b), order="F")
        half = self.half_solve(beside)
        L[:n, :n], L[n:, :n] = self.L, half.T
        L[n:, n:] = factorise(corner - half.T @ half, np.zeros(b), overwrite=True).L
        return Factor(L)

    def log_determinant(self) -> float:
        """log |K + N|."""
        return float(2.0 * np.log(self.L.diagonal()).sum())


def factorise(
    K: Annotated[Array, "n, n"],
    noise: Annotated[Array, "n"],
    overwrite: bool = False,  # whether the factor may take the memory of K
) -> Factor:
    """The factor of K + diag(noise)."""
    A = K.T if K.flags.c_contiguous else K  # LAPACK's order of numbers: K is symmetric
    A = A if overwrite and A.flags.f_contiguous else np.array(A, np.float64, order="F")
    diagonal = np.einsum("ii->i", A)
    largest = float(np.abs(diagonal).max(initial=0.0))
    diagonal += noise
    with np.errstate(over="ignore", invalid="ignore"):
        finite = bool(np.isfinite(A.sum()))
    L, failed = dpotrf(A, lower=1, clean=1, overwrite_a=1) if finite and A.size else (A, not finite)
    if not failed:
        return Factor(L)
    enough = max(1e-12 * largest, 10.0 * float(noise.max()))
    raise InvalidInput(
        f"The kernel matrix with noise {noise.min():.3g} is not positive definite in float64 (its largest entry is "
        f"{largest:.3g}). Raise `noise` to {enough:.1g} or more, or drop repeated examples."
    )


def warn_if_ill_conditioned(
    factor: Factor,  # of K + N
    norm: float,  # the largest row sum of |K|
    noise: Annotated[Array, "n"],
) -> None:
    """Warn where rounding may change what is solved for by a percent or more."""
    largest = norm + float(noise.max(initial=0.0))  # row sum of |K + N|, or a little more
    rcond = float(dpocon(factor.L, largest, uplo="L")[0])
    if rcond < FEW_DIGITS:
        warnings.warn(
            f"The kernel matrix with noise {noise.min():.3g} is ill-conditioned (reciprocal condition number "
            f"{rcond:.1g}): rounding may change the answer by more than a percent. Raise `noise` to "
            f"{FEW_DIGITS * largest:.1g} or more, drop repeated examples, or scale the features to about [0, 1].",
            LinAlgWarning,
            stacklevel=2,
        )
