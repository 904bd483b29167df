"""What can be learned of a kernel, as one vector of coordinates with bounds, and how derivatives come back to it.

A `Space` turns coordinates into an operator and, for the derivative of something with respect to the kernel matrix,

    d something = Σ_m left_mᵀ dK right_m − Σ_k square_kᵀ dK square_k    or    Σ_ij A_ij dK_ij,

into the derivative with respect to the coordinates.
"""

from __future__ import annotations

from functools import reduce
from inspect import signature
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import clone

from saccade._core.arrays import Array
from saccade._core.checks import is_number
from saccade._core.errors import InvalidInput
from saccade.kernels import HIK, Kernel
from saccade.kernels.dense_gram import DenseGram
from saccade.kernels.gram import Gram, TabledGram
from saccade.kernels.intersection_gram import IntersectionGram
from saccade.kernels.transforms import Transform
from saccade.operators.codes import Codes, level_dims
from saccade.operators.intersection import Intersection, intersection

SCALES = (1e-3, 1e3)  # of the mean self-similarity
RANGE = 1e3  # a dense kernel's parameter may go so many times up and down
NUDGE = 1e-4  # of a coordinate, for the differences of dense kernels


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
        self._fixed_scale = 1.0 if self._free else kernel.check_scale()
        self._chain: list[Transform] = []
        names, tables, y = [], [], self._values
        for transform in kernel.transforms():
            settled = transform.settled(y, self._dims, width)
            self._chain.append(settled)
            table = settled.coordinates(y)
            names += [type(settled).__name__.lower()] * len(table)
            tables.append(table)
            y = settled(y, self._dims)
        self._ends = np.cumsum([len(table) for table in tables], dtype=np.int64)
        if self._free:
            names.append("scale")
            tables.append(np.array([[0.0, *np.log(SCALES), 1.0]]))
        self.coordinates = Coordinates(names, np.concatenate([np.zeros((0, 4)), *tables]))

    def _own(self, theta: Array) -> list[Array]:
        """The coordinates of each transform."""
        return np.split(theta, self._ends)[: len(self._chain)]

    def _moved(self, theta: Array) -> list[Transform]:
        start = self._own(self.coordinates.table[:, 0])
        moves = zip(self._chain, start, self._own(theta), strict=True)
        return [t if np.array_equal(before, own) else t.moved(own) for t, before, own in moves]  # also beyond bounds

    def kernel(self, theta: Array) -> HIK:
        chain = self._moved(theta)
        y = self._values
        for transform in chain:
            y = transform(y, self._dims)
        scale = float(np.exp(theta[-1]) / self._mean(y)) if self._free else self._fixed_scale
        return HIK(chain[0] if len(chain) == 1 else chain or None, scale=scale)

    def _mean(self, y: Array) -> float:
        """The mean self-similarity of the examples when y are the levels."""
        mean = float(self._shares @ y)
        if not 1e-300 < mean < 1e300:
            raise InvalidInput(
                f"The mean self-similarity of the data is {mean:.3g}. There must be features above zero, and about 1."
            )
        return mean

    def operator(self, kernel: Kernel) -> Gram:
        assert isinstance(kernel, HIK)
        return IntersectionGram(kernel, self._codes, np.zeros(0), (None, "quantile"), None, 0)

    def pull(self, theta: Array, K: Gram, slope: Slope) -> Array:
        assert isinstance(K, TabledGram)
        up = slope.kernel.levels(K.operator)
        y, before = self._values, []
        chain = self._moved(theta)
        for transform in chain:
            before.append(y)
            y = transform(y, self._dims)
        parts = []
        if self._free:  # ℓ = e^θ y / mean(y): the scale follows the transforms
            mean, factor = self._mean(y), float(np.exp(theta[-1]))
            along = float(up @ y) * factor / mean
            parts.append(np.array([along]))
            up = up * (factor / mean) - self._shares * (along / mean)
        else:
            up = up * self._fixed_scale
        for transform, x in zip(chain[::-1], before[::-1], strict=True):
            part, up = transform.pull(x, self._dims, up)
            parts.append(part)
        return np.concatenate([np.zeros(0), *parts[::-1]])

    def penalty(self, theta: Array) -> tuple[float, Array]:
        found = [transform.penalty(own) for transform, own in zip(self._chain, self._own(theta), strict=True)]
        slope = np.zeros_like(theta)
        slope[: sum(part.size for _, part in found)] = np.concatenate([np.zeros(0), *[part for _, part in found]])
        return sum(value for value, _ in found), slope


class DenseSpace:
    """The positive numbers among the parameters of any other kernel, counts excepted, by their logarithms.

    dK is a difference of two matrices: dense algebra on the rest costs far more.
    """

    def __init__(self, kernel: Kernel, X: Any, weight: Array | None = None) -> None:
        self._kernel, self._X, self._weight = kernel, X, weight
        found = {k: np.asarray(v, float) for k, v in kernel.get_params().items() if _learned(kernel, k, v)}
        self._shapes = {name: value.shape for name, value in found.items()}
        start = np.concatenate([np.zeros(0), *[np.log(v).ravel() for v in found.values()]])
        far = np.log(RANGE)
        names = [name for name, value in found.items() for _ in range(value.size)]
        self.coordinates = Coordinates(names, np.column_stack([start, start - far, start + far, np.ones_like(start)]))

    def kernel(self, theta: Array) -> Kernel:
        kernel, at = clone(self._kernel), 0
        for name, shape in self._shapes.items():
            size = int(np.prod(shape))
            value = np.exp(theta[at : at + size]).reshape(shape)
            kernel.set_params(**{name: value if shape else float(value)})
            at += size
        fitted: Kernel = kernel.settled(self._X, self._weight)
        return fitted

    def operator(self, kernel: Kernel) -> Gram:
        return DenseGram(kernel, self._X)

    def pull(self, theta: Array, K: Gram, slope: Slope) -> Array:
        A = slope.kernel.dense()
        out = np.empty(theta.size)
        for k in range(theta.size):
            nudge = np.zeros(theta.size)
            nudge[k] = NUDGE
            change = self.kernel(theta + nudge)(self._X) - self.kernel(theta - nudge)(self._X)
            out[k] = np.einsum("ij,ij->", A, change) / (2.0 * NUDGE)
        return out

    def penalty(self, theta: Array) -> tuple[float, Array]:
        return 0.0, np.zeros_like(theta)


def _learned(kernel: Kernel, name: str, value: object) -> bool:
    """Whether a parameter is one or more positive numbers that may be any fraction.

    A whole number is one too, RBF(2) as well as RBF(2.0), unless the parameter counts: its default is a whole number
    (`pieces`) or None (`blocks`).
    """
    if not is_number(value) and not isinstance(value, list | tuple | np.ndarray):
        return False
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "iuf" or not numbers.size or not (numbers > 0).all():
        return False
    if numbers.dtype.kind == "f":
        return True
    *path, last = name.split("__")
    default = signature(type(reduce(getattr, path, kernel))).parameters[last].default
    return isinstance(default, float | str)
