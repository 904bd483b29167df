"""Variance from eigenvalues: all that is not looked at is divided by an upper bound of the eigenvalues left.

With W and Q of a low rank and r* = k* − K̃W Wᵀk*, eliminating the span of Q from K̃ (a Schur complement) gives

    k*ᵀK̃⁻¹k* = ‖Wᵀk*‖² + r*ᵀS⁺r* ≥ ‖Wᵀk*‖² + ‖r*‖² / τ,   S ≤ PK̃P,   P = I − QQᵀ,   τ ≥ λ_max(PK̃P),

for any Q: no column of it need be an eigenvector, and Qᵀr* = 0. With eigenvectors, τ is λ_{r+1} and ‖r*‖² is
‖k*‖² − ‖Qᵀk*‖².
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from saccade._core.arrays import Array
from saccade.inference.approximations.base import VarianceApproximation
from saccade.inference.approximations.low_rank import LowRank
from saccade.operators.base import Operator
from saccade.solvers.lanczos import lanczos

PROBES = 16
DEGREE = 24  # of the polynomial: τ is then some 2 % above the eigenvalue
LUCK = 4.0  # to the power of PROBES: one over the probability that τ is too small, 2e-10


@dataclass(frozen=True)
class Fine(VarianceApproximation):
    """A low rank, and the rest over the next eigenvalue."""

    low: LowRank
    KW: Annotated[Array, "n, r"]  # K̃W
    tau: float

    def explained(self, k_star: Annotated[Array, "n, b"]) -> Annotated[Array, "b, 1"]:
        """‖Wᵀk*‖² + ‖k* − K̃W Wᵀk*‖² / τ, a lower bound of k*ᵀK̃⁻¹k*."""
        along = self.low.W.T @ k_star
        rest = k_star - self.KW @ along
        return np.asarray((np.square(along).sum(axis=0) + np.square(rest).sum(axis=0) / self.tau)[:, None])


def fine(K: Operator, noise: Annotated[Array, "n, 1 | n, m"], low: LowRank, rng: np.random.Generator) -> Fine:
    """The fine bound on top of a low rank."""
    largest, Q = noise.max(axis=1, keepdims=True), low.Q

    def beside(V: Array) -> Array:  # PK̃P V
        V = V - Q @ (Q.T @ V)
        V = K.matmul(V) + largest * V
        return np.asarray(V - Q @ (Q.T @ V))

    KW = low.KW + largest * low.W
    # the same up to rounding, but for k* − K̃WWᵀk* without any part in the span of Q
    KW += Q @ (np.linalg.inv((Q.T @ low.W).T) - Q.T @ KW)
    # where Q spans nearly everything, what is left is rounding and must not be divided by next to nothing
    floor = max(float(noise.min()), 1e-10 * float(K.diag().sum()))
    return Fine(low, KW, max(floor, largest_eigenvalue(beside, K.shape[0], rng)))


def largest_eigenvalue(
    product: Callable[[Array], Array],  # V (n, m) -> A V, A positive semi-definite
    n: int,
    rng: np.random.Generator,
) -> float:
    """An upper bound of λ_max(A), too small with probability 2e-10 at most: LUCK^−PROBES.

    `above` with b a Ritz value from other random numbers.
    """
    start = lanczos(product, rng.standard_normal((n, 2)), 12)
    b = max(
        float(eigvalsh_tridiagonal(start.diagonal[:k, j], start.beside[: k - 1, j])[-1])
        for j, k in enumerate(start.steps)
    )
    return above(product, b, n, rng) if b > 0.0 else float(np.finfo(np.float64).tiny)


def above(
    product: Callable[[Array], Array],  # V (n, m) -> A V, A positive semi-definite
    b: float,  # positive, near λ_max(A) or below it
    n: int,
    rng: np.random.Generator,
    probes: int = PROBES,
) -> float:
    """An upper bound of λ_max(A), too small with probability LUCK^−probes at most, whatever A and b are.

    For any matrix B and independent standard normal ω, ‖B‖ ≤ α √(2/π) max_i ‖Bω_i‖ except with probability α^−probes
    (Halko, Martinsson and Tropp 2011, lemma 4.1). B is the Chebyshev polynomial of A on [0, b]: beyond b it grows so
    fast that its norm tells λ_max to a few percent.
    """
    before = rng.standard_normal((n, probes))
    V = (2.0 / b) * product(before) - before
    for _ in range(DEGREE - 1):
        before, V = V, (4.0 / b) * product(V) - 2.0 * V - before
    norm = LUCK * np.sqrt(2.0 / np.pi) * float(np.sqrt(np.square(V).sum(axis=0)).max())
    return float(b * (1.0 + np.cosh(np.arccosh(max(norm, 1.0)) / DEGREE)) / 2.0) * (1.0 + 1e-9)
