"""The generalised RBF: any kernel made local through the distance it defines."""

from __future__ import annotations

import numpy as np

from .._core.checks import check_positive
from .base import Array, Kernel, Matrix, check_kernel, decay, symmetric

__all__ = ["GeneralizedRBF"]

SOME = 2048  # examples that the mean distance is taken over


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
    beta : float or "auto"
        β, the smoothness: one over the squared distance at which k has fallen to 1/e. "auto" settles it when the
        kernel is fitted: k falls to e^−½ at the mean squared distance of two examples. O §6.3 leaves the choice open;
        of the rules that see the training examples only, this one served best (experiments/one_class_beta.py).

    Examples
    --------
    >>> import numpy as np
    >>> from saccade.kernels.dot import Linear
    >>> GeneralizedRBF(Linear(), beta=0.25)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    def __init__(self, base: Kernel, beta: float | str = 1.0) -> None:
        self.base = base
        self.beta = beta

    def fit(
        self,
        X: Matrix,  # (n, d)
    ) -> Kernel:
        """The same kernel over the fitted base, with a number for β."""
        base = check_kernel("base", self.base).fit(X)
        return GeneralizedRBF(base, beta=typical_beta(base, X) if self.beta == "auto" else self._check()[1])

    def __call__(
        self,
        X: Matrix,  # (n, d)
        Z: Matrix | None = None,  # (m, d)
    ) -> Array:
        """The dense block (n, m)."""
        if self.beta == "auto":
            return self.fit(X)(X, Z)
        base, beta = self._check()
        kappa_x = base.diag(X)
        kappa_z = kappa_x if Z is None else base.diag(Z)
        distance = -2.0 * base(X, Z)  # of values whose range was checked
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
        remedy = 'Try "auto", or 1 / (the median squared distance in the feature space of the base).'
        return check_kernel("base", self.base), check_positive("beta", self.beta, remedy)


def typical_beta(
    base: Kernel,
    X: Matrix,  # (n, d)
) -> float:
    """½ over the mean squared distance of two different examples in the feature space of the base; 1 if all are equal.

    The mean distance is that of at most `SOME` examples, spread evenly over X.
    """
    some = X[np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], SOME)).astype(int))]
    kappa, n = base(some), some.shape[0]
    distance = 2.0 * (n * float(np.trace(kappa)) - float(kappa.sum())) / max(n * (n - 1), 1)
    return 0.5 / distance if distance > 1e-12 * float(np.trace(kappa)) / n else 1.0
