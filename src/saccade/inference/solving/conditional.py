"""A Gaussian f, given noisy values t of it at n places: what all four jobs stand on.

With K̃ = K + N of the places, t less the prior mean there, and k = k(places, x) for another place x,

    mean = kᵀα,  α = K̃⁻¹t      covariance = k(x, z) − k_xᵀK̃⁻¹k_z      log p(t) = −½ (tᵀα + log |K̃| + n log 2π).

`ByFactor` and `ByIteration` solve with K̃. The fitted process (approximations/exact.py), the pool of an active learner
(posterior/pool.py), the tiles of a huge picture and the scores of boxes (localize) differ in their places and kernels,
not in this algebra.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy.linalg.blas import dtrsm, dtrsv

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.blas import blas_threads_for
from saccade.inference.solving.regression import Solving, solve
from saccade.operators.base import Operator
from saccade.solvers.bordered import Bordered
from saccade.solvers.cg import CGResult, solve_cg
from saccade.solvers.cholesky import Factor


class Conditional(ABC):
    """f given its values at n places."""

    @abstractmethod
    def solve(self, B: Array, start: Array | None = None) -> Annotated[Array, "n, m"]:
        """K̃⁻¹B; `start` is a first guess of it, for iteration."""

    @abstractmethod
    def explained(self, k: Array) -> Annotated[Array, "b"]:
        """kᵀK̃⁻¹k of every column of k (n, b): what is explained of the variance, and not more where it is iterated."""

    @abstractmethod
    def explained_covariance(self, k: Array) -> Annotated[Array, "b, b"]:
        """kᵀK̃⁻¹k of all pairs of columns."""

    @abstractmethod
    def inverse_diagonal(self) -> Annotated[Array, "n"]:
        """The diagonal of K̃⁻¹; an estimate where it is iterated."""

    @abstractmethod
    def alpha_and_diagonal(self, rows: Array, Y: Array) -> tuple[Array, Array]:  # (b, m), (b,)
        """K̃⁻¹Y and the diagonal of K̃⁻¹ at some places, neither of them estimated."""


@dataclass(frozen=True, eq=False)
class ByFactor(Conditional):
    """K̃ = LLᵀ is held."""

    factor: Factor | Bordered

    def half(self, k: Array) -> Annotated[Array, "n, b"]:
        """L⁻¹k: inner products of its columns are what is explained."""
        return self.factor.half_solve(k) if len(k) else k

    def log_density(self, half: Array) -> float:
        """log p(t) of L⁻¹t (n, m), all columns together."""
        rest = self.factor.log_determinant() + len(half) * np.log(2.0 * np.pi)
        return float(-0.5 * (np.einsum("ij,ij->", half, half) + half.shape[1] * rest))

    def solve(self, B: Array, start: Array | None = None) -> Array:
        with blas_threads_for(len(B)):
            return self.factor.solve(B)

    def explained(self, k: Array) -> Array:
        with blas_threads_for(len(k)):
            return _half_norms(self.factor.L, k)

    def explained_covariance(self, k: Array) -> Array:
        half = self.half(k)
        return np.asarray(half.T @ half)

    def inverse_diagonal(self) -> Array:
        return self._diagonal

    @cached_property
    def _diagonal(self) -> Annotated[Array, "n"]:
        with blas_threads_for(self.factor.size):
            return self.factor.inverse_diagonal()

    def alpha_and_diagonal(self, rows: Array, Y: Array) -> tuple[Array, Array]:
        with blas_threads_for(len(Y)):
            return self.factor.solve(Y)[rows], self._diagonal[rows]


@dataclass(frozen=True, eq=False)
class ByIteration(Conditional):
    """K̃ is known by its products, and solved by conjugate gradients."""

    K: Operator
    noise: Annotated[Array, "n"]
    tol: float
    max_iter: int

    def _iterated(self, B: Array, start: Array | None = None) -> CGResult:
        return solve_cg(self.K, self.noise[:, None], B, tol=self.tol, max_iter=self.max_iter, x0=start)

    def solve(self, B: Array, start: Array | None = None) -> Array:
        return self._iterated(B, start).x

    def explained(self, k: Array) -> Array:
        A, x = self._halves(k)
        return np.asarray(2.0 * np.einsum("ij,ij->j", A, x))

    def explained_covariance(self, k: Array) -> Array:
        A, x = self._halves(k)
        product = A.T @ x
        return np.asarray(product + product.T)

    def _halves(self, k: Array) -> tuple[Array, Array]:  # (n, b), (n, b)
        """A and x with Aᵀx + xᵀA = 2kᵀx − xᵀK̃x, below kᵀK̃⁻¹k for every x, and by the square of the error of x alone."""
        found = self._iterated(k)
        return 0.5 * (k + found.left), found.x

    def inverse_diagonal(self) -> Array:
        """Estimated by probes, as for any model without a factor."""
        noise = self.noise[:, None]
        solving = Solving("cg", leave_one_out=True)
        return np.asarray(solve(self.K, noise, np.zeros_like(noise), solving).inverse_diagonal[:, 0])

    def alpha_and_diagonal(self, rows: Array, Y: Array) -> tuple[Array, Array]:
        """From a solve for each place: α_i = e_iᵀK̃⁻¹Y; the diagonal from below."""
        unit = np.zeros((len(Y), rows.size))
        unit[rows, np.arange(rows.size)] = 1.0
        found = self._iterated(unit)
        return found.x.T @ Y, np.einsum("ij,ij->j", found.x, unit + found.left)


def _half_norms(L: Array, k: Array) -> Annotated[Array, "b"]:
    """‖L⁻¹k‖², some columns at a time; seen as kᵀL⁻ᵀ, BLAS takes our order of numbers as it is.

    One column alone is a solve with a vector, which takes a quarter of the time or less: 1 ms for 4 with n = 2,000.
    """
    found = np.empty(k.shape[1])
    if found.size == 1:
        half = dtrsv(L, k[:, 0], lower=1)
        return np.array([half @ half])
    for first in range(0, found.size, limits.NEW_AT_ONCE):
        some = slice(first, first + limits.NEW_AT_ONCE)
        half = dtrsm(1.0, L, k[:, some].T, side=1, lower=1, trans_a=1)
        found[some] = np.einsum("ij,ij->i", half, half)
    return found


def squared_columns(V: Array) -> Annotated[Array, "b"]:
    """The squared length of every column."""
    return np.asarray(np.einsum("ij,ij->j", V, V))


def unexplained(prior: Array | float, half: Array) -> Annotated[Array, "b"]:
    """The variance that the values leave of the prior's, by L⁻¹k (n, b)."""
    return np.asarray(np.maximum(prior - squared_columns(half), 0.0))
