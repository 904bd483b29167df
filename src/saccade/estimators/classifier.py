"""Gaussian-process classification by label regression, all classes at once (H §3, §5)."""

from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from saccade._core import limits
from saccade._core.arrays import Array, RandomSource
from saccade._core.checks import check_classes, check_draws, check_noise, check_rows
from saccade._core.errors import InvalidParameter
from saccade.estimators.automatic import Automatic
from saccade.estimators.base import GaussianProcess, squeezed
from saccade.estimators.calibration import Calibration, Decisions
from saccade.estimators.explanation import Explanation, explained
from saccade.estimators.known_classes import KnownClasses
from saccade.estimators.model_writing import rows_of
from saccade.estimators.neighbours import FEWEST, Neighbours, drawn
from saccade.estimators.part import Part
from saccade.estimators.settings import Binning, Learned, Settings
from saccade.estimators.targets import ClassTargets, outputs_of, weighed
from saccade.estimators.unlabelled import check_all_labelled, check_unlabelled, joined_rows, parted
from saccade.estimators.votes import VOTERS, Votes
from saccade.inference.approximations.by_name import Method
from saccade.inference.likelihoods.infer import Inference
from saccade.inference.posterior.compressed import no_variance
from saccade.inference.posterior.gp import GP
from saccade.inference.solving.regression import Solver
from saccade.inference.tuning.choice import NOISE
from saccade.inference.tuning.options import check_tune
from saccade.kernels import Kernel
from saccade.kernels.gram import TabledGram
from saccade.scores.accuracy import left_out_accuracy
from saccade.scores.probability import class_means


