"""Gaussian-process regression with a fast intersection kernel."""

from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin

from saccade._core.arrays import Array, RandomSource
from saccade._core.checks import check_draws, check_flag, check_noise, check_rows, is_number
from saccade._core.errors import InvalidParameter
from saccade.estimators.base import GaussianProcess
from saccade.estimators.explanation import Explanation, explained
from saccade.estimators.number_targets import Normalising, NumberTargets, TargetUnits, looks_at
from saccade.estimators.part import Part
from saccade.estimators.prior_mean import MeanOption, check_mean
from saccade.estimators.settings import Binning, Learned, Settings
from saccade.estimators.targets import weighed
from saccade.inference.approximations.by_name import Method
from saccade.inference.posterior.gp import GP
from saccade.inference.posterior.sampling import sample_normal
from saccade.inference.solving.evidence import Evidence
from saccade.inference.solving.regression import Solver
from saccade.inference.tuning.options import check_tune
from saccade.kernels import Kernel

# What noise=0 needs of these parameters.
EXACT = {"solver": ("auto", "cholesky"), "approximation": ("auto", "exact"), "variance": ("auto", "exact", None)}


@dataclass(eq=False, repr=False)
class GPRegressor(RegressorMixin, GaussianProcess):
    """Gaussian-process regression for one or many targets.

    Equal rows of X are joined to one with the mean of their targets and the noise over their number: posterior and
    evidence stay the same. They are not joined where the answer would differ: with another `approximation` or
    `variance` than "auto" and "exact", and for the leave-one-out objective of `tune`.

    Parameters
    ----------
    kernel : Kernel, default HIK()
        As for `GPClassifier`, without "auto".
    noise : float
        The variance of the noise: as a share of the targets' variance, or with normalize_y=False as it is. 0: the
        targets are exact. Predictions go through them, and equal rows of X must have equal targets and count once. No
        jitter is added: where rounding makes the matrix singular, an error says which noise is enough.
    mean : None, float or function
        The mean of the targets before any example, in their units; far from all examples predictions return to it. A
        function takes the rows X as an array (n, d), or a sparse matrix where X is one, and gives (n,), or (n, m) for m
        targets. None: the mean of the targets, or with normalize_y=False 0.
    normalize_y : bool
        True: the process is that of the targets less their mean, over their standard deviation; with a `mean` that is
        given, less that, over the root of the mean square of what is left. So `noise` and the kernel are relative to
        the variance of the targets, and the defaults suit targets of any size. False: `noise` and the kernel are in
        squared units of the targets. Predictions and the evidence are in units of the targets either way.
        scikit-learn's default is False, because its kernels are usually tuned; here True, because a noise of 0.1 must
        mean the same on any data.
    levels, binning : int or None, str
        As for `GPClassifier`.
    solver, tol, max_iter : str, float, int
        As for `GPClassifier`.
    tune : str, dict, Tune or None
        As for `GPClassifier`.
    approximation, variance, inducing, variance_rank : str, str or None, float or array, int
        As for `GPClassifier`.
    random_state : int, RandomState or None
        As for `GPClassifier`.

    Attributes
    ----------
    gp_, kernel_, noise_, tuning_, n_iter_, residual_, converged_, variance_method_
        As for `GPClassifier`; `noise_` and `residual_` are those of the normalised targets.
    targets_ : NumberTargets
        Targets and weights of the training examples. Not in a loaded model.
    units_ : TargetUnits
        Offset and scale of the targets.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = GPRegressor(noise=1e-4).fit(X, np.sin(3 * X[:, 0]))
    >>> bool(abs(model.predict([[0.5]])[0] - np.sin(1.5)) < 0.01)
    True
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    noise: float = 0.1
    mean: MeanOption = None
    normalize_y: bool = True
    levels: int | None = None
    binning: Binning = "quantile"
    solver: Solver = "auto"
    tol: float = 1e-3
    max_iter: int = 1000
    tune: Any = None
    approximation: Method | Literal["auto"] = "auto"
    variance: Method | Literal["auto"] | None = "auto"
    inducing: Any = 0.25
    variance_rank: int = 128
    random_state: RandomSource = None

    targets_: NumberTargets = field(init=False)
    units_: TargetUnits = field(init=False)
    file_parts: ClassVar[dict[str, type[Part]]] = {"units_": TargetUnits}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on examples with their targets.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Training examples.
        y : array of shape (n,) or (n, m)
            Targets.
        sample_weight : array of shape (n,), optional
            A weight of w makes an example count as w copies of it.

        Returns
        -------
        self
            Fitted.
        """
        with self._replacing() as new:
            X, y = check_rows(new, X, y=y, reset=True, multi_output=True, y_numeric=True)
            X, y, weight = weighed(X, y, sample_weight)
            check_mean(self.mean)
            looks, keys = looks_at(X, y, weight, joins=self._joins(), exact=self._exact)
            targets = NumberTargets.of(looks, self.normalising(), keys)
            new.hold(new.settings().learn(looks.X, targets), targets)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add examples; the solver starts from the last solution. With levels=None the same as `fit` on all of them.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Training examples.
        y : array of shape (n,) or (n, m)
            Targets.
        sample_weight : array of shape (n,), optional
            A weight of w makes an example count as w copies of it.

        Returns
        -------
        self
            Fitted.
        """
        if not hasattr(self, "gp_"):
            return self.fit(X, y, sample_weight)
        before = self._learned()
        with self._replacing() as new:
            X, y = check_rows(new, X, y=y, reset=False, multi_output=True, y_numeric=True)
            X, y, weight = weighed(X, y, sample_weight)
            X, targets = self.targets_.grown(X, y, weight, self.normalising(), self._exact)
            start = targets.carried(before.gp.solution.alpha, self.units_)
            new.hold(new.settings().learn_more(before, X, targets, start), targets)
        return self

    def settings(self) -> Settings:
        check_flag("normalize_y", self.normalize_y)
        noise = check_noise(self.noise, zero=True)
        found = self._settings(noise, compares=False)
        for name, exact in EXACT.items() if noise == 0 else ():
            if getattr(self, name) not in exact:
                raise InvalidParameter(
                    f"`noise` is 0, which takes {name}={exact[0]!r} or {exact[1]!r}, got {getattr(self, name)!r}."
                )
        return found

    def hold(self, learned: Learned, targets: NumberTargets) -> GP:
        searched = self.tuning_ is not learned.tuning and learned.tuning is not None
        gp, self.units_ = super().hold(learned, targets), targets.units
        if searched and learned.tuning is not None:  # the record of the search is in the units of the targets too
            unit = float(np.log(self.units_.scale).sum())
            learned.tuning.evaluations = [replace(e, value=e.value + unit) for e in learned.tuning.evaluations]
        return gp

    def normalising(self) -> Normalising:
        """The parameters that offset and scale of the targets come from.

        Returns
        -------
        Normalising
            `mean` and `normalize_y`.
        """
        return Normalising(self.mean, self.normalize_y)

    @property
    def _exact(self) -> bool:
        return is_number(self.noise) and self.noise == 0

    def _joins(self) -> bool:
        """Whether equal rows can be joined to one, which changes nothing where all is exact."""
        options = check_tune(self.tune)
        left_out = options is not None and options.kind(classes=False) == "loo"
        return not left_out and all(getattr(self, name) in EXACT[name] for name in ("approximation", "variance"))

    @property
    def n_outputs_(self) -> int:
        return int(self.units_.offset.size)

    def log_marginal_likelihood(self, method: str = "auto") -> Evidence:
        found, targets = super().log_marginal_likelihood(method), self.targets_
        scatter, unit = targets.scatter(), float(np.log(self.units_.scale).sum())
        apart = 0.0 if scatter is None else float(scatter.sum()) / (2.0 * self.noise_)
        return replace(found, value=found.value - apart - targets.count * unit)

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The posterior mean; also the standard deviation or the covariance of the noise-free function, if wanted.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            New examples.
        return_std : bool
            Also the standard deviation, by the method that `variance` names.
        return_cov : bool
            Also the covariance of all rows, exact.

        Returns
        -------
        mean : array of shape (n,) or (n, m)
            In units of the targets; with `return_std` or `return_cov` a tuple of it and (n,) or (n, m), or (n, n) or
            (n, n, m).
        """
        if return_std and return_cov:
            raise InvalidParameter("At most one of `return_std` and `return_cov` can be True. Call predict twice.")
        X = self._rows(X)
        units = self.units_
        mean, variance = self.gp_.mean_and_variance(X) if return_std else (self.gp_.mean(X), None)
        answer = units.values(mean)
        if return_cov:
            covariance = self.gp_.covariance(X)[0][:, :, None] * np.square(units.scale)
            return answer, covariance[:, :, 0] if units.flat else covariance
        return answer if variance is None else (answer, units.squeezed(np.sqrt(variance) * units.scale))

    def explain(self, X: Any) -> Explanation:
        X = self._rows(X)
        return explained(self.gp_, X, self.units_.scale[None], self.units_.prior_mean(X))

    def sample_y(self, X: Any, n_samples: int = 1, random_state: RandomSource = None) -> Array:
        """Draws of the noise-free function from its joint posterior at X.

        The training examples are needed: not for a loaded model.

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
        array of shape (n, n_samples) or (n, m, n_samples)
            In units of the targets.
        """
        X = self._rows(X)
        return self.units_.values(self.gp_.sample(X, *check_draws(n_samples, random_state)))

    def sample_prior(self, X: Any, n_samples: int = 1, random_state: RandomSource = None) -> Array:
        """Draws of the function at X before any example.

        After fit with the kernel, mean and scale that were learned; before fit as if normalize_y=False.

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
        array
            Of the same shape as those of `sample_y`.
        """
        model = self if hasattr(self, "gp_") else self._before_fit(X)
        X = check_rows(model, X, reset=False)
        count, rng = check_draws(n_samples, random_state)
        m = model.units_.scale.size
        drawn = sample_normal(np.zeros(X.shape[0]), model.kernel_(X), m * count, rng).reshape(-1, m, count)
        return model.units_.values(drawn + model.units_(X)[:, :, None])

    def _before_fit(self, X: Any) -> Self:
        """A copy that has a prior; what a kernel settles on the data, it settles on X."""
        model = copy(self)
        X = check_rows(model, X, reset=True)
        model.kernel_, model.units_ = model.settings().kernel.resolved(X), TargetUnits.before_fit(X, self.mean)
        return model

    def latent_mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        mean, std = self.predict(X, return_std=True)
        return mean, std**2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
