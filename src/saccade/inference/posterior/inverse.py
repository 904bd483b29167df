"""(K + N)⁻¹ of a fitted process: exact, or approximated for mean and variance; each is made when first asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from saccade._core.arrays import Array
from saccade._core.blas import blas_threads_for
from saccade.inference.approximations.base import Approximation, PerOutput, RegularizedSystem, VarianceApproximation
from saccade.inference.approximations.by_name import Approximating, Method
from saccade.inference.approximations.exact import Exact
from saccade.inference.approximations.low_rank import LowRank, hold_out
from saccade.inference.likelihoods.infer import Inference
from saccade.inference.likelihoods.sites import Sites
from saccade.inference.posterior.compressed import no_variance
from saccade.inference.solving.regression import Solution, Solving, is_direct, keeps_factors, solve
from saccade.inference.solving.solver_choice import factor_when_asked
from saccade.kernels.gram import Gram, TabledGram
from saccade.operators.norms import NormTables
from saccade.solvers.cholesky import Factor, factorise


@dataclass(frozen=True, eq=False)
class Inverse:
    """What a fitted process knows of (K + N)⁻¹."""

    gram: Gram  # K
    noise: Annotated[Array, "n, 1 | n, m"]  # N
    solved: tuple[Factor, ...]  # factors of K + N that solving left; perhaps none
    weight: Annotated[Array, "n"] | None  # how many equal copies each example stands for
    inference: Inference
    solving: Solving
    approximation: Approximating

    # ---- exact

    @property
    def factored(self) -> bool:
        """Whether there is a factor, or one is made when a question needs it."""
        if (
            self.solved
            or self.inference != "regression"
            or "exact" not in (self.approximation.mean, self.approximation.variance)
        ):
            return bool(self.solved)
        return factor_when_asked(self.solving.solver, self.gram, self.noise)

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """Of K + N, one per column of N; none where they are not to be afforded."""
        if self.solved or not self.factored:
            return self.solved
        K = self.gram.to_dense()
        with blas_threads_for(len(K)):
            return tuple(factorise(K, column) for column in self.noise.T)

    @property
    def system(self) -> RegularizedSystem:
        """K + N, with the factors there are."""
        factors, solving = self.__dict__.get("factors", self.solved), self.solving
        return RegularizedSystem(self.gram, self.noise, factors, solving.tol, solving.max_iter, self.weight)

    @cached_property
    def exact(self) -> Exact:
        """K̃⁻¹ itself, by factors where they are to be afforded."""
        return Exact(replace(self.system, factors=self.factors))

    def solve(self, B: Annotated[Array, "n, k"], j: int) -> Annotated[Array, "n, k"]:
        """(K + N)⁻¹B for column j of the noise."""
        return self.exact.parts[j].solve(B)

    def alpha(self, sites: Sites, solution: Solution) -> Annotated[Array, "n, m"]:
        """(K + N)⁻¹t as exactly as it is solved for, whatever approximates the mean."""
        if self.approximation.mean == "exact" and (self.solved or not self.factored):
            return solution.alpha
        if self.factors:
            return self.exact.weights(sites.targets)
        return solve(self.gram, self.noise, sites.targets, replace(self.solving, leave_one_out=False)).alpha

    def grows_to(
        self,
        gram: Gram,  # of all n + b examples
        noise: Annotated[Array, "n + b, 1 | n + b, m"],
    ) -> bool:
        """Whether factors grow by the further examples: all else must be as it was."""
        n = len(self.noise)
        if self.inference != "regression" or self.approximation.mean != "exact" or not self.solved or len(noise) == n:
            return False
        same = noise.shape[1:] == self.noise.shape[1:] and np.array_equal(noise[:n], self.noise)
        kept = same and self.gram.extends_to(gram)
        return kept and is_direct(gram, self.solving.solver) and keeps_factors(gram, noise)

    # ---- approximated

    @property
    def variance_method(self) -> Method | None:
        """As asked for, or what "auto" stands for."""
        return self.approximation.variance_method(isinstance(self.gram, TabledGram), self.gram.shape[0], self.factored)

    @property
    def tabled(self) -> TabledGram | None:
        """The kernel matrix behind the tables of the variance; None where the variance is not from tables."""
        return self.gram if self.variance_method == "lowrank" and isinstance(self.gram, TabledGram) else None

    @cached_property
    def mean(self) -> Approximation:
        """The approximation behind the mean."""
        method = self.approximation.mean
        found = self.exact if method == "exact" else self.approximation.ready(method, self.system, *self._apart(method))
        assert isinstance(found, Approximation)
        return found

    @cached_property
    def variance(self) -> VarianceApproximation:
        """The approximation behind the variance."""
        method = self.variance_method
        if method is None:
            no_variance()
        if method in ("exact", self.approximation.mean):
            return self.exact if method == "exact" else self.mean
        return self.approximation.ready(method, self.system, *self._apart(method))

    @cached_property
    def norms(self) -> tuple[NormTables, ...]:
        """The tables of a low-rank variance: one, or one for each output."""
        assert isinstance(self.gram, TabledGram)
        known = self.variance if self.variance_method == "lowrank" else self.with_variance("lowrank").variance
        parts = known.parts if isinstance(known, PerOutput) else (known,)
        return self.gram.norm_tables([part.W for part in parts if isinstance(part, LowRank)])

    def with_variance(self, method: Method | None) -> Inverse:
        """Another approximation of the variance; that of the mean stays."""
        new = replace(self, approximation=replace(self.approximation, variance=method))
        new.__dict__.update({name: value for name, value in self.__dict__.items() if name == "mean"})
        return new

    def _apart(self, method: Method) -> tuple[Array | None, np.random.Generator, bool]:
        """Examples that stay new to a low rank, for new ones to be compared with; whether columns have ranks apart."""
        apart, held_out = self.inference != "regression", None
        if method == "lowrank" and self.approximation.compares:
            n, pool = self.gram.shape[0], self.gram.given
            rank = self.approximation.directions(self.noise.shape[1] if apart else 1)
            held_out = hold_out(np.arange(n) if pool is None else pool, n, rank, self.solving.rng())
        return held_out, self.solving.rng(), apart

    # ---- the examples that are compared with new rows

    @property
    def support(self) -> Array | None:
        """Numbers of the examples that carry α or enter the variance, ascending; None for all."""
        rows = self._mean_rows
        if rows is None or self.variance_method is None:
            return rows
        others = self.variance.support
        return None if others is None else np.union1d(rows, others)

    @property
    def _mean_rows(self) -> Array | None:
        return None if self.approximation.mean == "exact" else self.mean.support

    @cached_property
    def carrying(self) -> tuple[Gram, Array | slice]:
        """K of the examples that carry α, and their numbers."""
        rows = self._mean_rows
        return (self.gram, slice(None)) if rows is None else (self.gram.subset(rows), rows)

    @cached_property
    def explaining(self) -> Gram:
        """K of the examples that enter the variance."""
        rows, known = self.variance.support, self._mean_rows
        if rows is None:
            return self.gram
        return self.carrying[0] if known is not None and np.array_equal(known, rows) else self.gram.subset(rows)
