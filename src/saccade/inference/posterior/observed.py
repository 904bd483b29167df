"""Systems with K̃ = K_LL + σ²I of the observed rows of a pool: by a factor that grows, and by iteration beyond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade.inference.solving.regression import solve
from saccade.kernels.gram import Gram
from saccade.operators.base import Operator
from saccade.solvers.bordered import Bordered
from saccade.solvers.cg import solve_cg
from saccade.solvers.cholesky import factorise

TOL, STEPS = 1e-8, 2000  # of the iteration: largest residual, where labels are ±1, and most steps


class Observed(Protocol):
    """What a field needs to know of K̃."""

    def solve(
        self,
        B: Array,  # (l, m)
        start: Array | None = None,  # (l, m): a first guess
    ) -> Array:
        """K̃⁻¹ B."""
        ...

    def grown(
        self,
        rows: Array,  # (b,): new ones
        beside: Array,  # (l, b): K between the old rows and the new ones
        corner: Array,  # (b, b): K + σ²I of the new ones
    ) -> tuple[Observed, Array]:  # (l, b)
        """With more rows, and K̃⁻¹ beside."""
        ...

    def shortened(self, size: int) -> Observed:
        """The first rows alone."""
        ...

    def inverse_diagonal(self) -> Array:  # (l,)
        """Of K̃⁻¹."""
        ...


def observed(gram: Gram, noise: float, rows: Array) -> Observed:
    """By a factor, or by iteration where it would be too large."""
    if rows.size > limits.OBSERVED_FACTOR_UP_TO:
        return Iterated(gram, noise, rows)
    L = np.zeros((0, 0))
    if rows.size:
        L = factorise(gram.between(rows, rows), np.full(rows.size, noise), overwrite=True).L
    return Factored(gram, noise, rows, Bordered.of(L))


@dataclass(frozen=True, eq=False)
class Factored:
    """L Lᵀ = K̃, held."""

    gram: Gram
    noise: float
    rows: Array
    factor: Bordered

    def solve(self, B: Array, start: Array | None = None) -> Array:
        return self.factor.solve(B)

    def grown(self, rows: Array, beside: Array, corner: Array) -> tuple[Observed, Array]:
        half, every = self.factor.half_solve(beside), np.append(self.rows, rows)
        V = self.factor.back_solve(half)
        if every.size > limits.OBSERVED_FACTOR_UP_TO:
            return Iterated(self.gram, self.noise, every), V
        return Factored(self.gram, self.noise, every, self.factor.grown(half, corner)), V

    def shortened(self, size: int) -> Observed:
        return Factored(self.gram, self.noise, self.rows[:size], self.factor.shortened(size))

    def inverse_diagonal(self) -> Array:
        return self.factor.inverse_diagonal()


@dataclass(frozen=True, eq=False)
class Iterated:
    """By conjugate gradients with products at the observed rows; they start from what is known."""

    gram: Gram
    noise: float
    rows: Array

    def solve(self, B: Array, start: Array | None = None) -> Array:
        noise = np.full((self.rows.size, 1), self.noise)
        return solve_cg(SubsetOperator(self.gram, self.rows), noise, B, tol=TOL, max_iter=STEPS, x0=start).x

    def grown(self, rows: Array, beside: Array, corner: Array) -> tuple[Observed, Array]:
        return Iterated(self.gram, self.noise, np.append(self.rows, rows)), self.solve(beside)

    def shortened(self, size: int) -> Observed:
        return observed(self.gram, self.noise, self.rows[:size])

    def inverse_diagonal(self) -> Array:
        """Estimated by probes, as for any model without a factor."""
        noise = np.full((self.rows.size, 1), self.noise)
        part, rng = SubsetOperator(self.gram, self.rows), np.random.default_rng(0)
        return np.asarray(solve(part, noise, np.zeros_like(noise), solver="cg", rng=rng).inverse_diagonal[:, 0])


class SubsetOperator(Operator):
    """K of some rows."""

    def __init__(self, gram: Gram, rows: Array) -> None:
        self.gram, self.rows = gram, rows

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.size, self.rows.size

    @property
    def work(self) -> int:
        return self.gram.work * self.rows.size // max(self.gram.shape[0], 1)

    def diag(self) -> Array:
        return np.asarray(self.gram.diag()[self.rows])

    def block(self, rows: Array) -> Array:
        return self.gram.between(self.rows[rows], self.rows[rows])

    def matmul(self, V: Array) -> Array:
        return self.gram.matmul_rows(self.rows, V, self.rows)
