"""A loss of the leave-one-out predictions, and its derivative with respect to the kernel matrix and the noise.

With d_i = [K̃⁻¹]_ii the label of example i, had it been left out, would have mean y_i − α_i/d_i and variance 1/d_i. As
dα = −K̃⁻¹ dK̃ α and dd_i = −[K̃⁻¹ dK̃ K̃⁻¹]_ii,

    d loss = −Σ_m (K̃⁻¹ ∂loss/∂α_m)ᵀ dK̃ α_m − tr(diag(∂loss/∂d) K̃⁻¹ dK̃ K̃⁻¹).

Dense for few examples. For many, random probes z give u = z ⊙ K̃⁻¹z, whose mean is d. Put into the loss, u made it too
large (0.265 for 0.172), because the loss is not linear and u is noisy. So half of the probes, smoothed as in
inverse_diagonal.py, give a first estimate d̂, and the other half, with mean ū, correct the loss to first order,

    loss(d̂) + ∂loss/∂d(d̂) · (ū − d̂),

in which ū is independent of d̂ and enters linearly: what is left is of second order in the error of d̂. The mean over
both ways of taking the halves is the estimate. Its error has two parts: that of a mean over probes, and the second
order, which is most of it where the noise is small (digits, 1e-4: 0.90 for 1.11, said 0.07 without it). Probes and
smoother stay while the kernel moves, and the derivative is exactly that of the estimate.

It all takes two solves: X = K̃⁻¹[Y, Z], and B = K̃⁻¹ ∂loss/∂X. Neither has to be exact. With R = [Y, Z] − K̃X, which is
known, the loss at the true X is loss(X) + B·R but for the product of both errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.threads import share, thread_count
from saccade.inference.solving.diagonal_estimate import estimate, known_of, quadratic
from saccade.inference.solving.inverse_diagonal import judged_apart
from saccade.inference.solving.regression import precondition
from saccade.inference.solving.system import System
from saccade.inference.tuning.evidence_slope import LANES, Judged
from saccade.kernels.slope import MatrixSlope, VectorSlope
from saccade.operators.base import Operator
from saccade.solvers.cholesky import factorise
from saccade.solvers.nystrom import Nystrom

FULL = 8  # columns that a product takes at its best speed
LEAST = 6  # probes
EDGE = 1e-3  # how far within its bounds an estimate is kept, as a share of the logarithm of their ratio
STEP = 0.001  # at most, of differences for second derivatives of the loss: at 0.002 they are off by 1e-4
Loss = Callable[[Array, Array], tuple[float, Array, Array]]
"""(mean (n, m), variance (n, 1) or (n, m)) -> a number to make small, and its derivatives with respect to both."""


def exact_loo(K: Operator, noise: Annotated[Array, "n, 1 | n, m"], Y: Annotated[Array, "n, m"], loss: Loss) -> Judged:
    """By Cholesky."""
    dense = K.to_dense()
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
    """Loss and slope from products alone, for one set of examples. All kernels are compared on the same probes.

    There are `probes` of them, fewer where those that fill the lanes of a product are enough for an error of `wanted`.
    """

    def __init__(self, probes: int, seed: int, wanted: float = 0.0) -> None:
        self._probes, self._rng, self._wanted = probes, np.random.default_rng(seed), wanted
        self._Z = np.empty((0, 0, 0))  # (n, c, p)
        self._smooth: list[_Smoother] = []
        self._size = 1.0  # spread of the leave-one-out means over the largest target: solutions must be better than it
        self._forth: Array | None = None  # (n, m + cp): solutions for the last kernel, to start from
        self._back: Array | None = None

    def __call__(
        self,
        K: Operator,
        noise: Annotated[Array, "n, 1 | n, m"],
        Y: Annotated[Array, "n, m"],
        loss: Loss,
        *,
        tol: float,
        max_iter: int,
    ) -> Judged:
        (n, m), c = Y.shape, noise.shape[1]
        M = precondition(K, noise.mean(axis=1), (m + c * self._most(c)) // LANES, self._rng)
        system = System(K, noise, M, max_iter)
        X, left, found = self._forward(system, Y, loss, tol) if self._Z.size else self._begin(system, Y, loss, tol)
        Z, p = self._Z.reshape(n, -1), self._Z.shape[2]
        B = np.hstack([found.by_alpha, found.by_probed.reshape(n, -1) * Z])
        back, rest = system.solved(B, tol * self._size * np.abs(B).max(axis=0), m, self._back)
        # the loss at the true solution X + K̃⁻¹ left: off by the product of both errors only
        value = found.value + float(np.einsum("ij,ij->", back, left))
        if np.isfinite(value):  # else nothing to start from
            self._forth, self._back = X, back
        # a step of Jacobi's method: their errors were 3 to 6 times as large without, all to one side
        N = system.wide(m, m + c * p)
        told = -(back + rest / N) * (X + left / N)
        own, told = told[:, :m], told[:, m:].reshape(n, c, p).sum(axis=2)
        by_noise = told + (own if c > 1 else own.sum(axis=1, keepdims=True))
        return Judged(value, found.error, VectorSlope(-back, X, np.zeros((n, 0))), by_noise, X[:, :m])

    def _most(self, c: int) -> int:
        """Probes for each of c columns of the noise."""
        return max(4, 2 * -(-self._probes // (2 * c)))

    def _begin(self, system: System, Y: Array, loss: Loss, tol: float) -> tuple[Array, Array, _Corrected]:
        """As `_forward`, and draw as many probes as the error at the first kernel asks for."""
        (n, m), c = Y.shape, system.noise.shape[1]
        most = self._most(c)
        few = min(most, _filling(m, LEAST)) if c == 1 and self._wanted > 0 else most
        self._Z = self._rng.choice([-1.0, 1.0], (n, c, few))
        X, left, found = self._forward(system, Y, loss, tol)
        if few == most:
            return X, left, found
        count = min(most, _filling(m, int(np.ceil(few * min((found.surely / self._wanted) ** 2, 1e3)))))
        if count <= few:
            return X, left, found
        Z = self._rng.choice([-1.0, 1.0], (n, c, count - few))
        self._Z, self._smooth = np.concatenate([self._Z, Z], axis=2), []
        self._forth = np.hstack([X, np.zeros((n, count - few))])
        return self._forward(system, Y, loss, tol)

    def _forward(self, system: System, Y: Array, loss: Loss, tol: float) -> tuple[Array, Array, _Corrected]:
        """Solutions for targets and probes (n, m + cp), what they leave, and the loss with its derivatives.

        Means are small where the noise is large, and their errors must be smaller still: a second solve, if need be.
        """
        (n, m), noise = Y.shape, system.noise
        B, unit = np.hstack([Y, self._Z.reshape(n, -1)]), np.abs(Y).max(axis=0) + 1e-300
        X, left = np.zeros_like(B), B
        least, size, guess = 1.0 / (1.0 + float(noise.mean())), self._size, self._forth
        while True:
            more, left = system.solved(left, tol * size * np.append(unit, np.ones(B.shape[1] - m)), m, guess)
            X, guess = X + more, None
            alpha, probed = X[:, :m], self._Z * X[:, m:].reshape(self._Z.shape)
            self._smooth = self._smooth or _smoothers(system, probed)
            found = self._corrected(loss, Y, alpha, probed, noise, system.K.diag())
            d = self._smoothed(probed.mean(axis=2), _Smoother.forth)
            spread = float(np.sqrt(((Y - alpha / d) / unit).var(axis=0).mean()))
            self._size = spread if spread > least else least
            if size <= 2.0 * self._size:
                return X, left, found
            size = self._size

    def _corrected(
        self,
        loss: Loss,
        Y: Annotated[Array, "n, m"],
        alpha: Annotated[Array, "n, m"],
        probed: Annotated[Array, "n, c, p"],
        noise: Annotated[Array, "n, c"],
        prior: Annotated[Array, "n"],
    ) -> _Corrected:
        p = probed.shape[2]
        values, by_alphas, slopes, by_probed = [0.0, 0.0], [Y, Y], [noise, noise], np.zeros((2, *probed.shape))
        # with the share s of residuals that d̂ keeps, its own error is s/(1 + s) of the mean square of ū − d̂
        own = self._smoothed(np.ones_like(noise), lambda smooth, one: one - 1.0 / (1.0 + smooth.share))
        second_order = [0.0, 0.0]

        def one_way(_: int, k: int, last: int) -> None:
            if k + 1 < last:  # both in one thread
                one_way(_, k + 1, last)
            first, second = slice(k, None, 2), slice(1 - k, None, 2)
            d, inside = _bounded(self._smoothed(probed[..., first].mean(axis=2), _Smoother.forth), noise, prior)
            off = probed[..., second].mean(axis=2) - d
            value, by_alpha, by_d = _through(loss, Y, alpha, d)
            step = min(STEP, 0.5 / max(float((np.abs(off) / d).max(initial=0.0)), 1e-300))  # d stays above 0
            ahead, behind = (_through(loss, Y, alpha, d + way * off)[1:] for way in (step, -step))
            mixed, curved = ((a - b) / (2.0 * step) for a, b in zip(ahead, behind, strict=True))
            values[k] = value + float(np.einsum("ij,ij->", by_d, off))
            second_order[k] = 0.5 * float(np.einsum("ij,ij,ij->", own, curved, off))
            by_alphas[k], slopes[k] = by_alpha + mixed, by_d
            curved = self._smoothed(np.where(inside, curved, 0.0), _Smoother.back)
            for some, slope in ((first, curved), (second, by_d)):
                by_probed[k][..., some] = slope[..., None] / (2 * len(range(p)[some]))

        share(one_way, 2, thread_count() if Y.size > limits.LOSSES_APART else 1)
        by_d = 0.5 * (slopes[0] + slopes[1])
        error = np.einsum("ij,ijk->k", by_d, probed).std(ddof=1) / np.sqrt(p)
        # cov(u_i, u_j) = [K̃⁻¹]_ij², so var Σ_i w_i u_i = Σ_{i≠j} (w_i² + w_i w_j) [K̃⁻¹]_ij² ≤ 2 Σ_i w_i² var u_i
        surely = np.sqrt(2.0 * float(np.einsum("ij,ij->", by_d**2, probed.var(axis=2, ddof=1))) / p)
        error = np.hypot(error, np.mean(second_order))
        by_alpha = np.asarray(np.mean(by_alphas, axis=0))
        return _Corrected(float(np.mean(values)), float(error), float(surely), by_alpha, by_probed.sum(axis=0))

    def _smoothed(self, values: Array, way: Callable[[_Smoother, Array], Array]) -> Annotated[Array, "n, c"]:
        out = np.empty_like(values)
        for smooth in self._smooth:
            out[smooth.some] = way(smooth, values[smooth.some])
        return out


class _Corrected(NamedTuple):
    """The loss, its errors, and its derivatives."""

    value: float
    error: float  # by chance and by what is of second order in the error of d̂
    surely: float  # a bound of chance from Σ_i w_i² var u_i: few probes know their spread badly, n examples well
    by_alpha: Annotated[Array, "n, m"]
    by_probed: Annotated[Array, "n, c, p"]


class _Smoother(NamedTuple):
    """A linear map of probed entries, relative to the first fit: their regression, and a share of the residuals."""

    some: Annotated[Array, "n, c"]  # mask of the entries
    fitted: Annotated[Array, "e"]
    Q: Annotated[Array, "e, terms"]  # orthonormal
    share: float

    def forth(self, probed: Array) -> Annotated[Array, "e"]:
        ratio = probed / self.fitted
        return np.asarray(self.fitted * (self.share * ratio + (1.0 - self.share) * (self.Q @ (self.Q.T @ ratio))))

    def back(self, slope: Array) -> Annotated[Array, "e"]:
        """The transpose."""
        ratio = slope * self.fitted
        return np.asarray((self.share * ratio + (1.0 - self.share) * (self.Q @ (self.Q.T @ ratio))) / self.fitted)


def _filling(m: int, least: int) -> int:
    """The number of probes, from `least` on, that fills the lanes of a product beside m targets."""
    return least + -(m + least) % FULL


def _smoothers(system: System, probed: Annotated[Array, "n, c, p"]) -> list[_Smoother]:
    K, noise, low_rank = system.K, system.noise, system.M if isinstance(system.M, Nystrom) else None
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
    d: Annotated[Array, "n, c"],
    noise: Annotated[Array, "n, c"],
    prior: Annotated[Array, "n"],  # the diagonal of K
) -> tuple[Array, Array]:
    """d moved inside its bounds 1/(N + k(x, x)) and 1/N, and which entries were inside before.

    By a share of their ratio: a share of their distance would be beyond most true values where the noise is small.
    """
    lowest, highest = 1.0 / (noise + prior[:, None]), 1.0 / noise
    edge = (highest / lowest) ** EDGE
    inside = np.clip(d, lowest * edge, highest / edge)
    return inside, inside == d
