"""Kernels built from kernels: sums, products, and multiples by a positive number."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from saccade._core.checks import check_positive, check_range
from saccade.kernels.base import Array, Kernel, Matrix, PerRow, Rows, check_kernel
from saccade.kernels.learned import prefixed

__all__ = ["Product", "Scaled", "Sum"]


class Pair(Kernel):
    """A kernel made of two others."""

    _join: ClassVar[np.ufunc]
    """What is made of the values of both."""

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def resolved(self, X: Rows, weight: PerRow | None = None) -> Kernel:
        left, right = self._check()
        return type(self)(left.resolved(X, weight), right.resolved(X, weight))

    def __call__(self, X: Matrix, Z: Matrix | None = None) -> Array:
        left, right = self._check()
        with np.errstate(over="ignore"):
            return check_range(self._join(left(X, Z), right(X, Z)))

    def diag(self, X: Matrix) -> Array:
        left, right = self._check()
        with np.errstate(over="ignore"):
            return check_range(self._join(left.diag(X), right.diag(X)))

    @property
    def mixes_centre(self) -> bool:
        return any(kernel.mixes_centre for kernel in self._check())

    def _check(self) -> tuple[Kernel, Kernel]:
        return check_kernel("left", self.left), check_kernel("right", self.right)


class Sum(Pair):
    """Sum k₁(x, z) + k₂(x, z), written ``left + right``.

    The function is the sum of two independent ones, each with its own prior. The operator gives an `HIK` for two of
    them, which is faster; this class is always dense.

    Parameters
    ----------
    left, right : Kernel
        k₁ and k₂.

    Examples
    --------
    >>> import numpy as np
    >>> from saccade.kernels.dot import Linear
    >>> (Linear() + 2.0 * Linear())(np.array([[1.0], [3.0]]))
    array([[ 3.,  9.],
           [ 9., 27.]])
    """

    _join = np.add

    def gradient(self, X: Matrix, A: Array, weight: Array | None = None) -> dict[str, Array]:
        left, right = self._check()
        return prefixed("left", left.gradient(X, A, weight)) | prefixed("right", right.gradient(X, A, weight))

    def centred_gradient(self, X: Matrix, A: Array, weight: Array | None = None) -> dict[str, Array]:
        left, right = (kernel.centred_gradient(X, A, weight) for kernel in self._check())
        return prefixed("left", left) | prefixed("right", right)

    def centred_part(self) -> Kernel | None:
        left, right = (kernel.centred_part() for kernel in self._check())
        if left is self.left and right is self.right:
            return self
        return Sum(left, right) if left is not None and right is not None else left or right

    def squared_distances(self, X: Matrix, Z: Matrix | None = None) -> tuple[Array, float]:
        (left, off), (right, also) = (kernel.squared_distances(X, Z) for kernel in self._check())
        return left + right, off + also


class Product(Pair):
    """Product k₁(x, z) · k₂(x, z), written ``left * right``: examples are similar where both kernels say so.

    Parameters
    ----------
    left, right : Kernel
        k₁ and k₂.

    Examples
    --------
    >>> import numpy as np
    >>> from saccade.kernels.dot import Linear
    >>> (Linear() * Linear())(np.array([[1.0], [3.0]]))
    array([[ 1.,  9.],
           [ 9., 81.]])
    """

    _join = np.multiply

    def gradient(self, X: Matrix, A: Array, weight: Array | None = None) -> dict[str, Array]:
        # The derivatives of each kernel, weighted by the values of the other.
        left, right = self._check()
        of_left = left.gradient(X, A * right.resolved(X, weight)(X), weight)
        of_right = right.gradient(X, A * left.resolved(X, weight)(X), weight)
        return prefixed("left", of_left) | prefixed("right", of_right)

    @property
    def mixes_centre(self) -> bool:
        return any(kernel.mixes_centre or kernel.centred_part() is not None for kernel in self._check())


class Scaled(Kernel):
    """Multiple factor · κ(x, z), written ``factor * base``: the prior variance is multiplied.

    Parameters
    ----------
    base : Kernel
        κ.
    factor : float
        Positive; the standard deviation of the function grows with its square root.

    Examples
    --------
    >>> import numpy as np
    >>> from saccade.kernels.dot import Linear
    >>> (3.0 * Linear())(np.array([[2.0]]))
    array([[12.]])
    """

    def __init__(self, base: Kernel, factor: float = 1.0) -> None:
        self.base = base
        self.factor = factor

    def resolved(self, X: Rows, weight: PerRow | None = None) -> Kernel:
        base, factor = self._check()
        return Scaled(base.resolved(X, weight), factor=factor)

    def __call__(self, X: Rows, Z: Annotated[Matrix, "m, d"] | None = None) -> Array:
        base, factor = self._check()
        with np.errstate(over="ignore"):
            return check_range(factor * base(X, Z))

    def diag(self, X: Rows) -> Array:
        base, factor = self._check()
        with np.errstate(over="ignore"):
            return check_range(factor * base.diag(X))

    def gradient(self, X: Matrix, A: Array, weight: Array | None = None) -> dict[str, Array]:
        # Those of the base, multiplied, and Σ A∘K for the factor.
        base, factor = self._check()
        total = np.einsum("ij,ij->", A, self.resolved(X, weight)(X))
        return {"factor": np.asarray(total)} | prefixed("base", base.gradient(X, factor * A, weight))

    def squared_distances(self, X: Matrix, Z: Matrix | None = None) -> tuple[Array, float]:
        base, factor = self._check()
        distance, off = base.squared_distances(X, Z)
        return factor * distance, factor * off

    def centred_gradient(self, X: Matrix, A: Array, weight: Array | None = None) -> dict[str, Array]:
        # That of the base, multiplied, and Σ A∘K of the centred part for the factor.
        base, factor = self._check()
        part = self.resolved(X, weight).centred_part()
        found = prefixed("base", base.centred_gradient(X, factor * A, weight))
        return found if part is None else {"factor": np.einsum("ij,ij->", A, part(X))} | found

    def centred_part(self) -> Kernel | None:
        base, factor = self._check()
        part = base.centred_part()
        return self if part is base else None if part is None else Scaled(part, factor)

    @property
    def mixes_centre(self) -> bool:
        return self._check()[0].mixes_centre

    def _check(self) -> tuple[Kernel, float]:
        remedy = "A kernel times a number of zero or less is no kernel; leave it out instead."
        return check_kernel("base", self.base), check_positive("factor", self.factor, remedy)
