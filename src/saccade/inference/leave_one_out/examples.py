"""What a fitted process says of its training examples, each as if it had not been there."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.inference.approximations.base import Approximation, RegularizedSystem, VarianceApproximation, outputs
from saccade.inference.approximations.by_name import Approximating
from saccade.inference.approximations.exact import Exact
from saccade.inference.leave_one_out.by_approximation import left_out_by
from saccade.inference.leave_one_out.centre import without_each
from saccade.inference.leave_one_out.closed_form import leave_one_out
from saccade.inference.likelihoods.sites import Sites
from saccade.inference.posterior.base import Posterior
from saccade.inference.solving.regression import Solution
from saccade.kernels.gram import Gram, TabledGram
from saccade.operators.tables import GridTables


class LeftOut(Posterior):
    """The part of `GP` about training examples; gp.py has the fields and the approximations."""

    gram: Gram
    sites: Sites
    solution: Solution
    weight: Array | None  # (n,)
    by: Approximating
    grid: GridTables | None

    @property
    @abstractmethod
    def _mean(self) -> Approximation:
        """The approximation behind the mean."""

    @property
    @abstractmethod
    def _variance(self) -> VarianceApproximation:
        """The approximation behind the variance."""

    @property
    @abstractmethod
    def _tabled(self) -> TabledGram | None:
        """The kernel matrix behind the tables of the variance; None where the variance is not from tables."""

    @property
    @abstractmethod
    def _trained(self) -> RegularizedSystem: ...

    @abstractmethod
    def _rng(self) -> np.random.Generator:
        """The same numbers every time."""

    @abstractmethod
    def _solve(self, B: Array, j: int) -> Array:  # (n, k)
        """(K + N)⁻¹B for column j of the noise."""

    @abstractmethod
    def on_some(self, rows: Array) -> LeftOut:
        """The posterior of some of the examples, with a kernel settled on these alone."""

    def leave_one_out(self) -> tuple[Array, Array]:  # (n, m), and (n, 1) or (n, m)
        """Mean and variance of every example without one copy of it, by the exact mean (closed form)."""
        sites, found = self.sites, self.solution
        if self._has_centre:
            return self._refitted if self.kernel.mixes_centre else self._recentred
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
        if self._has_centre:
            exact = not self.kernel.mixes_centre and self.by.mean == self.variance_method == "exact"
            mean, variance = self._recentred if exact else self._refitted
            return mean[rows], variance[rows]
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
        if self._has_centre and self.by.mean != "exact":
            return self._refitted[0][rows]
        known = self.by.mean == "exact" and not np.isnan(self.solution.error)
        mean = self.leave_one_out()[0][rows] if known else self._left_out_by(self._mean, rows)[0]
        return np.asarray(mean + self.mean_shift(rows, X))

    @property
    def _has_centre(self) -> bool:
        """Whether the kernel has the mean of the training examples in it, which goes with each of them."""
        moves = self.kernel.mixes_centre or self.kernel.centred_part() is not None
        return moves and self.gram.shape[0] > 1

    @cached_property
    def _recentred(self) -> tuple[Array, Array]:  # (n, m), and (n, 1) or (n, m)
        """`leave_one_out` where the mean of the training examples goes without each of them too."""
        sites, part, found = self.sites, self.kernel.centred_part(), list[tuple[Array, Array]]()
        C = None if part is self.kernel or part is None else part(self.gram.all_rows())
        alpha, d = Exact(self._trained).alpha_and_diagonal(np.arange(self.gram.shape[0]), sites.targets)
        for j, noise in enumerate(sites.noise.T):
            solve, (own, Y) = partial(self._solve, j=j), (outputs(A, sites.noise, j) for A in (alpha, sites.targets))
            found.append(without_each(self.gram.diag(), C, noise, solve, d[:, j], own, Y, self.weight))
        return np.hstack([mean for mean, _ in found]), np.column_stack([variance for _, variance in found])

    @cached_property
    def _refitted(self) -> tuple[Array, Array]:  # (n, m), and (n, 1) or (n, m)
        """Mean and variance of every example by a posterior without it; of many, some are left out together."""
        n, found = self.gram.shape[0], list[tuple[Array, Array]]()
        groups = np.array_split(self._rng().permutation(n), min(n, limits.LEFT_OUT_TOGETHER))
        for some in groups:
            found.append(self.on_some(np.setdiff1d(np.arange(n), some)).mean_and_variance(self.gram.rows(some)))
            report("leaving one out", len(found) / len(groups))
        back = np.argsort(np.concatenate(groups), kind="stable")
        mean, variance = (np.concatenate(parts)[back] for parts in zip(*found, strict=True))
        return mean, variance

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
        methods: list[VarianceApproximation] = [] if self.by.mean == "exact" else [self._mean]
        methods += [] if self.variance_method is None else [self._variance]
        pools = [self.gram.given, *(method.comparable() for method in methods)]
        rows = reduce(np.intersect1d, [pool for pool in pools if pool is not None], np.arange(self.gram.shape[0]))
        return rows if most is None or rows.size <= most else np.sort(self._rng().choice(rows, most, replace=False))
