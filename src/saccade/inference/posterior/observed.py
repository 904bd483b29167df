"""The observed rows of a pool: K̃ = K_LL + σ²I by a factor that grows, and by iteration beyond."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade.inference.solving.conditional import ByFactor, ByIteration, Conditional, squared_columns
from saccade.kernels.gram import Gram
from saccade.operators.base import Operator
from saccade.solvers.bordered import Bordered
from saccade.solvers.cholesky import Factor, factorise

TOL, STEPS = 1e-8, 2000  # of the iteration: largest residual, where labels are ±1, and most steps


def observed(
    gram: Gram,  # of the pool
    noise: float,  # σ²
    rows: Annotated[Array, "l"],
) -> Conditional:
    """The process given these rows: by a factor, or by iteration where it would be too large."""
    if rows.size > limits.OBSERVED_FACTOR_UP_TO:
        return ByIteration(SubsetOperator(gram, rows), np.full(rows.size, noise), TOL, STEPS)
    L = np.zeros((0, 0))
    if rows.size:
        L = factorise(gram.between(rows, rows), np.full(rows.size, noise), overwrite=True).L
    return ByFactor(Bordered.of(L))


def observed_more(
    known: Conditional,
    beside: Annotated[Array, "l, b"],  # K between the old rows and new ones
    corner: Annotated[Array, "b, b"],  # K + σ²I of the new ones
) -> tuple[ByFactor | None, Annotated[Array, "l, b"]]:
    """The process given further rows, None where no factor grows; and K̃⁻¹ beside."""
    if not isinstance(known, ByFactor) or not isinstance(known.factor, Bordered):
        return None, known.solve(beside)
    half = known.factor.half_solve(beside)
    V = known.factor.back_solve(half)
    return None if sum(beside.shape) > limits.OBSERVED_FACTOR_UP_TO else ByFactor(known.factor.grown(half, corner)), V


def observed_first(known: Conditional, size: int) -> ByFactor | None:
    """The process given the first rows alone; None where there is no factor to shorten."""
    if not isinstance(known, ByFactor) or not isinstance(known.factor, Bordered):
        return None
    return ByFactor(known.factor.shortened(size))


def explained(
    S: Factor,  # of (b, b)
    c: Annotated[Array, "n, b"],
) -> Annotated[Array, "n"]:
    """diag(c S⁻¹ cᵀ)."""
    return squared_columns(S.half_solve(c.T))


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
