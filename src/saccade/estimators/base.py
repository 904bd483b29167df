"""What the estimators share. A fit reads: check → targets → `Settings.learn` → calibrate; `gp_` and parts are held."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array, FilePath, RandomSource
from saccade._core.checks import (
    check_choice,
    check_count,
    check_flag,
    check_levels,
    check_noise,
    check_positive,
    check_rows,
)
from saccade._core.errors import InvalidParameter
from saccade.estimators.automatic import Automatic
from saccade.estimators.explanation import Explanation
from saccade.estimators.model_writing import rows_of, save, save_support, save_with_examples, why_examples
from saccade.estimators.on_engine import OnEngine
from saccade.estimators.part import Part
from saccade.estimators.settings import Binning, Learned, Settings
from saccade.estimators.targets import Targets
from saccade.inference.approximations.by_name import APPROXIMATIONS, VARIANCES, Method
from saccade.inference.likelihoods.infer import Inference
from saccade.inference.likelihoods.sites import METHODS as INFERENCES
from saccade.inference.posterior.compressed import Compressed
from saccade.inference.posterior.gp import GP
from saccade.inference.posterior.supported import Supported, supported
from saccade.inference.solving.evidence import Evidence
from saccade.inference.solving.regression import Solver
from saccade.inference.tuning.options import Tuning, check_tune
from saccade.kernels import HIK, Kernel
from saccade.kernels.base import check_kernel
from saccade.operators.tables import GridTables, PiecewiseTables

NOTHING_CHOSEN = Automatic()


class GaussianProcess(OnEngine):
    """The base of all estimators with a posterior; what the outputs mean is theirs to say."""

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
    random_state: RandomSource
    targets_: Targets
    gp_: GP | Compressed | Supported
    kernel_: Kernel
    noise_: float
    tuning_: Tuning | None = None
    coding_: tuple[int | None, Binning]
    n_features_in_: int
    feature_names_in_: Array
    file_parts: ClassVar[dict[str, type[Part]]] = {}  # what a model file keeps beside the tables, by attribute
    file_tables: ClassVar[str] = "gp_"  # the attribute that has the tables
    settable: ClassVar[tuple[str, ...]] = ()  # numbers that a user may set after a fit

    def settings(self) -> Settings:
        """The parameters, checked: what `fit` learns with.

        Returns
        -------
        Settings
            With a fresh copy of the kernel, and numbers for "auto" where nothing is learned.
        """
        return self._settings(check_noise(self.noise))

    def _settings(self, noise: float, automatic: Automatic = NOTHING_CHOSEN, **more: bool) -> Settings:
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
        search = check_tune(self.tune)
        if search is not None and self.inference != "regression":
            raise InvalidParameter(
                f'`tune` learns from label regression, and `inference` is "{self.inference}". Tune a model with '
                'inference="regression" first, and pass its `kernel_` here.'
            )
        default = self.kernel is None or automatic.kernel
        return Settings(
            kernel=clone(HIK() if default else check_kernel("kernel", self.kernel)),
            noise=noise,
            automatic=automatic,
            tune=search,
            inference=self.inference,
            levels=self.levels,
            binning=self.binning,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            approximation=self.approximation,
            variance=self.variance,
            inducing=self.inducing,
            variance_rank=self.variance_rank,
            random_state=self.random_state,
            engine=self.engine,
            **more,
        )

    @contextmanager
    def _replacing(self) -> Iterator[Self]:
        """A copy to train; it becomes this estimator when the block ends well. A failure changes nothing."""
        new = copy(self)
        yield new
        self.__dict__ = new.__dict__

    def hold(self, learned: Learned, targets: Any) -> GP:
        """Take a posterior and its targets: the last step of `fit`, and of reading a file.

        Parameters
        ----------
        learned : Learned
            From `settings().learn`.
        targets : Targets
            What it was learned from, of the estimator's own kind.

        Returns
        -------
        GP
            The posterior.
        """
        gp, self.noise_, self.tuning_, self.coding_ = learned
        self.gp_, self.kernel_, self.targets_, found = gp, gp.kernel, targets, gp.solution
        self.n_iter_ = max(found.iterations, 1)
        self.residual_ = float(found.residual.max(initial=0.0))
        self.converged_ = found.converged and gp.sites.converged
        self.rank_, self.changes_ = found.rank, gp.sites.changes
        return gp

    def _learned(self) -> Learned:
        """What `partial_fit` goes on from."""
        return Learned(self._examples(), self.noise_, self.tuning_, self.coding_)

    def _examples(self) -> GP:
        """The posterior with its training examples."""
        check_is_fitted(self)
        if not isinstance(self.gp_, GP):
            self.gp_.needs_examples()
        return self.gp_

    def _rows(self, X: Any) -> Any:
        """New examples for a fitted model, checked, as its kernel takes them."""
        check_is_fitted(self)
        return check_rows(self, X, reset=False)

    @property
    def tables_(self) -> PiecewiseTables | GridTables | None:
        """The mean as tables, where the kernel has some."""
        return self.gp_.tables

    @property
    def variance_method_(self) -> Method | None:
        """The approximation behind the variance."""
        return self.gp_.variance_method

    @property
    def n_outputs_(self) -> int:
        """Number of columns of the latent mean: one per class, or one for two classes, or one per target."""
        return 1

    def latent_mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Mean and variance of the latent f (no noise added); the variance is (n,) when the outputs share it.

        With `balanced`, "laplace" and "ep" each class has its own noise, and a variance of its own. "fine" gives one
        that bounds them all, and so does "lowrank" with `balanced`. Of a regressor, in
        units of the targets, and these squared.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.

        Returns
        -------
        mean, variance : arrays of shape (n,) or (n, m)
            One column for two classes, or one class.
        """
        X = self._rows(X)
        mean, variance = self.gp_.mean_and_variance(X)
        return squeezed(mean), squeezed(variance)

    def log_marginal_likelihood(self, method: str = "auto") -> Evidence:
        """Log evidence log p(Y) under the kernel and noise of the fit: larger explains the labels better.

        All outputs count together. With inference="laplace" or "ep" it is that approximation of it, for the
        cumulative-Gaussian likelihood. Compare kernels on the same labels only.

        Of a regressor it is that of the targets as they were given: `normalize_y` divides every target by a standard
        deviation, a density in other units is another density, and the logarithm of it is subtracted for each. So
        models with and without `normalize_y` can be compared.

        Parameters
        ----------
        method : str
            "exact" factorises the matrix; "stochastic" estimates it from products and says its standard error; "bound"
            is below it, by the upper bound of the determinant of H §5.2; "auto" is exact up to 2,048 examples.

        Returns
        -------
        Evidence
            `value`, and its `error` where it is an estimate.
        """
        check_is_fitted(self)
        return self.gp_.evidence(method)

    @property
    def feature_relevance_(self) -> Annotated[Array, "d"]:
        """How much each feature moves the answer, as shares that sum to 1; for HIK models with their training examples.

        The latent mean of an HIK model is a sum f(x) = Σ_d f_d(x_d) of one function per feature. The relevance of a
        feature is the standard deviation of f_d over the training examples, over all outputs the root of the sum of
        squares: 0 for a feature that is the same for all examples, or that the model does not use. Two features that
        contradict each other are both relevant. For other kernels use `sklearn.inspection.permutation_importance`.
        """
        if not isinstance(getattr(self, "gp_", None), GP):
            raise AttributeError("feature_relevance_ needs a fitted HIK model with its training examples.")
        found = self.gp_.relevance
        return np.asarray(found / (found.sum() or 1.0))

    def explain(self, X: Any) -> Explanation:
        """The exact share of each feature of the decision about every row; for HIK models, loaded ones too.

        The decision of an HIK model is a sum of one function per feature. Shares sum to it, but for rounding: 1e-10, or
        1e-5 for quantised tables, which are float32. The prediction of a regressor is the sum of the shares and the
        mean before any example; a detector needs measure="mean", and scaled columns have one share each.

        A share tells what the value adds in comparison with a value of 0, and nothing about why. With "laplace" and
        "ep", shares of the mean are divided by √(v + σ²), as the decision is.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.

        Returns
        -------
        Explanation
            Shares and offset, of a detector minus the threshold; `of` picks those of one decision.
        """
        raise NotImplementedError

    def quantized(self, bins: int = 256) -> Self:
        """This fitted model with its mean read off `bins` even steps per dimension: faster and slightly coarser.

        A detector has a threshold for the coarser scores; a loaded one keeps the one it has.

        Parameters
        ----------
        bins : int
            Steps, from 2 on.

        Returns
        -------
        estimator
            A copy; this one stays as it is.
        """
        check_is_fitted(self)
        model = copy(self)
        model.gp_ = self.gp_.quantized(bins)
        return model

    def save(
        self, path: FilePath, *, features: Any = None, examples: bool | None = None, compact: bool = False
    ) -> None:
        """Write the model to one file; `saccade.load` reads it.

        The variance goes along as the tables of "lowrank", whatever its method, unless it is None. With "laplace" and
        "ep", decisions take it, and the probabilities in the file are calibrated again with it.

        Unless `examples` is True, no training example is stored as such. The tables of an exact model still have a
        level for each value, so a determined reader could work backwards; to share a model of private data, use
        `levels` or `quantized()`.

        Parameters
        ----------
        path : path
            The file; an old one is replaced when the new one is whole.
        features : transformer or Pipeline of saccade.features, optional
            What made X, fitted. It lies in the file beside the model, and `saccade.load` gives both back.
        examples : bool or None
            True keeps the training rows instead of tables. The loaded model is fitted again from them and can do all
            that this one can, with the variance of its own method. None does so only for kernels that have no tables,
            and a warning says it; of "fitc", "sor", "dtc" and "sod" it keeps the inducing rows alone, from which the
            loaded model answers as one with tables does. False keeps none: a kernel without tables is then refused.
        compact : bool
            Tables of about half the size, the mean in float32 and the variance in float16. Decisions change by 1e-6 or
            less of their size, and the variance grows by some thousandths of what training explains.

        Raises
        ------
        ModelFileError
            If a file cannot hold the model, or the folder cannot be written.
        """
        check_is_fitted(self)
        why, beside = why_examples(self.gp_, examples), self._rows_beside(examples)
        support = None if why is None else supported(self.gp_)
        if beside is not None:
            save_with_examples(self, path, *beside, features, None if examples else "rows without labels vote")
        elif why is not None and support is not None:
            save_support(self._compressed(), path, support, features, why)
        elif why or examples:
            X = rows_of(self.gp_)
            save_with_examples(self, path, X, self.targets_.to_state(), features, why)
        else:
            save(self._compressed(), path, features, compact)

    def _rows_beside(self, examples: bool | None) -> tuple[Any, dict[str, Array | None]] | None:
        """Rows and targets that a file must keep, whatever the kernel; None where it need not."""
        return None

    def _compressed(self) -> Self:
        """This model as it will be once loaded."""
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def squeezed(found: Array) -> Array:
    """Without the second axis where it has one entry: one output, or a variance that all outputs share."""
    return found[:, 0] if found.shape[1] == 1 else found
