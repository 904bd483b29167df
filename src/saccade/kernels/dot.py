"""Kernels made from the products and sums of single values: linear, and exponential χ²."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import additive_chi2_kernel
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from saccade._core import limits
from saccade._core.checks import canonical, check_range
from saccade._core.chunks import batches
from saccade._core.errors import InvalidInput
from saccade.kernels.base import Array, Kernel, Matrix, Rows
from saccade.kernels.decaying import Decaying
from saccade.kernels.distances import symmetric

__all__ = ["Chi2", "Linear"]


class Linear(Kernel):
    """Linear kernel k(x, z) = xᵀz: Bayesian linear regression through the origin (S §5).

    Examples
    --------
    >>> import numpy as np
    >>> Linear()(np.array([[1.0, 2.0], [0.0, 3.0]]))
    array([[5., 6.],
           [6., 9.]])
    """

    def __call__(self, X: Rows, Z: Annotated[Matrix, "m, d"] | None = None) -> Array:
        A = canonical(X).astype(np.float64)
        B = A if Z is None else canonical(Z).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            K: Array = safe_sparse_dot(A, B.T, dense_output=True)
        return symmetric(check_range(K), self.diag(X)) if Z is None else check_range(K)

    def diag(self, X: Rows) -> Array:
        with np.errstate(over="ignore"):
            norms: Array = row_norms(canonical(X).astype(np.float64), squared=True)
        return check_range(norms)

    def gradient(self, X: Matrix, A: Array, weight: Array | None = None) -> dict[str, Array]:
        return {}

    def squared_distances(self, X: Matrix, Z: Matrix | None = None) -> tuple[Array, float]:
        # ‖x − z‖², with the mean as the origin: moving there changes no distance. Sparse matrices would fill up.
        if sp.issparse(X) or sp.issparse(Z):
            return super().squared_distances(X, Z)
        self.diag(X if Z is None else np.vstack([X, Z]))  # complains of values out of range
        centre = (X if Z is None else Z).mean(axis=0)
        return super().squared_distances(X - centre, None if Z is None else Z - centre)


class Chi2(Decaying):
    """The exponential χ² kernel for histograms (Zhang et al. 2007; in none of the five papers).

    k(x, z) = exp(−γ Σ_d (x_d − z_d)² / (x_d + z_d)),  0/0 = 0

    Parameters
    ----------
    gamma : float
        γ; one over the mean χ² distance of the training data is the usual choice.

    Examples
    --------
    >>> import numpy as np
    >>> Chi2(gamma=0.5)(np.array([[0.0, 1.0], [0.0, 0.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    remedy = "Try 1 / (the mean χ² distance between two examples)."

    def distance(self, X: Matrix, Z: Matrix | None = None) -> Array:
        return _chi2_distance(X, X if Z is None else Z)

    def check_rows(self, name: str, X: Matrix) -> None:
        values = np.asarray(canonical(X).data if sp.issparse(X) else X)
        smallest = values.min(initial=0.0)
        if smallest < 0:
            raise InvalidInput(
                f"`{name}` must be non-negative for Chi2, got {float(smallest)!r}. "
                "It compares histograms; for signed features use RBF or Laplacian."
            )


def _chi2_distance(X: Rows, Z: Annotated[Matrix, "m, d"]) -> Array:
    """Σ_d (x_d − z_d)² / (x_d + z_d), (n, m).

    It adds up over the dimensions, so sparse data is made dense only a few columns at a time.
    """
    distance = np.zeros((X.shape[0], Z.shape[0]))
    if not sp.issparse(X) and not sp.issparse(Z):
        # Its compiled loop asks for writable memory, though it only reads.
        distance -= additive_chi2_kernel(np.require(X, None, "W"), np.require(Z, None, "W"))
        return distance
    A, B = sp.csc_array(X), sp.csc_array(Z)
    for columns in batches(X.shape[1], limits.CHI2_COLUMNS):
        distance -= additive_chi2_kernel(A[:, columns].toarray(), B[:, columns].toarray())
    return distance
