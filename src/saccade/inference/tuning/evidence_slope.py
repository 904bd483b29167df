"""The negative log evidence and its derivative with respect to the kernel matrix and the noise.

d(−log p) = ½ Σ_m tr(K̃_m⁻¹ dK̃_m) − ½ Σ_m α_mᵀ dK̃_m α_m.

Dense for few examples. For many, from the same conjugate gradients that find α: probes z with E zzᵀ = M, the
preconditioner, are solved beside Y, and give log |K̃| = log |M| + E zᵀM^−½ log(M^−½K̃M^−½) M^−½z (stochastic Lanczos
quadrature), and tr(K̃⁻¹dK) = E (K̃⁻¹z)ᵀ dK (M⁻¹z). The products K̃⁻¹dK are at most of the order of one, so few probes
are enough. Subtracting M⁻¹dK, whose trace is known, made the estimate worse, because M⁻¹dK may be far larger than one.
"""

from typing import Annotated, NamedTuple

import numpy as np

from saccade._core.arrays import Array
from saccade.inference.solving.regression import precondition
from saccade.kernels.slope import KernelSlope, MatrixSlope, VectorSlope
from saccade.operators.base import Operator
from saccade.solvers.cg import solve_cg
from saccade.solvers.cholesky import factorise
from saccade.solvers.rank_one import Leading

LANES = 4  # columns of a product that take about as long as one; one by one, a preconditioner seems to pay too soon


class Judged(NamedTuple):
    """A number to make small, summed over examples and outputs, with its derivatives."""

    value: float
    error: float  # standard error of the value
    by_kernel: KernelSlope  # derivative with respect to K
    by_noise: Annotated[Array, "n, 1 | n, m"]  # derivative with respect to the noise
    alpha: Annotated[Array, "n, m"]  # (K + N)⁻¹Y


def exact_evidence(K: Operator, noise: Annotated[Array, "n, 1 | n, m"], Y: Annotated[Array, "n, m"]) -> Judged:
    """By Cholesky."""
    dense = K.to_dense()
    n, m = Y.shape
    A, alpha, value = np.zeros((n, n)), np.empty((n, m)), 0.5 * n * m * np.log(2.0 * np.pi)
    slopes = np.empty_like(noise)
    for k, column in enumerate(noise.T):
        own = slice(None) if noise.shape[1] == 1 else slice(k, k + 1)
        factor = factorise(dense, column)
        alpha[:, own] = factor.solve(Y[:, own])
        outputs = alpha[:, own].shape[1]
        value += 0.5 * float(np.einsum("ij,ij->", Y[:, own], alpha[:, own])) + 0.5 * outputs * factor.log_determinant()
        part = 0.5 * (outputs * factor.inverse() - alpha[:, own] @ alpha[:, own].T)
        slopes[:, k] = part.diagonal()
        A += part
    return Judged(float(value), 0.0, MatrixSlope(A), slopes, alpha)


def stochastic_evidence(
    K: Operator,
    noise: Annotated[Array, "n, 1 | n, m"],
    Y: Annotated[Array, "n, m"],
    *,
    start: Annotated[Array, "n, m"] | None,  # a first guess of α
    tol: float,
    max_iter: int,
    probes: int,
    seed: int,
) -> Judged:
    """From products alone. The same seed gives the same probes, so that nearby kernels compare well."""
    m = Y.shape[1]
    judged, vectors = [], []
    for k in range(noise.shape[1]):
        own = slice(None) if noise.shape[1] == 1 else slice(k, k + 1)
        few = probes if noise.shape[1] == 1 else max(2, probes // m)
        rng = np.random.default_rng([seed, k])
        begin = None if start is None else start[:, own]
        part, found = _one_noise(K, noise[:, k : k + 1], Y[:, own], begin, tol, max_iter, few, rng)
        judged.append(part)
        vectors.append(found)
    by_kernel = VectorSlope(*[np.hstack(parts) for parts in zip(*vectors, strict=True)])
    by_noise = np.column_stack([v.diag() for v in vectors])
    value, errors, alphas = zip(*judged, strict=True)
    return Judged(sum(value), float(np.linalg.norm(errors)), by_kernel, by_noise, np.hstack(alphas))


def _one_noise(
    K: Operator,
    noise: Annotated[Array, "n, 1"],
    Y: Annotated[Array, "n, m"],
    start: Array | None,
    tol: float,
    max_iter: int,
    probes: int,
    rng: np.random.Generator,
) -> tuple[tuple[float, float, Array], VectorSlope]:
    """Value, error and α for outputs that share the noise, and the derivative."""
    n, m = Y.shape
    M = precondition(K, noise[:, 0], (m + probes) // LANES, rng) or Leading(np.zeros((n, 1)), 0.0, K.backend)
    Z = M.sample(probes, rng)
    result = solve_cg(
        K,
        noise,
        np.hstack([Y, Z]),
        tol=np.append(np.full(m, tol), tol * np.sqrt(np.square(Z).mean(axis=0))),
        max_iter=max_iter,
        precondition=M,
        x0=None if start is None else np.hstack([start, np.zeros_like(Z)]),
    )
    alpha, X = result.x[:, :m], result.x[:, m:]
    forms = result.seen.quadratic_forms(lambda t: np.log(np.maximum(t, 1e-300)))[m:]
    log_determinant = M.log_determinant() + float(forms.mean())
    error = 0.5 * m * float(forms.std(ddof=1)) / np.sqrt(probes) if probes > 1 else 0.0
    # 2yᵀα − αᵀK̃α: off by the square of α's error only
    fit = float(np.einsum("ij,ij->", alpha, Y + result.left[:, :m]))
    value = 0.5 * (fit + m * log_determinant + n * m * np.log(2.0 * np.pi))
    seen = M.backend.host(M(M.backend.array(Z)))
    # ½ m tr(K̃⁻¹dK̃) − ½ Σ αᵀdK̃α from solved probes X = K̃⁻¹Z
    return (value, error, alpha), VectorSlope((0.5 * m / probes) * X, seen, np.sqrt(0.5) * alpha)
