"""The Gaussian process without approximation, behind the same methods."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from saccade._core.arrays import Array
from saccade.inference.approximations.base import Approximation, RegularizedSystem, outputs
from saccade.inference.solving.closed_form import leave_one_out
from saccade.inference.solving.conditional import ByFactor, ByIteration, Conditional

LOUD = 1e4  # times k(x, x): noise from which on an example is better left out by what it adds


@dataclass(frozen=True)
class Exact(Approximation):
    """K̃ itself, by its factor or by conjugate gradients."""

    trained: RegularizedSystem

    @cached_property
    def parts(self) -> tuple[Conditional, ...]:
        """The process given its examples, for each column of the noise."""
        known = self.trained
        if known.factors:
            return tuple(ByFactor(factor) for factor in known.factors)
        return tuple(ByIteration(known.K, column, known.tol, known.max_iter) for column in known.noise.T)

    def explained(self, k_star: Annotated[Array, "n, b"]) -> Annotated[Array, "b, 1 | b, m"]:
        """k*ᵀK̃⁻¹k*; from below where it is iterated."""
        return np.column_stack([part.explained(k_star) for part in self.parts])

    def covariances(
        self, k_star: Annotated[Array, "n, b"]
    ) -> list[Annotated[Array, "b, b"]]:  # for each column of the noise
        """What the examples explain of the covariance, k*ᵀK̃⁻¹k* for all pairs of columns."""
        return [part.explained_covariance(k_star) for part in self.parts]

    def weights(self, Y: Annotated[Array, "n, m"]) -> Annotated[Array, "n, m"]:
        """α = K̃⁻¹Y, H (2)."""
        return np.hstack([part.solve(outputs(Y, self.trained.noise, j)) for j, part in enumerate(self.parts)])

    def left_out(
        self,
        k_rows: Annotated[Array, "n, b"],
        prior: Annotated[Array, "b"],
        rows: Annotated[Array, "b"],
        Y: Annotated[Array, "n, m"],
    ) -> tuple[Annotated[Array, "b, m"], Annotated[Array, "b, 1 | b, m"]]:
        """y_i − α_i/d_i and 1/d_i − N_i with d_i = [K̃⁻¹]_ii; no factor: from a solve for each row, d from below.

        With N_i far above k(x_i, x_i), 1/d_i − N_i cancels. Mean m and variance v that count the example do not then,
        and without it they are (m N_i − v y_i)/(N_i − v) and v N_i/(N_i − v).
        """
        noise, y, top = self.trained.noise[rows], Y[rows], prior[:, None]
        alpha, d = self.alpha_and_diagonal(rows, Y)
        d = np.maximum(d, 1.0 / (noise + top))  # the least that d can be, whatever the solver did
        mean, variance = leave_one_out(y, alpha, d, noise)
        loud = noise > LOUD * top
        if loud.any():
            m, v = k_rows.T @ self.weights(Y), self.variance(k_rows, prior)
            rest = np.where(loud, noise - v, 1.0)
            mean, variance = (
                np.where(loud, (m * noise - v * y) / rest, mean),
                np.where(loud, v * noise / rest, variance),
            )
        return mean, np.clip(variance, 0.0, top)

    def takes_columns(self) -> bool:
        return not self.trained.factors or bool((self.trained.noise > LOUD * self.trained.K.diag()[:, None]).any())

    def alpha_and_diagonal(
        self, rows: Array, Y: Array
    ) -> tuple[Annotated[Array, "b, m"], Annotated[Array, "b, 1 | b, m"]]:
        """α and the diagonal of K̃⁻¹ at the rows."""
        every = (outputs(Y, self.trained.noise, j) for j in range(len(self.parts)))
        found = [part.alpha_and_diagonal(rows, own) for part, own in zip(self.parts, every, strict=True)]
        return np.hstack([alpha for alpha, _ in found]), np.column_stack([d for _, d in found])
