"""The generalised RBF: any kernel made local through the distance it defines."""

from __future__ import annotations

import numpy as np

from .._core.checks import check_positive
from .base import Array, Kernel, Matrix, check_kernel, decay, symmetric

__all__ = ["GeneralizedRBF"]


class GeneralizedRBF(Kernel):
    """The distance-substitution kernel of a kernel κ (O §6.3; A §7.1 with β = 1, its EXPHIK).

    k(x, z) = exp(−β (κ(x, x) + κ(z, z) − 2κ(x, z)))

    The bracket is the squared distance of x and z in the feature space of κ. For κ = HIK it is
    ‖x − z‖₁, so k is the Laplacian kernel; for the linear κ it is ‖x − z‖².

    H calls a transform of the features EXP-HIK too; that one is ``HIK(Exponential(eta))``.

    Parameters
    ----------
    base : Kernel
        κ.
    beta : float
        β, the smoothness: one over the squared distance at which k has fallen to 1/e.

    Examples
    --------
    >>> import numpy as np
    >>> from saccade.kernels.dot import Linear
    >>> GeneralizedRBF(Linear(), beta=0.25)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    def __init__(self, base: Kernel, beta: float = 1.0) -> None:
        self.base = base
        self.beta = beta

    def fit(
        self,
        X: Matrix,  # (n, d)
    ) -> Kernel:
        """The same kernel over the fitted base."""
        base, beta = self._check()
        return GeneralizedRBF(base.fit(X), beta=beta)

    def __call__(
        self,
        X: Matrix,  # (n, d)
        Z: Matrix | None = None,  # (m, d)
    ) -> Array:
        """The dense block (n, m)."""
        base, beta = self._check()
        kappa_x = base.diag(X)
        kappa_z = kappa_x if Z is None else base.diag(Z)
        distance = -2.0 * base(X, Z)
        distance += kappa_x[:, None]
        distance += kappa_z[None, :]
        K = decay(distance, beta)
        return symmetric(K, 1.0) if Z is None else K

    def diag(
        self,
        X: Matrix,  # (n, d)
    ) -> Array:
        """One, for every row."""
        return np.ones(X.shape[0])

    def _check(self) -> tuple[Kernel, float]:
        remedy = "Try 1 / (the median squared distance in the feature space of the base)."
        return check_kernel("base", self.base), check_positive("beta", self.beta, remedy)
