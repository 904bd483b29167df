"""The kernels that tuning may choose from, by one vector θ of coordinates with bounds: `gram.space(kernel)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .._core.arrays import Array
from .._core.checks import is_number
from .learned import differences, learned, with_values

if TYPE_CHECKING:
    from .base import Kernel
    from .gram import Gram
    from .slope import KernelSlope

RANGE = 1e3  # a dense kernel's parameter may grow or shrink by this factor


class Coordinates(NamedTuple):
    """Named coordinates; several may share a name."""

    names: list[str]
    table: Array  # (p, 4): start, lower and upper bound, typical step


class Space(Protocol):
    """Kernels on the rows of one Gram, by their coordinates."""

    coordinates: Coordinates

    def kernel(self, theta: Array) -> Kernel:
        """The kernel at these coordinates, settled."""

    def gram(self, theta: Array) -> Gram:
        """Its matrix."""

    def parameters(self, theta: Array) -> dict[str, Any]:
        """What a record of the search keeps of the kernel."""

    def pull(self, theta: Array, K: Gram, slope: KernelSlope) -> Array:  # (p,)
        """The derivative with respect to the coordinates, from that with respect to K = `gram(theta)`."""

    def penalty(self, theta: Array) -> tuple[float, Array]:  # and (p,)
        """−log p of the coordinates under a prior of strength 1, and its derivative."""


class DenseSpace:
    """The logarithms of all parameters that `saccade.kernels.learned` lists."""

    def __init__(
        self,
        kernel: Kernel,  # not settled yet
        gram: Gram,
        weight: Array | None = None,  # (n,)
    ) -> None:
        self._kernel, self._gram, self._weight = kernel, gram, weight
        found = learned(kernel)
        self._shapes = {name: value.shape for name, value in found.items()}
        start = np.concatenate([np.zeros(0), *[np.log(v).ravel() for v in found.values()]])
        far = np.log(RANGE)
        names = [name for name, value in found.items() for _ in range(value.size)]
        self.coordinates = Coordinates(names, np.column_stack([start, start - far, start + far, np.ones_like(start)]))

    def kernel(self, theta: Array) -> Kernel:
        return self._at(theta).settled(self._gram.rows(), self._weight)

    def gram(self, theta: Array) -> Gram:
        return self._gram.with_kernel(self._at(theta), self._weight)

    def _at(self, theta: Array) -> Kernel:
        """The kernel before it is settled on the rows."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes.values()])
        parts = zip(self._shapes.items(), np.split(np.exp(theta), ends)[: len(ends)], strict=True)
        return with_values(self._kernel, {name: value.reshape(shape) for (name, shape), value in parts})

    def parameters(self, theta: Array) -> dict[str, Any]:
        found = self.kernel(theta).get_params()
        return {name: value for name, value in found.items() if is_number(value) or isinstance(value, np.ndarray)}

    def pull(self, theta: Array, K: Gram, slope: KernelSlope) -> Array:
        kernel, X, A = self._at(theta), self._gram.rows(), slope.matrix()
        A = 0.5 * (A + A.T)
        found = kernel.gradient(X, A, self._weight)
        missing = [name for name in self._shapes if name not in found]  # a user's gradient may leave some out
        found |= differences(kernel, X, A, self._weight, missing)
        return np.concatenate([np.zeros(0), *[np.ravel(found[name]) for name in self._shapes]])

    def penalty(self, theta: Array) -> tuple[float, Array]:
        return 0.0, np.zeros_like(theta)
