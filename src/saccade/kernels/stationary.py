"""Kernels that see only the difference x − z."""

from __future__ import annotations

import abc
from typing import Annotated, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.utils.extmath import safe_sparse_dot

from saccade._core.checks import LARGEST, as_floats, canonical, check_positive, check_range
from saccade._core.errors import InvalidParameter
from saccade.kernels.base import Array, Kernel, Matrix, PerRow, Rows
from saccade.kernels.decaying import Decaying
from saccade.kernels.distances import VANISHED, decay, refined, scaled_rows, squared_euclidean, symmetric

__all__ = ["RBF", "Laplacian", "Matern"]


class Radial(Kernel):
    """k(x, z) = amplitude · f(r),  r² = Σ_d (x_d − z_d)² / ℓ_d²,  f(0) = 1."""

    length_scale: float | Array
    amplitude: float

    @abc.abstractmethod
    def _profile(self, squared: Annotated[Array, "n, m: r², overwritten"]) -> Array:
        """f(r)."""

    @abc.abstractmethod
    def _steepness(self, squared: Annotated[Array, "n, m: r², overwritten"]) -> Array:
        """−f′(r) / r; at r = 0 anything finite."""

    def _squared(self, A: Matrix, B: Matrix | None) -> Array:
        """r² of scaled rows."""
        return squared_euclidean(A, B)

    def resolved(self, X: Rows, weight: PerRow | None = None) -> Kernel:
        self._check(X)
        return self

    def __call__(self, X: Rows, Z: Annotated[Matrix, "m, d"] | None = None) -> Array:
        scales, amplitude = self._check(X)
        K = self._profile(self._squared(*scaled_rows(X, Z, scales)))
        K *= amplitude
        return symmetric(K, amplitude) if Z is None else K

    def diag(self, X: Rows) -> Array:
        return np.full(X.shape[0], self._check(X)[1])

    def gradient(self, X: Matrix, A: Array, weight: Array | None = None) -> dict[str, Array]:
        # ∂k/∂log ℓ_d = amplitude · (−f′(r)/r) · (x_d − z_d)²/ℓ_d², and k itself for the amplitude.
        scales, amplitude = self._check(X)
        U, _ = scaled_rows(X, None, scales)
        squared = np.minimum(self._squared(U, None), LARGEST)  # 0 · ∞ is no number
        B = self._steepness(squared.copy())
        B *= amplitude * A
        np.fill_diagonal(B, 0.0)
        if np.ndim(self.length_scale) == 0:
            by_scale = np.asarray(np.einsum("ij,ij->", B, squared))
        else:  # Σ_ij B_ij (u_i − u_j)² = 2 Σ_i u_i² Σ_j B_ij − 2 Σ_ij u_i B_ij u_j in each dimension
            across = safe_sparse_dot(U.T, B).T
            own, cross = (sp.csr_matrix(U).multiply(V) if sp.issparse(U) else U * V for V in (U, across))
            by_scale = 2.0 * (B.sum(axis=1) @ own - np.asarray(cross.sum(axis=0)).ravel())
        total = np.einsum("ij,ij->", A, self._profile(squared))
        return {"length_scale": by_scale, "amplitude": np.asarray(amplitude * total)}

    def _check(self, X: Matrix) -> tuple[Array, float]:
        """The length scales, (1,) or (d,), and the amplitude."""
        remedy = "It is the prior variance k(x, x); its default is 1.0."
        amplitude = check_positive("amplitude", self.amplitude, remedy)
        check_range(np.array([amplitude]))
        remedy = "A typical distance between two examples is a good start."
        if np.ndim(self.length_scale) == 0:
            return np.array([check_positive("length_scale", self.length_scale, remedy)]), amplitude
        scales = as_floats(self.length_scale)
        if scales.shape != (X.shape[1],):
            raise InvalidParameter(
                f"`length_scale` must be a number or have shape ({X.shape[1]},), one for each "
                f"column of X, got shape {scales.shape}. Pass one number to share it."
            )
        for value in scales[~((scales > 0) & (scales < np.inf))]:
            check_positive("length_scale", float(value), remedy)
        return scales, amplitude


class RBF(Radial):
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

    def _profile(self, squared: Array) -> Array:
        return decay(squared, 0.5)

    _steepness = _profile  # f′(r) = −r f(r)


class Matern(Radial):
    """The Matérn kernel: as RBF, for functions that are less smooth (Rasmussen and Williams 2006, (4.17)).

    With r² = Σ_d (x_d − z_d)² / ℓ_d² and t = √(2ν) · r, k(x, z) = amplitude · f with

    - ν = ½: f = e^−t, continuous functions;
    - ν = 3/2: f = (1 + t) e^−t, with one derivative;
    - ν = 5/2: f = (1 + t + t²/3) e^−t, with two.

    Parameters
    ----------
    length_scale : float or array of shape (d,)
        ℓ, the distance over which the function changes: one number, or one for each dimension.
    nu : 0.5, 1.5 or 2.5
        ν, the smoothness. It is never learned: choose one. RBF is the limit of large ν.
    amplitude : float
        The prior variance k(x, x).

    Examples
    --------
    >>> import numpy as np
    >>> Matern(length_scale=2.0, nu=0.5, amplitude=3.0)(np.array([[0.0], [2.0]])).round(4)
    array([[3.    , 1.1036],
           [1.1036, 3.    ]])
    """

    chosen: ClassVar[tuple[str, ...]] = ("nu",)

    def __init__(self, length_scale: float | Array = 1.0, nu: float = 1.5, amplitude: float = 1.0) -> None:
        self.length_scale = length_scale
        self.nu = nu
        self.amplitude = amplitude

    def _profile(self, squared: Array) -> Array:
        t = self._t(squared)
        powers = {0.5: 1.0, 1.5: 1.0 + t, 2.5: 1.0 + t + t * t / 3.0}[self.nu]
        return np.asarray(powers * np.exp(-t))

    def _steepness(self, squared: Array) -> Array:
        t = self._t(squared)
        if self.nu == 0.5:
            return np.divide(np.exp(-t), t, out=np.zeros_like(t), where=t > 0)
        return np.asarray((3.0 if self.nu == 1.5 else 5.0 / 3.0 * (1.0 + t)) * np.exp(-t))

    def _t(self, squared: Array) -> Array:
        np.maximum(squared, 0.0, out=squared)
        return np.minimum(np.sqrt(2.0 * self.nu * squared), VANISHED)

    def _squared(self, A: Matrix, B: Matrix | None) -> Array:
        return refined(super()._squared(A, B), A, B)

    def _check(self, X: Matrix) -> tuple[Array, float]:
        if self.nu not in (0.5, 1.5, 2.5):
            raise InvalidParameter(
                f"`nu` must be 0.5, 1.5 or 2.5, got {self.nu!r}. Larger is smoother; RBF is the limit of large nu."
            )
        return super()._check(X)


class Laplacian(Decaying):
    """Laplacian kernel k(x, z) = exp(−γ ‖x − z‖₁).

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

    remedy = "Try 1 / (the median L1 distance between two examples)."

    def distance(self, X: Matrix, Z: Matrix | None = None) -> Array:
        found: Array = manhattan_distances(canonical(X), None if Z is None else canonical(Z))
        return found
