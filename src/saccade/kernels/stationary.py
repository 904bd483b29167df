"""Kernels that see only the difference x − z."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances

from .._core.checks import canonical, check_positive, check_range
from .._core.errors import InvalidParameter
from .base import Array, Kernel, Matrix, check_distances, decay, symmetric

__all__ = ["RBF", "Laplacian"]


class RBF(Kernel):
    """The Gaussian or squared exponential kernel (A fn 3, S §7).

    k(x, z) = amplitude · exp(−½ Σ_d (x_d − z_d)² / ℓ_d²)

    A writes exp(−‖x − z‖²/σ²): the same with ℓ = σ/√2.

    Parameters
    ----------
    length_scale : float or array of shape (d,)
        ℓ, the distance over which the function changes: one number, or one for each dimension.
    amplitude : float
        The prior variance k(x, x): the σ_f² of S §7, not its square root.

    Examples
    --------
    >>> import numpy as np
    >>> RBF(length_scale=2.0, amplitude=3.0)(np.array([[0.0], [2.0]])).round(4)
    array([[3.    , 1.8196],
           [1.8196, 3.    ]])
    """

    def __init__(self, length_scale: float | Array = 1.0, amplitude: float = 1.0) -> None:
        self.length_scale = length_scale
        self.amplitude = amplitude

    def settled(
        self,
        X: Matrix,  # (n, d)
        weight: Array | None = None,  # (n,)
    ) -> Kernel:
        """Self, once the parameters are known to fit the data."""
        self._check(X)
        return self

    def __call__(
        self,
        X: Matrix,  # (n, d)
        Z: Matrix | None = None,  # (m, d)
    ) -> Array:
        """The dense block (n, m)."""
        length_scale, amplitude = self._check(X)
        B = X if Z is None else Z
        # ‖a−b‖² = ‖a‖² + ‖b‖² − 2aᵀb cancels far from the origin; moving there changes no
        # distance. A sparse matrix would fill up, so it stays where it is.
        dense = not sp.issparse(X) and not sp.issparse(B)
        with np.errstate(over="ignore"):
            centre = B.mean(axis=0) if dense else None
        A = _scaled(X, centre, length_scale)
        B = None if Z is None else _scaled(Z, centre, length_scale)
        with np.errstate(over="ignore", invalid="ignore"):  # `decay` complains
            distance: Array = euclidean_distances(A, B, squared=True)
        K = decay(distance, 0.5)
        K *= amplitude
        return symmetric(K, amplitude) if Z is None else K

    def diag(
        self,
        X: Matrix,  # (n, d)
    ) -> Array:
        """The amplitude, for every row."""
        return np.full(X.shape[0], self._check(X)[1])

    def _check(self, X: Matrix) -> tuple[Array, float]:
        """The length scales, (1,) or (d,), and the amplitude."""
        remedy = "It is the prior variance k(x, x); its default is 1.0."
        amplitude = check_positive("amplitude", self.amplitude, remedy)
        check_range(np.array([amplitude]))
        remedy = "A typical distance between two examples is a good start."
        if np.ndim(self.length_scale) == 0:
            return np.array([check_positive("length_scale", self.length_scale, remedy)]), amplitude
        scales = np.asarray(self.length_scale, dtype=np.float64)
        if scales.shape != (X.shape[1],):
            raise InvalidParameter(
                f"`length_scale` must be a number or have shape ({X.shape[1]},), one for each "
                f"column of X, got shape {scales.shape}. Pass one number to share it."
            )
        for value in scales[~((scales > 0) & (scales < np.inf))]:
            check_positive("length_scale", float(value), remedy)
        return scales, amplitude


def _scaled(
    X: Matrix,  # (n, d)
    centre: Array | None,  # (d,)
    scales: Array,  # (1,) or (d,)
) -> Matrix:
    """(X − centre) / scales, sparse if X is."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not sp.issparse(X):
            return check_distances((X if centre is None else X - centre) / scales)
        scaled = canonical(X).astype(np.float64)  # a copy
        scaled.data /= np.broadcast_to(scales, X.shape[1])[scaled.indices]
    check_distances(scaled.data)
    return scaled


class Laplacian(Kernel):
    """k(x, z) = exp(−γ ‖x − z‖₁).

    On non-negative data it is A §7.1's EXPHIK with β = γ: min(a, b) = (a + b − |a − b|)/2.

    Parameters
    ----------
    gamma : float
        γ, one over the L1 distance at which the covariance has fallen to 1/e.

    Examples
    --------
    >>> import numpy as np
    >>> Laplacian(gamma=0.5)(np.array([[0.0, 1.0], [1.0, 0.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def settled(
        self,
        X: Matrix,  # (n, d)
        weight: Array | None = None,  # (n,)
    ) -> Kernel:
        """Self, once the parameter is known to be good."""
        self._check()
        return self

    def __call__(
        self,
        X: Matrix,  # (n, d)
        Z: Matrix | None = None,  # (m, d)
    ) -> Array:
        """The dense block (n, m)."""
        gamma = self._check()
        distance: Array = manhattan_distances(canonical(X), None if Z is None else canonical(Z))
        K = decay(distance, gamma)
        return symmetric(K, 1.0) if Z is None else K

    def diag(
        self,
        X: Matrix,  # (n, d)
    ) -> Array:
        """One, for every row."""
        return np.ones(X.shape[0])

    def _check(self) -> float:
        return check_positive("gamma", self.gamma, "Try 1 / (the median L1 distance between two examples).")
