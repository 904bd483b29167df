"""Gaussian-process regression with a fast intersection kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from saccade._core.arrays import Array
from saccade._core.checks import check_draws, check_flag, check_rows
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.estimators.base import Binning, GaussianProcess, weighed
from saccade.estimators.model_file import save
from saccade.inference.approximation import Method
from saccade.inference.evidence import Evidence
from saccade.inference.regression import Solver
from saccade.kernels import Kernel
from saccade.kernels.gram import Gram


class GPRegressor(RegressorMixin, GaussianProcess):
    """Gaussian-process regression for one or many targets.

    Parameters
    ----------
    normalize_y : bool
        True: the process is that of the targets less their mean, over their standard deviation. Its prior mean is then
        the mean of the targets, and `noise` and the kernel are relative to their variance, so that the defaults suit
        targets of any size. False: the prior mean is 0, and `noise` and the kernel are in squared units of the targets.
        Predictions and the evidence are in units of the targets either way. scikit-learn's default is False, because
        its kernels are usually tuned; here True, because a noise of 0.1 must mean the same on any data.
    noise : float
        The variance of the noise: as a share of the targets' variance, or with normalize_y=False as it is.

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

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        noise: float = 0.1,
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
            new._y, new._weight = y.astype(np.float64), weight
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
            new._join_weight(len(self._y), weight, len(y))
            new._y = np.concatenate([self._y, y])
            Y = new._normalised()
            new._learn_more(X, Y, np.vstack([alpha * (scale / new._scale), np.zeros((len(y), Y.shape[1]))]))
        return self

    def _normalised(self) -> Array:  # (n, m)
        Y = self._y.reshape(len(self._y), -1)
        self._flat = self._y.ndim == 1
        self._offset = np.average(Y, axis=0, weights=self._weight)
        with np.errstate(over="ignore"):
            spread = np.sqrt(np.average((Y - self._offset) ** 2, axis=0, weights=self._weight))
        if not np.isfinite(spread).all():
            raise InvalidInput(f"`y` is too large for float64 squares, up to {np.abs(Y).max():.2g}. Divide it first.")
        self._scale = np.where(spread > 0, spread, 1.0)
        if not self.normalize_y:
            self._offset, self._scale = np.zeros(Y.shape[1]), np.ones(Y.shape[1])
        return np.asarray((Y - self._offset) / self._scale)

    def _check_parameters(self) -> Kernel:
        check_flag("normalize_y", self.normalize_y)
        return super()._check_parameters()

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
        return replace(found, value=found.value - float(count * np.log(self._scale).sum()))

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The posterior mean; also the standard deviation or the covariance of the noise-free function, if wanted.

        `return_std` is by the method that `variance` names. `return_cov` is exact: (n, n), or (n, n, m) for m targets.
        """
        if return_std and return_cov:
            raise InvalidParameter("At most one of `return_std` and `return_cov` can be True. Call predict twice.")
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        mean = self.gp_.mean(X) * self._scale + self._offset
        answer = mean[:, 0] if self._flat else mean
        if return_cov:
            covariance = self.gp_.covariance(X)[0][:, :, None] * np.square(self._scale)
            return answer, covariance[:, :, 0] if self._flat else covariance
        if return_std:
            std = np.sqrt(self.gp_.variance(X)) * self._scale
            return answer, std[:, 0] if self._flat else std
        return answer

    def _additive(self, X: Any) -> tuple[Array, Array]:
        return self._scale[None], self._offset

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draws of the noise-free function from its joint posterior at X: (n, n_samples), or (n, m, n_samples).

        The training examples are needed: not for a loaded model.
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        drawn = self.gp_.sample(X, *check_draws(n_samples, random_state))
        drawn = drawn * self._scale[:, None] + self._offset[:, None]
        return np.asarray(drawn[:, 0] if self._flat else drawn)

    def latent_mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Mean and variance of the noise-free function, in units of the targets."""
        mean, std = self.predict(X, return_std=True)
        return mean, std**2

    def save(self, path: Any, *, features: Any = None) -> None:
        """Write the model to one file of tables, as `GPClassifier.save`; `saccade.load` reads it."""
        check_is_fitted(self)
        extra = {"offset": self._offset.tolist(), "scale": self._scale.tolist(), "flat": self._flat}
        save(self, self.gp_.compressed(), path, extra, features=features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
