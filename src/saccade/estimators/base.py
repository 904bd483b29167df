"""What the estimators share: check → targets → GP → calibrate. All that was learned is one object, `gp_`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array
from saccade._core.checks import (
    check_choice,
    check_count,
    check_flag,
    check_levels,
    check_noise,
    check_positive,
    check_rows,
    check_weight,
)
from saccade._core.errors import InvalidParameter
from saccade._core.progress import report
from saccade._core.random_state import draw
from saccade.estimators.explanation import Explanation
from saccade.estimators.losses import DensityLosses
from saccade.inference.approximations.by_name import APPROXIMATIONS, VARIANCES, Approximating, Method
from saccade.inference.likelihoods.infer import Inference, Solving
from saccade.inference.likelihoods.sites import METHODS as INFERENCES
from saccade.inference.posterior.compressed import Compressed
from saccade.inference.posterior.evidence import Evidence
from saccade.inference.posterior.gp import GP
from saccade.inference.posterior.prior_mean import PriorMean
from saccade.inference.solving.regression import Solver
from saccade.inference.tuning.objective import Losses, Task
from saccade.inference.tuning.options import Tuning, check_tune
from saccade.inference.tuning.search import tune
from saccade.kernels import HIK, Kernel
from saccade.kernels.base import check_kernel
from saccade.kernels.engines import MEMORY, Engine
from saccade.kernels.gram import Gram, TabledGram, check_kind
from saccade.operators.tables import GridTables, PiecewiseTables

Binning = Literal["quantile", "width"]
DEFAULT_SEED = 0  # of the random numbers inside when `random_state` is None


class GaussianProcess(BaseEstimator):
    """Fitting and predicting for any number of outputs; subclasses say what the outputs mean."""

    kernel: Kernel | Literal["auto"] | None
    noise: float | Literal["auto"]
    inference: Inference = "regression"
    levels: int | None
    binning: Binning
    balanced: bool = False
    solver: Solver
    tol: float
    max_iter: int
    tune: Any
    approximation: Method | Literal["auto"]
    variance: Method | Literal["auto"] | None = "auto"
    inducing: Any
    variance_rank: int
    random_state: Any
    engine: Engine = MEMORY  # where kernel matrices are held
    noise_free: bool = False  # whether `noise` may be 0
    compares_novelty: bool = True  # whether new examples are compared with training examples that the variance left out
    gp_: GP | Compressed
    kernel_: Kernel
    noise_: float
    tuning_: Tuning | None = None
    n_features_in_: int
    feature_names_in_: Array
    _weight: Array | None
    _coding: tuple[int | None, Binning]
    _before: PriorMean | None = None  # the mean before any example; None: 0
    _calibrated = False  # whether a fit needs leave-one-out predictions of its examples

    # ---- check

    def _check_parameters(self) -> Kernel:
        self._given_noise()
        check_positive("tol", self.tol, "The default is 1e-3.")
        check_positive("max_iter", self.max_iter, "The default is 1000.")
        check_levels(self.levels)
        check_choice("binning", self.binning, ("quantile", "width"))
        check_choice("solver", self.solver, ("auto", "cholesky", "cg"))
        check_flag("balanced", self.balanced)
        check_choice("approximation", self.approximation, ("auto", *APPROXIMATIONS))
        check_choice("variance", self.variance, (None, "auto", *VARIANCES))
        check_count("variance_rank", self.variance_rank, "The default is 128.")
        check_choice("inference", self.inference, INFERENCES)
        if check_tune(self.tune) is not None and self.inference != "regression":
            raise InvalidParameter(
                f'`tune` learns from label regression, and `inference` is "{self.inference}". Tune a model with '
                'inference="regression" first, and pass its `kernel_` here.'
            )
        fresh: Kernel = clone(self._given_kernel())
        return fresh

    def _given_noise(self) -> float:
        """`noise`, or its default where it is to be learned."""
        return check_noise(self.noise, zero=self.noise_free)

    def _given_kernel(self) -> Kernel:
        """`kernel`, or its default where none is given or it is to be chosen."""
        return HIK() if self.kernel is None else check_kernel("kernel", self.kernel)

    @contextmanager
    def _replacing(self) -> Iterator[Self]:
        """A copy to train; it becomes this estimator when the block ends well.

        A failure or an interruption changes nothing, and other threads predict with the old model until then.
        """
        new = copy(self)
        yield new
        self.__dict__ = new.__dict__

    def _seed(self) -> int:
        """The seed of every random number inside. None means `DEFAULT_SEED`, so that equal fits give equal answers."""
        return DEFAULT_SEED if self.random_state is None else draw(self.random_state, 2**31)

    def _rows(self, X: Any) -> Any:
        """New examples, checked, as the kernel takes them."""
        return check_rows(self, X, reset=False)

    # ---- targets

    def _noise_diagonal(self, Y: Array, weight: Array | None) -> Array:  # (n, 1) or (n, m)
        noise = np.full((len(Y), 1), self.noise_)
        return noise if weight is None else noise / weight[:, None]

    def _scatter(self) -> Array | None:  # (n, m)
        """Σ (y − ȳ)² of examples that were joined to one with target ȳ; None where there are none."""
        return None

    def _losses(self, Y: Array) -> Losses:
        """How leave-one-out and held-out predictions are judged: by the density of the targets."""
        return DensityLosses.of(Y, self._weight)

    def _join_weight(self, old: int, weight: Array | None, new: int) -> None:
        """Append the weights of `new` examples to those of `old` ones; None stands for ones."""
        if weight is not None or self._weight is not None:
            before = np.ones(old) if self._weight is None else self._weight
            self._weight = np.append(before, np.ones(new) if weight is None else weight)

    # ---- GP

    def _approximating(self, kernel: Kernel, n: int) -> Approximating:
        """Which approximations mean and variance use: by default the mean is exact."""
        mean: Method = "exact" if self.approximation == "auto" else self.approximation
        return Approximating(mean, self.variance, self.variance_rank, self.inducing, self.compares_novelty)

    def _learn(self, X: Any, Y: Array) -> GP:
        """Kernel, kernel matrix and posterior of checked data."""
        kernel, seed = self._check_parameters(), self._seed()
        by = self._approximating(kernel, len(Y))
        report("encoding", 0.0)
        held = not by.streams or self.inference != "regression" or check_tune(self.tune) is not None
        gram = kernel.gram(
            X, levels=self.levels, binning=self.binning, weight=self._weight, held=held, seed=seed, engine=self.engine
        )
        self.noise_, self.tuning_, self._coding = self._given_noise(), None, (self.levels, self.binning)
        left = Y if self._before is None else Y - self._before.values
        gram = self._chosen(X, self._tuned(kernel, gram, left, seed), left, seed)
        return self._keep(
            GP.fit(
                gram,
                Y,
                self._noise_diagonal(Y, self._weight),
                weight=self._weight,
                mean=self._before,
                inference=self.inference,
                solving=self._solving(seed),
                by=by,
            )
        )

    def _tuned(self, kernel: Kernel, gram: Gram, Y: Array, seed: int) -> Gram:
        """The kernel matrix with what tuning makes of kernel and noise, if it is wanted."""
        options = check_tune(self.tune)
        if options is None:
            return gram
        self.noise_ = 1.0
        shape, losses = self._noise_diagonal(Y, self._weight), self._losses(Y)
        more = (self._weight, self.max_iter, seed, self._scatter())
        task = Task(kernel, gram, Y, shape, self._given_noise(), losses, *more)
        gram, self.noise_, self.tuning_ = tune(task, options)
        return gram

    def _chosen(self, X: Any, gram: Gram, Y: Array, seed: int) -> Gram:
        """The kernel matrix with what "auto" makes of kernel and noise, where an estimator has it."""
        return gram

    def _learn_more(self, X: Any, Y: Array, start: Array) -> GP:
        """The posterior with the rows of X appended; Y is that of all rows."""
        kernel, gp, seed = self._check_parameters(), self._examples(), self._seed()
        keeps = self.tuning_ is not None or self.kernel == "auto"  # what was learned stays
        kernel = gp.kernel if self.kernel == "auto" else kernel
        check_kind(gp.gram, kernel)
        if kernel.has_tables and self._coding != (self.levels, self.binning):
            raise InvalidParameter(
                f"`levels` and `binning` must stay as in the first call, {self._coding}, got "
                f"{(self.levels, self.binning)}. Call fit instead."
            )
        if self.tuning_ is None and self.noise != "auto":
            self.noise_ = self._given_noise()
        by = self._approximating(kernel, len(Y))
        gp = replace(gp, inference=self.inference, solving=self._solving(seed), by=by)
        return self._keep(
            gp.extended(
                X,
                Y,
                self._noise_diagonal(Y, self._weight),
                self._weight,
                mean=self._before,
                kernel=None if keeps else kernel,
                start=start,
            )
        )

    def _solving(self, seed: int) -> Solving:
        return Solving(self.solver, self.tol, self.max_iter, seed, self._calibrated)

    def _keep(self, gp: GP) -> GP:
        """The posterior, and how it was found."""
        self.gp_, self.kernel_, found = gp, gp.kernel, gp.solution
        self.n_iter_ = max(found.iterations, 1)
        self.residual_ = float(found.residual.max(initial=0.0))
        self.converged_ = found.converged and gp.sites.converged
        self.rank_, self.changes_ = found.rank, gp.sites.changes
        return gp

    def _examples(self) -> GP:
        """The posterior with its training examples."""
        check_is_fitted(self)
        if not isinstance(self.gp_, GP):
            self.gp_.needs_examples()
        return self.gp_

    def _why_examples(self, examples: bool | None) -> str | None:
        """Why a file must keep training rows though nobody asked for it; None where it need not or must not."""
        if examples is not None:
            check_flag("examples", examples)
            return None
        has_tables = not isinstance(self.gp_, GP) or isinstance(self.gp_.gram, TabledGram)
        return None if has_tables else f"{type(self.kernel_).__name__} has no tables"

    def _restore_tables(self, tables: Compressed) -> None:
        """What a model file has."""
        self.gp_ = tables

    # ---- what every estimator answers

    @property
    def tables_(self) -> PiecewiseTables | GridTables | None:
        """The mean as tables, where the kernel has some."""
        return self.gp_.tables

    @property
    def variance_method_(self) -> Method | None:
        """The approximation behind the variance."""
        return self.gp_.variance_method

    def log_marginal_likelihood(self, method: str = "auto") -> Evidence:
        """log p(Y) under the kernel and noise of the fit, all outputs together: larger explains the labels better.

        With inference="laplace" or "ep" it is that approximation of it, for the cumulative-Gaussian likelihood.

        "exact" factorises the matrix; "stochastic" estimates it from products and says its standard error; "bound" is
        below it, by the upper bound of the determinant of H §5.2; "auto" is exact up to 2,048 examples. Compare kernels
        on the same labels only.
        """
        check_is_fitted(self)
        return self.gp_.evidence(method)

    @property
    def feature_relevance_(self) -> Array:  # (d,)
        """How much each feature moves the answer, as shares that sum to 1; for HIK models with their training examples.

        The latent mean of an HIK model is a sum f(x) = Σ_d f_d(x_d) of one function per feature. The relevance of a
        feature is the standard deviation of f_d over the training examples, over all outputs the root of the sum of
        squares: 0 for a feature that is the same for all examples, or that the model does not use. Two features that
        contradict each other are both relevant, though their sum may move little.

        Other kernels have no such sum, hence no relevance; `sklearn.inspection.permutation_importance` takes any model.
        """
        if not isinstance(getattr(self, "gp_", None), GP):
            raise AttributeError("feature_relevance_ needs a fitted HIK model with its training examples.")
        found = self.gp_.relevance
        return np.asarray(found / (found.sum() or 1.0))

    def explain(self, X: Any) -> Explanation:
        """The exact share of each feature of the decision about every row of X (n, d); for HIK models, loaded ones too.

        The decision (of `GPRegressor` the prediction) of an HIK model is a sum of one function per feature. Shares and
        offset sum to it, but for rounding: 1e-10, or 1e-5 for quantised tables, which are float32.

        A share tells what the value adds in comparison with a value of 0, and nothing about why. With "laplace" and
        "ep", shares of the mean are divided by √(v + σ²), as the decision is.
        """
        check_is_fitted(self)
        X = self._rows(X)
        values, columns, pointers = self.gp_.shares(X)
        scale, offset = self._additive(X)
        for part, factor in zip(values, scale.T, strict=True):
            part *= factor if len(factor) == 1 else np.repeat(factor, np.diff(pointers))
        # Arrays of their own: SciPy changes a matrix in place, and X must not change with it.
        parts = tuple(sp.csr_matrix((part, columns.copy(), pointers.copy()), shape=X.shape) for part in values)
        return Explanation(parts, offset, len(getattr(self, "classes_", ())) == 2)

    def _additive(self, X: Any) -> tuple[Array, Array]:  # (1, m) or (n, m), (m,) or (n, m)
        """The factor between latent mean and decision, and what is added."""
        return np.ones((1, self._outputs)), np.zeros(self._outputs)

    @property
    def _outputs(self) -> int:
        """The number of columns of the latent mean."""
        tables = self.gp_.tables
        return 1 if tables is None else int(tables.T.shape[1])

    def quantized(self, bins: int = 256) -> Self:
        """This fitted model with its mean read off `bins` even steps per dimension: faster and slightly coarser."""
        check_is_fitted(self)
        model = copy(self)
        model.gp_ = self.gp_.quantized(bins)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def weighed(X: Any, y: Array, sample_weight: Any) -> tuple[Any, Array, Array | None]:
    """The examples that count, and their checked weights."""
    weight = check_weight(sample_weight, X)
    if weight is None or weight.all():
        return X, y, weight
    return X[weight > 0], y[weight > 0], weight[weight > 0]


def squeezed(found: Array) -> Array:
    """Without the second axis where it has one entry: one output, or a variance that all outputs share."""
    return found[:, 0] if found.shape[1] == 1 else found
