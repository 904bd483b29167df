"""Any kernel with the mean of the training examples as its origin (O §3.2)."""

from __future__ import annotations

import warnings
from typing import Annotated

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgWarning

from saccade._core import limits
from saccade._core.checks import check_range
from saccade._core.chunks import batches
from saccade.kernels.base import ROUNDING, Array, Kernel, Matrix, PerRow, Rows, check_kernel, shares
from saccade.kernels.distances import symmetric
from saccade.kernels.dot import Linear
from saccade.kernels.generalized import BLURRED
from saccade.kernels.intersection import HIK
from saccade.kernels.learned import prefixed
from saccade.operators.codes import encode, split_signs
from saccade.operators.tables import PiecewiseTables

__all__ = ["Centred"]


class Centred(Kernel):
    """Kernel k less its means over the training examples x_j.

    k̃(x, z) = k(x, z) − mean_j k(x, x_j) − mean_j k(x_j, z) + mean_jl k(x_j, x_l).

    It is the product of Φ̃(x) = Φ(x) − mean_j Φ(x_j). With it, the variance of Gaussian process regression is a
    Mahalanobis distance from the mean, by the covariance of the training examples plus σ² (O (8)).

    A settled one holds the training examples, or for HIK the table of their mean, for Linear() their mean, which is
    subtracted from the rows. One that is not settled takes the rows it is called with for the training examples.

    Parameters
    ----------
    base : Kernel
        k.

    Examples
    --------
    >>> import numpy as np
    >>> from saccade.kernels.dot import Linear
    >>> X = np.array([[1.0], [3.0]])
    >>> Centred(Linear()).resolved(X)(X, np.array([[2.0], [5.0]]))
    array([[ 0., -3.],
           [ 0.,  3.]])
    """

    _mean: PiecewiseTables | Rows | None = None  # or (1, d) where it is the mean of the rows
    _share: PerRow  # of each training example in the mean
    _mean_norm2 = 0.0  # mean_jl k(x_j, x_l)

    def __init__(self, base: Kernel) -> None:
        self.base = base

    def resolved(self, X: Rows, weight: PerRow | None = None) -> Kernel:
        fitted = Centred(check_kernel("base", self.base).resolved(X, weight))
        share = shares(X.shape[0], weight)
        if isinstance(fitted.base, HIK):
            fitted._mean = fitted.base.operator(encode(split_signs(X))).tables(share[:, None])
        elif fitted._moves_rows(X):
            fitted._mean = X[:1] + share @ (X - X[:1])  # sums of differences keep the digits
            return fitted
        else:
            fitted._mean, fitted._share = X.copy(), share
        fitted._mean_norm2 = float(fitted._to_mean(X) @ share)
        _warn_of_rounding(fitted, X)
        return fitted

    def __call__(self, X: Rows, Z: Annotated[Matrix, "m, d"] | None = None) -> Array:
        kernel = self._ready(X)
        if kernel._moved_rows:
            return kernel.base(kernel._moved(X), None if Z is None else kernel._moved(Z))
        left = kernel._to_mean(X)
        right = left if Z is None else kernel._to_mean(Z)
        K = kernel.base(X, Z)
        K -= left[:, None]
        K -= right[None, :]
        K += kernel._mean_norm2
        return symmetric(check_range(K), kernel._own(X, left)) if Z is None else check_range(K)

    def diag(self, X: Rows) -> Array:
        kernel = self._ready(X)
        if kernel._moved_rows:
            return kernel.base.diag(kernel._moved(X))
        return kernel._own(X, kernel._to_mean(X))

    def centred_part(self) -> Kernel:
        return self

    @property
    def mixes_centre(self) -> bool:
        return check_kernel("base", self.base).mixes_centre

    def gradient(self, X: Matrix, A: Array, weight: Array | None = None) -> dict[str, Array]:
        # K̃ = HKHᵀ with H = I − 1sᵀ, s the shares in the mean: those of the base for HᵀAH.
        share, sums = shares(X.shape[0], weight), A.sum(axis=1)
        down = A - np.outer(share, sums) - np.outer(sums, share) + sums.sum() * np.outer(share, share)
        return prefixed("base", check_kernel("base", self.base).gradient(X, down, weight))

    def squared_distances(self, X: Matrix, Z: Matrix | None = None) -> tuple[Array, float]:
        # Those of the base: another origin changes no distance.
        return self._ready(X).base.squared_distances(X, Z)

    def _moves_rows(self, X: Matrix) -> bool:
        """Whether rows can be centred themselves: products of rows far from 0 would lose their digits."""
        return isinstance(self.base, Linear) and not sp.issparse(X)

    @property
    def _moved_rows(self) -> bool:
        return isinstance(self._mean, np.ndarray) and self._moves_rows(self._mean)

    def _moved(self, X: Matrix) -> Annotated[Array, "n, d"]:
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        return np.asarray(dense - self._mean)

    def _own(self, X: Matrix, to_mean: Array) -> Array:
        return check_range(np.maximum(self.base.diag(X) - 2.0 * to_mean + self._mean_norm2, 0.0))

    def _to_mean(self, X: Rows, at_once: int = limits.KERNEL_VALUES_AT_ONCE) -> PerRow:
        """mean_j k(x, x_j) for every row."""
        if isinstance(self._mean, PiecewiseTables):
            return self._mean.walk(self.base.features(X))[:, 0]
        assert self._mean is not None
        some = batches(X.shape[0], max(1, at_once // self._mean.shape[0]))
        return np.concatenate([self.base(X[rows], self._mean) @ self._share for rows in some])

    def _ready(self, X: Matrix) -> Centred:
        return self if self._mean is not None else self.resolved(X)


def _warn_of_rounding(kernel: Centred, X: Matrix) -> None:
    """Centred values are differences of those of the base, which may be far larger."""
    off, own = ROUNDING * float(kernel.base.diag(X).max(initial=0.0)), float(kernel.diag(X).mean())
    if off > BLURRED * own and (X.max(axis=0) - X.min(axis=0)).max() > 0:
        warnings.warn(
            f"Values of {kernel!r} are differences of much larger numbers: rounding changes them by up to "
            f"{off / own if own > off else 1.0:.1g} of their size. Subtract the mean of each column from the data.",
            LinAlgWarning,
            stacklevel=3,
        )
