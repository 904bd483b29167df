"""Gaussian-process classification by label regression, all classes at once (H §3, §5)."""

from __future__ import annotations

from copy import copy
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array
from saccade._core.checks import check_classes, check_rows
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.estimators.automatic import Automatic
from saccade.estimators.base import Binning, squeezed, weighed
from saccade.estimators.calibration import calibrate, sharpen
from saccade.estimators.examples_file import rows_of
from saccade.estimators.losses import ClassLosses
from saccade.estimators.model_file import save, save_with_examples
from saccade.inference.approximations.by_name import Method
from saccade.inference.likelihoods.infer import Inference
from saccade.inference.posterior.gp import GP
from saccade.inference.solving.regression import Solver
from saccade.inference.tuning.objective import Losses
from saccade.kernels import Kernel
from saccade.kernels.gram import TabledGram
from saccade.scores.probability import class_means


class GPClassifier(ClassifierMixin, Automatic):
    """A calibrated Gaussian-process classifier for any number of classes.

    Each class is one regression on labels ±1 with a shared kernel; two classes share one. Probabilities are the softmax
    of the latent means, sharpened by what the closed-form leave-one-out predictions deserve, so no example is held out.

    With `inference="laplace"` or `"ep"` a label is the sign of f plus noise: p(y | f) = Φ(y f/σ) instead of a Gaussian
    around ±1. Examples far on the right side pull no more, and decisions μ/√(v + σ²) weigh the doubt v about f.

    Parameters
    ----------
    kernel : Kernel, "auto" or None
        None is HIK(), which trains in O(non-zeros) an iteration and predicts from tables; any other kernel uses dense
        algebra. "auto", for tables and raw pixels: leave-one-out chooses HIK, with an exponent or without, or a
        generalised RBF, of columns as they are or over their standard deviations, with its β. It is chosen for up to
        4,096 examples, on a sample of 640; beyond, "auto" is HIK(). `kernel_` is what was chosen.
    noise : float or "auto"
        σ², the label noise, in units of the mean self-similarity when the kernel's scale is "auto". "auto": 0.1, or
        what leave-one-out on up to 1,024 of the examples clearly prefers; few examples change little. It stays 0.1 for
        less than 20 examples, with `balanced`, another `approximation` than "exact", "laplace" and "ep".
    inference : "regression", "laplace" or "ep"
        "ep" finds better variances and evidence than "laplace" and takes several times as long: with solver="auto" a
        factor per class and step up to 4,096 examples, beyond with estimates that a warning tells the error of.
        `changes_` records how far means (and with "ep" variances) still moved in each step, relative.
    levels : int from 2 to 255, or None
        None is exact. 255 levels per dimension take one byte per value: for large n.
    binning : "quantile" or "width"
        Where levels lie when `levels` is a number.
    balanced : bool
        Give both sides of each one-vs-rest problem the same total weight, for skewed classes (H §3).
    solver : "auto", "cholesky" or "cg"
        "auto" factorises up to 2,048 examples, unless iterating is far quicker, and iterates beyond. With `balanced`
        and many classes it factorises once per class and keeps no factor: the variance is then "lowrank" unless it is
        asked for.
    tol, max_iter : float, int
        The iterative solver stops when no residual exceeds `tol`, or warns after `max_iter` iterations.
    tune : None, "gradient", "nelder-mead", "grid", a dict of values to try, or a Tune
        Learn what the kernel has to learn, and the noise, from the training examples: see `saccade.Tune`. `kernel_`,
        `noise_` and `tuning_` say what came of it; `partial_fit` keeps it.
    approximation : "auto", "exact", "lowrank", "diagonal", "optimized", "fitc", "sor", "dtc", "sod", ...
        What stands for the inverse of the kernel matrix in the mean and in the variance; the same list for all
        estimators (`saccade.inference.approximations` says what each is). "diagonal" (FA) and "optimized" (OA) are
        those of A, "fitc", "sor", "dtc" and "sod" use some of the examples, "lowrank" the leading directions. "auto":
        an exact mean, and the variance that suits the number of examples. Only "auto" and "exact" have exact means.
    variance : "auto", None, or one of the same list, or "fine"
        Another approximation of the variance alone. "auto" is that of the mean where `approximation` has a name; else
        "exact" for few examples and for kernels without tables, and "lowrank" beyond, which takes constant time from
        tables and is an upper bound. `variance_method_` says which. None: no variance.
    inducing : float or array of int
        The share of the training examples, drawn at random, that "fitc", "sor", "dtc" and "sod" use; or their numbers.
    variance_rank : int
        Directions that "lowrank" and "fine" look at: more are tighter and take longer.
    random_state : int, RandomState or None
        For the sample behind the preconditioner, the probes behind the calibration and the directions of the variance.
        None means the same random numbers at every fit: two equal fits give equal answers.

    Attributes
    ----------
    classes_ : array of shape (M,)
        The labels, ascending.
    gp_ : GP
        The fitted process (`saccade.inference.GP`), which answers further questions; `Compressed` in a loaded model.
    kernel_ : Kernel
        The kernel with a number for every "auto", and with what `tune` learned.
    noise_ : float
        `noise`, or what was learned. `partial_fit` keeps what was learned, and the kernel that "auto" chose.
    tuning_ : Tuning or None
        The record of the search that `tune` asked for.
    n_iter_, residual_, converged_ : int, float, bool
        Iterations of the solver (1 for Cholesky), the largest residual, and whether `tol` was reached.
    variance_method_ : str or None
        The approximation behind the variance.
    leave_one_out_decision_ : array of shape (n,) or (n, M)
        Decisions for the training examples, each predicted by all the others. With an approximate mean and more than
        2,048 examples, those of a sample; NaN for the others.
    leave_one_out_proba_ : array of shape (n, M)
        Class probabilities from these decisions; two classes have two columns. Not in a loaded model.
    leave_one_out_error_ : float
        How far a label minus its leave-one-out mean is off, relatively: the root of the mean square over all examples.
        0 after Cholesky. After conjugate gradients it is an estimate, and more probes are solved until it is at most
        0.05 or half a second is spent; 0 where a factor is about as quick as these probes. With `balanced`, the larger
        one of a class's own examples and of all others.
    leave_one_out_accuracy_ : tuple of two floats
        Share of training examples whose class all the others predict, and its standard error: what n examples leave
        open, and what `leave_one_out_error_` may have added or taken. Not in a loaded model.
    sharpness_ : float
        What the means are multiplied with to become probabilities, found from these decisions.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = GPClassifier(random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.9
    True
    """

    _calibrated = True

    def __init__(
        self,
        kernel: Kernel | Literal["auto"] | None = None,
        *,
        noise: float | Literal["auto"] = "auto",
        inference: Inference = "regression",
        levels: int | None = None,
        binning: Binning = "quantile",
        balanced: bool = False,
        solver: Solver = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        tune: Any = None,
        approximation: Method | Literal["auto"] = "auto",
        variance: Method | Literal["auto"] | None = "auto",
        inducing: Any = 0.25,
        variance_rank: int = 128,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.inference = inference
        self.levels = levels
        self.binning = binning
        self.balanced = balanced
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.tune = tune
        self.approximation = approximation
        self.variance = variance
        self.inducing = inducing
        self.variance_rank = variance_rank
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on X (n, d) with labels y (n,). A `sample_weight` of w makes an example count as w copies of it."""
        with self._replacing() as new:
            X, y = check_rows(new, X, y=y, reset=True)
            check_classes(y)
            X = new._begin(X, y, None, sample_weight)
            new._calibrate(new._learn(X, new._targets()))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add examples, and classes if there are new ones; the solver starts from the last solution.

        With levels=None the result is that of `fit` on all examples with the same noise and kernel, up to `tol`. With a
        number of levels, the levels of the first call stay. The first call may name `classes` that have no example yet.
        """
        first = not hasattr(self, "classes_")
        if not first:
            self._examples()
        with self._replacing() as new:
            X, y = check_rows(new, X, y=y, reset=first)
            check_classes(y)
            if first:
                X = new._begin(X, y, classes, sample_weight)
                new._calibrate(new._learn(X, new._targets()))
            else:
                new._continue(X, y, y if classes is None else np.concatenate([y, np.asarray(classes)]), sample_weight)
        return self

    def _begin(self, X: Any, y: Array, classes: Any, sample_weight: Any) -> Any:
        """Take in labels and weights; returns the rows of X that count."""
        X, y, self._weight = weighed(X, y, sample_weight)
        classes = np.unique(y if classes is None else classes)
        unknown = np.setdiff1d(y, classes)
        if unknown.size:
            raise InvalidInput(f"`y` has the label {unknown.tolist()[0]!r}, which is not among `classes`.")
        if classes.size < 2:
            raise InvalidInput(
                f"`y` must have at least two classes, got 1 class: {classes.tolist()}. Add examples of another class."
            )
        self.classes_ = classes
        self._label = np.searchsorted(classes, y)
        return X

    def _continue(self, X: Any, y: Array, classes: Array, sample_weight: Any) -> None:
        X, y, weight = weighed(X, y, sample_weight)
        self._join_weight(self._label.size, weight, y.size)
        if (classes.dtype.kind in "US") != (self.classes_.dtype.kind in "US"):
            raise InvalidInput(
                f"Labels must stay of one kind: {self.classes_.tolist()[:3]} and then {classes.tolist()[:3]}."
            )
        start = self._grow(y, classes)
        self._calibrate(self._learn_more(X, self._targets(), start))

    def _grow(self, y: Array, classes: Array) -> Array:
        """Take in new labels; returns the old α in the new shape, zero for what is new."""
        old_classes, old_label, alpha = self.classes_, self._label, self._examples().solution.alpha
        self.classes_ = np.unique(np.concatenate([old_classes, classes]))
        moved = np.searchsorted(self.classes_, old_classes)
        self._label = np.concatenate([moved[old_label], np.searchsorted(self.classes_, y)])
        M = self.classes_.size
        start = np.zeros((self._label.size, 1 if M == 2 else M))
        if old_classes.size == M:
            start[: len(alpha)] = alpha
        else:
            start[: len(alpha), moved] = class_means(alpha)
        return start

    def _targets(self) -> Array:  # (n, 1) or (n, M)
        """Labels ±1, one column per class; one column for two classes."""
        M = self.classes_.size
        if M == 2:
            return np.where(self._label == 1, 1.0, -1.0)[:, None]
        return np.where(self._label[:, None] == np.arange(M), 1.0, -1.0)

    def _losses(self, Y: Array) -> Losses:
        return ClassLosses(self._label, self._weight)

    def _noise_diagonal(self, Y: Array, weight: Array | None) -> Array:
        noise = super()._noise_diagonal(Y, weight)
        if not self.balanced:
            return noise
        # H §3: N_ii = 2σ² |{j : y_j = y_i}| / n, with y the ±1 labels of each column
        positive = np.average(Y > 0, axis=0, weights=weight)
        return noise * 2.0 * np.where(Y > 0, positive, 1.0 - positive)

    def _check_parameters(self) -> Kernel:
        kernel = super()._check_parameters()
        if self.inference != "regression" and self.variance is None:
            raise InvalidParameter(
                f'Decisions with inference="{self.inference}" need the variance, and `variance` is None. '
                'Use variance="auto".'
            )
        return kernel

    def _calibrate(self, gp: GP) -> None:
        """The sharpness of probabilities, from training examples as if each had not been there."""
        self._known_scores, self.leave_one_out_error_ = None, gp.solution.error
        decide = None if self.inference == "regression" else self._weighed_with_variance
        found = calibrate(gp, self._label, self._weight, decide)
        self._left_out_mean, self.sharpness_ = found.mean, found.sharpness
        self.leave_one_out_decision_ = squeezed(found.decision)

    def _sharpen(self, gp: GP, exact: Array | None) -> tuple[Array, Array]:  # (b,), (b, m)
        """Settle the sharpness where decisions take the variance; returns the examples for it and their decisions."""
        decide = self._weighed_with_variance
        rows, decision, sharpness = sharpen(gp, self._left_out_mean, exact, self._label, self._weight, decide)
        self.sharpness_ = sharpness
        return rows, decision

    def save(self, path: Any, *, features: Any = None, examples: bool | None = None, compact: bool = False) -> None:
        """Write the model to one file; `saccade.load` reads it.

        The variance goes along as the tables of "lowrank", whatever its method, unless it is None. With "laplace" and
        "ep", decisions take it, and the probabilities in the file are calibrated again with it.

        `features`: the fitted transformer of `saccade.features`, or the Pipeline of them, that made X. It lies in the
        file beside the model, and `saccade.load` gives both back.

        `compact`: tables of about half the size, the mean in float32 and the variance in float16. Decisions change by
        1e-6 or less of their size, and the variance grows by some thousandths of what training explains.

        `examples`: True keeps the training rows instead of tables. The loaded model is fitted again from them and can
        do all that this one can, with the variance of its own method. None does so only for kernels that have no
        tables, and a warning says it. False never does: a kernel without tables is then refused.

        Else no training example is stored as such. The tables of an exact model still have a level for each value, so a
        determined reader could work backwards; to share a model of private data, use `levels` or `quantized()`.
        """
        check_is_fitted(self)
        why = self._why_examples(examples)
        if why or examples:
            X = rows_of(self.gp_)
            arrays = {"y": self._label, "weight": self._weight}
            return save_with_examples(self, path, X, arrays, features, why)
        model = self._compressed()
        extra, known = {"sharpness": model.sharpness_}, model._known_scores or {}
        if known:
            extra |= {"known": model._n_known, "confidence_weight": model._confidence_weight}
        save(model, model.gp_.compressed(), path, extra, self.classes_, features, known, compact)

    def _compressed(self) -> GPClassifier:
        """This model as it will be once loaded: tables, and probabilities for the variance that they have."""
        model = copy(self)
        if isinstance(self.gp_, GP) and isinstance(self.gp_.gram, TabledGram) and self.variance_method_ is not None:
            if self.variance_method_ != "lowrank":
                model.gp_ = gp = self.gp_.with_variance("lowrank")
                model._known_scores = None
                if self.inference != "regression":
                    model._sharpen(gp, None)
            model._known()
        return model
