"""The part of the variance that a few directions explain: k*ᵀK̃⁻¹k* ≥ ‖Wᵀk*‖² whenever WᵀK̃W = I.

With an orthonormal basis Q and QᵀK̃Q = UΛUᵀ, W = QUΛ^−½, and ‖Wᵀk*‖² = k*ᵀQ(QᵀK̃Q)⁻¹Qᵀk*: the most that a combination
of the columns of Q explains, where k*ᵀK̃⁻¹k* is the most that anything does. Leading eigenvectors explain the most on
average, but any Q gives a bound, so they need not be exact. For an intersection kernel Wᵀk* is a walk through tables.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from saccade._core.progress import report
from saccade.operators.base import Operator

Array = np.ndarray[Any, np.dtype[Any]]
PASSES = 3  # of subspace iteration: exact eigenvectors make the bound a percent tighter
LARGEST_SINGLE = 1e30  # kernel values beyond would overflow float32
SINGLE_FROM = 4096  # examples from which float32 saves more time than its loops take to compile


@dataclass(frozen=True)
class LowRank:
    """Directions W with WᵀK̃W = I, and their span."""

    W: Array  # (n, r)
    Q: Array  # (n, r), orthonormal

    def explained(
        self,
        k_star: Array,  # (n, b)
    ) -> Array:  # (b, 1)
        """‖Wᵀk*‖², a lower bound of k*ᵀK̃⁻¹k*."""
        return np.asarray(np.square(self.W.T @ k_star).sum(axis=0)[:, None])


def low_rank(
    K: Operator,
    noise: Array,  # (n, 1) or (n, m)
    rank: int,
    rng: np.random.Generator,
) -> LowRank:
    """W for the leading eigenvectors of K, found by subspace iteration from a random start.

    Several columns of noise share the largest: more noise explains less, so the bound holds for each.
    """
    n = K.shape[0]
    rank = min(rank, n)
    Q = rng.standard_normal((n, rank))
    single = n >= SINGLE_FROM and K.diag().max(initial=0.0) < LARGEST_SINGLE
    dtype = np.float32 if single else np.float64  # any space will do
    for k in range(PASSES):
        Q = np.linalg.qr(K.matmul(Q.astype(dtype)).astype(np.float64))[0]
        report("variance", 0.5 * k / (PASSES + 1))
    inner = Q.T @ (K.matmul(Q) + noise.max(axis=1, keepdims=True) * Q)
    theta, U = np.linalg.eigh((inner + inner.T) / 2)
    # rounding moves an eigenvalue by up to this; a larger one explains less, so the bound stands
    theta = np.maximum(theta, 0.0) + n * np.finfo(np.float64).eps * theta.max(initial=0.0) + np.finfo(np.float64).tiny
    report("variance", 0.5)
    return LowRank(Q @ (U / np.sqrt(theta))[:, ::-1], Q)  # the leading one first
