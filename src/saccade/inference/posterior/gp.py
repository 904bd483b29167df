"""The fitted Gaussian process: kernel matrix, Gaussian sites and solution, and every question about the posterior.

gram      K of the training examples, known by what it can do       kernels/gram.py
sites     targets t and noise N that stand for the likelihood       sites.py
solution  α = (K + N)⁻¹t, and the factor of K + N if there is one   regression.py

mean = k*ᵀα,   variance = k** − k*ᵀ(K + N)⁻¹k*,   H (2), A (2)
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
from saccade.inference.approximations.base import (
    Approximation,
    PerOutput,
    RegularizedSystem,
    VarianceApproximation,
    new_columns,
)
from saccade.inference.approximations.by_name import Approximating, Method
from saccade.inference.approximations.exact import Exact
from saccade.inference.approximations.low_rank import LowRank, hold_out
from saccade.inference.leave_one_out.examples import LeftOut
from saccade.inference.likelihoods.infer import Inference, Solving, infer
from saccade.inference.likelihoods.sites import Sites
from saccade.inference.posterior.base import check_bins
from saccade.inference.posterior.compressed import Compressed, no_variance, not_in_tables, unexplained, walk
from saccade.inference.posterior.evidence import Evidence, log_marginal_likelihood
from saccade.inference.posterior.relevance import deviations, no_relevance
from saccade.inference.posterior.sampling import sample_intersection, sample_outputs
from saccade.inference.solving.regression import Solution, grown, is_direct, keeps_factors, solve, unsolved
from saccade.inference.solving.solver_choice import factor_when_asked, labels_by
from saccade.kernels.base import Kernel
from saccade.kernels.gram import Gram, TabledGram
from saccade.operators.norms import NormTables
from saccade.operators.tables import GridTables, PiecewiseTables, quantize
from saccade.solvers.cg import solve_cg
from saccade.solvers.cholesky import Factor, factorise

SOLVING, EXACT = Solving(), Approximating()


@dataclass(frozen=True, eq=False, repr=False)
class GP(LeftOut):
    """The posterior given the training examples. It never changes; what costs time is made when first asked for.

    Parameters
    ----------
    gram, sites, solution
        As above. `GP.fit` finds sites and solution.
    weight : array (n,) or None
        How many equal copies each example stands for.
    inference : "regression", "laplace" or "ep"
    solving : Solving
        How systems with K + N are solved.
    by : Approximating
        Which approximations of (K + N)⁻¹ mean and variance use.
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
        Y: Array,  # (n, m): targets, or labels ±1
        noise: Array,  # (n, 1) or (n, m): of an example with all its copies
        *,
        weight: Array | None = None,  # (n,)
        inference: Inference = "regression",
        solving: Solving = SOLVING,
        by: Approximating = EXACT,
        start: Array | None = None,  # (n, m): a first guess of α
        leave_one_out: bool = False,  # whether leave-one-out predictions of all examples will be wanted, as of labels
    ) -> GP:
        """Sites and solution; an approximate mean takes no solution of a regression.

        Labels are iterated where that is far quicker than a factor, which is then made when a question needs it.
        """
        if inference != "regression":
            sites, solution = infer(gram, Y, noise, weight, inference, solving)
        else:
            sites, solution = Sites.of_regression(Y, noise, weight), unsolved(Y, noise)
            if "exact" in (by.mean, by.variance):
                solver = labels_by(solving.solver, gram, noise, Y.shape[1]) if leave_one_out else solving.solver
                more: dict[str, Any] = solving.options | {"solver": solver, "leave_one_out": leave_one_out}
                solution = solve(gram, noise, Y, start=start, **more)
        gp = cls(gram, sites, solution, weight, inference, solving, by)
        if by.mean == "exact":
            return gp
        return gp._changed("_mean", solution=replace(solution, alpha=gp._mean.weights(sites.targets)))

    # ---- mean and variance

    @cached_property
    def _piecewise(self) -> PiecewiseTables | None:
        return self.gram.tables(self.solution.alpha) if isinstance(self.gram, TabledGram) else None

    @property
    def tables(self) -> PiecewiseTables | GridTables | None:
        return self._piecewise if self.grid is None else self.grid

    @property
    def variance_method(self) -> Method | None:
        """As asked for, or what "auto" stands for."""
        return self.by.variance_method(isinstance(self.gram, TabledGram), self.gram.shape[0], self._factored)

    @property
    def _tabled(self) -> TabledGram | None:
        """The kernel matrix behind the tables of the variance; None where the variance is not from tables."""
        return self.gram if self.variance_method == "lowrank" and isinstance(self.gram, TabledGram) else None

    def mean(self, X: Any) -> Array:
        if isinstance(self.gram, TabledGram):
            return walk(self.gram, self.tables, X)
        return np.concatenate([k_star.T @ self.solution.alpha for k_star, _ in new_columns(self.gram, X)])

    def variance(self, X: Any) -> Array:
        if self._tabled is not None:
            return unexplained(self.norms, self._tabled.features(X))
        return np.concatenate([self._variance.variance(k_star, prior) for k_star, prior in new_columns(self.gram, X)])

    def mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Both at once: kernel values or features are computed once."""
        if self._tabled is not None:
            features = self._tabled.features(X)
            return walk(self._tabled, self.tables, X, features), unexplained(self.norms, features)
        if isinstance(self.gram, TabledGram):
            return self.mean(X), self.variance(X)
        alpha, method = self.solution.alpha, self._variance
        found = [(k_star.T @ alpha, method.variance(k_star, prior)) for k_star, prior in new_columns(self.gram, X)]
        mean, variance = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return mean, variance

    def prepare(self) -> None:
        """Compute now what the variance needs, and not at the first question."""
        _ = self.norms if self._tabled is not None else self._variance

    # ---- approximations

    @property
    def _factored(self) -> bool:
        """Whether there is a factor, or one is made when a question needs it."""
        if self.solution.factors or self.inference != "regression" or "exact" not in (self.by.mean, self.by.variance):
            return bool(self.solution.factors)
        return factor_when_asked(self.solving.solver, self.gram, self.sites.noise)

    @cached_property
    def _factors(self) -> tuple[Factor, ...]:
        """Of K + N, one per column of N; none where they are not to be afforded."""
        if self.solution.factors or not self._factored:
            return self.solution.factors
        K = self.gram.to_dense()
        with blas_threads_for(len(K)):
            return tuple(factorise(K, column) for column in self.sites.noise.T)

    @property
    def _trained(self) -> RegularizedSystem:
        """With the factors there are."""
        factors, solving = self.__dict__.get("_factors", self.solution.factors), self.solving
        return RegularizedSystem(self.gram, self.sites.noise, factors, solving.tol, solving.max_iter, self.weight)

    @cached_property
    def _exact(self) -> Exact:
        """K̃⁻¹ itself, by factors where they are to be afforded."""
        return Exact(replace(self._trained, factors=self._factors))

    def _rng(self) -> np.random.Generator:
        """The same numbers every time."""
        return np.random.default_rng(self.solving.seed)

    def _ready(self, method: Method) -> VarianceApproximation:
        if method == "exact":
            return self._exact
        held_out = self._held_out() if method == "lowrank" else None
        return self.by.ready(method, self._trained, held_out, self._rng(), apart=self.inference != "regression")

    @cached_property
    def _mean(self) -> Approximation:
        """The approximation behind the mean."""
        found = self._ready(self.by.mean)
        assert isinstance(found, Approximation)
        return found

    @cached_property
    def _variance(self) -> VarianceApproximation:
        """The approximation behind the variance."""
        if self.variance_method is None:
            no_variance()
        return self._mean if self.variance_method == self.by.mean else self._ready(self.variance_method)

    @cached_property
    def norms(self) -> tuple[NormTables, ...]:
        """The tables of a low-rank variance, which a model file keeps: one, or one for each output."""
        assert isinstance(self.gram, TabledGram)
        known = self._variance if self.variance_method == "lowrank" else self._ready("lowrank")
        parts = known.parts if isinstance(known, PerOutput) else (known,)
        return self.gram.norm_tables([part.W for part in parts if isinstance(part, LowRank)])

    def on_some(self, rows: Array) -> GP:
        weight, by = None if self.weight is None else self.weight[rows], self.by.on_some(rows)
        gram = self.gram.subset(rows).with_kernel(self.kernel, weight)
        targets, noise = self.sites.targets[rows], self.sites.noise[rows]
        return GP.fit(gram, targets, noise, weight=weight, solving=self.solving, by=by)

    def _held_out(self) -> Array | None:
        """The examples that stay new to a low rank, for new ones to be compared with."""
        if not self.by.compares:
            return None
        n, pool = self.gram.shape[0], self.gram.given
        rank = self.by.directions(1 if self.inference == "regression" else self.sites.noise.shape[1])
        return hold_out(np.arange(n) if pool is None else pool, n, rank, self._rng())

    def with_variance(self, method: Method | None) -> GP:
        """The same with another approximation of the variance."""
        return self._changed("_mean", by=replace(self.by, variance=method))

    def quantized(self, bins: int) -> GP:
        tables = check_bins(self.tables, bins)
        assert isinstance(self.gram, TabledGram)
        grid = quantize(tables, self.gram.tops, self.gram.features, bins)
        return self._changed("_piecewise", "_mean", "_variance", "norms", grid=grid)

    def _changed(self, *kept: str, **changes: Any) -> GP:
        """A copy with changes; what is ready under the names `kept` is ready there too."""
        new = replace(self, **changes)
        new.__dict__.update({name: self.__dict__[name] for name in kept if name in self.__dict__})
        return new

    def compressed(self) -> Compressed:
        """The tables of mean and variance."""
        if not isinstance(self.gram, TabledGram):
            not_in_tables(self.kernel)
        norms = None if self.variance_method is None else self.norms
        assert self.tables is not None
        return Compressed(self.gram.kernel, self.tables, norms, self.gram.tops)

    # ---- the whole posterior

    def covariance(self, X: Any) -> list[Array]:
        """Exact, whatever approximates the variance."""
        prior = self.kernel(X)
        return [prior - explained for explained in self._exact.covariances(self.gram.cross(X))]

    def sample(self, X: Any, count: int, rng: np.random.Generator) -> Array:
        """Exact; outputs are independent of each other."""
        gram, noise, targets = self.gram, self.sites.noise, self.sites.targets
        if isinstance(gram, TabledGram):
            train, new = gram.features(gram.all_rows()), gram.features(X)
            return sample_intersection(gram, train, new, noise, targets, self._solve, count, rng)
        return sample_outputs(gram.cross(X).T @ self._exact_alpha(), self.covariance(X), count, rng)

    def _solve(self, B: Array, j: int) -> Array:  # (n, k)
        """(K + N)⁻¹B for column j of the noise."""
        if self._factors:
            return self._factors[j].solve(B)
        solving = self.solving
        return solve_cg(self.gram, self.sites.noise[:, [j]], B, tol=solving.tol, max_iter=solving.max_iter).x

    def evidence(self, method: str = "auto") -> Evidence:
        """That of kernel and noise, whatever approximates the posterior."""
        sites = self.sites
        factors = self._factors if method in ("auto", "exact") else self.solution.factors
        options: dict[str, Any] = {"method": method, "rng": self._rng(), "factors": factors}
        found = log_marginal_likelihood(self.gram, sites.noise, sites.targets, self._exact_alpha(), **options)
        return replace(found, value=found.value + sites.log_norm)

    def _exact_alpha(self) -> Array:  # (n, m)
        """(K + N)⁻¹t, whatever approximates the mean."""
        if self.by.mean == "exact" and (self.solution.factors or not self._factored):
            return self.solution.alpha
        if self._factors:
            return self._exact.weights(self.sites.targets)
        return self.solving(self.gram, self.sites.noise, self.sites.targets, leave_one_out=False).alpha

    @property
    def relevance(self) -> Array:
        """The standard deviation of f_d over the examples, of f(x) = Σ_d f_d(x_d)."""
        if not isinstance(self.gram, TabledGram):
            no_relevance()
        assert self._piecewise is not None
        return deviations(self.gram, self._piecewise, self.weight)

    def extended(
        self,
        X: Any,  # (b, d): further examples
        Y: Array,  # (n + b, m): of all examples
        noise: Array,  # (n + b, 1) or (n + b, m)
        weight: Array | None = None,  # (n + b,)
        *,
        kernel: Kernel | None = None,  # None: as it is; else settled on all examples
        start: Array | None = None,  # (n + b, m): a first guess of α; None: α as it was, and 0
        leave_one_out: bool = False,
    ) -> GP:
        """The posterior with further examples: a factor grows by them, conjugate gradients start where they ended."""
        n, before = self.gram.shape[0], self.gram
        gram = before.append(X, weight)
        gram = gram if kernel is None else gram.with_kernel(kernel, weight)
        if start is None and Y.shape[1] == self.solution.alpha.shape[1]:
            start = np.vstack([self.solution.alpha, np.zeros((len(Y) - n, Y.shape[1]))])
        same = self.inference == "regression" and noise.shape[1:] == self.sites.noise.shape[1:]
        same = same and np.array_equal(noise[:n], self.sites.noise) and before.extends_to(gram)
        same = same and self.by.mean == "exact" and bool(self.solution.factors) and len(Y) > n
        if same and is_direct(gram, self.solving.solver) and keeps_factors(gram, noise):
            with suppress(InvalidInput), blas_threads_for(n):  # made anew where rounding spoils a factor that grows
                solution, sites = grown(self.solution, gram, noise, Y), Sites.of_regression(Y, noise, weight)
                return GP(gram, sites, solution, weight, self.inference, self.solving, self.by)
        options: dict[str, Any] = {"inference": self.inference, "solving": self.solving, "by": self.by}
        return GP.fit(gram, Y, noise, weight=weight, **options, start=start, leave_one_out=leave_one_out)
