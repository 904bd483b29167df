"""Predictive variance k** − k*ᵀK̃⁻¹k* (A (2), no noise added): exact, or an upper bound that costs less.

Every method is a lower bound of what the training examples explain, k*ᵀK̃⁻¹k*. Costs are for one new example and n
training examples with s non-zeros each; for other kernels than the intersection, read n · D wherever s stands alone.

    exact      k*ᵀK̃⁻¹k*                                     n² (a factor) or a solve
    fine       low rank, rest over the next eigenvalue       n · s
    diagonal   Σ_j (k*_j)² / D̃_jj, A (12)                    n · s
    lowrank    ‖Wᵀk*‖² from tables                           rank · s
    rough      ‖k*‖² from below over the first eigenvalue    s
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from saccade.inference.diagonal import diagonal
from saccade.inference.eigenvalue_bounds import fine, rough
from saccade.inference.low_rank import low_rank
from saccade.operators.base import Operator
from saccade.solvers.cg import solve_cg
from saccade.solvers.cholesky import Factor

Array = np.ndarray[Any, np.dtype[Any]]
METHODS = (None, "auto", "exact", "lowrank", "diagonal", "fine", "rough")
EXACT_UP_TO = 2048  # examples: exact takes a third of a millisecond there, and tables two seconds to make


class Explains(Protocol):
    """What a method knows of K̃."""

    def explained(
        self,
        k_star: Array,  # (n, b)
    ) -> Array:  # (b, 1) or (b, m): one column when all outputs share it
        """A lower bound of k*ᵀK̃⁻¹k*."""


@dataclass(frozen=True)
class Trained:
    """K̃ = K + N, and its factors where there are some."""

    K: Operator
    noise: Array  # (n, 1) or (n, m)
    factors: tuple[Factor, ...]  # one a column of the noise, or none
    tol: float
    max_iter: int

    def halves(
        self,
        k_star: Array,  # (n, b)
    ) -> tuple[list[Array], list[Array]]:  # (n, b) each, for every column of the noise
        """A and B with AᵀB + BᵀA = k*ᵀK̃⁻¹k*, all columns of k* with each other; from below where it is iterated."""
        if self.factors:
            found = [f.half_solve(k_star) for f in self.factors]
            return found, [0.5 * half for half in found]
        results = [
            solve_cg(self.K, noise[:, None], k_star, tol=self.tol, max_iter=self.max_iter) for noise in self.noise.T
        ]
        # 2k*ᵀx − xᵀK̃x is below k*ᵀK̃⁻¹k* for every x, and by the square of the error of x alone
        return [0.5 * (k_star + result.left) for result in results], [result.x for result in results]


@dataclass(frozen=True)
class Exact:
    """K̃ itself."""

    trained: Trained

    def explained(
        self,
        k_star: Array,  # (n, b)
    ) -> Array:  # (b, 1) or (b, m)
        """k*ᵀK̃⁻¹k*."""
        pairs = zip(*self.trained.halves(k_star), strict=True)
        return np.column_stack([2.0 * np.einsum("ij,ij->j", A, B) for A, B in pairs])

    def covariances(
        self,
        k_star: Array,  # (n, b)
    ) -> list[Array]:  # (b, b) a column of the noise
        """What the examples explain of the covariance, k*ᵀK̃⁻¹k* for all pairs of columns."""
        products = [A.T @ B for A, B in zip(*self.trained.halves(k_star), strict=True)]
        return [C + C.T for C in products]


def choose(method: str | None, tables: bool, n: int, factors: int) -> str | None:
    """The method that "auto" stands for; `tables` says whether the kernel has them."""
    if method != "auto":
        return method
    return "exact" if not tables or (factors and n <= EXACT_UP_TO) else "lowrank"


def explainer(
    method: str,
    trained: Trained,
    rank: int,
    rng: np.random.Generator,
) -> Explains:
    """The method, made ready for any number of examples."""
    K, noise = trained.K, trained.noise
    if method == "exact":
        return Exact(trained)
    if method == "diagonal":
        return diagonal(K, noise)
    if method == "rough":
        return rough(K, noise)
    low = low_rank(K, noise, rank, rng)
    return low if method == "lowrank" else fine(K, noise, low, rng)
