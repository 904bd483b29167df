"""Gaussian-process regression with a fast intersection kernel."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array
from saccade._core.checks import check_draws, check_flag, check_rows, is_number
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.estimators.base import Binning, GaussianProcess, weighed
from saccade.estimators.examples_file import rows_of
from saccade.estimators.model_file import save, save_with_examples
from saccade.estimators.prior_mean import MeanOption, TargetMean, check_mean, check_targets, offset_and_scale, values_at
from saccade.estimators.repeats import Looks, join, unseen
from saccade.inference.approximations.by_name import Method
from saccade.inference.likelihoods.infer import Solving
from saccade.inference.posterior.evidence import Evidence
from saccade.inference.posterior.prior_mean import PriorMean
from saccade.inference.posterior.sampling import sample_normal
from saccade.inference.solving.regression import Solver
from saccade.inference.tuning.options import check_tune
from saccade.kernels import Kernel
from saccade.kernels.gram import Gram

# What noise=0 needs of these parameters.
EXACT = {"solver": ("auto", "cholesky"), "approximation": ("auto", "exact"), "variance": ("auto", "exact", None)}


class GPRegressor(RegressorMixin, GaussianProcess):
    """Gaussian-process regression for one or many targets.

    Parameters
    ----------
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
    noise : float
        The variance of the noise: as a share of the targets' variance, or with normalize_y=False as it is. 0: the
        targets are exact. Predictions go through them, and equal rows of X must have equal targets and count once. No
        jitter is added: where rounding makes the matrix singular, an error says which noise is enough.

    Equal rows of X are joined to one with the mean of their targets and the noise over their number: posterior and
    evidence stay the same. They are not joined where the answer would differ: with another `approximation` or
    `variance` than "auto" and "exact", and for the leave-one-out objective of `tune`.

    The other parameters are those of `GPClassifier`.

    Attributes
    ----------
    gp_, kernel_, noise_, tuning_, n_iter_, residual_, converged_, variance_method_
        As for `GPClassifier`; `noise_` and `residual_` are those of the normalised targets.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = GPRegressor(noise=1e-4).fit(X, np.sin(3 * X[:, 0]))
    >>> bool(abs(model.predict([[0.5]])[0] - np.sin(1.5)) < 0.01)
    True
    """

    compares_novelty = False
    noise_free = True
    _function: Callable[[Any], Any] | None = None  # the prior mean that was fitted with, where it is a function
    _prior: Array | None = None  # (n, m): what that function gives for the training rows
    _keys: list[bytes] | None = None  # of the training rows, where `noise` is 0
    _apart: Array | None = None  # (n, m): Σ (y − ȳ)² of equal rows that were joined, in squared units of the targets

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        noise: float = 0.1,
        mean: MeanOption = None,
        normalize_y: bool = True,
        levels: int | None = None,
        binning: Binning = "quantile",
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
        self.mean = mean
        self.normalize_y = normalize_y
        self.levels = levels
        self.binning = binning
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
        """Train on X (n, d) and y (n,) or (n, m)."""
        with self._replacing() as new:
            X, y = check_rows(new, X, y=y, reset=True, multi_output=True, y_numeric=True)
            X, y, weight = weighed(X, y, sample_weight)
            new._function = check_mean(self.mean)
            X, new._y, new._weight, new._apart = new._looks(X, check_targets(y), weight)
            new._prior = new._function and values_at(new._function, X, new._y[0].size)
            new._learn(X, new._normalised())
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add examples; the solver starts from the last solution. With levels=None the same as `fit` on all of them."""
        if not hasattr(self, "gp_"):
            return self.fit(X, y, sample_weight)
        alpha, scale = self._examples().solution.alpha, self._scale
        with self._replacing() as new:
            X, y = check_rows(new, X, y=y, reset=False, multi_output=True, y_numeric=True)
            X, y, weight = weighed(X, y, sample_weight)
            if y.shape[1:] != self._y.shape[1:]:
                raise InvalidInput(
                    f"`y` must have {self._y[0].size} target(s) as in the first call, got shape {y.shape}."
                )
            if check_mean(self.mean) != self._function:
                raise InvalidParameter("A function as `mean` must stay as in the first call. Call fit instead.")
            X, y, weight, _ = new._further_looks(X, check_targets(y), weight)
            new._join_weight(len(self._y), weight, len(y))
            new._y = np.concatenate([self._y, y])
            if self._function is not None and self._prior is not None:
                new._prior = np.vstack([self._prior, values_at(self._function, X, self._offset.size)])
            if self._apart is not None:
                new._apart = np.vstack([self._apart, np.zeros((len(y), self._apart.shape[1]))])
            Y = new._normalised()
            new._learn_more(X, Y, np.vstack([alpha * (scale / new._scale), np.zeros((len(y), Y.shape[1]))]))
        return self

    def _looks(self, X: Any, y: Array, weight: Array | None) -> Looks:
        """The rows to learn from, each once where that changes nothing."""
        self._keys = None
        if is_number(self.noise) and self.noise == 0:
            looks, self._keys = unseen(X, y, [], y[:0])
            return looks
        exact = all(getattr(self, name) in EXACT[name] for name in ("approximation", "variance"))
        options = check_tune(self.tune)
        left_out = options is not None and options.kind(classes=False) == "loo"
        return join(X, y, weight) if exact and not left_out else Looks(X, y, weight)

    def _further_looks(self, X: Any, y: Array, weight: Array | None) -> Looks:
        """Further rows, all of them; with noise 0 those that were not seen yet."""
        if (self._keys is not None) != (self.noise == 0):
            raise InvalidParameter("`noise` cannot change from or to 0 between calls of partial_fit. Call fit instead.")
        if self._keys is None:
            return Looks(X, y, weight)
        looks, self._keys = unseen(X, y, self._keys, self._y)
        return looks

    def _scatter(self) -> Array | None:
        return None if self._apart is None else self._apart / self._scale**2

    @property
    def _target_mean(self) -> TargetMean:
        """The mean before any example."""
        return TargetMean(self._function, self._offset, self._scale)

    def _normalised(self) -> Array:  # (n, m)
        """The targets over their scale; the process subtracts its prior mean."""
        Y, self._flat = self._y.reshape(len(self._y), -1), self._y.ndim == 1
        left = Y if self._prior is None else Y - self._prior
        self._offset, self._scale = offset_and_scale(left, self._weight, self._apart, self.mean, self.normalize_y)
        values = np.broadcast_to(self._offset, Y.shape) if self._prior is None else self._prior
        self._before = PriorMean(self._target_mean, values / self._scale)
        return np.asarray(Y / self._scale)

    def _check_parameters(self) -> Kernel:
        check_flag("normalize_y", self.normalize_y)
        kernel = super()._check_parameters()
        for name, exact in EXACT.items() if self.noise == 0 else ():
            if getattr(self, name) not in exact:
                raise InvalidParameter(
                    f"`noise` is 0, which takes {name}={exact[0]!r} or {exact[1]!r}, got {getattr(self, name)!r}."
                )
        return kernel

    def _solving(self, seed: int) -> Solving:
        """Without noise by a factor: conjugate gradients would not end."""
        found = super()._solving(seed)
        return replace(found, solver="cholesky") if self.noise_ == 0 else found

    def _tuned(self, kernel: Kernel, gram: Gram, Y: Array, seed: int) -> Gram:
        """As for every model; the record of the search is in the units of the targets too."""
        gram = super()._tuned(kernel, gram, Y, seed)
        if self.tuning_ is not None:
            unit = float(np.log(self._scale).sum())
            self.tuning_.evaluations = [replace(e, value=e.value + unit) for e in self.tuning_.evaluations]
        return gram

    def log_marginal_likelihood(self, method: str = "auto") -> Evidence:
        """log p(y) of the targets as they were given, all outputs together: larger explains them better.

        `normalize_y` divides every target by a standard deviation, and a density in other units is another density:
        log p(y) is that of the normalised targets less the logarithm of it for each. So models with and without
        `normalize_y` can be compared.

        `method` is as for `GPClassifier.log_marginal_likelihood`.
        """
        found = super().log_marginal_likelihood(method)
        count = len(self._y) if self._weight is None else self._weight.sum()
        scatter = self._scatter()
        apart = 0.0 if scatter is None else float(scatter.sum()) / (2.0 * self.noise_)
        return replace(found, value=found.value - apart - float(count * np.log(self._scale).sum()))

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The posterior mean; also the standard deviation or the covariance of the noise-free function, if wanted.

        `return_std` is by the method that `variance` names. `return_cov` is exact: (n, n), or (n, n, m) for m targets.
        """
        if return_std and return_cov:
            raise InvalidParameter("At most one of `return_std` and `return_cov` can be True. Call predict twice.")
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        mean, variance = self.gp_.mean_and_variance(X) if return_std else (self.gp_.mean(X), None)
        mean = mean * self._scale
        answer = mean[:, 0] if self._flat else mean
        if return_cov:
            covariance = self.gp_.covariance(X)[0][:, :, None] * np.square(self._scale)
            return answer, covariance[:, :, 0] if self._flat else covariance
        if variance is None:
            return answer
        std = np.sqrt(variance) * self._scale
        return answer, std[:, 0] if self._flat else std

    def _additive(self, X: Any) -> tuple[Array, Array]:
        return self._scale[None], self._offset if self._function is None else self._target_mean.of_targets(X)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draws of the noise-free function from its joint posterior at X: (n, n_samples), or (n, m, n_samples).

        The training examples are needed: not for a loaded model.
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        drawn = self.gp_.sample(X, *check_draws(n_samples, random_state))
        drawn = drawn * self._scale[:, None]
        return np.asarray(drawn[:, 0] if self._flat else drawn)

    def sample_prior(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draws of the function at X before any example, of the same shape as those of `sample_y`.

        After fit with the kernel, mean and scale that were learned; before fit as if normalize_y=False.
        """
        model = self if hasattr(self, "gp_") else self._before_fit(X)
        X = check_rows(model, X, reset=False)
        count, rng = check_draws(n_samples, random_state)
        m = model._scale.size
        drawn = sample_normal(np.zeros(X.shape[0]), model.kernel_(X), m * count, rng).reshape(-1, m, count)
        drawn = drawn * model._scale[:, None] + model._target_mean.of_targets(X)[..., None]
        return np.asarray(drawn[:, 0] if model._flat else drawn)

    def _before_fit(self, X: Any) -> Self:
        """A copy that has a prior; what a kernel settles on the data, it settles on X."""
        model = copy(self)
        X = check_rows(model, X, reset=True)
        model.kernel_, model._function = model._check_parameters().resolved(X), check_mean(self.mean)
        m = 1 if model._function is None else values_at(model._function, X).shape[1]
        model._offset, model._scale = offset_and_scale(np.zeros((1, m)), None, None, self.mean, False)
        model._flat = m == 1
        return model

    def latent_mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Mean and variance of the noise-free function, in units of the targets."""
        mean, std = self.predict(X, return_std=True)
        return mean, std**2

    def save(self, path: Any, *, features: Any = None, examples: bool | None = None, compact: bool = False) -> None:
        """Write the model to one file, as `GPClassifier.save`; `saccade.load` reads it."""
        check_is_fitted(self)
        if self._function is not None:
            raise InvalidParameter(
                "A model whose `mean` is a function cannot be saved: a file holds no code. Fit a model without it to "
                "y - mean(X), save that, and add mean(X) to its predictions."
            )
        why = self._why_examples(examples)
        if why or examples:
            X = rows_of(self.gp_)
            arrays = {"y": self._y, "weight": self._weight, "apart": self._apart}
            return save_with_examples(self, path, X, arrays, features, why)
        extra = {"offset": self._offset.tolist(), "scale": self._scale.tolist(), "flat": self._flat}
        save(self, self.gp_.compressed(), path, extra, features=features, compact=compact)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
