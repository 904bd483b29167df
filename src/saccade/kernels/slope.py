"""The derivative of a number with respect to the kernel matrix K, in one of two forms (a centred kernel adds a third):

d number = Σ_ij A_ij dK_ij    or    Σ_m left_mᵀ dK right_m − Σ_k square_kᵀ dK square_k.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

import numpy as np

from saccade._core.arrays import Array, PerRow


class MatrixSlope(NamedTuple):
    """As a matrix."""

    A: Annotated[Array, "n, n"]  # symmetric

    def matrix(self) -> Annotated[Array, "n, n"]:
        return self.A


class VectorSlope(NamedTuple):
    """As few vectors."""

    left: Annotated[Array, "n, p"]
    right: Annotated[Array, "n, p"]
    squares: Annotated[Array, "n, q"]

    def matrix(self) -> Annotated[Array, "n, n"]:
        return np.asarray(self.left @ self.right.T - self.squares @ self.squares.T)

    def diag(self) -> PerRow:
        """The derivative with respect to the diagonal of K, which is also that with respect to the noise."""
        own = np.einsum("ij,ij->i", self.left, self.right) - np.einsum("ij,ij->i", self.squares, self.squares)
        return np.asarray(own)


class CentredSlope(NamedTuple):
    """With respect to K and, besides, to the part of K that is centred on the training rows."""

    A: Annotated[Array, "n, n"]
    by_part: Annotated[Array, "n, n"]

    def matrix(self) -> Annotated[Array, "n, n"]:
        return self.A


KernelSlope: TypeAlias = MatrixSlope | VectorSlope | CentredSlope
