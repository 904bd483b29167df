"""Sums over targets of covariances and of their squares, for every row, kept up to date as rows are observed.

Z deals the targets into r groups, a column of random signs each, after a column of ones. Of c Z (n, 1 + r), the first
column is Σ_z c(x, z), and the squares of the others add up to Σ_z c(x, z)² on average: signs of different targets are
independent. With as many groups as targets that is exact. 128 groups chose questions as good as exact squares did
(docs/decisions/021).

c Z is linear in c, so it follows each step of the posterior. A step is noted beside c Z, and many steps become one
product: c Z is large, and to write it anew for each label would take longer than all the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array


def signs(
    n: int,
    targets: Annotated[Array, "t"] | None = None,  # row numbers; None for all
    most: int | None = None,
) -> Annotated[Array, "n, 1 + r"]:
    """Z."""
    targets = np.arange(n) if targets is None else targets
    least, largest = limits.SKETCH_GROUPS
    wanted = int(np.clip(limits.SKETCH_NUMBERS // n, least, largest)) if most is None else most
    groups, rng = min(targets.size, wanted), np.random.default_rng(targets.size)
    Z = np.zeros((n, 1 + groups), np.float64 if n * groups <= limits.SKETCH_FLOAT64_NUMBERS else np.float32)
    Z[targets, 0] = 1.0
    Z[rng.permutation(targets), 1 + np.arange(targets.size) % groups] = rng.choice([-1.0, 1.0], targets.size)
    return Z


@dataclass(frozen=True, eq=False)
class Sketch:
    """c Z = base − Σ left · right. It never changes; a step gives a new one."""

    base: Annotated[Array, "n, 1 + r"]
    sums: Annotated[Array, "n"]  # Σ c
    squares: Annotated[Array, "n"]  # Σ c²
    steps: tuple[tuple[Array, Array], ...] = ()  # left (n, b), right (b, 1 + r)

    @classmethod
    def of(cls, base: Annotated[Array, "n, 1 + r"]) -> Sketch:
        squares = np.einsum("ij,ij->i", base[:, 1:], base[:, 1:], dtype=np.float64)
        return cls(base, base[:, 0].astype(np.float64), squares)

    def rows(self, some: Annotated[Array, "s"]) -> Annotated[Array, "s, 1 + r"]:
        found = self.base[some].astype(np.float64)
        for left, right in self.steps:
            found -= left[some] @ right
        return found

    def less(self, left: Annotated[Array, "n, b"], right: Annotated[Array, "b, 1 + r"]) -> Sketch:
        """c Z − left · right."""
        steps = (*self.steps, (left, right))
        if sum(part.shape[1] for part, _ in steps) > limits.SKETCH_STEPS:
            stacked = np.hstack([part for part, _ in steps]).astype(self.base.dtype)
            return Sketch.of(self.base - stacked @ np.vstack([part for _, part in steps]).astype(self.base.dtype))
        only = right.copy()
        only[:, 0] = 0.0  # the sums are no part of the squares
        along = (self.base @ only.T.astype(self.base.dtype)).astype(np.float64)
        for before, by in self.steps:
            weight = by @ only.T
            along -= before * weight if weight.size == 1 else before @ weight  # BLAS takes thrice as long for one
        inner = left @ (only @ only.T)
        squares = self.squares + np.einsum("ij,ij->i", left, inner - 2.0 * along)
        return Sketch(self.base, self.sums - left @ right[:, 0], np.maximum(squares, 0.0), steps)
