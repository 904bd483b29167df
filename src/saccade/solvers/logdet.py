"""log |K + N| without a factor: an estimate with its error bar, and the upper bound of Bai and Golub (H §5.2)."""

from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse.linalg as sla

from saccade._core.arrays import Array
from saccade.operators.base import Operator
from saccade.solvers.cholesky import factorise
from saccade.solvers.lanczos import Tridiagonals, lanczos

LEADING = 32  # directions whose part is computed rather than sampled
FEW = 256  # up to so many examples the matrix itself takes fewer products than an estimate


class Estimate(NamedTuple):
    """A number and its standard error, 0 where it is exact but for rounding."""

    value: float
    error: float


def stochastic_log_determinant(
    K: Operator, noise: Annotated[Array, "n"], rng: np.random.Generator, *, probes: int = 16, steps: int = 60
) -> Estimate:
    """Stochastic Lanczos quadrature of tr log A, with log |K + N| = log |N| + log |A|, A = I + N^−½ K N^−½.

    tr log A = Σ_q qᵀ log(A) q + E_z (Pz)ᵀ log(A) Pz for an orthonormal basis q of a space that A stretches most, P
    the projection beside it, and random signs z: the few large eigenvalues, which make most of the variance of z,
    are not left to chance. Basis and probes go through the products together.

    Too few steps for a wide spectrum leave the quadrature of Gauss above the truth and that of Gauss and Radau below:
    their mean is the value, and half of what is between them a part of its error.
    """
    n = noise.size
    if n <= FEW:
        return Estimate(factorise(K.to_dense(), noise, overwrite=True).log_determinant(), 0.0)
    root = np.sqrt(noise)[:, None]

    def product(V: Array) -> Array:
        return V + K.matmul(V / root) / root

    def logarithms(seen: Tridiagonals) -> Annotated[Array, "LEADING + probes"]:
        return seen.quadratic_forms(lambda t: np.log(np.maximum(t, 1.0)))

    Q = np.linalg.qr(product(rng.standard_normal((n, LEADING))))[0]
    Z = rng.choice([-1.0, 1.0], (n, probes))
    Z -= Q @ (Q.T @ Z)
    seen = lanczos(product, np.hstack([Q, Z]), steps)
    above, below = logarithms(seen), logarithms(seen.with_node(1.0))
    forms, open_ = (above + below) / 2.0, np.abs(above - below) / 2.0
    sampled = forms[LEADING:]
    chance = float(sampled.std(ddof=1) / np.sqrt(probes))
    left = float(open_[:LEADING].sum() + open_[LEADING:].mean())
    value = float(np.log(noise).sum() + forms[:LEADING].sum() + sampled.mean())
    return Estimate(value, float(np.hypot(chance, left)))


def bound_log_determinant(K: Operator, noise: Annotated[Array, "n"], *, leading: int = 10) -> float:
    """H (11): with μ₁ = tr K̃, μ₂ ≤ ‖K̃‖_F² from the `leading` largest eigenvalues and β ≥ λ_max,

        log |K̃| ≤ [log β, log t̄] [[β, t̄], [β², t̄²]]⁻¹ [μ₁, μ₂]ᵀ,   t̄ = (β μ₁ − μ₂) / (β n − μ₁).

    The true ‖K̃‖_F² would be tighter; a smaller number keeps it a bound.
    """
    n = noise.size
    mu_1 = float(K.diag().sum() + noise.sum())
    if n <= leading + 1:  # too few for Lanczos: write it out
        largest = np.linalg.eigvalsh(K.matmul(np.eye(n)) + np.diag(noise))[-leading:]
    else:
        A = sla.LinearOperator((n, n), lambda v: K.matmul(v.reshape(n, 1))[:, 0] + noise * v.ravel(), dtype=np.float64)
        largest = sla.eigsh(A, leading, which="LA", return_eigenvectors=False, tol=1e-6, v0=np.ones(n))
    beta = float(largest.max()) * (1.0 + 1e-5)  # a Ritz value is below its eigenvalue
    mu_2 = min(float(np.square(largest).sum()), beta * mu_1 * (1.0 - 1e-12))
    mu_2 = max(mu_2, mu_1**2 / n)  # of all matrices with this trace the even one has the least
    gap = beta * n - mu_1
    if gap <= 1e-12 * beta * n:  # all eigenvalues equal
        return float(n * np.log(mu_1 / n))
    t = (beta * mu_1 - mu_2) / gap
    weights = np.linalg.solve(np.array([[beta, t], [beta**2, t**2]]), np.array([mu_1, mu_2]))
    return float(np.log([beta, t]) @ weights)
