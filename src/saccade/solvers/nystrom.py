"""A low-rank preconditioner from a sample of the examples, and the decision whether one pays.

M = B Bᵀ + S with B = K_nm L⁻ᵀ, L Lᵀ = K_mm (Nyström) and S = N + the mean of what the low rank leaves of the diagonal.
By Woodbury, M⁻¹ = S⁻¹ − S⁻¹B (I + BᵀS⁻¹B)⁻¹ BᵀS⁻¹. Putting the remainder into S, where the usual form has the noise
alone, halves the iterations at small noise: S is then right on average for all that B does not hold.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade._core.threads import share, thread_count
from saccade.operators.backend import ON_CPU, Backend, BackendArray
from saccade.operators.base import Operator

RANKS = (64, 128, 256, 512)
CAUTION = 0.8  # predicted share of plain CG's time that a preconditioner must not exceed: predictions err


@dataclass(frozen=True)
class Nystrom:
    """M⁻¹ by its products."""

    rank: int
    B: Annotated[Array, "n, r"]
    S: Annotated[Array, "n, 1"]
    left: Annotated[Array, "n"]  # what the low rank leaves of the diagonal of K, small where landmarks are near
    inner: Annotated[Array, "r, r"]  # lower Cholesky factor of I + BᵀS⁻¹B
    backend: Backend = ON_CPU

    @cached_property
    def _parts(self) -> tuple[BackendArray, BackendArray]:
        """S⁻½B and S⁻½ where the vectors are."""
        C, root = np.empty_like(self.B), np.sqrt(self.S)
        share(lambda _, a, b: _divide(self.B[a:b], root[a:b], C[a:b]), len(C), thread_count())
        return self.backend.array(C), self.backend.array(1.0 / root)

    def __call__(self, R: Annotated[BackendArray, "n, m"]) -> BackendArray:
        """M⁻¹ R = S⁻½ (I − C (I + CᵀC)⁻¹ Cᵀ) S⁻½ R with C = S⁻½B; systems of size r are solved on the host."""
        C, root = self._parts
        T: BackendArray = R * root
        small = solve_triangular(self.inner, self.backend.into_low_rank(C, T), lower=True)
        self.backend.out_of_low_rank(T, C, solve_triangular(self.inner, small, lower=True, trans=1))
        T = T * root
        return T

    def log_determinant(self) -> float:
        """log |M|."""
        return float(np.log(self.S).sum() + 2.0 * np.log(self.inner.diagonal()).sum())

    def sample(self, probes: int, rng: np.random.Generator) -> Annotated[Array, "n, probes"]:
        """Random vectors z with E zzᵀ = M."""
        Z = rng.choice([-1.0, 1.0], (len(self.S), probes)) * np.sqrt(self.S)
        Z += self.B @ rng.choice([-1.0, 1.0], (self.rank, probes)).astype(self.B.dtype)
        return Z

    def inverse_diagonal(self, S: Annotated[Array, "n"]) -> Annotated[Array, "n"]:
        """The diagonal of (B Bᵀ + diag(S))⁻¹, for any S."""
        L, found = _inner_factor(self.B, S), 1.0 / S

        def work(_: int, first: int, last: int) -> None:
            for rows in _batches(first, last):
                half = solve_triangular(L, self.B[rows].T.astype(np.float64), lower=True)
                found[rows] -= np.einsum("ij,ij->j", half, half) / S[rows] ** 2

        share(work, S.size, thread_count())
        return np.asarray(found)


def choose_rank(
    K_mm: Annotated[Array, "m, m"],  # kernel matrix of a random sample of m examples
    n: int,
    noise: float,
    work: int,
    columns: int,
) -> int:
    """The rank with the least predicted time, 0 for none.

    The eigenvalues of K_mm tell those of K: √λ_j(n) = √λ_min + √(n/m) (√λ_j(m) − √λ_min), so that structure grows
    with n and a flat tail does not. CG spends an iteration on each of j outliers and then about c √(1 + λ_{j+1}/σ²),
    for the best j; rank r takes the first r outliers away. Costs are in numbers read; their constants are from
    trials, and only ratios matter.
    """
    m = len(K_mm)
    root = np.sqrt(np.maximum(np.linalg.eigvalsh(K_mm)[::-1], 0.0))
    spectrum = np.square(root[-1] + np.sqrt(n / m) * (root - root[-1]))
    c = 4.0
    j = np.arange(m)
    after = j + c * np.sqrt(spectrum / noise + 1.0)  # iterations if j outliers take one each
    reach = max(1, m // 4)  # K has more outliers than a sample shows: trust only so many
    plain = float(after[:reach].min())
    product = work * (1.0 + columns / 4.0)
    best, best_cost = 0, CAUTION * plain * product
    for rank in RANKS:
        if 2 * rank > m or n * rank > limits.PRECONDITIONER_NUMBERS:
            break
        iterations = float(after[rank : rank + reach].min()) - rank
        build = rank / 16 * work * 5.0 + n * rank * rank / 50.0
        cost = build + iterations * (product + n * rank * (1.5 + columns / 12.0))
        if cost < best_cost:
            best, best_cost = rank, cost
    return best


def build(
    K: Operator,
    noise: Annotated[Array, "n"],
    landmarks: Annotated[Array, "r"],  # example numbers
    most: int = limits.PRECONDITIONER_NUMBERS,
) -> Nystrom:
    n, r = K.shape[0], landmarks.size
    B = np.empty((n, r), np.float64 if n * r <= most // 16 else np.float32)
    for k in range(0, r, 16):
        some = landmarks[k : k + 16]
        B[:, k : k + 16] = K.matmul_rows(some, np.eye(some.size, dtype=np.float32))
        report("preconditioning", k / r)
    K_mm = (B[landmarks] + B[landmarks].T).astype(np.float64) / 2
    L = _factor(K_mm)
    diag = K.diag()
    left = np.empty(n)

    def work(_: int, first: int, last: int) -> None:
        for rows in _batches(first, last):
            part = solve_triangular(L, B[rows].T.astype(np.float64), lower=True).T
            B[rows] = part
            left[rows] = np.maximum(diag[rows] - np.einsum("ij,ij->i", part, part), 0.0)

    share(work, n, thread_count())
    S = noise + left.mean()
    return Nystrom(r, B, S[:, None], left, _inner_factor(B, S), K.backend)


def _inner_factor(B: Annotated[Array, "n, r"], S: Annotated[Array, "n"]) -> Annotated[Array, "r, r"]:
    """The Cholesky factor of I + BᵀS⁻¹B."""
    parts = np.zeros((thread_count(), B.shape[1], B.shape[1]))

    def work(thread: int, first: int, last: int) -> None:
        for rows in _batches(first, last):
            part = B[rows] / np.sqrt(S[rows, None])
            parts[thread] += part.T @ part

    share(work, len(B), len(parts))
    return np.asarray(cholesky(parts.sum(axis=0) + np.eye(B.shape[1]), lower=True))


def _divide(B: Annotated[Array, "b, r"], by: Annotated[Array, "b, 1"], out: Annotated[Array, "b, r"]) -> None:
    np.divide(B, by.astype(B.dtype), out=out)


def _batches(first: int, last: int) -> Iterator[slice]:
    for start in range(first, last, limits.PRECONDITIONER_ROWS):
        yield slice(start, min(start + limits.PRECONDITIONER_ROWS, last))


def _factor(K_mm: Array) -> Array:
    """The Cholesky factor of K_mm, with the least jitter that float32 products need."""
    jitter = 1e-6 * float(np.trace(K_mm)) / len(K_mm) + 1e-300
    while True:
        try:
            return np.asarray(cholesky(K_mm + jitter * np.eye(len(K_mm)), lower=True))
        except np.linalg.LinAlgError:
            jitter *= 10.0
