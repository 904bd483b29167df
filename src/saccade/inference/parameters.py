"""What can be learned of a kernel, as one vector of coordinates with bounds, and how derivatives come back to it.

A `Space` turns coordinates into an operator and, for the derivative of something with respect to the kernel matrix,

    d something = Σ_m left_mᵀ dK right_m − Σ_k square_kᵀ dK square_k    or    Σ_ij A_ij dK_ij,

into the derivative with respect to the coordinates.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.kernels import HIK, Kernel
from saccade.kernels.dense_gram import DenseGram
from saccade.kernels.gram import Gram, TabledGram
from saccade.kernels.intersection_gram import IntersectionGram
from saccade.kernels.learned import differences, learned, with_values
from saccade.operators.codes import Codes, level_dims
from saccade.operators.intersection import Intersection, intersection

SCALES = (1e-3, 1e3)  # of the mean self-similarity
RANGE = 1e3  # a dense kernel's parameter may go so many times up and down


class Matrix(NamedTuple):
    """A derivative with respect to K, written out."""

    A: Array  # (n, n) symmetric

    def levels(self, K: Intersection) -> Array:
        """The derivative with respect to the levels of K."""
        return K.matrix_gradient(self.A)

    def dense(self) -> Array:
        return self.A


class Vectors(NamedTuple):
    """A derivative with respect to K in few vectors."""

    left: Array  # (n, p)
    right: Array  # (n, p)
    squares: Array  # (n, q)

    def levels(self, K: Intersection) -> Array:
        """The derivative with respect to the levels of K."""
        return np.asarray(K.level_gradient(self.left, self.right) - K.level_gradient(self.squares))

    def dense(self) -> Array:
        return np.asarray(self.left @ self.right.T - self.squares @ self.squares.T)

    def diag(self) -> Array:  # (n,)
        """What it says of the diagonal of K, as noise has it."""
        own = np.einsum("ij,ij->i", self.left, self.right) - np.einsum("ij,ij->i", self.squares, self.squares)
        return np.asarray(own)


class Slope(NamedTuple):
    """A derivative with respect to the kernel matrix, and to the noise."""

    kernel: Matrix | Vectors
    noise: Array  # (n, 1) or (n, m)


class Coordinates(NamedTuple):
    """Named coordinates; several may share a name."""

    names: list[str]
    table: Array  # (p, 4): start, lower and upper bound, typical step


class Space(Protocol):
    """The kernels that tuning may choose from."""

    coordinates: Coordinates

    def kernel(self, theta: Array) -> Kernel:
        """The kernel at these coordinates."""

    def operator(self, kernel: Kernel) -> Gram:
        """Its matrix on the training examples."""

    def pull(self, theta: Array, K: Gram, slope: Slope) -> Array:  # (p,)
        """The derivative with respect to the coordinates."""

    def penalty(self, theta: Array) -> tuple[float, Array]:  # and (p,)
        """What a prior of strength 1 has against these coordinates, and its derivative."""


class HIKSpace:
    """Transforms and scale of an intersection kernel on coded data: the data is never touched again."""

    def __init__(self, kernel: HIK, codes: Codes, width: int, weight: Array | None = None) -> None:
        self._codes, self._free = codes, isinstance(kernel.scale, str) and kernel.scale == "auto"
        self._weight = np.full(codes.shape[0], 1.0 / codes.shape[0]) if weight is None else weight / weight.sum()
        plain = intersection(codes, HIK(scale=1.0).levels)
        self._values, self._shares = plain.levels, plain.level_sums(self._weight)
        self._dims = level_dims(plain.starts) % width
        settled = kernel.settled_on_codes(codes, weight)
        self._chain = settled.chain().settled(self._values, self._dims, width)
        self._scale = (1.0 if kernel.factor is None else float(kernel.factor)) if self._free else settled.check_scale()
        names, table = self._chain.names(), self._chain.coordinates(self._values, self._dims)
        self._own = slice(len(names))  # the coordinates of the transforms
        if self._free:
            names, table = [*names, "scale"], np.vstack([table, [0.0, *np.log(SCALES), 1.0]])
        self.coordinates = Coordinates(names, table)

    def kernel(self, theta: Array) -> HIK:
        chain = self._chain.moved(theta[self._own])
        return HIK(chain.short, scale=self._factor(theta, chain(self._values, self._dims)))

    def _factor(self, theta: Array, y: Array) -> float:
        """The scale of the kernel; where it is "auto", e^θ over the mean self-similarity of levels y."""
        if not self._free:
            return self._scale
        mean = float(self._shares @ y)
        if not 1e-300 < mean < 1e300:
            raise InvalidInput(
                f"The mean self-similarity of the data is {mean:.3g}. There must be features above zero, and about 1."
            )
        return float(self._scale * np.exp(theta[-1]) / mean)

    def operator(self, kernel: Kernel) -> Gram:
        assert isinstance(kernel, HIK)
        return IntersectionGram(kernel, self._codes, np.zeros(0), (None, "quantile"), None, 0)

    def pull(self, theta: Array, K: Gram, slope: Slope) -> Array:
        assert isinstance(K, TabledGram)
        chain, up = self._chain.moved(theta[self._own]), slope.kernel.levels(K.operator)
        y = chain(self._values, self._dims)
        scale = self._factor(theta, y)
        along = scale * float(up @ y)
        up = scale * up
        if self._free:  # the scale follows the transforms
            up -= self._shares * (along / float(self._shares @ y))
        by_theta, _ = chain.pull(self._values, self._dims, up)
        return np.append(by_theta, along) if self._free else by_theta

    def penalty(self, theta: Array) -> tuple[float, Array]:
        value, own = self._chain.penalty(theta[self._own])
        return value, np.append(own, np.zeros(theta.size - own.size))


class DenseSpace:
    """What `saccade.kernels.learned` lists of any other kernel, by its logarithms."""

    def __init__(self, kernel: Kernel, X: Any, weight: Array | None = None) -> None:
        self._kernel, self._X, self._weight = kernel, X, weight
        found = learned(kernel)
        self._shapes = {name: value.shape for name, value in found.items()}
        start = np.concatenate([np.zeros(0), *[np.log(v).ravel() for v in found.values()]])
        far = np.log(RANGE)
        names = [name for name, value in found.items() for _ in range(value.size)]
        self.coordinates = Coordinates(names, np.column_stack([start, start - far, start + far, np.ones_like(start)]))

    def kernel(self, theta: Array) -> Kernel:
        return self._at(theta).settled(self._X, self._weight)

    def _at(self, theta: Array) -> Kernel:
        """The kernel before it is settled on the data."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes.values()])
        parts = zip(self._shapes.items(), np.split(np.exp(theta), ends)[: len(ends)], strict=True)
        return with_values(self._kernel, {name: value.reshape(shape) for (name, shape), value in parts})

    def operator(self, kernel: Kernel) -> Gram:
        return DenseGram(kernel, self._X)

    def pull(self, theta: Array, K: Gram, slope: Slope) -> Array:
        kernel, A = self._at(theta), slope.kernel.dense()
        A = 0.5 * (A + A.T)
        found = kernel.gradient(self._X, A, self._weight)
        missing = [name for name in self._shapes if name not in found]  # of a class with a gradient that it inherited
        found |= differences(kernel, self._X, A, self._weight, missing)
        return np.concatenate([np.zeros(0), *[np.ravel(found[name]) for name in self._shapes]])

    def penalty(self, theta: Array) -> tuple[float, Array]:
        return 0.0, np.zeros_like(theta)
