"""A loss of the leave-one-out predictions, and its derivative with respect to the kernel matrix and the noise.

With d_i = [K̃⁻¹]_ii the label of example i, had it been left out, would have mean y_i − α_i/d_i and variance 1/d_i. As
dα = −K̃⁻¹ dK̃ α and dd_i = −[K̃⁻¹ dK̃ K̃⁻¹]_ii,

    d loss = −Σ_m (K̃⁻¹ ∂loss/∂α_m)ᵀ dK̃ α_m − tr(diag(∂loss/∂d) K̃⁻¹ dK̃ K̃⁻¹).

Dense for few examples. For many, d is estimated from probes z of random signs: diag(B) + E z ⊙ (K̃⁻¹ − B)z, where B is
what the preconditioner of the first kernel takes for its K̃⁻¹. B and probes stay while the kernel moves, and the
derivative is that of the estimate: two solves for all of it. Averaging d over similar examples would tame the probes,
but lonely examples are the ones that are wrong, and the average forgets it: the optimum moved.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saccade.inference.evidence_slope import LANES, Judged
from saccade.inference.parameters import Matrix, Slope, Vectors
from saccade.inference.regression import precondition
from saccade.operators.base import Operator, written_out
from saccade.solvers.cg import solve_cg
from saccade.solvers.cholesky import factorise
from saccade.solvers.leading import Leading
from saccade.solvers.nystrom import Nystrom

Array = np.ndarray[Any, np.dtype[Any]]
EDGE = 1e-3  # how far within its bounds an estimate is kept, as a share of their distance
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
    shared = noise.shape[1] == 1
    outputs = [slice(None)] if shared else [slice(k, k + 1) for k in range(noise.shape[1])]
    alpha, d, inverse = np.empty_like(Y), np.empty_like(noise), np.empty((0, 0))
    for k, own in enumerate(outputs):
        inverse = factorise(dense, noise[:, k]).inverse()
        alpha[:, own], d[:, k] = inverse @ Y[:, own], inverse.diagonal()
    value, by_alpha, by_d = _through(loss, Y, alpha, d)
    A, slopes = np.zeros(dense.shape), np.empty_like(noise)
    for k, own in enumerate(outputs):
        inverse = inverse if shared else factorise(dense, noise[:, k]).inverse()  # again: all would not fit
        part = -(inverse @ by_alpha[:, own]) @ alpha[:, own].T - inverse @ (by_d[:, k : k + 1] * inverse)
        slopes[:, k] = part.diagonal()
        A += part
    return Judged(value, 0.0, Slope(Matrix(0.5 * (A + A.T)), slopes), alpha)


class StochasticLOO:
    """The same from products alone, for one set of examples: kernels compare well, because the probes stay."""

    def __init__(self, probes: int, seed: int) -> None:
        self._probes, self._rng = probes, np.random.default_rng(seed)
        self._held: _Held | None = None

    def __call__(
        self,
        K: Operator,
        noise: Array,  # (n, 1) or (n, m)
        Y: Array,  # (n, m)
        loss: Loss,
        *,
        submatrix: Callable[[Array], Array],
        start: Array | None,  # (n, m): a first guess of α
        tol: float,
        max_iter: int,
    ) -> Judged:
        (n, m), shared = Y.shape, noise.mean(axis=1, keepdims=True)
        M = precondition(K, shared[:, 0], (m + self._probes) // LANES, submatrix, self._rng) or Leading(
            np.zeros((n, 1)), 0.0
        )
        wide = noise if noise.shape[1] == 1 else np.hstack([noise, np.repeat(shared, self._probes, axis=1)])

        def solved(B: Array, x0: Array | None = None) -> Array:
            size = np.abs(B).max(axis=0, initial=0.0) + 1e-300
            guess = None if x0 is None else x0 / size
            found = solve_cg(K, wide, B / size, tol=tol, max_iter=max_iter, precondition=M, x0=guess)
            return np.asarray(found.x * size)

        Z = self._rng.choice([-1.0, 1.0], (n, self._probes)) if self._held is None else self._held.Z
        X = solved(np.hstack([Y, Z]), None if start is None else np.hstack([start, np.zeros_like(Z)]))
        alpha, X = X[:, :m], X[:, m:]
        self._held = self._held or _hold(M, Z, X)
        d, back = _estimate(self._held.diagonal(X), shared[:, 0], K.diag(), noise)
        value, by_alpha, by_d = _through(loss, Y, alpha, d)
        by_estimate, by_noise = back(by_d)
        left = -solved(np.hstack([by_alpha, by_estimate[:, None] * Z / self._probes]))
        own, probed = left[:, :m] * alpha, np.einsum("ij,ij->i", left[:, m:], X)[:, None]
        by_noise += own + probed / m if noise.shape[1] > 1 else own.sum(axis=1, keepdims=True) + probed
        kernel = Vectors(left, np.hstack([alpha, X]), np.zeros((n, 0)))
        return Judged(value, 0.0, Slope(kernel, by_noise), alpha)


class _Held(NamedTuple):
    """What stays: probes, and what B makes of them."""

    Z: Array  # (n, p)
    BZ: Array  # (n, p)
    B: Array  # (n,): its diagonal

    def diagonal(
        self,
        X: Array,  # (n, p): K̃⁻¹Z
    ) -> Array:  # (n,)
        """The estimate of the diagonal of K̃⁻¹."""
        return np.asarray(self.B + (self.Z * (X - self.BZ)).mean(axis=1))


def _hold(M: Nystrom | Leading, Z: Array, X: Array) -> _Held:
    """B = c M⁻¹ with the c that fits best."""
    V, (d, W) = M(Z), M.inverse_parts()
    c = float(np.einsum("ij,ij->", X, V) / np.einsum("ij,ij->", V, V))
    return _Held(Z, c * V, c * (d - np.square(W).sum(axis=1)))


def _through(loss: Loss, Y: Array, alpha: Array, d: Array) -> tuple[float, Array, Array]:
    """The loss, and its derivatives with respect to α (n, m) and d (n, 1) or (n, m)."""
    value, by_mean, by_variance = loss(Y - alpha / d, 1.0 / d)
    by_d = by_mean * alpha / d**2
    if d.shape[1] == 1:
        by_d = by_d.sum(axis=1, keepdims=True)
    return value, -by_mean / d, by_d - by_variance / d**2


def _estimate(
    estimate: Array,  # (n,) of the diagonal of K̃⁻¹ with the shared noise
    shared: Array,  # (n,)
    prior: Array,  # (n,): the diagonal of K
    noise: Array,  # (n, 1) or (n, m)
) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """d, and the way back from ∂/∂d to ∂/∂estimate (n,) and ∂/∂N.

    1/d − N is the latent variance with example i left out; it depends on N only through the other examples, so it
    serves every column of N. It is neither above the prior nor below 0, whatever the probes say.
    """
    lowest, highest = 1.0 / (shared + prior), 1.0 / shared
    sure = np.clip(estimate, lowest + EDGE * (highest - lowest), highest - EDGE * (highest - lowest))
    inside = sure == estimate
    near, far = np.where(estimate > sure, highest, lowest), np.where(estimate > sure, lowest, highest)
    by_bound = np.where(inside, 0.0, -(1.0 - EDGE) * near**2 - EDGE * far**2)  # d sure / d shared
    d = 1.0 / ((1.0 / sure - shared)[:, None] + noise)

    def back(by_d: Array) -> tuple[Array, Array]:
        by_sum = -by_d * d**2
        by_left = by_sum.sum(axis=1)
        by_shared = -by_left * (1.0 + by_bound / sure**2)
        return np.where(inside, -by_left / sure**2, 0.0), by_sum + by_shared[:, None] / noise.shape[1]

    return d, back