@dataclass(eq=False, repr=False)
class GPClassifier(ClassifierMixin, GaussianProcess):
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
    approximation : "auto", "exact", "lowrank", "diagonal", "optimized", "fitc", "sor", "dtc", "sod" or others
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
    unlabelled : label or None
        What stands in `y` for "no label": -1 as in scikit-learn, a text, or np.nan for None and NaN. None: every entry
        is a label. Rows without a label vote: each is linked to those most like it, labels spread along the links, and
        leave-one-out on the labels decides how much that counts, often nothing (`votes_.weight`). Of these rows up to
        2,048 are used, drawn at random. They vote if they are four times as many as the labels, and these at most
        1,024.

    Attributes
    ----------
    classes_ : array of shape (M,)
        The labels, ascending.
    gp_ : GP
        The fitted process (`saccade.inference.GP`), which answers further questions; `Compressed` or `Supported` in
        a loaded model.
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
    targets_ : ClassTargets
        Labels and weights of the training examples. Not in a loaded model.
    calibration_ : Calibration
        `sharpness_`, and the leave-one-out decisions that it comes from.
    novelty_reference_ : KnownClasses or None
        What `novelty` compares with; None until it is asked.
    votes_ : Votes or None
        The rows without labels, and how much their votes count: `votes_.weight`, 0 for not at all.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = GPClassifier(random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.9
    True
    """

    kernel: Kernel | Literal["auto"] | None = None
    _: KW_ONLY
    noise: float | Literal["auto"] = "auto"
    inference: Inference = "regression"
    levels: int | None = None
    binning: Binning = "quantile"
    balanced: bool = False
    solver: Solver = "auto"
    tol: float = 1e-3
    max_iter: int = 1000
    tune: Any = None
    approximation: Method | Literal["auto"] = "auto"
    variance: Method | Literal["auto"] | None = "auto"
    inducing: Any = 0.25
    variance_rank: int = 128
    random_state: RandomSource = None
    unlabelled: Any = None

    classes_: Annotated[Array, "M"] = field(init=False)
    targets_: ClassTargets = field(init=False)
    calibration_: Calibration = field(init=False)
    novelty_reference_: KnownClasses | None = field(init=False, default=None)
    votes_: Votes | None = field(init=False, default=None)
    settable: ClassVar[tuple[str, ...]] = ("sharpness_",)
    file_parts: ClassVar[dict[str, type[Part]]] = {"calibration_": Calibration, "novelty_reference_": KnownClasses}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on labelled examples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Training examples.
        y : array of shape (n,)
            Labels of two or more classes, text or numbers; `unlabelled` where there is none.
        sample_weight : array of shape (n,), optional
            A weight of w makes an example count as w copies of it.

        Returns
        -------
        self
            Fitted.
        """
        check_unlabelled(self.unlabelled)
        with self._replacing() as new:
            if self.unlabelled is None:
                rows, y = check_rows(new, X, y=y, reset=True)
                check_classes(y)
                some, others = rows, np.zeros(0, np.int64)
            else:
                rows = check_rows(new, X, reset=True)
                some, y, sample_weight, others = parted(rows, y, sample_weight, self.unlabelled)
            some, y, weight = weighed(some, y, sample_weight)
            targets = ClassTargets.of(y, weight, balanced=self.balanced)
            learned = new.settings().learn(some, targets)
            new.hold(learned, targets)
            if others.size >= FEWEST:
                new.take_votes(Neighbours.of(new.kernel_, rows[drawn(others, learned.gp.solving.seed)]))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add examples, and classes if there are new ones; the solver starts from the last solution.

        With levels=None the result is that of `fit` on all examples with the same noise and kernel, up to `tol`. With a
        number of levels, the levels of the first call stay. The first call may name `classes` that have no example yet.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Training examples.
        y : array of shape (n,)
            Their labels.
        classes : array, optional
            Classes to know of, with or without an example.
        sample_weight : array of shape (n,), optional
            A weight of w makes an example count as w copies of it.

        Returns
        -------
        self
            Fitted.
        """
        before, votes = self._learned() if hasattr(self, "classes_") else None, self.votes_
        check_all_labelled(y, self.unlabelled)
        with self._replacing() as new:
            X, y = check_rows(new, X, y=y, reset=before is None)
            check_classes(y)
            named = y if classes is None else np.concatenate([y, np.asarray(classes)])
            X, y, weight = weighed(X, y, sample_weight)
            if before is None:
                targets = ClassTargets.of(y, weight, classes, self.balanced)
                learned = new.settings().learn(X, targets)
            else:
                targets = self.targets_.grown(y, weight, named, self.balanced)
                start = targets.carried(before.gp.solution.alpha, self.classes_)
                learned = new.settings().learn_more(before, X, targets, start)
            new.hold(learned, targets)
            if votes is not None:
                new.take_votes(votes.neighbours)
        return self

    def settings(self) -> Settings:
        auto, plain = _is_auto(self.kernel), self.inference == "regression" and not self.balanced
        if auto and check_tune(self.tune) is not None:
            raise InvalidParameter(
                '`kernel` is "auto", which chooses among kernels of its own, and `tune` is given too. Leave `tune` '
                "out, or pass the kernel to tune, such as HIK(Power(1.0))."
            )
        learns = _is_auto(self.noise) and plain and self.approximation in ("auto", "exact") and self.tune is None
        noise = NOISE if _is_auto(self.noise) else check_noise(self.noise)
        found = self._settings(noise, Automatic(auto, _is_auto(self.noise), learns), calibrates=True)
        if self.inference != "regression" and self.variance is None:
            raise InvalidParameter(
                f'Decisions with inference="{self.inference}" need the variance, and `variance` is None. '
                'Use variance="auto".'
            )
        return found

    def hold(self, learned: Learned, targets: ClassTargets) -> GP:
        gp, self.classes_, self.novelty_reference_ = super().hold(learned, targets), targets.classes, None
        self.votes_ = None
        decisions = self._decisions()
        if decisions.take_variance:
            gp.prepare()
        self.calibration_ = Calibration.of(gp, targets.label, targets.weight, decisions)
        return gp

    def take_votes(self, neighbours: Neighbours) -> None:
        """Let rows without labels vote, as far as leave-one-out on the labels says that it helps.

        Parameters
        ----------
        neighbours : Neighbours
            Their graph. For more labels than a quarter of its rows, or than 1,024, nothing changes.
        """
        gp, own = self._examples(), self._own_calibration()
        count = self.targets_.label.size
        if count <= min(limits.VOTING_LABELS, neighbours.X.shape[0] // VOTERS):
            reach = neighbours.reach(gp.gram.as_given(np.arange(count)))
            self.votes_, self.calibration_ = Votes.of(neighbours, reach, self.targets_, own)

    def _own_calibration(self) -> Calibration:
        """That of the process without votes."""
        return self.calibration_ if self.votes_ is None else self.votes_.own

    def _decisions(self) -> Decisions:
        return Decisions(self.inference != "regression", self.noise_)

    # ---- what a fitted classifier answers

    @property
    def n_outputs_(self) -> int:
        return outputs_of(self.classes_)

    @property
    def sharpness_(self) -> float:
        """What decisions are multiplied with to become probabilities, found from leave-one-out decisions."""
        return self.calibration_.sharpness

    @sharpness_.setter
    def sharpness_(self, value: float) -> None:
        self.calibration_ = replace(self.calibration_, sharpness=value)

    def decision_function(self, X: Any) -> Array:
        """The latent mean μ, or μ/√(v + σ²) with "laplace" and "ep".

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.

        Returns
        -------
        array of shape (n,) or (n, M)
            One column for two classes: that of the second.
        """
        return squeezed(self._decision(X))

    def predict(self, X: Any) -> Array:
        """The class with the largest decision value.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.

        Returns
        -------
        array of shape (n,)
            Labels.
        """
        best = class_means(self._decision(X)).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> Array:
        """Calibrated class probabilities.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.

        Returns
        -------
        array of shape (n, M)
            Columns as in `classes_`.
        """
        decision = self._decision(X)
        return self.calibration_.probabilities(decision)

    def _decision(self, X: Any) -> Annotated[Array, "n, 1 | n, M"]:
        X = self._rows(X)
        own = self._decisions().at(self.gp_, X)
        votes = self.votes_
        return own if votes is None or not votes.weight else votes.decision(own, votes.neighbours.reach(X))

    @property
    def leave_one_out_decision_(self) -> Annotated[Array, "n | n, M"]:
        """Decisions for the training examples, each predicted by all the others. Not in a loaded model.

        With an approximate mean and more than 2,048 examples, those of a sample; NaN for the others.
        """
        return squeezed(self._left_out("leave_one_out_decision_"))

    @property
    def leave_one_out_error_(self) -> float:
        """How far a label minus its leave-one-out mean is off, relatively: root mean square over all examples.

        0 after Cholesky. After conjugate gradients it is an estimate, and more probes are solved until it is at most
        0.05 or half a second is spent; 0 where a factor is about as quick as these probes. With `balanced`, the larger
        one of a class's own examples and of all others.
        """
        self._left_out("leave_one_out_error_")
        return self.calibration_.error

    @property
    def leave_one_out_proba_(self) -> Annotated[Array, "n, M"]:
        """Class probabilities from `leave_one_out_decision_`; two classes have two columns. Not in a loaded model."""
        decision = self._left_out("leave_one_out_proba_")
        return self.calibration_.probabilities(decision)

    @property
    def leave_one_out_accuracy_(self) -> tuple[float, float]:
        """Share of training examples whose class all the others predict, and its standard error.

        The error is what n examples leave open, and what `leave_one_out_error_` may have added or taken. Not in a
        loaded model.
        """
        decision = class_means(self._left_out("leave_one_out_accuracy_"))
        return left_out_accuracy(decision, self.targets_.label, np.nan_to_num(self.calibration_.error))

    def _left_out(self, name: str) -> Annotated[Array, "n, 1 | n, M"]:
        check_is_fitted(self)
        if self.calibration_.decision is None:
            raise AttributeError(f"A loaded model has no {name}: it holds no training examples. Fit again.")
        return self.calibration_.decision

    def explain(self, X: Any) -> Explanation:
        if self.votes_ is not None and self.votes_.weight:
            raise InvalidParameter(
                "Rows without labels vote on these decisions (`votes_.weight`), and votes have no shares of features. "
                "To explain a model, fit it on the labelled rows alone."
            )
        X, decisions, one = self._rows(X), self._decisions(), np.ones((1, self.n_outputs_))
        scale = decisions(one, self.gp_.variance(X)) if decisions.take_variance else one
        return explained(self.gp_, X, scale, np.zeros(self.n_outputs_), self.classes_.size == 2)

    def novelty(self, X: Any) -> Annotated[Array, "n"]:
        """How little each example is like the known classes: 0 for one like many, near 1 for one like none.

        Two signs, each compared with what training examples show when left out: the share of the variance that
        training does not explain, and how unsure the classes are. Their p-values are multiplied (Fisher's method), and
        the product again compared: above 0.95 is about a twentieth of all examples of known classes, and what is new.
        One sign counts more than the other, or alone, where that finds known classes better that were hidden from
        training in turn (unknown_classes.py).

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.

        Returns
        -------
        array of shape (n,)
            From 0 to 1.
        """
        X = self._rows(X)
        known = self._known()  # first: its directions serve the tables of the variance too
        return known.novelty_at(self.gp_, X, self._own_calibration(), self._decisions())

    def _known(self) -> KnownClasses:
        """What `novelty` compares with, made when it is first asked."""
        if self.novelty_reference_ is None:
            if self.variance_method_ is None:
                no_variance()
            gp, decisions = self._examples(), self._decisions()
            self.novelty_reference_ = KnownClasses.of(gp, self.targets_, self._own_calibration(), decisions)
        return self.novelty_reference_

    def sample_latent(self, X: Any, n_samples: int = 1, random_state: RandomSource = None) -> Array:
        """Draws of the latent f from its joint posterior at the rows of X.

        Classes are drawn independently of each other. The training examples are needed: not for a loaded model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.
        n_samples : int
            Number of draws.
        random_state : int, RandomState, Generator or None
            Seed of the draws.

        Returns
        -------
        array of shape (n, n_samples) or (n, M, n_samples)
            One column for two classes.
        """
        X = self._rows(X)
        return squeezed(self.gp_.sample(X, *check_draws(n_samples, random_state)))

    def _rows_beside(self, examples: bool | None) -> tuple[Any, dict[str, Array | None]] | None:
        """All rows where some vote: those without a label have class −1."""
        if self.votes_ is None or not self.votes_.weight:
            return None
        if examples is False:
            raise InvalidParameter(
                "`examples` is False, and this model asks the rows without labels about every new row: its file must "
                "keep rows. Leave `examples` out, or fit on the labelled rows alone."
            )
        return joined_rows(rows_of(self.gp_), self.targets_, self.votes_.neighbours.X)

    def _compressed(self) -> Self:
        """With what `novelty` compares with, and probabilities for the variance that tables have."""
        model = copy(self)
        if isinstance(self.gp_, GP) and self.variance_method_ is not None:
            if isinstance(self.gp_.gram, TabledGram) and self.variance_method_ != "lowrank":
                model.gp_ = gp = self.gp_.with_variance("lowrank")
                model.novelty_reference_ = None
                if self.inference != "regression":
                    label, weight = self.targets_.label, self.targets_.weight
                    model.calibration_ = self.calibration_.sharpened(gp, label, weight, self._decisions())
            model._known()
        return model


def _is_auto(value: object) -> bool:
    """Whether a parameter is "auto"; an array is not asked whether it equals a text."""
    return isinstance(value, str) and value == "auto"
