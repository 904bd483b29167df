"""The variance by inducing points or by a subset of the data, from kernel values with these points alone."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy.linalg import solve_triangular

from saccade._core.arrays import Array
from saccade.inference.approximations.base import VarianceApproximation
from saccade.inference.solving.conditional import ByFactor, squared_columns
from saccade.solvers.cholesky import Factor


@dataclass(frozen=True)
class InducingVariance(VarianceApproximation):
    """Of FITC, DTC or SoR: k** − ‖v*‖² + ‖R⁻¹v*‖² with v* = L⁻¹k_u*; k* has a row per point, in the order of L."""

    L: Annotated[Array, "r, r"]
    roots: tuple[Annotated[Array, "r, r"], ...]  # lower, R for each column of the noise
    own_prior: bool  # the new example's, k**; SoR has ‖v*‖²

    def explained(self, k_star: Array) -> Annotated[Array, "b, 1 | b, m"]:
        """‖v*‖² − ‖R⁻¹v*‖²."""
        v = self._project(k_star)
        return np.asarray(np.maximum(squared_columns(v)[:, None] - self._remaining(v), 0.0))

    def variance(
        self, k_star: Annotated[Array, "r, b"], prior: Annotated[Array, "b"]
    ) -> Annotated[Array, "b, 1 | b, m"]:
        v = self._project(k_star)
        return self.with_prior(self._remaining(v), v, prior)

    def with_prior(self, remaining: Array, v: Array, prior: Array) -> Annotated[Array, "b, 1 | b, m"]:
        """The variance from ‖R⁻¹v*‖² (b, 1 | b, m) and v* (r, b)."""
        top = prior[:, None]
        beside = np.maximum(top - squared_columns(v)[:, None], 0.0) if self.own_prior else 0.0
        return np.asarray(np.clip(beside + remaining, 0.0, top))

    def _project(self, k_star: Array) -> Annotated[Array, "r, b"]:
        """v* = L⁻¹k_u*."""
        return np.asarray(solve_triangular(self.L, k_star, lower=True))

    def _remaining(self, v: Array) -> Annotated[Array, "b, 1 | b, m"]:
        """‖R⁻¹v*‖²."""
        return np.column_stack([squared_columns(solve_triangular(R, v, lower=True)) for R in self.roots])


@dataclass(frozen=True)
class SubsetVariance(VarianceApproximation):
    """Of the exact process of some examples: k** − ‖R⁻¹k_u*‖² with RRᵀ = K_uu + N."""

    roots: tuple[Annotated[Array, "r, r"], ...]  # lower, for each column of the noise

    @cached_property
    def _parts(self) -> tuple[ByFactor, ...]:
        return tuple(ByFactor(Factor(R)) for R in self.roots)

    def explained(self, k_star: Annotated[Array, "r, b"]) -> Annotated[Array, "b, 1 | b, m"]:
        return np.column_stack([part.explained(k_star) for part in self._parts])
