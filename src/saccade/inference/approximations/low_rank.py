"""The part of the variance that a few directions explain: k*ᵀK̃⁻¹k* ≥ ‖Wᵀk*‖² whenever WᵀK̃W = I.

With an orthonormal basis Q and QᵀK̃Q = UΛUᵀ, W = QUΛ^−½, and ‖Wᵀk*‖² = k*ᵀQ(QᵀK̃Q)⁻¹Qᵀk*: the most that a combination
of the columns of Q explains, where k*ᵀK̃⁻¹k* is the most that anything does. Leading eigenvectors explain the most on
average, but any Q gives a bound, so they need not be exact. For an intersection kernel Wᵀk* is a walk through tables.

Leading eigenvectors adapt to the examples they come from, and dropping row i of W does not undo that: where the
spectrum is flat, examples left out so look more familiar than new ones. So W may be 0 on some examples drawn at random,
the held-out ones. To W they are new examples, and what they score is what new ones of their kind will score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.blas import blas_threads_for
from saccade._core.progress import listening, report
from saccade.inference.approximations.base import Approximation
from saccade.operators.base import Dense, Operator

PASSES = 3  # of subspace iteration: exact eigenvectors make the bound a percent tighter
LARGEST_SINGLE = 1e30  # kernel values beyond would overflow float32
HELD_OUT_SHARE = 0.25  # of the examples at most


@dataclass(frozen=True)
class LowRank(Approximation):
    """Directions W with WᵀK̃W = I, orthogonal to each other."""

    W: Annotated[Array, "n, r"]
    KW: Annotated[Array, "n, r"]  # without the noise
    noise: Annotated[Array, "n, 1"]  # N, the largest where there are several
    held_out: Annotated[Array, "h"]  # numbers of the examples on which W is 0, ascending; often none

    @property
    def Q(self) -> Annotated[Array, "n, r"]:
        """Orthonormal columns with the span of W."""
        return np.asarray(self.W / np.sqrt(np.einsum("ij,ij->j", self.W, self.W)))

    def comparable(self) -> Array | None:
        return self.held_out if self.held_out.size else None

    def explained(self, k_star: Annotated[Array, "n, b"]) -> Annotated[Array, "b, 1"]:
        """‖Wᵀk*‖², a lower bound of k*ᵀK̃⁻¹k*."""
        return np.asarray(np.square(self.W.T @ k_star).sum(axis=0)[:, None])

    def weights(self, Y: Annotated[Array, "n, m"]) -> Annotated[Array, "n, m"]:
        """W WᵀY."""
        return np.asarray(self.W @ (self.W.T @ Y))

    def left_out(
        self,
        k_rows: Annotated[Array, "n, b"],
        prior: Annotated[Array, "b"],
        rows: Annotated[Array, "b"],
        Y: Annotated[Array, "n, m"],
    ) -> tuple[Annotated[Array, "b, m"], Annotated[Array, "b, 1"]]:
        """With row i of W dropped: an upper bound of the variance that all the others leave."""
        return self.left_out_by(self.W.T @ k_rows, prior, rows, Y)

    def left_out_of(
        self,
        prior: Annotated[Array, "b"],  # k(x, x) of the rows
        rows: Annotated[Array, "b"],
        Y: Annotated[Array, "n, m"],
    ) -> tuple[Array, Array, Array]:  # (b, m), (b, 1), (b, 1)
        """Mean and variance without each of the rows, and the variance with it."""
        products = self.KW[rows].T
        with_itself = np.maximum(prior - np.square(products).sum(axis=0), 0.0)[:, None]
        return *self.left_out_by(products, prior, rows, Y), with_itself

    def left_out_by(
        self,
        products: Annotated[Array, "r, b"],  # Wᵀk of the rows, KWᵀ where all are wanted
        prior: Annotated[Array, "b"],  # k(x, x) of the rows
        rows: Annotated[Array, "b"],
        Y: Annotated[Array, "n, m"],
    ) -> tuple[Annotated[Array, "b, m"], Annotated[Array, "b, 1"]]:
        """Left-out mean and variance without columns of K.

        A = W₋ᵀK̃₋W₋, for W₋ and K̃₋ without example i, differs from I by two directions only: w, row i of W, and
        c = WᵀK̃e_i. With s = K̃_ii, t = wᵀc and ρ = s − ‖c‖² ≥ 0, eliminating w leaves S = (1 − t)² + ‖w‖²ρ, and

            A⁻¹W₋ᵀk₋ = ((1 − t) c − ρ w) / S,   variance = ρ/S − N_i.

        Where W spans everything, ρ = 0 and t = 1: rounding is added to ρ, which only adds to the variance, and the
        limit is the exact 1/‖w‖² − N_i with ‖w‖² = [K̃⁻¹]_ii.
        """
        w, noise = self.W[rows].T, self.noise[rows, 0]
        c = products + noise * w
        s, t, squared = prior + noise, np.einsum("ij,ij->j", w, c), np.einsum("ij,ij->j", w, w)
        rho = np.maximum(s - np.einsum("ij,ij->j", c, c), 0.0) + len(Y) * np.finfo(np.float64).eps * s
        S = (1.0 - t) ** 2 + squared * rho
        u, y = self.W.T @ Y, Y[rows]
        along_c = c.T @ u - t[:, None] * y
        along_w = w.T @ u - squared[:, None] * y
        mean = ((1.0 - t)[:, None] * along_c - rho[:, None] * along_w) / S[:, None]
        return mean, np.clip(rho / S - noise, 0.0, prior)[:, None]


def made_again(
    parts: Sequence[LowRank],  # one, or one for each output; nothing is held out
    K: Annotated[Array, "n, n"],
    rows: Annotated[Array, "b"],
    Y: Annotated[Array, "n, m"],
    weight: Annotated[Array, "n"] | None,  # how many equal copies each example stands for
) -> tuple[Annotated[Array, "b, m"], Annotated[Array, "b, 1 | b, m"]]:
    """Mean and variance of each of the rows by directions that are found without it, or without one of its copies."""
    n, noise, rank = len(K), np.hstack([part.noise for part in parts]), parts[0].W.shape[1]
    targets = [Y] if len(parts) == 1 else np.hsplit(Y, len(parts))
    means, left = np.empty((rows.size, Y.shape[1])), np.empty((rows.size, len(parts)))
    for b, i in enumerate(rows):
        some, apart = np.arange(n), noise.copy()
        if weight is None or weight[i] <= 1.0:
            some = np.delete(some, i)
        else:  # w − 1 of w copies have the noise N w/(w − 1)
            apart[i] *= weight[i] / (weight[i] - 1.0)
        with listening(lambda what, done: None):
            found = low_ranks(Dense(K[np.ix_(some, some)]), apart[some], rank, np.random.default_rng(0))
        k_star = K[some, i, None]
        means[b] = np.hstack([k_star.T @ low.weights(T[some]) for low, T in zip(found, targets, strict=True)])
        left[b] = np.hstack([low.variance(k_star, K[i, i, None]) for low in found])
        report("leaving one out", (b + 1) / rows.size)
    return means, left


def hold_out(
    pool: Annotated[Array, "p"],  # numbers of examples
    n: int,
    rank: int,
    rng: np.random.Generator,
) -> Annotated[Array, "h"]:  # ascending
    """Some of the examples in the pool.

    None where W spans everything, and leaving one out is exact, and none of few examples, whose W is made again without
    each of them: a quarter of those is too few to compare with.
    """
    count = min(limits.EXAMPLES_COMPARED, int(HELD_OUT_SHARE * n)) if rank < n >= limits.HELD_OUT_FROM else 0
    return np.sort(rng.permutation(pool)[:count])


def low_rank(
    K: Operator,
    noise: Annotated[Array, "n, 1 | n, m"],
    rank: int,
    rng: np.random.Generator,
    held_out: Annotated[Array, "h"] | None = None,  # numbers of examples on which W is to be 0, ascending
) -> LowRank:
    """W for the leading eigenvectors of K. Several columns of noise share the largest.

    More noise explains less, so the bound holds for each.
    """
    return low_ranks(K, noise.max(axis=1, keepdims=True), rank, rng, held_out)[0]


def low_ranks(
    K: Operator,
    noise: Annotated[Array, "n, m"],
    rank: int,
    rng: np.random.Generator,
    held_out: Annotated[Array, "h"] | None = None,
) -> tuple[LowRank, ...]:
    """One for each column of the noise; they share the leading eigenvectors, which take most of the products."""
    held_out = np.zeros(0, int) if held_out is None else held_out
    K = Dense(K.to_dense()) if K.shape[0] <= limits.FACTOR_UP_TO and not K.in_memory else K
    found = list[LowRank]()
    with blas_threads_for(K.shape[0]):
        S, left = _leading(K, min(rank, K.shape[0] - held_out.size), rng, held_out)
        for column in noise.T[:, :, None]:
            found.append(_explaining(K, column, _suited(S, left, column), held_out))
            report("variance", 0.5 * (PASSES + len(found) / noise.shape[1]) / (PASSES + 1))
    return tuple(found)


def _explaining(K: Operator, noise: Array, Q: Array, held_out: Array) -> LowRank:
    """W for an orthonormal basis Q."""
    n, KQ = K.shape[0], K.matmul(Q)
    inner = Q.T @ (KQ + noise * Q)
    theta, U = np.linalg.eigh((inner + inner.T) / 2)
    # rounding moves an eigenvalue by up to this; a larger one explains less, so the bound stands
    theta = np.maximum(theta, 0.0) + n * np.finfo(np.float64).eps * theta.max(initial=0.0) + np.finfo(np.float64).tiny
    scaled = (U / np.sqrt(theta))[:, ::-1]  # the leading one first
    return LowRank(Q @ scaled, KQ @ scaled, noise, held_out)


def _suited(S: Annotated[Array, "n, r"], left: float, noise: Annotated[Array, "n, 1"]) -> Annotated[Array, "n, r"]:
    """An orthonormal basis of the span of D⁻¹S with D = N + ρ, where ρ is what S leaves of k(x, x) on average.

    K ≈ SΛSᵀ + ρI, and K̃⁻¹S of that has the span of D⁻¹S: examples with much noise stay out of every direction. With
    noise over eight decades and rank 30 of 150, S itself had half of what there was to explain, D⁻¹S 94 %.
    """
    if float(np.ptp(noise)) == 0.0:
        return S
    D = noise + left
    Q = np.asarray(np.linalg.qr(D.min() / D * S)[0])
    Q[~S.any(axis=1)] = 0.0  # held-out examples: 0 already but for rounding
    return Q


def _leading(
    K: Operator, rank: int, rng: np.random.Generator, held_out: Array
) -> tuple[Annotated[Array, "n, r"], float]:
    """An orthonormal basis of the leading directions of K by subspace iteration, 0 for held-out examples.

    And what it leaves of k(x, x), on average.
    """
    n, diag = K.shape[0], K.diag()
    Q, kept = rng.standard_normal((n, rank)), np.ones((n, 1))
    kept[held_out] = 0.0
    single = n >= limits.LOW_RANK_FLOAT32_FROM and diag.max(initial=0.0) < LARGEST_SINGLE
    dtype = np.float32 if single else np.float64  # any space will do
    explained = 0.0
    for k in range(PASSES):
        KQ = K.matmul((kept * Q).astype(dtype)).astype(np.float64)
        explained = float(np.einsum("ij,ij->", Q, KQ)) if k else 0.0  # the first Q is not orthonormal
        Q = np.asarray(np.linalg.qr(kept * KQ)[0])
        Q[held_out] = 0.0  # it is 0 already but for rounding
        report("variance", 0.5 * (k + 1) / (PASSES + 1))
    total = float(diag @ kept[:, 0])
    return Q, max(total - explained, 0.0) / max(n - held_out.size, 1)
