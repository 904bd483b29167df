"""A loss of the leave-one-out predictions, and its derivative with respect to the kernel matrix and the noise.

With d_i = [K̃⁻¹]_ii the label of example i, had it been left out, would have mean y_i − α_i/d_i and variance 1/d_i. As
dα = −K̃⁻¹ dK̃ α and dd_i = −[K̃⁻¹ dK̃ K̃⁻¹]_ii,

    d loss = −Σ_m (K̃⁻¹ ∂loss/∂α_m)ᵀ dK̃ α_m − tr(diag(∂loss/∂d) K̃⁻¹ dK̃ K̃⁻¹).

Dense for few examples. For many, d is the average of z ⊙ K̃⁻¹z over probes z of random signs and over examples that are
about equally lonely (as in `regression`), and the derivative is that of this estimate: two solves for all of it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from saccade.inference.evidence_slope import Judged, written_out
from saccade.inference.parameters import Matrix, Slope, Vectors
from saccade.inference.regression import equally_lonely, precondition
from saccade.operators.base import Operator
from saccade.solvers.cg import solve_cg
from saccade.solvers.cholesky import factorise
from saccade.solvers.nystrom import Nystrom

Array = np.ndarray[Any, np.dtype[Any]]
Loss = Callable[[Array, Array], tuple[float, Array, Array]]
"""(mean (n, m), variance (n, 1) or (n, m)) -> a number to make small, and its derivatives with respect to both."""


def exact_loo(
    K: Operator,
    noise: Array,  # (n, 1) or (n, m)
    Y: Array,  # (n, m)
    loss: Loss,
) -> Judged:
    """By Cholesky."""
    dense = written_out(K)
    inverses = [factorise(dense, column).inverse() for column in noise.T]
    if len(inverses) == 1:
        alpha = inverses[0] @ Y
    else:
        alpha = np.column_stack([inverse @ y for inverse, y in zip(inverses, Y.T, strict=True)])
    d = np.column_stack([inverse.diagonal() for inverse in inverses])
    value, by_alpha, by_d = _through(loss, Y, alpha, d)
    A, slopes = np.zeros(dense.shape), np.empty_like(noise)
    for k, inverse in enumerate(inverses):
        own = slice(None) if len(inverses) == 1 else slice(k, k + 1)
        part = -(inverse @ by_alpha[:, own]) @ alpha[:, own].T - inverse @ (by_d[:, k : k + 1] * inverse)
        slopes[:, k] = part.diagonal()
        A += part
    return Judged(value, 0.0, Slope(Matrix(0.5 * (A + A.T)), slopes), alpha)


def stochastic_loo(
    K: Operator,
    noise: Array,  # (n, 1) or (n, m)
    Y: Array,  # (n, m)
    loss: Loss,
    *,
    submatrix: Callable[[Array], Array],
    start: Array | None,  # (n, m): a first guess of α
    tol: float,
    max_iter: int,
    probes: int,
    seed: int,
) -> Judged:
    """From products alone. The same seed gives the same probes, so that nearby kernels compare well."""
    (n, m), rng = Y.shape, np.random.default_rng(seed)
    shared = noise.mean(axis=1, keepdims=True)
    Z = rng.choice([-1.0, 1.0], (n, probes))
    M = precondition(K, shared[:, 0], m + probes, submatrix, rng)
    wide = noise if noise.shape[1] == 1 else np.hstack([noise, np.repeat(shared, probes, axis=1)])

    def solved(B: Array, x0: Array | None = None) -> Array:
        size = np.abs(B).max(axis=0, initial=0.0) + 1e-300
        guess = None if x0 is None else x0 / size
        found = solve_cg(K, wide, B / size, tol=tol, max_iter=max_iter, precondition=M, x0=guess)
        return np.asarray(found.x * size)

    X = solved(np.hstack([Y, Z]), None if start is None else np.hstack([start, np.zeros_like(Z)]))
    alpha, X = X[:, :m], X[:, m:]
    groups = equally_lonely(K.diag(), M.left if isinstance(M, Nystrom) else None, shared[:, 0])
    d, back = _estimate(np.einsum("ij,ij->i", Z, X) / probes, shared, noise, groups)
    value, by_alpha, by_d = _through(loss, Y, alpha, d)
    by_estimate, by_noise = back(by_d)
    B = solved(np.hstack([by_alpha, by_estimate[:, None] * Z / probes]))
    left = -B
    right = np.hstack([alpha, X])
    by_probes = np.einsum("ij,ij->i", left[:, m:], right[:, m:])[:, None]
    own = left[:, :m] * right[:, :m]
    if noise.shape[1] == 1:
        by_noise += own.sum(axis=1, keepdims=True) + by_probes
    else:
        by_noise += own + by_probes / noise.shape[1]
    kernel = Vectors(left, right, np.zeros((n, 0)), np.zeros(n))
    return Judged(value, 0.0, Slope(kernel, by_noise), alpha)


def _through(loss: Loss, Y: Array, alpha: Array, d: Array) -> tuple[float, Array, Array]:
    """The loss, and its derivatives with respect to α (n, m) and d (n, 1) or (n, m)."""
    value, by_mean, by_variance = loss(Y - alpha / d, 1.0 / d)
    by_d = by_mean * alpha / d**2
    if d.shape[1] == 1:
        by_d = by_d.sum(axis=1, keepdims=True)
    return value, -by_mean / d, by_d - by_variance / d**2


def _estimate(
    estimate: Array,  # (n,): z ⊙ K̃⁻¹z, noisy
    shared: Array,  # (n, 1): the noise of the probes
    noise: Array,  # (n, 1) or (n, m)
    groups: list[Array],
) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """d, and the way back from ∂/∂d to ∂/∂estimate (n,) and ∂/∂N.

    kept = the mean over the group of shared · estimate, left = shared (1/kept − 1), d = 1 / (left + N).
    """
    s = shared[:, 0]
    kept = np.empty_like(estimate)
    for some in groups:
        kept[some] = np.clip((s * estimate)[some].mean(), 1e-12, 1.0)
    d = 1.0 / ((s * (1.0 / kept - 1.0))[:, None] + noise)

    def back(by_d: Array) -> tuple[Array, Array]:
        by_sum = -by_d * d**2
        by_left = by_sum.sum(axis=1)
        by_kept = -by_left * s / kept**2
        for some in groups:
            by_kept[some] = by_kept[some].mean()
        by_shared = by_left * (1.0 / kept - 1.0) + by_kept * estimate
        return by_kept * s, by_sum + by_shared[:, None] / noise.shape[1]

    return d, back
