"""What the classifier and the regressor share: one posterior for all columns of Y, and prediction from tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from saccade._core.checks import (
    check_choice,
    check_count,
    check_flag,
    check_levels,
    check_noise,
    check_positive,
    check_range,
    check_weight,
)
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.progress import report
from saccade.estimators import doubt
from saccade.estimators.raw_rows import RawRows, raw_rows
from saccade.estimators.relevance import spread
from saccade.estimators.tuning import Losses, check_tune, density_losses, task
from saccade.inference.ep import ep
from saccade.inference.evidence import Evidence, log_marginal_likelihood, of_copies
from saccade.inference.laplace import laplace
from saccade.inference.regression import DIRECT_BELOW, Posterior, solve
from saccade.inference.search import Tuning
from saccade.inference.sites import METHODS as INFERENCES
from saccade.inference.sites import Sites
from saccade.inference.tune import tune
from saccade.inference.variance import METHODS, choose
from saccade.kernels import HIK, Kernel
from saccade.kernels.base import check_kernel
from saccade.operators.base import Dense, Operator, written_out
from saccade.operators.codes import MAX_LEVELS, Codes, append, column_max, decode, encode, split_signs
from saccade.operators.intersection import Intersection, intersection
from saccade.operators.tables import GridTables, PiecewiseTables, quantize
from saccade.solvers.cholesky import Factor

Array = np.ndarray[Any, np.dtype[Any]]
AT_ONCE = 8_000_000  # kernel values between new and training examples held at a time
DRAFT_FROM = 300  # examples from which conjugate gradients climb faster than a factor a class and step
DEFAULT_SEED = 0  # of the random numbers inside when `random_state` is None
EP_BELOW = 4096  # examples up to which EP takes a factor per class and step
EP_NUMBERS = 2**28  # in all these factors together: 2 GiB
DENSE_LIMIT = 30_000  # examples whose dense kernel matrix (7 GB) we are willing to make


class GaussianProcess(BaseEstimator):
    """Fitting and predicting for any number of outputs; subclasses say what the outputs mean."""

    kernel: Kernel | None
    noise: float
    inference: str = "regression"
    levels: int | None
    binning: str
    solver: str
    tol: float
    max_iter: int
    tune: Any
    variance: str | None
    variance_rank: int
    random_state: Any
    compares_novelty: bool = True  # whether new examples are compared with training examples that the variance left out
    tables_: PiecewiseTables | GridTables | None
    variance_method_: str | None
    kernel_: Any
    noise_: float
    tuning_: Tuning
    changes_: tuple[float, ...]
    _sites: Sites
    _alpha: Array
    _factors: tuple[Factor, ...]
    _codes: Codes
    _tops: Array
    _raw: RawRows | None
    _weight: Array | None
    _calibrated = False  # whether a fit needs leave-one-out predictions of its examples

    def _check_parameters(self) -> Kernel:
        check_noise(self.noise)
        check_positive("tol", self.tol, "The default is 1e-3.")
        check_positive("max_iter", self.max_iter, "The default is 1000.")
        check_levels(self.levels, MAX_LEVELS)
        check_choice("binning", self.binning, ("quantile", "width"))
        check_choice("solver", self.solver, ("auto", "cholesky", "cg"))
        check_flag("balanced", getattr(self, "balanced", False))
        self._variance_wanted()
        check_count("variance_rank", self.variance_rank, "The default is 128.")
        check_choice("inference", self.inference, INFERENCES)
        if check_tune(self.tune) is not None and self.inference != "regression":
            raise InvalidParameter(
                f'`tune` learns from label regression, and `inference` is "{self.inference}". Tune a model with '
                'inference="regression" first, and pass its `kernel_` here.'
            )
        fresh: Kernel = clone(HIK() if self.kernel is None else check_kernel("kernel", self.kernel))
        return fresh

    def _variance_wanted(self) -> str | None:
        check_choice("variance", self.variance, METHODS)
        return self.variance

    @contextmanager
    def _replacing(self) -> Iterator[Self]:
        """A copy to train; it becomes this estimator when the block ends well.

        A failure or an interruption changes nothing, and other threads predict with the old model until then.
        """
        new = copy(self)
        yield new
        self.__dict__ = new.__dict__

    def _join_weight(self, old: int, weight: Array | None, new: int) -> None:
        """Append the weights of `new` examples to those of `old` ones; None stands for ones."""
        if weight is not None or self._weight is not None:
            before = np.ones(old) if self._weight is None else self._weight
            self._weight = np.append(before, np.ones(new) if weight is None else weight)

    def _seed(self) -> int:
        """The seed of every random number inside. None means `DEFAULT_SEED`, so that equal fits give equal answers."""
        return DEFAULT_SEED if self.random_state is None else int(check_random_state(self.random_state).randint(2**31))

    def _rng(self) -> np.random.Generator:
        """The same numbers at every call, unless `random_state` is a RandomState."""
        return np.random.default_rng(self._seed())

    def _noise_diagonal(self, Y: Array, weight: Array | None) -> Array:  # (n, 1) or (n, m)
        noise = np.full((len(Y), 1), self.noise_)
        return noise if weight is None else noise / weight[:, None]

    def _train(self, X: Any, Y: Array, weight: Array | None) -> Posterior:
        """Settle kernel, operator and posterior on checked data."""
        kernel = self._check_parameters()
        report("encoding", 0.0)
        if isinstance(kernel, HIK):
            kernel.check_width(X.shape[1])
            split = split_signs(X)
            self._tops = column_max(split)
            self._codes = encode(split, self.levels, self.binning, weight)
            self._raw = raw_rows(X, self._rng()) if self.compares_novelty and self.levels is not None else None
        else:
            X = X.astype(np.float64)  # a copy: predictions need it as it is now
            self._X = X
        self._settle(kernel, Y, weight)
        return self._solve(Y, weight)

    def _settle(self, kernel: Kernel, Y: Array, weight: Array | None) -> None:
        """The kernel and the noise: as given, or what tuning makes of them."""
        self.noise_ = float(self.noise)
        self.__dict__.pop("tuning_", None)
        options = check_tune(self.tune)
        if options is None:
            self._settle_scale(kernel, weight)
            return
        data: Any = self._codes if isinstance(kernel, HIK) else self._X
        self._check_size(kernel)
        self.noise_ = 1.0
        self.kernel_, self.noise_, self.tuning_ = tune(
            task(
                kernel,
                data,
                self.n_features_in_,
                Y,
                self._noise_diagonal(Y, weight),
                float(self.noise),
                weight,
                self._losses(Y),
                max_iter=self.max_iter,
                seed=self._seed(),
            ),
            options,
        )

    def _settle_scale(self, kernel: Kernel, weight: Array | None) -> None:
        hik = isinstance(kernel, HIK)
        self.kernel_ = kernel.fit_codes(self._codes, weight) if hik else kernel.settled(self._X, weight)

    def _losses(self, Y: Array) -> Losses:
        """How leave-one-out and held-out predictions are judged: by the density of the targets."""
        return density_losses(Y, self._weight)

    def _extend(self, X: Any, Y: Array, weight: Array | None, start: Array) -> Posterior:
        """The posterior with the rows of X appended; α starts where it was."""
        kernel = self._check_parameters()
        if isinstance(kernel, HIK) != hasattr(self, "_codes"):
            raise InvalidParameter("`kernel` must stay of one kind between calls of partial_fit. Call fit instead.")
        if isinstance(kernel, HIK):
            split = split_signs(X)
            self._tops = _larger(self._tops, column_max(split))
            if self._raw is not None:
                self._raw = raw_rows(X, self._rng(), self._raw, self._codes.shape[0])
            self._codes = append(self._codes, split, self.levels, self.binning, weight)
        else:
            self._X = sp.vstack([self._X, X], format="csr") if sp.issparse(X) else np.vstack([_dense(self._X), X])
        if not hasattr(self, "tuning_"):  # what was tuned stays
            self.noise_ = float(self.noise)
            self._settle_scale(kernel, weight)
        return self._solve(Y, weight, start)

    def _operator(self) -> Operator:
        """The kernel matrix of the training examples."""
        if isinstance(self.kernel_, HIK):
            K = intersection(self._codes, self.kernel_.levels)
            with np.errstate(over="ignore"):
                check_range(K.diag())
            return K
        self._check_size(self.kernel_)
        return Dense(self.kernel_(self._X))

    def _check_size(self, kernel: Kernel) -> None:
        n = 0 if isinstance(kernel, HIK) else self._X.shape[0]
        if n > DENSE_LIMIT:
            raise InvalidInput(
                f"{type(kernel).__name__} needs the whole {n} × {n} kernel matrix, too large beyond "
                f"{DENSE_LIMIT} examples. Use HIK(), which needs none, or fewer examples."
            )

    def _submatrix(self, rows: Array) -> Array:
        """The kernel matrix of some training examples."""
        some = decode(self._codes, rows) if isinstance(self.kernel_, HIK) else self._X[rows]
        return np.asarray(self.kernel_(some))

    def _solve(
        self, Y: Array, weight: Array | None, start: Array | None = None, operator: Operator | None = None
    ) -> Posterior:
        operator = self._operator() if operator is None else operator
        sites, posterior = self._infer(operator, Y, weight, start)
        doubt.forget(self)
        self._keep(operator, sites, posterior.alpha, posterior.factors)
        self.n_iter_ = max(posterior.iterations, 1)
        self.residual_ = float(posterior.residual.max(initial=0.0))
        self.converged_ = posterior.converged and sites.converged
        self.rank_ = posterior.rank
        hik = isinstance(operator, Intersection)
        self.variance_method_ = choose(self._variance_wanted(), hik, len(Y), bool(posterior.factors))
        return posterior

    def _keep(self, operator: Operator, sites: Sites, alpha: Array, factors: tuple[Factor, ...]) -> None:
        """What predictions need."""
        self._sites, self._alpha, self._factors = sites, alpha, factors
        self.changes_ = sites.changes
        self.tables_ = operator.tables(alpha) if isinstance(operator, Intersection) else None

    def _exact_weights(self, K: Operator) -> Array:  # (n, m)
        """α of the sites without approximation."""
        return self._alpha

    def _solver(self, K: Operator) -> Callable[..., Posterior]:
        """The posterior of any sites, with the same random numbers every time."""
        seed = self._seed()

        def solved(noise: Array, targets: Array, guess: Array | None, **other: Any) -> Posterior:
            rng = np.random.default_rng(seed)
            options: dict[str, Any] = {"solver": self.solver, "tol": self.tol, "max_iter": self.max_iter} | other
            return solve(K, noise, targets, submatrix=self._submatrix, rng=rng, start=guess, **options)

        return solved

    def _infer(self, K: Operator, Y: Array, weight: Array | None, start: Array | None) -> tuple[Sites, Posterior]:
        """The likelihood as Gaussians, and the posterior under them."""
        if self.inference == "regression":
            noise = self._noise_diagonal(Y, weight)
            posterior = self._solver(K)(noise, Y, start, leave_one_out=self._calibrated)
            return Sites(Y, noise, -of_copies(noise, Y.shape[1], weight)[0]), posterior
        one = 1.0 if weight is None else weight[:, None]
        labels = K.diag(), Y, self._noise_diagonal(Y, weight) * one  # the noise of one copy of an example
        unit = float(np.sqrt(labels[0].mean())) or 1.0
        if self.inference == "ep":
            return ep(*labels, _in_units(unit, self._solver(self._for_cavities(K, Y.shape[1]))), weight)
        solved = self._solver(K)
        draft = self._draft(K, solved)
        return laplace(
            *labels, _in_units(unit, solved), weight, draft=None if draft is None else _in_units(unit, draft)
        )

    def _draft(self, K: Operator, solved: Callable[..., Posterior]) -> Callable[..., Posterior] | None:
        """What Laplace climbs with where it is quicker than `solved`: iterations, and nothing for leave-one-out."""
        n, few = K.shape[0], self.solver == "auto" and K.shape[0] <= DIRECT_BELOW
        if not isinstance(K, Intersection) or self.solver == "cholesky" or (few and n <= DRAFT_FROM):
            return None
        return partial(solved, solver="cg", tol=(0.1 if few else 1.0) * self.tol, leave_one_out=False)

    def _for_cavities(self, K: Operator, columns: int) -> Operator:
        """K written out while factors are affordable: only they have the exact variances that EP needs."""
        n = K.shape[0]
        few = self.solver == "auto" and n <= EP_BELOW and n * n * columns <= EP_NUMBERS
        return Dense(written_out(K)) if few else K

    def _mean(self, X: Any) -> Array:  # (n, m)
        """k*ᵀα for every row of checked X."""
        if self.tables_ is not None:
            return self._walk(self.tables_, X)
        parts = [
            self.kernel_(X[rows].astype(np.float64), self._X) @ self._alpha
            for rows in gen_batches(X.shape[0], max(1, AT_ONCE // self._X.shape[0]))
        ]
        return np.concatenate(parts)

    def _walk(self, tables: PiecewiseTables | GridTables, X: Any) -> Array:
        return tables.walk(
            split_signs(sp.csr_matrix(X)) if isinstance(tables, GridTables) else self.kernel_.features(X)
        )

    def log_marginal_likelihood(self, method: str = "auto") -> Evidence:
        """log p(Y) under the kernel and noise of the fit, all outputs together: larger explains the labels better.

        With inference="laplace" or "ep" it is that approximation of it, for the cumulative-Gaussian likelihood.

        "exact" factorises the matrix; "stochastic" estimates it from products and says its standard error; "bound" is
        below it, by the upper bound of the determinant of H §5.2; "auto" is exact up to 2,048 examples. Compare kernels
        on the same labels only.
        """
        check_is_fitted(self)
        if not hasattr(self, "_sites"):
            raise InvalidInput("A loaded model holds no training examples, and the evidence needs them. Fit it again.")
        sites, K = self._sites, self._operator()
        alpha = self._exact_weights(K)
        found = log_marginal_likelihood(K, sites.noise, sites.targets, alpha, method=method, rng=self._rng())
        return replace(found, value=found.value + sites.log_norm)

    @property
    def feature_relevance_(self) -> Array:  # (d,)
        """How much each feature moves the answer, as shares that sum to 1; for HIK models with their training examples.

        The latent mean of an HIK model is a sum f(x) = Σ_d f_d(x_d) of one function per feature. The relevance of a
        feature is the standard deviation of f_d over the training examples, over all outputs the root of the sum of
        squares: 0 for a feature that is the same for all, or that the model makes nothing of. Two features that
        contradict each other are both relevant, though their sum may move little.

        Other kernels have no such sum, hence no relevance; `sklearn.inspection.permutation_importance` takes any model.
        """
        if not hasattr(self, "_codes"):
            raise AttributeError(
                "feature_relevance_ needs a fitted HIK model with its training examples, and other kernels are no sums "
                "over features. sklearn.inspection.permutation_importance serves any model."
            )
        operator = intersection(self._codes, self.kernel_.levels)
        tables = self.tables_ if isinstance(self.tables_, PiecewiseTables) else operator.tables(self._alpha)
        weight = np.ones(operator.shape[0]) if self._weight is None else self._weight
        found = spread(operator, tables, weight, self.n_features_in_)
        return np.asarray(found / (found.sum() or 1.0))

    def quantized(self, bins: int = 256) -> Self:
        """This fitted model with its mean read off `bins` even steps a dimension: faster and slightly coarser."""
        check_is_fitted(self)
        if not isinstance(self.tables_, PiecewiseTables):
            raise InvalidInput("Only a fitted HIK model that is not quantised yet has tables to quantise.")
        if not isinstance(bins, int) or not 2 <= bins <= 65_536:
            raise InvalidParameter(f"`bins` must be a whole number from 2 to 65536, got {bins!r}. The default is 256.")
        model = copy(self)
        model.tables_ = quantize(self.tables_, self._tops, self.kernel_.features, bins)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _in_units(unit: float, solved: Callable[..., Posterior]) -> Callable[..., Posterior]:
    """The same for targets that are latent values of this size, not labels ±1: the solver's tolerance is for those."""

    def solve(noise: Array, targets: Array, guess: Array | None) -> Posterior:
        found = solved(noise, targets / unit, None if guess is None else guess / unit)
        return replace(found, alpha=unit * found.alpha, residual=unit * found.residual)

    return solve


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def _larger(a: Array, b: Array) -> Array:
    """The elementwise maximum; the shorter one counts as zero beyond its end."""
    out = np.zeros(max(a.size, b.size))
    out[: a.size] = a
    out[: b.size] = np.maximum(out[: b.size], b)
    return out


def weighed(X: Any, y: Array, sample_weight: Any) -> tuple[Any, Array, Array | None]:
    """The examples that count, and their checked weights."""
    weight = check_weight(sample_weight, X)
    if weight is None or weight.all():
        return X, y, weight
    return X[weight > 0], y[weight > 0], weight[weight > 0]
