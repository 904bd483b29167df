"""One-class classification and novelty detection with a Gaussian process (O, A)."""

from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array, FilePath, RandomSource
from saccade._core.checks import check_choice, check_noise, check_rows, check_share
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade.estimators.base import GaussianProcess
from saccade.estimators.columns import SCALES, ColumnScales, Scale, have_one_unit
from saccade.estimators.explanation import Explanation, explained
from saccade.estimators.model_writing import rows_of, save, save_support, save_with_examples, why_examples
from saccade.estimators.normal_scores import LeftOutExamples, NormalScores, Scoring, warn_of_new
from saccade.estimators.outliers import Outliers
from saccade.estimators.part import Part
from saccade.estimators.settings import Binning, Settings
from saccade.estimators.targets import MemberTargets
from saccade.inference.approximations.by_name import Method
from saccade.inference.likelihoods.infer import Inference
from saccade.inference.posterior.gp import GP
from saccade.inference.posterior.supported import supported
from saccade.inference.solving.regression import Solver
from saccade.kernels import HIK, Kernel
from saccade.kernels.gram import TabledGram
from saccade.scores.novelty import MEASURES, Measure, quantiles, threshold


@dataclass(eq=False, repr=False)
class OneClassGP(Outliers, GaussianProcess):
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
    approximation : "auto", "exact", "diagonal", "optimized", "fitc", "sor", "dtc", "sod", "lowrank", "parzen" or others
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
    levels, binning : int or None, str
        As for `GPClassifier`.
    solver, tol, max_iter, random_state : str, float, int, int or None
        As for `GPClassifier`.

    Attributes
    ----------
    gp_, kernel_, noise_, n_iter_, residual_, converged_, variance_method_
        As for `GPClassifier`.
    columns_ : ColumnScales or None
        How columns are scaled; None where they are taken as they are.
    leave_one_out_scores_ : array of shape (n,)
        The scores of the training examples, each predicted by all the others: those below `offset_` are outliers.
    novelty_reference_ : NormalScores
        What new examples are compared with: `offset_`, `normal_scores_`, `n_known_` and more.
    left_out_ : LeftOutExamples
        What these come from. Not in a loaded model.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OneClassGP().fit(X[y == 0][:100])
    >>> bool(model.predict(X[y == 0][100:]).mean() > 0.5 > -0.9 > model.predict(X[y == 1]).mean())
    True
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    scale: Scale = "auto"
    noise: float = 0.1
    trim: float = 0.0
    inference: Inference = "regression"
    measure: Measure = "probability"
    approximation: Method | Literal["auto"] = "auto"
    inducing: Any = 0.25
    variance_rank: int = 128
    contamination: float = 0.05
    levels: int | None = None
    binning: Binning = "quantile"
    solver: Solver = "auto"
    tol: float = 1e-3
    max_iter: int = 1000
    random_state: RandomSource = None

    tune = None
    columns_: ColumnScales | None = field(init=False, default=None)
    novelty_reference_: NormalScores = field(init=False)
    leave_one_out_scores_: Annotated[Array, "n"] = field(init=False)
    left_out_: LeftOutExamples = field(init=False)
    rows_: Any = field(init=False, default=None)  # training rows as they came, where `gp_` has not all of them so
    settable: ClassVar[tuple[str, ...]] = ("offset_",)
    file_parts: ClassVar[dict[str, type[Part]]] = {"novelty_reference_": NormalScores, "columns_": ColumnScales}

    def settings(self) -> Settings:
        check_choice("measure", self.measure, MEASURES)
        check_share("contamination", self.contamination, 0.5, "0 trusts every training example.")
        found = self._settings(check_noise(self.noise), variance_as_mean=True)
        if self.measure in ("mean", "ratio") and found.kernel.centred_part() is found.kernel:
            raise InvalidParameter(
                f'The mean of a centred kernel is 0 everywhere, so measure="{self.measure}" tells nothing with '
                f'{found.kernel!r}. Use measure="variance".'
            )
        return found

    def fit(self, X: Any, y: Any = None) -> Self:
        with self._replacing() as new:
            X = check_rows(new, X, reset=True)
            new.columns_ = new._scales(X)
            new.rows_ = X if new.columns_ is not None or new.trim > 0 else None
            X = X if new.columns_ is None else new.columns_(X)
            everyone = np.arange(X.shape[0])
            new._fit_rows(X, everyone)
            count = int(new.trim * everyone.size + 1e-9)  # 0.29 · 100 is 28.999999999999996
            trimmed = np.argsort(new.leave_one_out_scores_, kind="stable")[:count]
            if trimmed.size:
                new._fit_rows(X, np.setdiff1d(everyone, trimmed))
        return self

    def _scales(self, X: Any) -> ColumnScales | None:
        check_choice("scale", self.scale, SCALES)
        check_share("trim", self.trim, 0.5, "0 trains on every example.")
        auto = self.scale == "auto" and self.kernel is None and not have_one_unit(X)
        return ColumnScales.of(X) if auto or self.scale == "columns" else None

    def _rows(self, X: Any) -> Any:
        X = super()._rows(X)
        return X if self.columns_ is None else self.columns_(X)

    def _fit_rows(self, X: Any, rows: Array) -> None:
        """Train on some of the rows; scores and threshold take the others as new examples."""
        targets = MemberTargets(rows.size)
        gp = self.hold(self.settings().learn(X[rows], targets), targets)
        if self.measure != "mean":
            gp.prepare()
        found = LeftOutExamples.judged(gp, X, rows, self._scoring())
        self.left_out_, self.novelty_reference_, self.leave_one_out_scores_ = found

    def _scoring(self) -> Scoring:
        return Scoring(self.measure, self.inference != "regression", self.noise_, self.contamination)

    @property
    def offset_(self) -> float:
        """Threshold: `decision_function` is `score_samples` less this."""
        return self.novelty_reference_.offset

    @offset_.setter
    def offset_(self, value: float) -> None:
        self.novelty_reference_ = replace(self.novelty_reference_, offset=value)

    @property
    def normal_scores_(self) -> Array:
        """Ascending scores that `offset_` and `predict_proba` compare with: `leave_one_out_scores_`, less rounding.

        So equal examples count as equal; in a model that was loaded with tables they are 501 quantiles. With "lowrank"
        they are those of a quarter of the examples, 2,048 at most, that were held out: its directions follow the other
        examples so closely that these look more normal than new ones.
        """
        return self.novelty_reference_.normal

    @property
    def n_known_(self) -> int:
        """Number of training examples that `normal_scores_` stands for."""
        return self.novelty_reference_.known

    @property
    def fit_predict(self) -> Any:
        """Not here, as for LocalOutlierFactor(novelty=True): thresholds are for examples that training has not seen."""
        raise AttributeError(
            "OneClassGP judges new examples. For those it was fitted on, ask `leave_one_out_scores_ < offset_`."
        )

    def quantized(self, bins: int = 256) -> Self:
        model = super().quantized(bins)
        if isinstance(self.gp_, GP) and isinstance(model.gp_, GP):
            model.left_out_ = self.left_out_.moved(self.gp_, model.gp_)
            model._compare_anew(model.gp_)
        return model

    def _compare_anew(self, gp: GP) -> None:
        """The threshold of a copy that judges otherwise than its original."""
        before = self.novelty_reference_
        found = self.left_out_.compared_anew(gp, before.least_prior, self._scoring())
        if before.offset != threshold(before.normal, self.contamination):  # set by hand: as rare as it was
            at = float(np.mean(before.normal < before.offset))
            moved = float(np.quantile(found.normal, at) - np.quantile(before.normal, at))
            found = replace(found, offset=before.offset + moved)
        self.novelty_reference_ = found

    def score_samples(self, X: Any) -> Annotated[Array, "n"]:
        """The measure: higher is more normal.

        A row whose k(x, x) is below a hundredth of the training examples' mean has nothing to compare: it is neither
        normal nor novel. It has the median of the training scores, and a warning says how many such rows there are.
        With measure="mean", a plain sum over the features, it has a mean near 0 like any other row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.

        Returns
        -------
        array of shape (n,)
            Higher is more normal.
        """
        X = self._rows(X)
        scores, prior, known = self._scoring().at(self.gp_, X), self.kernel_.diag(X), self.novelty_reference_
        warn_of_new(prior, known.least_prior)
        return known.unless_empty(scores, prior)

    def explain(self, X: Any) -> Explanation:
        X = self._rows(X)
        if self.measure != "mean":
            raise InvalidInput(
                f'The score of measure="{self.measure}" takes the variance, which is no sum over features. Fit with '
                'measure="mean" to have shares.'
            )
        found = explained(self.gp_, X, np.ones((1, 1)), np.array([-self.offset_]))
        if self.columns_ is None:
            return found
        d = self.n_features_in_
        shares = tuple(sp.csr_matrix(part[:, :d] + part[:, d:]) for part in found.shares)
        return replace(found, shares=shares)

    @property
    def feature_relevance_(self) -> Annotated[Array, "d"]:
        if self.columns_ is not None:
            raise AttributeError(
                "feature_relevance_ needs columns as they are: fit with scale=None, or use permutation_importance."
            )
        return super().feature_relevance_

    def predict_proba(self, X: Any) -> Annotated[Array, "n, 2"]:
        """Probabilities: how often a normal example would score no higher than this one, and 1 less that.

        It is the share of the training examples that do, each left out in turn (a conformal p-value): taking what is
        below 0.05 for novel raises a false alarm in about a twentieth of the normal examples that come from the source
        of the training examples, whatever that is.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.

        Returns
        -------
        array of shape (n, 2)
            Columns for −1 and 1.
        """
        scores = self.score_samples(X)
        normal = self.novelty_reference_.p_values(scores)
        return np.column_stack([1.0 - normal, normal])

    def novelty(self, X: Any) -> Annotated[Array, "n"]:
        """How new each example is, as `GPClassifier.novelty`: the first column of `predict_proba`.

        scikit-learn's checks take the name for a detector whose thresholds are not about its training examples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.

        Returns
        -------
        array of shape (n,)
            From 0 to 1.
        """
        return np.asarray(self.predict_proba(X)[:, 0])

    def save(self, path: FilePath, *, features: Any = None, examples: bool | None = None) -> None:  # type: ignore[override]
        """Write the model to one file, as `GPClassifier.save`; `saccade.load` reads it.

        A file answers as the model does. The exact variance does not fit into tables: that of "lowrank", an upper
        bound of it, goes along, and the threshold is chosen anew with it, so that it means the same. Other
        approximations have no tables of their variance, and the file keeps the training rows ("fitc", "dtc", "sor" and
        "sod": the inducing rows), unless `measure` is "mean": no verdict takes the variance then, and the file has that
        of "lowrank" too. `examples` is as for `GPClassifier.save`.

        Parameters
        ----------
        path : path
            The file.
        features : transformer or Pipeline of saccade.features, optional
            What made X.
        examples : bool or None
            As for `GPClassifier.save`.
        """
        check_is_fitted(self)
        why = why_examples(self.gp_, examples) or self._why_variance(examples)
        if why or examples:
            model = copy(self)  # whose parameters say what "auto" did
            model.kernel = HIK() if self.kernel is None else self.kernel
            model.scale = None if self.columns_ is None else "columns"
            support = None if why is None else supported(self.gp_)
            if why is not None and support is not None:
                save_support(model, path, support, features, why)
            else:
                save_with_examples(model, path, self.training_rows(), {}, features, why)
        else:
            model = self._compressed()
            known = model.novelty_reference_
            model.novelty_reference_ = replace(known, normal=quantiles(known.normal))
            save(model, path, features)

    def training_rows(self) -> Any:
        """The training rows as they came.

        Returns
        -------
        array or sparse matrix of shape (n, d)
            Those that were trimmed too.
        """
        return rows_of(self.gp_) if self.rows_ is None else self.rows_

    def _why_variance(self, examples: bool | None) -> str | None:
        tabled = self.measure == "mean" or self.variance_method_ in ("lowrank", "exact")
        if examples is not None or tabled or not isinstance(self.gp_, GP) or self.gp_.grid is not None:
            return None
        return f'the variance of approximation="{self.variance_method_}" has no tables'

    def _compressed(self) -> Self:
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
