"""Lanczos tridiagonalisation of a symmetric matrix known by its products, from several starts in step.

The eigenvalues θ of the tridiagonal T and the first components w of its eigenvectors are a Gauss quadrature:
zᵀ f(A) z ≈ ‖z‖² Σ_k w_k² f(θ_k). Nothing is orthogonalised again: copies of eigenvalues that appear share the weight
of the one they copy, so the quadrature stands.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal

Array = np.ndarray[Any, np.dtype[Any]]
TINY = 1e-10  # relative length of a remainder that is nothing but rounding


@dataclass(frozen=True)
class Tridiagonals:
    """One symmetric tridiagonal matrix a start, and the squared length of the start."""

    diagonal: Array  # (steps, m)
    beside: Array  # (steps - 1, m)
    length: Array  # (m,)
    steps: Array  # (m,): rows that count; a start that spans an invariant space ends early

    def quadratic_forms(self, f: Callable[[Array], Array]) -> Array:  # (m,)
        """zᵀ f(A) z for every start z."""
        out = np.zeros(self.length.size)
        for j, k in enumerate(self.steps):
            if k:
                theta, W = eigh_tridiagonal(self.diagonal[:k, j], self.beside[: k - 1, j])
                out[j] = self.length[j] * (W[0] ** 2 @ f(theta))
        return out


def lanczos(
    product: Callable[[Array], Array],  # V (n, m) -> A V
    Z: Array,  # (n, m)
    steps: int,
) -> Tridiagonals:
    """`steps` steps from every column of Z."""
    n, m = Z.shape
    steps = min(steps, n)
    length = np.square(Z).sum(axis=0)
    diagonal, beside = np.zeros((steps, m)), np.zeros((max(steps - 1, 0), m))
    going_on, taken = length > 0, np.zeros(m, np.int64)
    Q = np.divide(Z, np.sqrt(length), out=np.zeros_like(Z), where=going_on)
    before, beta = np.zeros_like(Q), np.zeros(m)
    for k in range(steps):
        R = product(Q) - beta * before
        diagonal[k] = np.einsum("ij,ij->j", Q, R)
        taken[going_on] = k + 1
        R -= diagonal[k] * Q
        beta = np.sqrt(np.square(R).sum(axis=0))
        going_on &= beta > TINY * np.maximum(np.abs(diagonal[: k + 1]).max(axis=0), 1e-300)
        if k == steps - 1 or not going_on.any():
            break
        beta = np.where(going_on, beta, 0.0)
        beside[k] = beta
        before, Q = Q, np.divide(R, beta, out=np.zeros_like(R), where=going_on)
    return Tridiagonals(diagonal, beside, length, taken)
