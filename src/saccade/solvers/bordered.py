"""A Cholesky factor that grows row by row without being copied.

K + N = L Lᵀ with L = [[L₀, 0], [Hᵀ, S]]: L₀ stays as it is, new rows lengthen the border H and S. When the border has
grown wide, one copy makes all of it the new L₀. A step costs n² operations and no n² memory.
"""

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from scipy.linalg import solve_triangular

from saccade._core import limits
from saccade._core.arrays import Array
from saccade.solvers.cholesky import Factor, factorise


@dataclass(frozen=True)
class Bordered:
    """Of n₀ rows, and p more."""

    inner: Annotated[Array, "n₀, n₀"]  # lower: L₀
    H: Annotated[Array, "n₀, p"]
    S: Annotated[Array, "p, p"]  # lower

    @classmethod
    def of(cls, L: Array) -> Self:
        return cls(L, np.zeros((len(L), 0)), np.zeros((0, 0)))

    @property
    def size(self) -> int:
        return len(self.inner) + len(self.S)

    def half_solve(self, B: Annotated[Array, "n, m"]) -> Array:
        """L⁻¹ B."""
        n = len(self.inner)
        first = _triangular(self.inner, B[:n])
        return np.concatenate([first, _triangular(self.S, B[n:] - self.H.T @ first)])

    def back_solve(self, B: Annotated[Array, "n, m"]) -> Array:
        """L⁻ᵀ B."""
        n = len(self.inner)
        last = _triangular(self.S, B[n:], back=True)
        return np.concatenate([_triangular(self.inner, B[:n] - self.H @ last, back=True), last])

    def solve(self, B: Annotated[Array, "n, m"]) -> Array:
        """(K + N)⁻¹ B."""
        return self.back_solve(self.half_solve(B))

    def log_determinant(self) -> float:
        """log |K + N|."""
        return Factor(self.L).log_determinant()

    def inverse_diagonal(self) -> Annotated[Array, "n"]:
        """The diagonal of (K + N)⁻¹."""
        return Factor(self.L).inverse_diagonal()

    @property
    def L(self) -> Annotated[Array, "n, n"]:
        """All of it; do not write to it."""
        n, size = len(self.inner), self.size
        if n == size:
            return self.inner
        L = np.zeros((size, size), order="F")
        L[:n, :n], L[n:, :n], L[n:, n:] = self.inner, self.H.T, self.S
        return L

    def grown(
        self,
        half: Annotated[Array, "n, b"],  # L⁻¹ times K between the old examples and the new ones
        corner: Annotated[Array, "b, b"],  # K + N of the new ones
    ) -> Self:
        n, p, b = len(self.inner), len(self.S), len(corner)
        S = np.zeros((p + b, p + b), order="F")
        S[:p, :p], S[p:, :p] = self.S, half[n:].T
        S[p:, p:] = factorise(corner - half.T @ half, np.zeros(b), overwrite=True).L
        new = type(self)(self.inner, np.hstack([self.H, half[:n]]), S)
        return self.of(new.L) if p + b > limits.FACTOR_BORDER else new

    def shortened(self, size: int) -> Self:
        """The first rows alone."""
        n = len(self.inner)
        if size < n:
            return self.of(np.asfortranarray(self.inner[:size, :size]))
        p = size - n
        return type(self)(self.inner, self.H[:, :p], np.asfortranarray(self.S[:p, :p]))


def _triangular(L: Array, B: Array, back: bool = False) -> Array:
    """To look for NaN in L each time would take as long as to solve."""
    return np.asarray(solve_triangular(L, B, lower=True, trans=int(back), check_finite=False)) if len(L) else B
