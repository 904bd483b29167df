"""The leave-one-out loss of a kernel that is centred on the training rows, with the centring redone, and its slope.

Letters as in leave_one_out/centre.py: without row i the kernel matrix is K′ = K + e(c1ᵀ + 1cᵀ) + e²κ11ᵀ, for the rows
that stay and for row i alike. All copies of a row go: e = w_i / (Σ_j w_j − w_i).

Let S be the inverse of K′ + N of the other rows (0 at row i), u = Sk′ and ũ = 1_i − u. Then mean_i = uᵀY, and

    d mean_i = ũᵀ dK′ SY,    d variance_i = ũᵀ dK′ ũ.

With g and h, the derivatives of the loss with respect to mean_i and variance_i, and v = SYg + hũ,

    d loss = Σ_i ũᵀ dK′ v = Σ_i ũᵀ dK v + e(ũᵀ1 vᵀ + 1ᵀv ũᵀ) dc + e² ũᵀ1 1ᵀv dκ.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from saccade._core.arrays import Array
from saccade.inference.tuning.evidence_slope import Judged
from saccade.inference.tuning.loo_slope import Loss
from saccade.kernels.gram import Gram
from saccade.kernels.slope import CentredSlope
from saccade.solvers.cholesky import factorise


def has_moving_centre(gram: Gram) -> bool:
    """Whether `centred_loo` is for this kernel.

    Not for a product of a centred kernel and another: without a row it is another product, and each row would take a
    factor of its own. There the centre stays as it was (`Tune` says what that changes).
    """
    kernel = gram.kernel
    return gram.in_memory and gram.shape[0] > 1 and not kernel.mixes_centre and kernel.centred_part() is not None


def centred_loo(
    gram: Gram,  # of a kernel with a centred part
    noise: Annotated[Array, "n, 1 | n, m"],
    Y: Annotated[Array, "n, m"],
    loss: Loss,
    weight: Annotated[Array, "n"] | None,  # how many equal copies each example stands for
) -> Judged:
    """By Cholesky."""
    part, shared = gram.kernel.centred_part(), noise.shape[1] == 1
    assert part is not None
    K = gram.to_dense()
    C = K if part is gram.kernel else part(gram.all_rows())
    copies = np.ones(len(Y)) if weight is None else weight
    e = copies / (copies.sum() - copies)
    outputs = [slice(None)] if shared else [slice(k, k + 1) for k in range(noise.shape[1])]
    mean, variance, alpha = np.empty_like(Y), np.empty_like(noise), np.empty_like(Y)
    for k, own in enumerate(outputs):
        found = _without_each(K, C, noise[:, k], Y[:, own], e)
        mean[:, own], variance[:, k], alpha[:, own] = found.mean, found.variance, found.alpha
    value, by_mean, by_variance = loss(mean, variance)
    A, by_part, slopes = np.zeros_like(K), np.zeros_like(K), np.empty_like(noise)
    for k, own in enumerate(outputs):
        found = found if shared else _without_each(K, C, noise[:, k], Y[:, own], e)  # again: too many to keep them all
        left, right = found.left, found.solved(by_mean[:, own]) + by_variance[:, k] * found.left
        slopes[:, k] = np.einsum("ij,ij->i", left, right)
        A += left @ right.T
        left_sum, right_sum = e * left.sum(axis=0), e * right.sum(axis=0)
        by_part += left * right_sum + right * left_sum + np.diag(left_sum * right_sum)
    return Judged(value, 0.0, CentredSlope(A, by_part), slopes, alpha)


class _WithoutEach(NamedTuple):
    """Predictions for each row without it; column i of an n × n matrix is about leaving out row i.

    P is the inverse of K + N without row i, before the centre moves.
    """

    mean: Annotated[Array, "n, m"]
    variance: Annotated[Array, "n"]  # of the label
    alpha: Annotated[Array, "n, m"]  # (K + N)⁻¹Y
    left: Annotated[Array, "n, n"]  # ũ
    shares: Annotated[Array, "n, n"]  # (K + N)⁻¹ / its diagonal
    Pc: Annotated[Array, "n, n"]
    P1: Annotated[Array, "n, n"]
    moved: Annotated[Array, "n, 2, m"]  # SY − PY in terms of Pc and P1

    def solved(self, g: Annotated[Array, "n, m"]) -> Annotated[Array, "n, n"]:
        """SYg."""
        a, b = np.einsum("ikj,ij->ki", self.moved, g)
        found = self.alpha @ g.T - self.shares * np.einsum("ij,ij->i", self.alpha, g) + self.Pc * a + self.P1 * b
        np.fill_diagonal(found, 0.0)
        return np.asarray(found)


def _without_each(
    K: Annotated[Array, "n, n"],
    C: Annotated[Array, "n, n"],
    noise: Annotated[Array, "n"],
    Y: Annotated[Array, "n, m"],
    e: Annotated[Array, "n"],
) -> _WithoutEach:
    n, inverse, own = len(Y), factorise(K, noise).inverse(), C.diagonal()
    alpha, BC, ones, shares = inverse @ Y, inverse @ C, inverse.sum(axis=1), inverse / inverse.diagonal()
    Pk, Pc, P1 = np.eye(n) - shares, BC - shares * BC.diagonal(), ones[:, None] - shares * ones
    c_c, c_1, one_one = np.einsum("ij,ij->j", C, Pc), np.einsum("ij,ij->j", C, P1), P1.sum(axis=0)
    G = np.stack([c_c, c_1, c_1, one_one], axis=1).reshape(n, 2, 2)  # inner products of c and 1 by P
    to_k = np.stack([np.einsum("ij,ij->j", C, Pk), Pk.sum(axis=0)], axis=1)
    gone = alpha / inverse.diagonal()[:, None]
    to_Y = np.stack([C @ alpha - BC.diagonal()[:, None] * gone, alpha.sum(axis=0) - ones[:, None] * gone], axis=1)
    move = np.zeros((n, 2, 2))
    move[:, 0, 1] = move[:, 1, 0] = e
    move[:, 1, 1] = e**2 * own
    q = np.stack([e, e * (1.0 + e) * own], axis=1)[:, :, None]  # k′ − k in terms of c and 1
    right = move @ np.concatenate([to_k[:, :, None] + G @ q, to_Y], axis=2)
    moved = -np.linalg.solve(np.eye(2) + move @ G, right)
    x = (q + moved[:, :, :1])[:, :, 0]
    U = Pk + Pc * x[:, 0] + P1 * x[:, 1]
    np.fill_diagonal(U, 0.0)
    top = K.diagonal() + e * (2.0 + e) * own
    explained = np.einsum("ij,ij->j", K + C * e + q[:, 1, 0], U)
    variance = np.maximum(top - explained, 0.0) + noise
    return _WithoutEach(U.T @ Y, variance, alpha, np.eye(n) - U, shares, Pc, P1, moved[:, :, 1:])
