"""The fitted Gaussian process: kernel matrix, Gaussian sites and solution, and every question about the posterior.

gram      K of the training examples, known by what it can do                kernels/gram.py
sites     targets t, less the prior mean m, and noise N of the likelihood    sites.py
solution  α = (K + N)⁻¹t, and the factor of K + N if there is one            regression.py

mean = m + k*ᵀα,   variance = k** − k*ᵀ(K + N)⁻¹k*,   H (2), A (2)
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.blas import blas_threads_for
from saccade._core.errors import InvalidInput
from saccade.inference.approximations.base import new_columns
from saccade.inference.approximations.by_name import Approximating, Method
from saccade.inference.leave_one_out import examples
from saccade.inference.likelihoods.infer import Inference, infer
from saccade.inference.likelihoods.prior_mean import PriorMean, plus, plus_values
from saccade.inference.likelihoods.sites import Sites
from saccade.inference.posterior.base import Posterior
from saccade.inference.posterior.compressed import Compressed, check_bins, compress, unexplained, walk
from saccade.inference.posterior.inverse import Inverse
from saccade.inference.posterior.relevance import deviations
from saccade.inference.posterior.sampling import sample
from saccade.inference.solving.evidence import Evidence, log_marginal_likelihood
from saccade.inference.solving.regression import Solution, Solving, grown, solve, unsolved
from saccade.inference.solving.solver_choice import labels_by
from saccade.kernels.base import Kernel
from saccade.kernels.gram import Gram, TabledGram
from saccade.operators.tables import GridTables, PiecewiseTables, quantize

SOLVING, EXACT = Solving(), Approximating()


@dataclass(frozen=True, eq=False, repr=False)
class GP(Posterior):
    """The posterior given the training examples. It never changes; what costs time is made when first asked for.

    Parameters
    ----------
    gram : Gram
        K of the training examples.
    sites : Sites
        Targets, less the prior mean, and noise: `GP.fit` finds them.
    solution : Solution
        α, and the factor of K + N if there is one: `GP.fit` finds it.
    weight : array (n,) or None
        How many equal copies each example stands for.
    inference : "regression", "laplace" or "ep"
        How targets or labels became sites.
    solving : Solving
        How systems with K + N are solved.
    approximation : Approximating
        Which approximations of (K + N)⁻¹ mean and variance use.
    prior_mean : PriorMean or None
        The mean before any example; None: 0.
    grid : GridTables or None
        The mean in even steps, where it was quantised.

    Examples
    --------
    >>> from saccade.kernels import HIK
    >>> X, Y = np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]])
    >>> gp = GP.fit(HIK(scale=1.0).gram(X), Y, noise=np.full((2, 1), 1.0))
    >>> gp
    GP(HIK(scale=1.0), examples=2, outputs=1, variance='exact')
    >>> gp.mean_and_variance(np.array([[1.0]]))
    (array([[0.5]]), array([[0.5]]))
    """

    gram: Gram
    sites: Sites
    solution: Solution
    weight: Annotated[Array, "n"] | None = None
    inference: Inference = "regression"
    solving: Solving = SOLVING
    approximation: Approximating = EXACT
    prior_mean: PriorMean | None = None
    grid: GridTables | None = None
    kernel: Kernel = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", self.gram.kernel)

    def __repr__(self) -> str:
        n, m = self.sites.targets.shape
        return f"GP({self.kernel!r}, examples={n}, outputs={m}, variance={self.variance_method!r})"

    @classmethod
    def fit(
        cls,
        gram: Gram,
        Y: Array,
        noise: Array,
        *,
        weight: Array | None = None,
        mean: PriorMean | None = None,
        inference: Inference = "regression",
        solving: Solving = SOLVING,
        approximation: Approximating = EXACT,
    ) -> GP:
        """Find sites and solution; an approximate mean takes no solution of a regression.

        Parameters
        ----------
        gram : Gram
            K of the examples.
        Y : array (n, m)
            Targets, or labels ±1.
        noise : array (n, 1) or (n, m)
            Of an example with all its copies.
        weight, mean, inference, solving, approximation : optional
            Fields of a `GP`; `mean` is its prior mean.

        Returns
        -------
        GP
            The posterior.
        """
        before = None if mean is None else mean.values
        if inference != "regression":
            sites, solution = infer(gram, Y, noise, weight, inference, solving, before)
        else:
            Y = Y if before is None else Y - before
            sites, solution = Sites.of_regression(Y, noise, weight), unsolved(Y, noise)
            if "exact" in (approximation.mean, approximation.variance):
                labels = solving.leave_one_out
                solver = labels_by(solving.solver, gram, noise, Y.shape[1]) if labels else solving.solver
                solution = solve(gram, noise, Y, replace(solving, solver=solver))
        gp = cls(gram, sites, solution, weight, inference, replace(solving, start=None), approximation, mean)
        if approximation.mean != "exact":
            solution = replace(solution, alpha=gp.inverse.mean.weights(sites.targets))
        return gp if approximation.mean == "exact" else gp._changed(gp.inverse, solution=solution)

    @cached_property
    def inverse(self) -> Inverse:
        """(K + N)⁻¹, exact and approximated."""
        known = self.gram, self.sites.noise, self.solution.factors, self.weight
        return Inverse(*known, self.inference, self.solving, self.approximation)

    @cached_property
    def tables(self) -> PiecewiseTables | GridTables | None:
        if self.grid is not None or not isinstance(self.gram, TabledGram):
            return self.grid
        gram, rows = self.inverse.carrying
        assert isinstance(gram, TabledGram)
        return gram.tables(self.solution.alpha[rows])

    @property
    def variance_method(self) -> Method | None:
        return self.inverse.variance_method

    @property
    def support(self) -> Array | None:
        """Numbers of the examples that carry α or enter the variance, ascending: new rows need no others. None: all."""
        return self.inverse.support

    def mean(self, X: Any) -> Array:
        if isinstance(self.gram, TabledGram):
            return plus(self.prior_mean, X, walk(self.gram, self.tables, X))
        gram, rows = self.inverse.carrying
        alpha = self.solution.alpha[rows]
        return plus(self.prior_mean, X, np.concatenate([k_star.T @ alpha for k_star, _ in new_columns(gram, X)]))

    def variance(self, X: Any) -> Array:
        if self.inverse.tabled is not None:
            return unexplained(self.inverse.norms, self.inverse.tabled.features(X))
        method, gram = self.inverse.variance, self.inverse.explaining
        return np.concatenate([method.variance(k_star, prior) for k_star, prior in new_columns(gram, X)])

    def mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        if (tabled := self.inverse.tabled) is not None:
            features = tabled.features(X)
            mean, variance = walk(tabled, self.tables, X, features), unexplained(self.inverse.norms, features)
            return plus(self.prior_mean, X, mean), variance
        method, (gram, rows) = self.inverse.variance, self.inverse.carrying
        if isinstance(self.gram, TabledGram) or self.inverse.explaining is not gram:
            return self.mean(X), self.variance(X)
        alpha, columns = self.solution.alpha[rows], new_columns(gram, X)
        found = [(k_star.T @ alpha, method.variance(k_star, prior)) for k_star, prior in columns]
        mean, variance = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return plus(self.prior_mean, X, mean), variance

    def prepare(self) -> None:
        """Compute now what the variance needs, and not at the first question."""
        _ = self.inverse.norms if self.inverse.tabled is not None else self.inverse.variance

    def with_variance(self, method: Method | None) -> GP:
        """Use another approximation of the variance, or none (None).

        Parameters
        ----------
        method : str or None
            Its name.

        Returns
        -------
        GP
            A copy with the same mean.
        """
        return self._changed(
            self.inverse.with_variance(method), approximation=replace(self.approximation, variance=method)
        )

    def quantized(self, bins: int) -> GP:
        tables = check_bins(self.tables, bins)
        assert isinstance(self.gram, TabledGram)
        return self._changed(self.inverse, grid=quantize(tables, self.gram.tops, self.gram.features, bins))

    def _changed(self, inverse: Inverse, **changes: Any) -> GP:
        """A copy; what is ready of the inverse is ready there too."""
        new = replace(self, **changes)
        new.__dict__["inverse"] = inverse
        if "tables" in self.__dict__ and new.grid is self.grid:
            new.__dict__["tables"] = self.tables
        return new

    def compressed(self) -> Compressed:
        return compress(self)

    def extended(
        self,
        X: Any,
        Y: Array,
        noise: Array,
        weight: Array | None = None,
        *,
        mean: PriorMean | None = None,
        kernel: Kernel | None = None,
        start: Array | None = None,
    ) -> GP:
        n, gram = self.gram.shape[0], self.gram.append(X, weight)
        gram = gram if kernel is None else gram.with_kernel(kernel, weight)
        mean = self.prior_mean.appended(X) if mean is None and self.prior_mean is not None else mean
        if self.inverse.grows_to(gram, noise):
            with suppress(InvalidInput), blas_threads_for(n):  # made anew where rounding spoils a factor that grows
                targets = Y if mean is None else Y - mean.values
                solution, sites = (
                    grown(self.solution, gram, noise, targets),
                    Sites.of_regression(targets, noise, weight),
                )
                return GP(gram, sites, solution, weight, self.inference, self.solving, self.approximation, mean)
        if start is None and Y.shape[1] == self.solution.alpha.shape[1]:
            start = np.vstack([self.solution.alpha, np.zeros((len(Y) - n, Y.shape[1]))])
        how: dict[str, Any] = {
            "inference": self.inference,
            "solving": replace(self.solving, start=start),
            "approximation": self.approximation,
        }
        return GP.fit(gram, Y, noise, weight=weight, mean=mean, **how)

    def covariance(self, X: Any) -> list[Array]:
        prior = self.kernel(X)
        return [prior - explained for explained in self.inverse.exact.covariances(self.gram.cross(X))]

    def sample(self, X: Any, count: int, rng: np.random.Generator) -> Array:
        return plus(self.prior_mean, X, sample(self, X, count, rng))

    def evidence(self, method: str = "auto") -> Evidence:
        factors = self.inverse.factors if method in ("auto", "exact") else self.solution.factors
        known: dict[str, Any] = {"method": method, "rng": self.solving.rng(), "factors": factors}
        alpha, sites = self.inverse.alpha(self.sites, self.solution), self.sites
        found = log_marginal_likelihood(self.gram, sites.noise, sites.targets, alpha, **known)
        return replace(found, value=found.value + sites.log_norm)

    @property
    def relevance(self) -> Array:
        return deviations(self.gram, self.solution.alpha, self.weight)

    @cached_property
    def refitted(self) -> tuple[Array, Array]:
        """Mean and variance of every example by a posterior without it, less the prior mean."""
        return examples.refit(self)

    @cached_property
    def recentred(self) -> tuple[Array, Array]:
        """Mean and variance of every example where the centre of the kernel goes without it, less the prior mean."""
        return examples.recentre(self)

    def left_out(self, rows: Array, X: Any = None) -> tuple[Array, Array]:
        mean, variance = examples.moments(self, rows, X)
        return plus_values(self.prior_mean, rows, mean), variance

    def leave_one_out(self) -> tuple[Array, Array]:
        mean, variance = examples.exact_moments(self)
        return plus_values(self.prior_mean, slice(None), mean), variance

    def left_out_mean(self, rows: Array, X: Any = None) -> Array:
        return plus_values(self.prior_mean, rows, examples.mean_alone(self, rows, X))

    def left_out_variance(self, exact: Array | None, most: int) -> tuple[Array, Array]:
        return examples.variance_alone(self, exact, most)

    def comparable(self, most: int | None = None) -> Array:
        return examples.comparable(self, most)
