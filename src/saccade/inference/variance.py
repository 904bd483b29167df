"""Predictive variance in constant time: k** − ‖Wᵀk*‖², an upper bound of the exact variance.

With an orthonormal basis Q and QᵀK̃Q = LLᵀ, W = QL⁻ᵀ, and ‖Wᵀk*‖² = k*ᵀQ(QᵀK̃Q)⁻¹Qᵀk* ≤ k*ᵀK̃⁻¹k*: the left side is
the most that a combination of the columns of Q explains, the right side the most that anything does. Wᵀk* is a walk
through tables with a column for each of W.
"""

from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from saccade._core.progress import report
from saccade.operators.base import Operator

Array = np.ndarray[Any, np.dtype[Any]]
PASSES = 3  # of subspace iteration: later ones change the bound by less than a percent


def low_rank_basis(
    K: Operator,
    noise: Array,  # (n, 1) or (n, m)
    rank: int,
    rng: np.random.Generator,
) -> Array:  # (n, rank)
    """W for the leading eigenvectors of K, found by subspace iteration from a random start.

    Several columns of noise share the largest: more noise explains less, so the bound holds for each.
    """
    n = K.shape[0]
    rank = min(rank, n)
    Q = rng.standard_normal((n, rank))
    for k in range(PASSES):
        Q = np.linalg.qr(K.matmul(Q))[0]
        report("variance", k / (PASSES + 1))
    inner = Q.T @ (K.matmul(Q) + noise.max(axis=1, keepdims=True) * Q)
    L = cholesky((inner + inner.T) / 2, lower=True)
    report("variance", 1.0)
    return np.asarray(solve_triangular(L, Q.T, lower=True).T)
