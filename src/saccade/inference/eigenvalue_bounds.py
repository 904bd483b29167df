"""Variance from eigenvalues: all that is not looked at is divided by an upper bound of the eigenvalues left.

Rough: k*ᵀK̃⁻¹k* ≥ ‖k*‖² / λ₁. For the intersection kernel ‖k*‖² is bounded from below in constant time: kernel values of
one dimension are never negative, so ‖Σ_d k_d‖² ≥ Σ_d ‖k_d‖², and Σ_i min(x_id, x*_d)² is an intersection of squares.

Fine: with W and Q of a low rank and r* = k* − K̃W Wᵀk*, eliminating the span of Q from K̃ (a Schur complement) gives

    k*ᵀK̃⁻¹k* = ‖Wᵀk*‖² + r*ᵀS⁺r* ≥ ‖Wᵀk*‖² + ‖r*‖² / τ,   S ≤ PK̃P,   P = I − QQᵀ,   τ ≥ λ_max(PK̃P),

for any Q: no column of it need be an eigenvector, and Qᵀr* = 0. With eigenvectors, τ is λ_{r+1} and ‖r*‖² is
‖k*‖² − ‖Qᵀk*‖².
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigvalsh_tridiagonal

from saccade.inference.base import Explains
from saccade.inference.low_rank import LowRank
from saccade.operators.base import Dense, Operator
from saccade.operators.intersection import Intersection, intersection
from saccade.operators.norms import kept_nodes
from saccade.operators.tables import PiecewiseTables
from saccade.solvers.lanczos import lanczos

Array = np.ndarray[Any, np.dtype[Any]]
PROBES = 16
DEGREE = 24  # of the polynomial: τ is then some 2 % above the eigenvalue
LUCK = 4.0  # to the power of PROBES: one over the probability that τ is too small, 2e-10


@dataclass(frozen=True)
class Fine(Explains):
    """A low rank, and the rest over the next eigenvalue."""

    low: LowRank
    KW: Array  # (n, r): K̃W
    tau: float

    def explained(
        self,
        k_star: Array,  # (n, b)
    ) -> Array:  # (b, 1)
        """‖Wᵀk*‖² + ‖k* − K̃W Wᵀk*‖² / τ, a lower bound of k*ᵀK̃⁻¹k*."""
        along = self.low.W.T @ k_star
        rest = k_star - self.KW @ along
        return np.asarray((np.square(along).sum(axis=0) + np.square(rest).sum(axis=0) / self.tau)[:, None])


def fine(
    K: Operator,
    noise: Array,  # (n, 1) or (n, m)
    low: LowRank,
    rng: np.random.Generator,
) -> Fine:
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


@dataclass(frozen=True)
class Rough(Explains):
    """‖k*‖² over a bound of the largest eigenvalue, or what the vector of ones explains, whichever is more."""

    top: float  # ≥ λ₁(K̃)
    ones: float  # 1ᵀ|K̃|1 ≥ 1ᵀK̃1

    def explained(
        self,
        k_star: Array,  # (n, b)
    ) -> Array:  # (b, 1)
        """A lower bound of k*ᵀK̃⁻¹k*."""
        return self.combine(np.square(k_star).sum(axis=0), k_star.sum(axis=0))[:, None]

    def combine(
        self,
        squares: Array,  # (b,): ‖k*‖² or less
        sums: Array,  # (b,): 1ᵀk*
    ) -> Array:  # (b,)
        return np.asarray(np.maximum(squares / self.top, np.square(sums) / self.ones))


def rough(
    K: Operator,
    noise: Array,  # (n, 1) or (n, m)
) -> Rough:
    """Two products. For K̃ ≥ 0 and any v > 0, λ₁ ≤ max_i (K̃v)_i / v_i (Collatz and Wielandt); v = K̃1."""
    K = Dense(np.abs(K.K)) if isinstance(K, Dense) else K  # |K| has the larger λ₁; intersections are never negative
    largest = noise.max(axis=1, keepdims=True)
    sums = K.matmul(np.ones_like(largest)) + largest
    return Rough(float(((K.matmul(sums) + largest * sums) / sums).max()), float(sums.sum()))


@dataclass(frozen=True)
class RoughTables:
    """The rough bound for the intersection kernel from two tables a dimension, in constant time."""

    bound: Rough
    level_starts: Array  # (D+1,) int64
    levels: Array  # (L,) float64
    T: Array  # (L, 2) float64: Σ_i min(x_id, ℓ)², Σ_i min(x_id, ℓ)

    def explained(
        self,
        X: sp.csr_matrix,  # (b, D): values after the kernel's transforms
    ) -> Array:  # (b,)
        """A lower bound of k*ᵀK̃⁻¹k*: both sums are concave (in x² and in x), so lines between nodes are below them."""
        squared = sp.csr_matrix((np.square(X.data), X.indices, X.indptr), shape=X.shape)
        squares = PiecewiseTables(self.level_starts, np.square(self.levels), self.T[:, :1].copy()).walk(squared)
        sums = PiecewiseTables(self.level_starts, self.levels, self.T[:, 1:].copy()).walk(X)
        return self.bound.combine(squares[:, 0], sums[:, 0])


def rough_tables(
    K: Intersection,
    noise: Array,  # (n, 1) or (n, m)
    nodes: int = 256,
) -> RoughTables:
    """The tables, with at most `nodes` nodes a dimension."""
    ones = np.ones((K.shape[0], 1))
    plain = K.tables(ones)
    squares = intersection(K.codes, lambda _, __: np.square(K.levels)).tables(ones)
    kept, starts = kept_nodes(plain.levels, plain.level_starts, nodes)
    T = np.column_stack([squares.T[kept, 0], plain.T[kept, 0]])
    return RoughTables(rough(K, noise), starts, plain.levels[kept], T)
