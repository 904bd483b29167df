"""The fitted Gaussian process: kernel matrix, Gaussian sites and solution, and every question about the posterior.

gram      K of the training examples, known by what it can do       kernels/gram.py
sites     targets t and noise N that stand for the likelihood       sites.py
solution  α = (K + N)⁻¹t, and the factor of K + N if there is one   regression.py

mean = k*ᵀα,   variance = k** − k*ᵀ(K + N)⁻¹k*,   H (2), A (2)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.inference.approximation import Approximating, Method
from saccade.inference.base import Apart, Approximation, Explains, Trained
from saccade.inference.compressed import Compressed, no_variance, not_in_tables, unexplained, walk
from saccade.inference.evidence import Evidence, log_marginal_likelihood
from saccade.inference.exact import Exact
from saccade.inference.infer import Inference, Solving, infer
from saccade.inference.leave_one_out import leave_one_out
from saccade.inference.left_out import left_out_by
from saccade.inference.low_rank import LowRank, hold_out
from saccade.inference.posterior import Posterior, check_bins
from saccade.inference.regression import Solution, grown, is_direct, keeps_factors, solve, unsolved
from saccade.inference.relevance import spread
from saccade.inference.sampling import sample_intersection, sample_normal
from saccade.inference.sites import Sites
from saccade.kernels.base import Kernel
from saccade.kernels.gram import Gram, TabledGram
from saccade.operators.norms import NormTables, norm_tables
from saccade.operators.tables import GridTables, PiecewiseTables, quantize
from saccade.solvers.cg import solve_cg

SOLVING, EXACT = Solving(), Approximating()


@dataclass(frozen=True, eq=False, repr=False)
class GP(Posterior):
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
        leave_one_out: bool = False,  # whether leave-one-out predictions of all examples will be wanted
    ) -> GP:
        """Sites and solution; an approximate mean takes no solution of a regression."""
        if inference != "regression":
            sites, solution = infer(gram, Y, noise, weight, inference, solving)
        else:
            sites, solution = Sites.of_regression(Y, noise, weight), unsolved(Y, noise)
            if "exact" in (by.mean, by.variance):
                solution = solve(gram, noise, Y, start=start, leave_one_out=leave_one_out, **solving.options)
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
        return self.by.variance_method(self.gram.has_tables, self.gram.shape[0], bool(self.solution.factors))

    @property
    def _tabled(self) -> TabledGram | None:
        """The kernel matrix behind the tables of the variance; None where the variance is not from tables."""
        return self.gram if self.variance_method == "lowrank" and isinstance(self.gram, TabledGram) else None

    def mean(self, X: Any) -> Array:
        if isinstance(self.gram, TabledGram):
            return walk(self.gram, self.tables, X)
        return np.concatenate([k_star.T @ self.solution.alpha for k_star, _ in self._columns(X)])

    def variance(self, X: Any) -> Array:
        if self._tabled is not None:
            return unexplained(self.norms, self._tabled.features(X))
        return np.concatenate([self._variance.variance(k_star, prior) for k_star, prior in self._columns(X)])

    def mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Both at once: kernel values or features are computed once."""
        if self._tabled is not None:
            features = self._tabled.features(X)
            return walk(self._tabled, self.tables, X, features), unexplained(self.norms, features)
        if isinstance(self.gram, TabledGram):
            return self.mean(X), self.variance(X)
        alpha, method = self.solution.alpha, self._variance
        found = [(k_star.T @ alpha, method.variance(k_star, prior)) for k_star, prior in self._columns(X)]
        mean, variance = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return mean, variance

    def prepare(self) -> None:
        """Compute now what the variance needs, and not at the first question."""
        _ = self.norms if self._tabled is not None else self._variance

    def _columns(self, X: Any) -> Iterator[tuple[Array, Array]]:  # (n, some), (some,)
        """k* and k** of the rows of X, some at a time."""
        at_once = max(limits.KERNEL_VALUES_AT_ONCE // max(self.gram.shape[0], 1), limits.NEW_AT_LEAST)
        for rows in gen_batches(X.shape[0], min(at_once, limits.NEW_AT_ONCE)):
            new = X[rows].astype(np.float64)
            yield self.gram.cross(new), self.kernel.diag(new)
            report("predicting", rows.stop / X.shape[0])

    # ---- approximations

    @property
    def _trained(self) -> Trained:
        solving = self.solving
        return Trained(self.gram, self.sites.noise, self.solution.factors, solving.tol, solving.max_iter)

    def _rng(self) -> np.random.Generator:
        """The same numbers every time."""
        return np.random.default_rng(self.solving.seed)

    def _ready(self, method: Method) -> Explains:
        held_out = self._held_out() if method == "lowrank" else None
        return self.by.ready(method, self._trained, held_out, self._rng(), apart=self.inference != "regression")

    @cached_property
    def _mean(self) -> Approximation:
        """The approximation behind the mean."""
        found = self._ready(self.by.mean)
        assert isinstance(found, Approximation)
        return found

    @cached_property
    def _variance(self) -> Explains:
        """The approximation behind the variance."""
        if self.variance_method is None:
            no_variance()
        return self._mean if self.variance_method == self.by.mean else self._ready(self.variance_method)

    @cached_property
    def norms(self) -> tuple[NormTables, ...]:
        """The tables of a low-rank variance, which a model file keeps: one, or one for each output."""
        assert isinstance(self.gram, TabledGram)
        known = self._variance if self.variance_method == "lowrank" else self._ready("lowrank")
        parts = known.parts if isinstance(known, Apart) else (known,)
        return tuple(norm_tables(self.gram.operator, part.W) for part in parts if isinstance(part, LowRank))

    def _held_out(self) -> Array | None:
        """The examples that stay new to a low rank, for new ones to be compared with."""
        if not self.by.compares:
            return None
        n, pool = self.gram.shape[0], self.gram.given
        return hold_out(np.arange(n) if pool is None else pool, n, self.by.rank, self._rng())

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

    # ---- training examples as if they had not been there

    def leave_one_out(self) -> tuple[Array, Array]:  # (n, m), and (n, 1) or (n, m)
        """Mean and variance of every example without one copy of it, by the exact mean (closed form)."""
        sites, found = self.sites, self.solution
        return leave_one_out(sites.targets, found.alpha, found.inverse_diagonal, sites.noise, self.weight)

    def left_out(
        self,
        rows: Array,  # (b,) numbers of training examples, ascending
        X: Any = None,  # (b, d): the same as they came; None asks `gram.as_given`
    ) -> tuple[Array, Array]:
        """By the approximations of mean and variance.

        In closed form, for examples as the kernel matrix has them and without the slack of tables. Where new examples
        are judged otherwise, the difference that makes for each of these is added: new and old ones are judged alike.
        Of an example with a weight, one copy is left out; of one that a low rank holds out, all are.
        """
        X = self.gram.as_given(rows) if X is None else X
        if not isinstance(self._variance, Approximation):
            raise InvalidInput(f'variance="{self.variance_method}" cannot leave examples out. Use "auto" or "lowrank".')
        mean, variance, with_itself = self._left_out_by(self._variance, rows)
        if self._rounded or self._tabled is not None:
            shifted = variance + self.variance(X) - with_itself
            variance = np.clip(shifted, 0.0, self.kernel.diag(X)[:, None])
        if self.by.mean == self.variance_method:
            return mean + self.mean_shift(rows, X), variance
        return self.left_out_mean(rows, X), variance

    def left_out_mean(self, rows: Array, X: Any = None) -> Array:  # (b, m)
        """The mean alone, which takes no variance."""
        known = self.by.mean == "exact" and not np.isnan(self.solution.error)
        mean = self.leave_one_out()[0][rows] if known else self._left_out_by(self._mean, rows)[0]
        return np.asarray(mean + self.mean_shift(rows, X))

    @property
    def _rounded(self) -> bool:
        """Whether the kernel matrix has examples rounded to levels."""
        return self.gram.given is not None

    def mean_shift(self, rows: Array, X: Any = None) -> Array | float:  # (b, m)
        """What levels and quantised tables change about the mean at training examples."""
        if not self._rounded and self.grid is None:
            return 0.0
        X = self.gram.as_given(rows) if X is None else X
        return np.asarray(self.mean(X) - self.gram.matmul(self.solution.alpha)[rows])

    def _left_out_by(self, method: Approximation, rows: Array) -> tuple[Array, Array, Array]:
        return left_out_by(method, self.gram, self.sites, self.weight, rows)

    def left_out_variance(
        self,
        exact: Array | None,  # (n, 1) or (n, m): without each example, where it is known
        most: int,
    ) -> tuple[Array, Array]:  # (b,), and (b, 1) or (b, m)
        """Numbers of training examples and their variance, each as if it had not been there."""
        if exact is not None and self.variance_method == "exact":
            return np.arange(len(exact)), exact
        rows = self.comparable(most)
        if exact is None or isinstance(self._variance, Approximation):
            return rows, self.left_out(rows)[1]
        # "fine" cannot leave an example out: take the larger of its variance with the example and the exact one without
        return rows, np.maximum(exact[rows], self.variance(self.gram.as_given(rows)))

    def comparable(
        self,
        most: int | None = None,  # None for all
    ) -> Array:  # (b,)
        """Numbers of the training examples that new ones are to be compared with, as `left_out` has them."""
        methods: list[Explains] = [] if self.by.mean == "exact" else [self._mean]
        methods += [] if self.variance_method is None else [self._variance]
        pools = [self.gram.given, *(method.comparable() for method in methods)]
        rows = reduce(np.intersect1d, [pool for pool in pools if pool is not None], np.arange(self.gram.shape[0]))
        return rows if most is None or rows.size <= most else np.sort(self._rng().choice(rows, most, replace=False))

    # ---- the whole posterior

    def covariance(self, X: Any) -> list[Array]:
        """Exact, whatever approximates the variance."""
        prior = self.kernel(X)
        return [prior - explained for explained in Exact(self._trained).covariances(self.gram.cross(X))]

    def sample(self, X: Any, count: int, rng: np.random.Generator) -> Array:
        """Exact; outputs are independent of each other."""
        gram, noise, targets = self.gram, self.sites.noise, self.sites.targets
        if isinstance(gram, TabledGram):
            train, new = gram.features(gram.rows()), gram.features(X)
            return sample_intersection(gram.operator, train, new, noise, targets, self._solve, count, rng)
        covariance, mean = self.covariance(X), gram.cross(X).T @ self._exact_alpha()
        draws = [
            sample_normal(mean[:, j], covariance[min(j, len(covariance) - 1)], count, rng) for j in range(mean.shape[1])
        ]
        return np.stack(draws, axis=1)

    def _solve(self, B: Array, j: int) -> Array:  # (n, k)
        """(K + N)⁻¹B for column j of the noise."""
        if self.solution.factors:
            return self.solution.factors[j].solve(B)
        solving = self.solving
        return solve_cg(self.gram, self.sites.noise[:, [j]], B, tol=solving.tol, max_iter=solving.max_iter).x

    def evidence(self, method: str = "auto") -> Evidence:
        """That of kernel and noise, whatever approximates the posterior."""
        sites = self.sites
        options: dict[str, Any] = {"method": method, "rng": self._rng(), "factors": self.solution.factors}
        found = log_marginal_likelihood(self.gram, sites.noise, sites.targets, self._exact_alpha(), **options)
        return replace(found, value=found.value + sites.log_norm)

    def _exact_alpha(self) -> Array:  # (n, m)
        """(K + N)⁻¹t, whatever approximates the mean."""
        if self.by.mean == "exact":
            return self.solution.alpha
        if self.solution.factors:
            return Exact(self._trained).weights(self.sites.targets)
        return self.solving(self.gram, self.sites.noise, self.sites.targets, leave_one_out=False).alpha

    @property
    def relevance(self) -> Array:
        """The standard deviation of f_d over the examples, of f(x) = Σ_d f_d(x_d)."""
        if not isinstance(self.gram, TabledGram):
            raise AttributeError(
                "feature_relevance_ needs a fitted HIK model with its training examples, and other kernels are no sums "
                "over features. sklearn.inspection.permutation_importance serves any model."
            )
        weight = np.ones(self.gram.shape[0]) if self.weight is None else self.weight
        assert self._piecewise is not None
        return spread(self.gram.operator, self._piecewise, weight, self.gram.width)

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
            with suppress(InvalidInput):  # rounding may spoil a factor that grows; it is made anew then
                solution, sites = grown(self.solution, gram, noise, Y), Sites.of_regression(Y, noise, weight)
                return GP(gram, sites, solution, weight, self.inference, self.solving, self.by)
        options: dict[str, Any] = {"inference": self.inference, "solving": self.solving, "by": self.by}
        return GP.fit(gram, Y, noise, weight=weight, **options, start=start, leave_one_out=leave_one_out)
