"""Rough solutions by conjugate gradients for steps of Newton's method that the next step corrects.

Without a low rank as preconditioner: it would serve the first step alone, before the sites differ, and save 7 of 97
iterations of a fit.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from saccade._core.arrays import Array
from saccade._core.blas import one_blas_thread
from saccade.inference.solving.regression import Solution
from saccade.operators.base import Operator
from saccade.solvers.cg import solve_cg


@dataclass(frozen=True, kw_only=True)
class Drafted(Solution):
    """A solution that knows its product with K: a large residual then does no harm to the mean."""

    mean: Annotated[Array, "n, m"]  # Kα


@dataclass(frozen=True)
class Draft:
    """A solver that may leave a residual; it has no diagonal of the inverse."""

    K: Operator
    unit: float  # size of the targets, for which `tol` is meant
    tol: float
    max_iter: int

    @property
    def least(self) -> float:
        """The residual that may be left in any case, in units of the targets."""
        return self.unit * self.tol

    def solve(
        self,
        noise: Annotated[Array, "n, m"],
        targets: Annotated[Array, "n, m"],
        guess: Annotated[Array, "n, m"] | None,
        left: float,  # residual that may be left
    ) -> Drafted:
        """α with |targets − (K + N)α| ≤ `left`."""
        unit, tol = self.unit, max(left, self.least) / self.unit
        x0 = None if guess is None else guess / unit
        with one_blas_thread():
            found = solve_cg(self.K, noise, targets / unit, tol=tol, max_iter=self.max_iter, x0=x0)
        alpha, unknown, done = unit * found.x, np.full_like(noise, np.nan), found.converged
        mean = targets - noise * alpha - unit * found.left
        return Drafted(alpha, unknown, (), found.iterations, unit * found.residual, done, 0, np.nan, mean=mean)
