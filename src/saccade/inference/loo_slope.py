"""A loss of the leave-one-out predictions, and its derivative with respect to the kernel matrix and the noise.

With d_i = [K̃⁻¹]_ii the label of example i, had it been left out, would have mean y_i − α_i/d_i and variance 1/d_i. As
dα = −K̃⁻¹ dK̃ α and dd_i = −[K̃⁻¹ dK̃ K̃⁻¹]_ii,

    d loss = −Σ_m (K̃⁻¹ ∂loss/∂α_m)ᵀ dK̃ α_m − tr(diag(∂loss/∂d) K̃⁻¹ dK̃ K̃⁻¹).

Dense for few examples. For many, random probes z give u = z ⊙ K̃⁻¹z, whose mean is d. Put into the loss, u made it too
large (0.265 for 0.172), because the loss is not linear and u is noisy. So half of the probes, smoothed as in
inverse_diagonal.py, give a first estimate d̂, and the other half, with mean ū, correct the loss to first order,

    loss(d̂) + ∂loss/∂d(d̂) · (ū − d̂),

in which ū is independent of d̂ and enters linearly: what is left is of second order in the error of d̂. The mean over
both ways of taking the halves is the estimate; its error is that of a mean over probes. Probes and smoother stay while
the kernel moves, and the derivative is exactly that of the estimate. It all takes two solves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from saccade._core.arrays import Array
from saccade.inference.diagonal_estimate import estimate, known_of, quadratic
from saccade.inference.evidence_slope import LANES, Judged
from saccade.inference.inverse_diagonal import judged_apart
from saccade.inference.regression import precondition
from saccade.kernels.slope import MatrixSlope, VectorSlope
from saccade.operators.base import Operator
from saccade.solvers.cg import solve_cg
from saccade.solvers.cholesky import factorise
from saccade.solvers.nystrom import Nystrom

EDGE = 1e-3  # how far within its bounds an estimate is kept, as a share of their distance
STEP = 0.002  # of differences for second derivatives of the loss
Loss = Callable[[Array, Array], tuple[float, Array, Array]]
"""(mean (n, m), variance (n, 1) or (n, m)) -> a number to make small, and its derivatives with respect to both."""


def exact_loo(
    K: Operator,
    noise: Array,  # (n, 1) or (n, m)
    Y: Array,  # (n, m)
    loss: Loss,
) -> Judged:
    """By Cholesky."""
    dense = K.written_out()
    shared = noise.shape[1] == 1
    outputs = [slice(None)] if shared else [slice(k, k + 1) for k in range(noise.shape[1])]
    alpha, d, inverse = np.empty_like(Y), np.empty_like(noise), np.empty((0, 0))
    for k, own in enumerate(outputs):
        inverse = factorise(dense, noise[:, k]).inverse()
        alpha[:, own], d[:, k] = inverse @ Y[:, own], inverse.diagonal()
    value, by_alpha, by_d = _through(loss, Y, alpha, d)
    A, slopes = np.zeros(dense.shape), np.empty_like(noise)
    for k, own in enumerate(outputs):
        inverse = inverse if shared else factorise(dense, noise[:, k]).inverse()  # again: too many to keep them all
        part = -(inverse @ by_alpha[:, own]) @ alpha[:, own].T - inverse @ (by_d[:, k : k + 1] * inverse)
        slopes[:, k] = part.diagonal()
        A += part
    return Judged(value, 0.0, MatrixSlope(0.5 * (A + A.T)), slopes, alpha)


class StochasticLOO:
    """The same from products alone, for one set of examples. All kernels are compared on the same probes."""

    def __init__(self, probes: int, seed: int) -> None:
        self._probes, self._rng = probes, np.random.default_rng(seed)
        self._Z = np.empty((0, 0))
        self._smooth: list[_Smoother] = []

    def __call__(
        self,
        K: Operator,
        noise: Array,  # (n, 1) or (n, m)
        Y: Array,  # (n, m)
        loss: Loss,
        *,
        start: Array | None,  # (n, m): a first guess of α
        tol: float,
        max_iter: int,
    ) -> Judged:
        (n, m), c = Y.shape, noise.shape[1]
        p = max(4, 2 * -(-self._probes // (2 * c)))  # for each column of the noise
        M = precondition(K, noise.mean(axis=1), (m + c * p) // LANES, self._rng)
        wide = noise if c == 1 else np.hstack([noise, np.repeat(noise, p, axis=1)])

        def solved(B: Array, x0: Array | None = None) -> Array:
            size = np.abs(B).max(axis=0, initial=0.0) + 1e-300
            guess = None if x0 is None else x0 / size
            found = solve_cg(K, wide, B / size, tol=tol, max_iter=max_iter, precondition=M, x0=guess)
            return np.asarray(found.x * size)

        if not self._Z.size:
            self._Z = self._rng.choice([-1.0, 1.0], (n, c * p))
        Z = self._Z
        X = solved(np.hstack([Y, Z]), None if start is None else np.hstack([start, np.zeros_like(Z)]))
        alpha, X = X[:, :m], X[:, m:]
        probed = (Z * X).reshape(n, c, p)
        self._smooth = self._smooth or _smoothers(K, noise, M if isinstance(M, Nystrom) else None, probed)
        value, error, by_alpha, by_probed = self._corrected(loss, Y, alpha, probed, noise, K.diag())
        left = -solved(np.hstack([by_alpha, by_probed.reshape(n, -1) * Z]))
        own, told = left[:, :m] * alpha, (left[:, m:] * X).reshape(n, c, p).sum(axis=2)
        by_noise = told + (own if c > 1 else own.sum(axis=1, keepdims=True))
        by_kernel = VectorSlope(left, np.hstack([alpha, X]), np.zeros((n, 0)))
        return Judged(value, error, by_kernel, by_noise, alpha)

    def _corrected(
        self,
        loss: Loss,
        Y: Array,  # (n, m)
        alpha: Array,  # (n, m)
        probed: Array,  # (n, c, p)
        noise: Array,  # (n, c)
        prior: Array,  # (n,)
    ) -> tuple[float, float, Array, Array]:
        """The loss, its standard error, and its derivatives with respect to α (n, m) and to each probe (n, c, p)."""
        p = probed.shape[2]
        values, by_alphas, slopes, by_probed = [], [], [], np.zeros_like(probed)
        for first, second in ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))):
            d, inside = _bounded(self._smoothed(probed[..., first].mean(axis=2), _Smoother.forth), noise, prior)
            off = probed[..., second].mean(axis=2) - d
            value, by_alpha, by_d = _through(loss, Y, alpha, d)
            ahead, behind = (_through(loss, Y, alpha, d + step * off)[1:] for step in (STEP, -STEP))
            mixed, curved = ((a - b) / (2.0 * STEP) for a, b in zip(ahead, behind, strict=True))
            values.append(value + float(np.einsum("ij,ij->", by_d, off)))
            by_alphas.append(by_alpha + mixed)
            slopes.append(by_d)
            by_probed[..., first] += self._smoothed(np.where(inside, curved, 0.0), _Smoother.back)[..., None] / p
            by_probed[..., second] += by_d[..., None] / p
        told = np.einsum("ij,ijk->k", 0.5 * (slopes[0] + slopes[1]), probed)
        error = float(told.std(ddof=1) / np.sqrt(p))
        return float(np.mean(values)), error, np.asarray(np.mean(by_alphas, axis=0)), by_probed

    def _smoothed(self, values: Array, way: Callable[[_Smoother, Array], Array]) -> Array:  # (n, c)
        out = np.empty_like(values)
        for smooth in self._smooth:
            out[smooth.some] = way(smooth, values[smooth.some])
        return out


class _Smoother(NamedTuple):
    """A linear map of probed entries, relative to the first fit: their regression, and a share of the residuals."""

    some: Array  # (n, c): mask of the entries
    fitted: Array  # (e,)
    Q: Array  # (e, terms): orthonormal
    share: float

    def forth(self, probed: Array) -> Array:  # (e,)
        ratio = probed / self.fitted
        return np.asarray(self.fitted * (self.share * ratio + (1.0 - self.share) * (self.Q @ (self.Q.T @ ratio))))

    def back(self, slope: Array) -> Array:  # (e,)
        """The transpose."""
        ratio = slope * self.fitted
        return np.asarray((self.share * ratio + (1.0 - self.share) * (self.Q @ (self.Q.T @ ratio))) / self.fitted)


def _smoothers(
    K: Operator,
    noise: Array,  # (n, c)
    low_rank: Nystrom | None,
    probed: Array,  # (n, c, p)
) -> list[_Smoother]:
    known, prior = known_of(K, noise, low_rank), np.broadcast_to(K.diag()[:, None], noise.shape)
    made = []
    for some in judged_apart(noise):
        found = estimate(probed[some], noise[some], prior[some], known[some])
        Q = np.linalg.qr(quadratic(known[some])(known[some]))[0]
        share = found.missed / (found.missed + 2.0 * found.chance / probed.shape[2] + 1e-300)
        made.append(_Smoother(some, found.fitted, Q, share))
    return made


def _through(loss: Loss, Y: Array, alpha: Array, d: Array) -> tuple[float, Array, Array]:
    """The loss, and its derivatives with respect to α (n, m) and d (n, 1) or (n, m)."""
    value, by_mean, by_variance = loss(Y - alpha / d, 1.0 / d)
    by_d = by_mean * alpha / d**2
    if d.shape[1] == 1:
        by_d = by_d.sum(axis=1, keepdims=True)
    return value, -by_mean / d, by_d - by_variance / d**2


def _bounded(
    d: Array,  # (n, c)
    noise: Array,  # (n, c)
    prior: Array,  # (n,): the diagonal of K
) -> tuple[Array, Array]:
    """d moved inside its bounds 1/(N + k(x, x)) and 1/N, and which entries were inside before."""
    lowest, highest = 1.0 / (noise + prior[:, None]), 1.0 / noise
    edge = EDGE * (highest - lowest)
    inside = np.clip(d, lowest + edge, highest - edge)
    return inside, inside == d
