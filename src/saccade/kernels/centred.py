"""Any kernel with the mean of the training examples as its origin (O §3.2)."""

from __future__ import annotations

import numpy as np
from sklearn.utils import gen_batches

from .._core import limits
from .._core.checks import check_range
from ..operators.codes import encode, split_signs
from ..operators.intersection import intersection
from ..operators.tables import PiecewiseTables
from .base import Array, Kernel, Matrix, check_kernel, symmetric
from .intersection import HIK
from .learned import prefixed

__all__ = ["Centred"]


class Centred(Kernel):
    """k̃(x, z) = k(x, z) − mean_j k(x, x_j) − mean_j k(x_j, z) + mean_jl k(x_j, x_l), x_j the training examples.

    It is the product of Φ̃(x) = Φ(x) − mean_j Φ(x_j). With it, the variance of Gaussian process regression is a
    Mahalanobis distance from the mean, by the covariance of the training examples plus σ² (O (8)).

    A settled one holds the training examples, or for HIK the table of their mean. One that is not settled takes the
    rows it is called with for the training examples.

    Parameters
    ----------
    base : Kernel
        k.

    Examples
    --------
    >>> import numpy as np
    >>> from saccade.kernels.dot import Linear
    >>> X = np.array([[1.0], [3.0]])
    >>> Centred(Linear()).settled(X)(X, np.array([[2.0], [5.0]]))
    array([[ 0., -3.],
           [ 0.,  3.]])
    """

    _mean: PiecewiseTables | Matrix | None = None
    _share: Array  # (n,) of each training example in the mean
    _mean_norm2 = 0.0  # mean_jl k(x_j, x_l)

    def __init__(self, base: Kernel) -> None:
        self.base = base

    def settled(
        self,
        X: Matrix,  # (n, d)
        weight: Array | None = None,  # (n,)
    ) -> Kernel:
        """The same kernel over the settled base, centred on X."""
        fitted = Centred(check_kernel("base", self.base).settled(X, weight))
        share = _shares(X, weight)
        if isinstance(fitted.base, HIK):
            K = intersection(encode(split_signs(X)), fitted.base.levels)
            fitted._mean = K.tables(share[:, None])
        else:
            fitted._mean, fitted._share = X.copy(), share
        fitted._mean_norm2 = float(fitted._to_mean(X) @ share)
        return fitted

    def __call__(
        self,
        X: Matrix,  # (n, d)
        Z: Matrix | None = None,  # (m, d)
    ) -> Array:
        """The dense block (n, m)."""
        kernel = self._ready(X)
        left = kernel._to_mean(X)
        right = left if Z is None else kernel._to_mean(Z)
        K = kernel.base(X, Z)
        K -= left[:, None]
        K -= right[None, :]
        K += kernel._mean_norm2
        return symmetric(check_range(K), kernel._own(X, left)) if Z is None else check_range(K)

    def diag(
        self,
        X: Matrix,  # (n, d)
    ) -> Array:
        """‖Φ̃(x)‖², (n,)."""
        kernel = self._ready(X)
        return kernel._own(X, kernel._to_mean(X))

    def gradient(
        self,
        X: Matrix,  # (n, d)
        A: Array,  # (n, n)
        weight: Array | None = None,  # (n,)
    ) -> dict[str, Array]:
        """K̃ = HKHᵀ with H = I − 1sᵀ, s the shares in the mean: those of the base for HᵀAH."""
        share, sums = _shares(X, weight), A.sum(axis=1)
        down = A - np.outer(share, sums) - np.outer(sums, share) + sums.sum() * np.outer(share, share)
        return prefixed("base", check_kernel("base", self.base).gradient(X, down, weight))

    def squared_distances(
        self,
        X: Matrix,  # (n, d)
        Z: Matrix | None = None,  # (m, d)
    ) -> tuple[Array, float]:
        """Those of the base: another origin changes no distance."""
        return self._ready(X).base.squared_distances(X, Z)

    def _own(self, X: Matrix, to_mean: Array) -> Array:
        return check_range(np.maximum(self.base.diag(X) - 2.0 * to_mean + self._mean_norm2, 0.0))

    def _to_mean(
        self,
        X: Matrix,  # (n, d)
        at_once: int = limits.KERNEL_VALUES_AT_ONCE,
    ) -> Array:  # (n,)
        """mean_j k(x, x_j) for every row."""
        if isinstance(self._mean, PiecewiseTables):
            return self._mean.walk(self.base.features(X))[:, 0]
        assert self._mean is not None
        batches = gen_batches(X.shape[0], max(1, at_once // self._mean.shape[0]))
        return np.concatenate([self.base(X[rows], self._mean) @ self._share for rows in batches])

    def _ready(self, X: Matrix) -> Centred:
        return self if self._mean is not None else self.settled(X)


def _shares(X: Matrix, weight: Array | None) -> Array:  # (n,)
    """The share of each row in the mean."""
    return np.full(X.shape[0], 1.0 / X.shape[0]) if weight is None else weight / weight.sum()
