"""The generalised RBF: any kernel made local through the distance it defines."""

from __future__ import annotations

import warnings
from typing import Annotated, Literal

import numpy as np
from scipy.linalg import LinAlgWarning

from saccade._core import limits
from saccade._core.checks import check_positive
from saccade.kernels.base import Array, Kernel, Matrix, PerRow, Rows, check_kernel
from saccade.kernels.distances import decay, symmetric
from saccade.kernels.learned import prefixed

__all__ = ["GeneralizedRBF"]

BLURRED = 1e-3  # by which rounding may change a kernel value of 1 without a warning; it mostly changes far less


class GeneralizedRBF(Kernel):
    """The distance-substitution kernel of a kernel κ (O §6.3; beta=1.0 is the EXPHIK of A §7.1).

    k(x, z) = exp(−β (κ(x, x) + κ(z, z) − 2κ(x, z)))

    The bracket is the squared distance of x and z in the feature space of κ. For κ = HIK it is
    ‖x − z‖₁, so k is the Laplacian kernel; for the linear κ it is ‖x − z‖².

    H calls a transform of the features EXP-HIK too; that one is ``HIK(Exponential(eta))``.

    Parameters
    ----------
    base : Kernel
        κ.
    beta : float or "auto", default "auto"
        β, the smoothness: one over the squared distance at which k has fallen to 1/e. "auto" settles it on the
        training examples: k falls to e^−½ at the mean squared distance of two examples. O §6.3 leaves the choice open;
        of the rules that see the training examples only, this one served best (experiments/one_class_beta.py).

    Examples
    --------
    >>> import numpy as np
    >>> from saccade.kernels.dot import Linear
    >>> GeneralizedRBF(Linear(), beta=0.25)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    def __init__(self, base: Kernel, beta: float | Literal["auto"] = "auto") -> None:
        self.base = base
        self.beta = beta

    def resolved(self, X: Rows, weight: PerRow | None = None) -> Kernel:
        base = check_kernel("base", self.base).resolved(X, weight)
        return GeneralizedRBF(base, beta=typical_beta(base, X, weight) if self.beta == "auto" else self._check()[1])

    def __call__(self, X: Rows, Z: Annotated[Matrix, "m, d"] | None = None) -> Array:
        if self.beta == "auto":
            return self.resolved(X)(X, Z)
        base, beta = self._check()
        distance, off = base.squared_distances(X, Z)
        if beta * off > BLURRED:
            _warn_of_rounding(base, beta * off)
        K = decay(distance, beta)
        return symmetric(K, 1.0) if Z is None else K

    def diag(self, X: Rows) -> Array:
        return np.ones(X.shape[0])

    def gradient(self, X: Matrix, A: Array, weight: Array | None = None) -> dict[str, Array]:
        # ∂k/∂log β = −β D k, D the squared distances, and those of the base for what Σ F ∂D makes of Σ A ∂k.
        # D_ij = κ_ii + κ_jj − 2κ_ij, so that Σ F_ij ∂D_ij = Σ [2 diag(F1) − 2F]_ij ∂κ_ij. "auto" is β = ½ / mean D.
        resolved = self.resolved(X, weight)
        assert isinstance(resolved, GeneralizedRBF)
        base, beta = resolved._check()
        D = np.maximum(base.squared_distances(X)[0], 0.0)
        F = -beta * A * decay(D.copy(), beta)
        by_beta = np.einsum("ij,ij->", F, D)
        if self.beta == "auto":
            rows, share = _pairs(X, weight)
            mean = share @ D[np.ix_(rows, rows)] @ share
            if _are_apart(mean, base.squared_distances(X[rows])[1]):
                F[np.ix_(rows, rows)] -= by_beta / mean * np.outer(share, share)
        down = -2.0 * F
        down[np.diag_indices_from(down)] += 2.0 * F.sum(axis=1)
        found = prefixed("base", check_kernel("base", self.base).gradient(X, down, weight))
        return found if self.beta == "auto" else found | {"beta": np.asarray(by_beta)}

    @property
    def mixes_centre(self) -> bool:
        # Distances do not depend on where the origin is.
        return check_kernel("base", self.base).mixes_centre

    def _check(self) -> tuple[Kernel, float]:
        remedy = 'Try "auto", or 1 / (the median squared distance in the feature space of the base).'
        return check_kernel("base", self.base), check_positive("beta", self.beta, remedy)


def typical_beta(base: Kernel, X: Rows, weight: Annotated[Array, "n: copies of each row"] | None = None) -> float:
    """½ over the mean squared distance of two different examples in the feature space of the base; 1 if that is zero.

    Two copies of a row are different examples. Of many examples, some that are spread evenly give the mean distance.
    """
    rows, share = _pairs(X, weight)
    between, off = base.squared_distances(X[rows])
    distance = float(share @ np.maximum(between, 0.0) @ share)
    return 0.5 / distance if _are_apart(distance, off) else 1.0


def _are_apart(distance: float, off: Annotated[float, "what rounding may change"]) -> bool:
    """Whether a mean squared distance is more than zero: rounding makes none, and float64 can invert it."""
    return distance > max(2.0 * off, float(np.finfo(np.float64).tiny))


def mean_distance(squared: Annotated[Array, "n, n"], X: Rows, weight: PerRow | None = None) -> float:
    """The mean squared distance of two different examples, from the distances of all."""
    rows, share = _pairs(X, weight)
    return float(share @ np.maximum(squared[np.ix_(rows, rows)], 0.0) @ share)


def _pairs(X: Matrix, weight: Array | None) -> tuple[Array, Array]:  # (b,), (b,)
    """Rows and shares s with Σ_ij s_i s_j D_ij the mean squared distance of two different examples among them."""
    rows, w = _some(np.ones(X.shape[0]) if weight is None else weight)
    n = float(w.sum())
    return rows, w / n * np.sqrt(n / (n - 1.0) if n > 2.0 else 2.0)


def _warn_of_rounding(base: Kernel, off: float) -> None:
    warnings.warn(
        f"Distances by {base!r} are differences of much larger numbers: rounding changes kernel values by up to "
        f"{min(off, 1.0):.1g}. Subtract the mean of each column from the data, or divide the data and adapt `beta`.",
        LinAlgWarning,
        stacklevel=3,
    )


def _some(weight: PerRow) -> tuple[Array, Array]:  # (b,), (b,)
    """All row numbers and their weights; where there are too many copies, those at even places among them."""
    total, most = float(weight.sum()), limits.MEAN_DISTANCE_EXAMPLES
    if max(total, weight.size) <= most:
        return np.arange(weight.size), weight
    places = np.linspace(0.0, max(total - 1.0, (1.0 - 1.0 / most) * total), most)
    rows = np.searchsorted(np.cumsum(weight), places, side="right")
    found, counts = np.unique(np.minimum(rows, weight.size - 1), return_counts=True)
    return found, counts.astype(np.float64)
