"""One-class classification and novelty detection with a Gaussian process (O, A)."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array
from saccade._core.checks import check_choice, check_rows, check_share
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade.estimators.base import Binning
from saccade.estimators.columns import SCALES, ColumnScales, Scale, have_one_unit
from saccade.estimators.examples_file import rows_of
from saccade.estimators.explanation import Explanation
from saccade.estimators.judged import JudgedExamples
from saccade.estimators.model_file import save, save_with_examples
from saccade.estimators.nothing_to_compare import warn_of_new
from saccade.estimators.outliers import Outliers
from saccade.inference.approximations.by_name import Approximating, Method, resolve_method
from saccade.inference.likelihoods.infer import Inference
from saccade.inference.posterior.gp import GP
from saccade.inference.solving.regression import Solver
from saccade.kernels import HIK, Kernel
from saccade.kernels.gram import TabledGram
from saccade.scores.novelty import MEASURES, Measure, p_values, quantiles


class OneClassGP(Outliers, JudgedExamples):
    """A Gaussian process that knows one class, and notices what is not of it.

    Every training example has the label 1 and the prior mean is 0: near the examples the mean is high and the variance
    low, far from them the process returns to its prior (O §3). `score_samples` is higher for more normal examples.

    Thresholds come from leave-one-out scores, in closed form: what the training examples would score had they been new.

    Parameters
    ----------
    kernel : Kernel, default HIK()
        HIK scores from tables in constant time, for any number of examples. `GeneralizedRBF(HIK(), "auto")` takes dense
        algebra and is more local. `Centred(Linear())` with measure="variance" is a Mahalanobis distance with a
        regularised covariance.
    scale : "auto", "columns" or None
        "columns" is for tables, whose columns have units of their own: each is divided by its standard deviation, and
        examples are as similar as near, wherever in the range of the training examples (columns.py; sparse rows become
        dense). A column in
        millions then counts no more than one in thousandths. None takes the rows as they are, right for histograms,
        words, pixels and deep features. "auto" is "columns" for the default kernel where X looks like a table: it has
        fewer than 50 columns, or is dense and the differences of its rows lie in few columns (`have_one_unit` has the
        formula). Rows without negative numbers and with equal sums are histograms, however few their columns.
        `columns_` says what was done.
    noise : float
        σ², in units of the mean self-similarity when the kernel's scale is "auto".
    trim : float from 0 to 0.5
        The share of the training examples that a second fit leaves out, those with the lowest leave-one-out scores in
        the first: novelties among the training examples then do not look normal. Set it to 0.1 if you know of some; on
        clean examples it finds less, and raises a few false alarms more than it says: what it left out was chosen.
    inference : "regression", "laplace" or "ep"
        The label as f plus noise, or as the sign of f plus noise (O §2.2).
    measure : "probability", "variance", "mean" or "ratio"
        What the score is, O Table 1: log p(y = 1), −σ², μ or μ/σ. "variance" is as good where k(x, x) is constant, as
        for histograms of equal sums; elsewhere it takes a small k(x, x) for little doubt.
    approximation : "auto", "exact", "diagonal", "optimized", "fitc", "sor", "dtc", "sod", "lowrank", "parzen", ...
        Of mean and variance alike. "diagonal" (FA) and "optimized" (OA) are those of A; "optimized-signed" is OA as
        printed, with weights of either sign: it ranks poorly, and its thresholds do not keep what they promise. "fitc",
        "sor", "dtc" and "sod" use some of the examples, "lowrank" the leading directions, "parzen" is the kernel
        density estimate that the mean becomes for a diagonal kernel matrix (O §3.1). "auto" is "exact" for few examples
        and for kernels without tables, else "lowrank"; `variance_method_` says which. "diagonal" and "parzen" never
        hold the kernel matrix. The variance of "sor" vanishes far from its examples: with it, only "mean" makes sense.
    inducing : float or array of int
        The share of the training examples, drawn at random, that "fitc", "sor", "dtc" and "sod" use; or their numbers.
    variance_rank : int
        Directions that "lowrank" looks at.
    contamination : float from 0 to 0.5
        The share of the training examples to be taken for novelties; 0 trusts them all.
    levels, binning, solver, tol, max_iter, random_state
        As for `GPClassifier`.

    Attributes
    ----------
    gp_, kernel_, noise_, n_iter_, residual_, converged_, variance_method_
        As for `GPClassifier`.
    columns_ : ColumnScales or None
        How columns are scaled; None where they are taken as they are.
    offset_ : float
        `decision_function` is `score_samples` less this.
    leave_one_out_scores_ : array of shape (n,)
        The scores of the training examples, each predicted by all the others: those below `offset_` are outliers.
    normal_scores_ : array
        What `offset_` and `predict_proba` compare new scores with, in ascending order: the same scores, less what
        rounding may do to them, so that equal examples count as equal; in a loaded model 501 quantiles of them. With
        "lowrank" they are those of a quarter of the examples, 2,048 at most, that were held out: its directions follow
        the other examples so closely that these look more normal than new ones.
    n_known_ : int
        The number of training examples that `normal_scores_` stands for.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OneClassGP().fit(X[y == 0][:100])
    >>> bool(model.predict(X[y == 0][100:]).mean() > 0.5 > -0.9 > model.predict(X[y == 1]).mean())
    True
    """

    tune = None
    columns_: ColumnScales | None = None
    _given: Any = None  # training rows as they came, where `gp_` has not all of them so

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        scale: Scale = "auto",
        noise: float = 0.1,
        trim: float = 0.0,
        inference: Inference = "regression",
        measure: Measure = "probability",
        approximation: Method | Literal["auto"] = "auto",
        inducing: Any = 0.25,
        variance_rank: int = 128,
        contamination: float = 0.05,
        levels: int | None = None,
        binning: Binning = "quantile",
        solver: Solver = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.scale = scale
        self.noise = noise
        self.trim = trim
        self.inference = inference
        self.measure = measure
        self.approximation = approximation
        self.inducing = inducing
        self.variance_rank = variance_rank
        self.contamination = contamination
        self.levels = levels
        self.binning = binning
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _check_parameters(self) -> Kernel:
        check_choice("measure", self.measure, MEASURES)
        check_share("contamination", self.contamination, 0.5, "0 trusts every training example.")
        kernel = super()._check_parameters()
        if self.measure in ("mean", "ratio") and kernel.centred_part() is kernel:
            raise InvalidParameter(
                f'The mean of a centred kernel is 0 everywhere, so measure="{self.measure}" tells nothing with '
                f'{kernel!r}. Use measure="variance".'
            )
        return kernel

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on X (n, d), examples of the one class; y is ignored."""
        with self._replacing() as new:
            X = check_rows(new, X, reset=True)
            new._weight = None
            new._settle_columns(X)
            new._given = X if new.columns_ is not None or new.trim > 0 else None
            X = new._scaled(X)
            everyone = np.arange(X.shape[0])
            new._fit_rows(X, everyone)
            count = int(new.trim * everyone.size + 1e-9)  # 0.29 · 100 is 28.999999999999996
            trimmed = np.argsort(new.leave_one_out_scores_, kind="stable")[:count]
            if trimmed.size:
                new._fit_rows(X, np.setdiff1d(everyone, trimmed))
        return self

    def _settle_columns(self, X: Any) -> None:
        """Whether columns are scaled, and what follows from it."""
        check_choice("scale", self.scale, SCALES)
        check_share("trim", self.trim, 0.5, "0 trains on every example.")
        auto = self.scale == "auto" and self.kernel is None and not have_one_unit(X)
        self.columns_ = ColumnScales.of(X) if auto or self.scale == "columns" else None

    def _as_fitted(self) -> tuple[Self, Any]:
        """For a file that keeps training rows: a copy whose parameters say what "auto" did, and the rows as they came.

        The rows are None where `gp_` has them: columns are not scaled, and none of the rows was trimmed.
        """
        model = copy(self)
        model.kernel = HIK() if self.kernel is None else self.kernel
        model.scale = None if self.columns_ is None else "columns"
        return model, self._given

    def _scaled(self, X: Any) -> Any:
        return X if self.columns_ is None else self.columns_(X)

    def _rows(self, X: Any) -> Any:
        return self._scaled(super()._rows(X))

    def _fit_rows(self, X: Any, rows: Array) -> None:
        """Train on some of the rows; scores and threshold take the others as new examples."""
        gp = self._learn(X[rows], np.ones((rows.size, 1)))
        if self.measure != "mean":
            gp.prepare()
        self._judge(gp, X, rows)

    @property
    def fit_predict(self) -> Any:
        """Not here, as for LocalOutlierFactor(novelty=True): thresholds are for examples that training has not seen."""
        raise AttributeError(
            "OneClassGP judges new examples. For those it was fitted on, ask `leave_one_out_scores_ < offset_`."
        )

    def _approximating(self, kernel: Kernel, n: int) -> Approximating:
        """Of mean and variance alike, also where it is "auto"."""
        method = resolve_method(self.approximation, kernel.has_tables, n, self.solver != "cg")
        return Approximating(method, method, self.variance_rank, self.inducing)

    def quantized(self, bins: int = 256) -> Self:
        """As `GPClassifier.quantized`, with a threshold for the coarser scores; a loaded model keeps the one it has."""
        model = super().quantized(bins)
        if isinstance(self.gp_, GP) and isinstance(model.gp_, GP):
            train = self.gp_.gram.all_rows()
            model._left_out_mean = self._left_out_mean + (model.gp_.mean(train) - self.gp_.mean(train))[:, 0]
            model._compare_anew(model.gp_)
        return model

    def score_samples(self, X: Any) -> Array:  # (n,)
        """The measure: higher is more normal.

        A row whose k(x, x) is below a hundredth of the training examples' mean has nothing to compare: it is neither
        normal nor novel. It has the median of the training scores, and a warning says how many such rows there are.
        With measure="mean", a plain sum over the features, it has a mean near 0 like any other row.
        """
        check_is_fitted(self)
        X = self._rows(X)
        scores, prior = self._measured(X), self.kernel_.diag(X)
        warn_of_new(prior, self._least_prior)
        return self._unless_empty(scores, prior)

    def _additive(self, X: Any) -> tuple[Array, Array]:
        if self.measure != "mean":
            raise InvalidInput(
                f'The score of measure="{self.measure}" takes the variance, which is no sum over features. Fit with '
                'measure="mean" to have shares.'
            )
        return np.ones((1, 1)), np.array([-self.offset_])

    def explain(self, X: Any) -> Explanation:
        """As `GPClassifier.explain`, for measure="mean". Scaled columns have one share each, as columns of X do."""
        found = super().explain(X)
        if self.columns_ is None:
            return found
        d = self.n_features_in_
        shares = tuple(sp.csr_matrix(part[:, :d] + part[:, d:]) for part in found.shares)
        return replace(found, shares=shares)

    @property
    def feature_relevance_(self) -> Array:  # (d,)
        if self.columns_ is not None:
            raise AttributeError(
                "feature_relevance_ needs columns as they are: fit with scale=None, or use permutation_importance."
            )
        return super().feature_relevance_

    def latent_mean_and_variance(self, X: Any) -> tuple[Array, Array]:  # (n,), (n,)
        """Mean and variance of the latent f (no noise added), both by `approximation`."""
        check_is_fitted(self)
        mean, variance = self.gp_.mean_and_variance(self._rows(X))
        return mean[:, 0], variance[:, 0]

    def predict_proba(self, X: Any) -> Array:  # (n, 2)
        """Columns for −1 and 1. The second is how often a normal example would score no higher than this one.

        It is the share of the training examples that do, each left out in turn (a conformal p-value): taking what is
        below 0.05 for novel raises a false alarm in about a twentieth of the normal examples that come from the source
        of the training examples, whatever that is.
        """
        normal = p_values(self.score_samples(X), self.normal_scores_, self.n_known_)
        return np.column_stack([1.0 - normal, normal])

    def novelty(self, X: Any) -> Array:  # (n,)
        """How new each example is, as `GPClassifier.novelty`: the first column of `predict_proba`.

        scikit-learn's checks take the name for a detector whose thresholds are not about its training examples.
        """
        return np.asarray(self.predict_proba(X)[:, 0])

    def save(self, path: Any, *, features: Any = None, examples: bool | None = None) -> None:
        """Write the model to one file, as `GPClassifier.save`; `saccade.load` reads it.

        A file answers as the model does. The exact variance does not fit into tables: that of "lowrank", an upper
        bound of it, goes along, and the threshold is chosen anew with it, so that it means the same. Other
        approximations have no tables of their variance, and the file keeps the training rows, unless `measure` is
        "mean": no verdict takes the variance then, and the file has that of "lowrank" too. `examples` is as for
        `GPClassifier.save`.
        """
        check_is_fitted(self)
        why = self._why_examples(examples)
        if why or examples:
            model, X = self._as_fitted()
            return save_with_examples(model, path, rows_of(self.gp_) if X is None else X, {}, features, why)
        model = self._compressed()
        extra = {"offset": model.offset_, "known": model.n_known_}
        extra |= {"least_prior": model._least_prior, "middle": model._middle_score}
        arrays = {"normal": quantiles(model.normal_scores_)}
        if model.columns_ is not None:
            arrays |= vars(model.columns_)
        save(model, model.gp_.compressed(), path, extra, features=features, arrays=arrays)

    def _why_examples(self, examples: bool | None) -> str | None:
        why = super()._why_examples(examples)
        method, tabled = self.variance_method_, ("lowrank", "exact")
        if not isinstance(self.gp_, GP) or self.gp_.grid is not None:
            return why
        if why or examples is not None or self.measure == "mean" or method in tabled:
            return why
        return f'the variance of approximation="{method}" has no tables'

    def _compressed(self) -> OneClassGP:
        """This model as it will be once loaded: tables, and a threshold for the variance that they have."""
        model, gp, method = copy(self), self.gp_, self.variance_method_
        if not isinstance(gp, GP) or not isinstance(gp.gram, TabledGram) or method == "lowrank":
            return model
        if self.measure == "mean":
            model.gp_ = gp.with_variance("lowrank")
            return model
        if method != "exact":
            raise ModelFileError(
                f'The variance of approximation="{method}" has no tables, and another one would change verdicts. Pass '
                'examples=None to keep the training rows, or fit with approximation="lowrank" or measure="mean".'
            )
        model.gp_ = gp.with_variance("lowrank")
        model._compare_anew(model.gp_)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)  # two columns of predict_proba
        return tags
