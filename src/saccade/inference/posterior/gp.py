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
from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.blas import blas_threads_for
from saccade._core.errors import InvalidInput
from saccade.inference.approximations.base import new_columns
from saccade.inference.approximations.by_name import Approximating, Method
from saccade.inference.leave_one_out import examples
from saccade.inference.likelihoods.infer import Inference, Solving, infer
from saccade.inference.likelihoods.sites import Sites
from saccade.inference.posterior.base import Posterior
from saccade.inference.posterior.compressed import Compressed, check_bins, not_in_tables, unexplained, walk
from saccade.inference.posterior.evidence import Evidence, log_marginal_likelihood
from saccade.inference.posterior.inverse import Inverse
from saccade.inference.posterior.prior_mean import PriorMean, plus
from saccade.inference.posterior.relevance import deviations, no_relevance
from saccade.inference.posterior.sampling import sample_intersection, sample_outputs
from saccade.inference.solving.regression import Solution, grown, solve, unsolved
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
    by : Approximating
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
    weight: Array | None = None  # (n,)
    inference: Inference = "regression"
    solving: Solving = SOLVING
    by: Approximating = EXACT
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
        by: Approximating = EXACT,
    ) -> GP:
        """Find sites and solution; an approximate mean takes no solution of a regression.

        Labels are iterated where that is far quicker than a factor, which is then made when a question needs it.

        Parameters
        ----------
        gram : Gram
            K of the examples.
        Y : array (n, m)
            Targets, or labels ±1.
        noise : array (n, 1) or (n, m)
            Of an example with all its copies.
        weight, mean, inference, solving, by
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
            if "exact" in (by.mean, by.variance):
                labels = solving.leave_one_out
                solver = labels_by(solving.solver, gram, noise, Y.shape[1]) if labels else solving.solver
                options: dict[str, Any] = solving.options | {"solver": solver, "leave_one_out": labels}
                solution = solve(gram, noise, Y, start=solving.start, **options)
        gp = cls(gram, sites, solution, weight, inference, replace(solving, start=None), by, mean)
        if by.mean == "exact":
            return gp
        alpha = gp.inverse.mean.weights(sites.targets)
        return gp._changed(gp.inverse, solution=replace(solution, alpha=alpha))

    # ---- mean and variance

    @cached_property
    def _piecewise(self) -> PiecewiseTables | None:
        return self.gram.tables(self.solution.alpha) if isinstance(self.gram, TabledGram) else None

    @property
    def tables(self) -> PiecewiseTables | GridTables | None:
        return self._piecewise if self.grid is None else self.grid

    @cached_property
    def inverse(self) -> Inverse:
        """(K + N)⁻¹, exact and approximated."""
        how = self.weight, self.inference, self.solving, self.by
        return Inverse(self.gram, self.sites.noise, self.solution.factors, *how)

    @property
    def variance_method(self) -> Method | None:
        return self.inverse.variance_method

    @property
    def tabled(self) -> TabledGram | None:
        """The kernel matrix behind the tables of the variance; None where the variance is not from tables."""
        return self.gram if self.variance_method == "lowrank" and isinstance(self.gram, TabledGram) else None

    @property
    def support(self) -> Array | None:
        """Numbers of the examples that carry α or enter the variance, ascending; None for all.

        A kernel without tables compares new rows with these alone: r of n with inducing examples or a subset.
        """
        return self.inverse.support

    def mean(self, X: Any) -> Array:
        return plus(self.prior_mean, X, self.learned(X))

    def learned(self, X: Any) -> Array:
        if isinstance(self.gram, TabledGram):
            return walk(self.gram, self.tables, X)
        gram, rows = self.inverse.carrying
        alpha = self.solution.alpha[rows]
        return np.concatenate([k_star.T @ alpha for k_star, _ in new_columns(gram, X)])

    def variance(self, X: Any) -> Array:
        if self.tabled is not None:
            return unexplained(self.inverse.norms, self.tabled.features(X))
        method, gram = self.inverse.variance, self.inverse.explaining
        return np.concatenate([method.variance(k_star, prior) for k_star, prior in new_columns(gram, X)])

    def mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        if self.tabled is not None:
            features = self.tabled.features(X)
            mean, variance = walk(self.tabled, self.tables, X, features), unexplained(self.inverse.norms, features)
            return plus(self.prior_mean, X, mean), variance
        method, (gram, rows) = self.inverse.variance, self.inverse.carrying
        if isinstance(self.gram, TabledGram) or self.inverse.explaining is not gram:
            return self.mean(X), self.variance(X)
        alpha = self.solution.alpha[rows]
        found = [(k_star.T @ alpha, method.variance(k_star, prior)) for k_star, prior in new_columns(gram, X)]
        mean, variance = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return plus(self.prior_mean, X, mean), variance

    def prepare(self) -> None:
        """Compute now what the variance needs, and not at the first question."""
        _ = self.inverse.norms if self.tabled is not None else self.inverse.variance

    # ---- copies

    def with_variance(self, method: Method | None) -> GP:
        """Use another approximation of the variance.

        Parameters
        ----------
        method : str or None
            Its name; None for no variance.

        Returns
        -------
        GP
            A copy with the same mean.
        """
        return self._changed(self.inverse.with_variance(method), by=replace(self.by, variance=method))

    def quantized(self, bins: int) -> GP:
        tables = check_bins(self.tables, bins)
        assert isinstance(self.gram, TabledGram)
        return self._changed(self.inverse, grid=quantize(tables, self.gram.tops, self.gram.features, bins))

    def _changed(self, inverse: Inverse, **changes: Any) -> GP:
        """A copy with changes that leave α's tables as they are; what is ready of the inverse is ready there too."""
        new = replace(self, **changes)
        new.__dict__.update({"inverse": inverse}, **{k: v for k, v in self.__dict__.items() if k == "_piecewise"})
        return new

    def compressed(self) -> Compressed:
        if not isinstance(self.gram, TabledGram):
            not_in_tables(self.kernel)
        norms = None if self.variance_method is None else self.inverse.norms
        assert self.tables is not None
        mean = None if self.prior_mean is None else self.prior_mean.function
        return Compressed(self.gram.kernel, self.tables, norms, self.gram.tops, mean)

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
                sites, solution = (
                    Sites.of_regression(targets, noise, weight),
                    grown(self.solution, gram, noise, targets),
                )
                return GP(gram, sites, solution, weight, self.inference, self.solving, self.by, mean)
        if start is None and Y.shape[1] == self.solution.alpha.shape[1]:
            start = np.vstack([self.solution.alpha, np.zeros((len(Y) - n, Y.shape[1]))])
        options: dict[str, Any] = {"inference": self.inference, "solving": replace(self.solving, start=start)}
        return GP.fit(gram, Y, noise, weight=weight, mean=mean, by=self.by, **options)

    # ---- the whole posterior: exact, whatever approximates mean and variance

    @property
    def _alpha(self) -> Array:
        known = self.by.mean == "exact" and (self.solution.factors or not self.inverse.factored)
        return self.solution.alpha if known else self.inverse.alpha(self.sites.targets)

    def covariance(self, X: Any) -> list[Array]:
        prior = self.kernel(X)
        return [prior - explained for explained in self.inverse.exact.covariances(self.gram.cross(X))]

    def sample(self, X: Any, count: int, rng: np.random.Generator) -> Array:
        gram, noise, targets = self.gram, self.sites.noise, self.sites.targets
        if isinstance(gram, TabledGram):
            train, new = gram.features(gram.rows()), gram.features(X)
            drawn = sample_intersection(gram.operator, train, new, noise, targets, self.inverse.solve, count, rng)
        else:
            drawn = sample_outputs(gram.cross(X).T @ self._alpha, self.covariance(X), count, rng)
        return plus(self.prior_mean, X, drawn)

    def evidence(self, method: str = "auto") -> Evidence:
        sites, rng = self.sites, self.solving.rng()
        factors = self.inverse.factors if method in ("auto", "exact") else self.solution.factors
        known: dict[str, Any] = {"method": method, "rng": rng, "factors": factors}
        found = log_marginal_likelihood(self.gram, sites.noise, sites.targets, self._alpha, **known)
        return replace(found, value=found.value + sites.log_norm)

    @property
    def relevance(self) -> Array:
        if not isinstance(self.gram, TabledGram):
            no_relevance()
        assert self._piecewise is not None
        return deviations(self.gram.operator, self._piecewise, self.weight, self.gram.width)

    # ---- training examples, each as if it had not been there: leave_one_out/examples.py

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
        return self._with_prior(mean, rows), variance

    def leave_one_out(self) -> tuple[Array, Array]:
        mean, variance = examples.exact_moments(self)
        return self._with_prior(mean), variance

    def left_out_mean(self, rows: Array, X: Any = None) -> Array:
        return self._with_prior(examples.mean_alone(self, rows, X), rows)

    def left_out_variance(self, exact: Array | None, most: int) -> tuple[Array, Array]:
        return examples.variance_alone(self, exact, most)

    def comparable(self, most: int | None = None) -> Array:
        return examples.comparable(self, most)

    def _with_prior(self, mean: Array, rows: Array | slice = slice(None)) -> Array:
        """With the prior mean at training examples."""
        return mean if self.prior_mean is None else mean + self.prior_mean.values[rows]
