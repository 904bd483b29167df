"""Support vector data description: the smallest ball around the examples (O §4)."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from saccade._core.checks import check_count, check_levels, check_positive, check_rows, is_number
from saccade._core.progress import report
from saccade.estimators.model_file import save
from saccade.estimators.outliers import Array, Outliers
from saccade.kernels import HIK, Kernel
from saccade.kernels.base import check_kernel
from saccade.operators.base import Dense, Operator
from saccade.operators.codes import MAX_LEVELS, column_max, decode, encode, split_signs
from saccade.operators.intersection import intersection
from saccade.operators.streamed import Streamed
from saccade.operators.tables import GridTables, PiecewiseTables
from saccade.solvers.smo import SVDDResult, check_nu, solve_svdd

WRITTEN_OUT = 10_000  # examples up to which a kernel without fast products is written out (0.8 GB)
AT_ONCE = 4_000_000  # kernel values between new examples and support vectors held at a time
ROUNDING = 1e-12  # of the largest k(x, x): an example on the surface counts as inside


class SVDD(Outliers, BaseEstimator):
    """The smallest ball in feature space that holds all but a share ν of the examples; what is outside is novel.

    Its centre is c = Σ α_i Φ(x_i) with α ≥ 0, Σα = 1, and only the support vectors, on the surface or outside, have an
    α above 0. Where k(x, x) is constant the ball is the half-space of scikit-learn's OneClassSVM with the same ν.

    Parameters
    ----------
    kernel : Kernel, default HIK()
        HIK scores from tables in constant time and keeps no example; another kernel keeps the support vectors.
    nu : float above 0, at most 1
        ν: no more than this share of the training examples is outside, and at least this share are support vectors.
    levels : int or None
        Levels a dimension for HIK: None is exact, a number up to 255 makes smaller tables.
    tol : float
        When to stop: squared distances are right up to `tol` times the mean squared distance from the mean.
    max_iter : int
        Most moves of weight between two examples. A few hundred are usual.

    Attributes
    ----------
    radius_ : float
        R, not R².
    offset_ : float
        −R², less 1e-12 of the largest k(x, x) for rounding: `decision_function` is `score_samples` less this.
    support_ : array of shape (n_support,)
        Which training examples have an α above 0.
    dual_coef_ : array of shape (n_support,)
        Their α.
    n_iter_, converged_ : int, bool
        Moves that were made, and whether they got as far as `tol`.

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.2, 0.8], [0.1, 0.7], [0.1, 1.0], [0.9, 0.1]]
    >>> SVDD(nu=0.4).fit(X).predict([[0.1, 0.9], [1.0, 0.0]])
    array([ 1, -1])
    """

    tables_: PiecewiseTables | GridTables | None
    kernel_: Any
    variance_method_ = None  # what a model file has a place for and a ball has not
    noise_ = 0.0

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        nu: float = 0.5,
        levels: int | None = None,
        tol: float = 1e-6,
        max_iter: int = 10_000_000,
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.levels = levels
        self.tol = tol
        self.max_iter = max_iter

    def _check_parameters(self) -> Kernel:
        check_nu(self.nu)
        check_levels(self.levels, MAX_LEVELS)
        check_positive("tol", self.tol, "The default is 1e-6.")
        check_count("max_iter", self.max_iter, "The default is 10000000.")
        fresh: Kernel = clone(HIK() if self.kernel is None else check_kernel("kernel", self.kernel))
        return fresh

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the ball around X (n, d); y is ignored."""
        new = copy(self)  # a failure or an interruption leaves this estimator as it was
        kernel = new._check_parameters()
        X = check_rows(new, X, reset=True)
        for name in ("_tops", "support_vectors_"):
            new.__dict__.pop(name, None)
        if isinstance(kernel, HIK):
            new._fit_tables(kernel, X)
        else:
            new._fit_vectors(kernel, X.astype(np.float64))
        self.__dict__ = new.__dict__
        return self

    def _fit_tables(self, kernel: HIK, X: Any) -> None:
        report("encoding", 0.0)
        kernel.check_width(X.shape[1])
        split = split_signs(X)
        codes = encode(split, self.levels)
        settled = kernel.fit_codes(codes)
        K = intersection(codes, settled.levels)

        def submatrix(some: Array) -> Array:  # exact codes are X itself, and decoding is slow
            return settled(X[some] if self.levels is None else decode(codes, some))

        ball = solve_svdd(K, self.nu, submatrix=submatrix, **self._limits())
        self.kernel_, self._tops = settled, column_max(split)
        self._keep(ball, K)
        self.tables_ = K.tables(ball.alpha[:, None])

    def _fit_vectors(self, kernel: Kernel, X: Any) -> None:
        self.kernel_ = kernel.settled(X)
        whole = X.shape[0] <= WRITTEN_OUT
        K: Operator = Dense(self.kernel_(X)) if whole else Streamed(self.kernel_, X)
        self._keep(solve_svdd(K, self.nu, **self._limits()), K)
        self.tables_, self.support_vectors_ = None, X[self.support_]

    def _limits(self) -> dict[str, Any]:
        return {"tol": float(self.tol), "max_iter": int(self.max_iter)}

    def _keep(self, ball: SVDDResult, K: Operator) -> None:
        self.support_ = np.flatnonzero(ball.alpha)
        self.dual_coef_ = ball.alpha[self.support_]
        self._centre_norm2 = ball.centre_norm2
        self.radius_ = float(np.sqrt(ball.radius2))
        known_to = ball.gap if ball.converged else 0.0  # squared distances: the surface is as thick
        self.offset_ = -(ball.radius2 + known_to + ROUNDING * float(K.diag().max()))
        self.n_iter_, self.residual_, self.converged_ = max(ball.iterations, 1), ball.gap, ball.converged
        if not ball.converged:
            warnings.warn(
                f"SVDD stopped after {ball.iterations} moves, with squared distances that are right up to "
                f"{ball.gap:.2g} only. Raise `max_iter` (now {self.max_iter}) or `tol` (now {self.tol:g}).",
                ConvergenceWarning,
                stacklevel=4,
            )

    def score_samples(self, X: Any) -> Array:  # (n,)
        """−‖Φ(x) − c‖², higher for more normal examples: −(k(x, x) − 2 k*ᵀα + αᵀKα)."""
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        similarity, own = self._similarities(X)
        return -np.maximum(own - 2.0 * similarity + self._centre_norm2, 0.0)

    def _similarities(self, X: Any) -> tuple[Array, Array]:  # (n,), (n,)
        """k*ᵀα, how like the centre every row of checked X is, and k(x, x)."""
        if self.tables_ is not None:
            features = self.kernel_.features(X)
            return self.tables_.walk(features)[:, 0], np.asarray(features.sum(axis=1)).ravel()
        X = X.astype(np.float64)
        batches = gen_batches(X.shape[0], max(1, AT_ONCE // self.support_.size))
        parts = [self.kernel_(X[rows], self.support_vectors_) @ self.dual_coef_ for rows in batches]
        return np.concatenate(parts), self.kernel_.diag(X)

    def save(self, path: Any, *, features: Any = None) -> None:
        """Write the model to one file of tables, as `GPClassifier.save`; `saccade.load` reads it."""
        check_is_fitted(self)
        extra = {"centre_norm2": self._centre_norm2, "radius": self.radius_, "offset": self.offset_}
        save(self, path, extra, features=features)

    def _restore(self, extra: dict[str, Any]) -> None:
        """Set what `save` calls extra; a ValueError where it makes no ball."""
        numbers = [extra[name] for name in ("centre_norm2", "radius", "offset")]
        if not all(is_number(value) and np.isfinite(value) for value in numbers):
            raise ValueError("centre, radius and offset are not finite numbers")
        self._centre_norm2, self.radius_, self.offset_ = map(float, numbers)
        if min(self._centre_norm2, self.radius_, -self.offset_) < 0:
            raise ValueError("centre, radius and offset do not fit together")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
