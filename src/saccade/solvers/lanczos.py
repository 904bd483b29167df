"""Lanczos tridiagonalisation of a symmetric matrix known by its products, from several starts in step.

The eigenvalues θ of the tridiagonal T and the first components w of its eigenvectors are a Gauss quadrature:
zᵀ f(A) z ≈ ‖z‖² Σ_k w_k² f(θ_k). Nothing is orthogonalised again: copies of eigenvalues that appear share the weight
of the one they copy, so the quadrature stands.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from scipy.linalg import eigh_tridiagonal

from saccade._core.arrays import Array

TINY = 1e-10  # relative length of a remainder that is nothing but rounding


@dataclass(frozen=True)
class Tridiagonals:
    """One symmetric tridiagonal matrix per start, and the squared length of the start."""

    diagonal: Annotated[Array, "steps, m"]
    beside: Annotated[Array, "steps - 1, m"]
    length: Annotated[Array, "m"]
    steps: Annotated[Array, "m"]  # rows that count; a start that spans an invariant space ends early

    def quadratic_forms(self, f: Callable[[Array], Array]) -> Annotated[Array, "m"]:
        """zᵀ f(A) z for every start z."""
        out = np.zeros(self.length.size)
        for j, k in enumerate(self.steps):
            if k:
                # Not LAPACK's default (stemr): it gave up on the copies of eigenvalues in some builds of OpenBLAS.
                theta, W = eigh_tridiagonal(self.diagonal[:k, j], self.beside[: k - 1, j], lapack_driver="stev")
                out[j] = self.length[j] * (W[0] ** 2 @ f(theta))
        return out

    def with_node(self, node: float) -> Self:
        """Changed so that `node`, an eigenvalue of A or less, is an eigenvalue of each: Gauss–Radau quadrature.

        For the logarithm it is never above the truth, and that of Gauss never below. The last diagonal element becomes
        node + b² [(T − node)⁻¹]_kk, b beside it and k the row before. A start that ended early is exact, and stays.
        """
        diagonal, whole, pivot = self.diagonal.copy(), self.steps == len(self.diagonal), self.diagonal[:1] - node
        for k in range(1, len(diagonal)):
            below = np.where(pivot > 0, np.square(self.beside[k - 1]) / np.where(pivot > 0, pivot, 1.0), 0.0)
            if k == len(diagonal) - 1:
                diagonal[k, whole] = node + below[0, whole]
            pivot = diagonal[k] - node - below
        return replace(self, diagonal=diagonal)


def lanczos(
    product: Callable[[Array], Array],  # V (n, m) -> A V
    Z: Annotated[Array, "n, m"],
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


def nothing_seen(m: int) -> Tridiagonals:
    """No row yet, for m starts."""
    return Tridiagonals(np.zeros((0, m)), np.zeros((0, m)), np.zeros(m), np.zeros(m, np.int64))


def from_steps(
    steps: Annotated[Array, "k, c"],  # step lengths of conjugate gradients, 0 after a column has left
    turns: Annotated[Array, "k or k - 1, c"],  # its β
    length: Annotated[Array, "c"],  # rᵀz at the start
    m: int,
    places: Annotated[Array, "c"],  # columns among m that these are
) -> Tridiagonals:
    """The tridiagonals that conjugate gradients walk through without writing them down.

    T_kk = 1/α_k + β_{k−1}/α_{k−1},  T_{k,k+1} = √β_k / α_k.
    """
    k, c = steps.shape
    sound = (steps > 0) & np.isfinite(steps)
    count = np.where(sound, 1, 0).cumprod(axis=0).sum(axis=0)  # up to the first that is not
    inverse = np.divide(1.0, steps, out=np.zeros_like(steps), where=sound)
    beta = np.zeros((k, c))
    beta[: len(turns)] = np.maximum(turns, 0.0)[:k]
    diagonal, beside = np.zeros((k, m)), np.zeros((max(k - 1, 0), m))
    diagonal[:, places] = inverse
    diagonal[1:, places] += beta[:-1] * inverse[:-1]
    beside[:, places] = np.sqrt(beta[:-1]) * inverse[:-1]
    whole, rows = np.zeros(m), np.zeros(m, np.int64)
    whole[places], rows[places] = length, count
    return Tridiagonals(diagonal, beside, whole, rows)
