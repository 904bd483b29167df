"""The rough bound of the variance: k*ᵀK̃⁻¹k* ≥ ‖k*‖² / λ₁, a rival of low-rank tables in variance_tightness.py.

For the intersection kernel ‖k*‖² is bounded from below in constant time: kernel values of one dimension are never
negative, so ‖Σ_d k_d‖² ≥ Σ_d ‖k_d‖², and Σ_i min(x_id, x*_d)² is an intersection of squares.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from saccade.inference.approximations.base import VarianceApproximation
from saccade.operators.base import Dense, Operator
from saccade.operators.intersection_base import Intersection
from saccade.operators.nodes import kept_nodes
from saccade.operators.tables import PiecewiseTables

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Rough(VarianceApproximation):
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
    squares = K.with_levels(np.square(K.levels)).tables(ones)
    kept, starts = kept_nodes(plain.levels, plain.level_starts, nodes)
    T = np.column_stack([squares.T[kept, 0], plain.T[kept, 0]])
    return RoughTables(rough(K, noise), starts, plain.levels[kept], T)
