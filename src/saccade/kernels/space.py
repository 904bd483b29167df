"""The kernels that tuning may choose from, by one vector θ of coordinates with bounds: `gram.space(kernel)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

import numpy as np

from saccade._core.arrays import Array, PerRow
from saccade._core.checks import is_number
from saccade.kernels.learned import differences, is_log, learned, owner_of, with_values
from saccade.kernels.slope import CentredSlope
from saccade.kernels.transforms import Transform

if TYPE_CHECKING:
    from saccade.kernels.base import Kernel
    from saccade.kernels.gram import Gram
    from saccade.kernels.slope import KernelSlope

RANGE = 1e3  # a dense kernel's parameter may grow or shrink by this factor


class Coordinates(NamedTuple):
    """Named coordinates; several may share a name."""

    names: list[str]
    table: Annotated[Array, "p, 4"]  # start, lower and upper bound, typical step
    plain: tuple[str, ...] = ("exponential",)  # those that are no logarithms


class Space(Protocol):
    """Kernels on the rows of one Gram, by their coordinates."""

    coordinates: Coordinates

    def kernel(self, theta: Array) -> Kernel:
        """The kernel at these coordinates, settled."""

    def gram(self, theta: Array) -> Gram:
        """Its matrix."""

    def parameters(self, theta: Array) -> dict[str, Any]:
        """What a record of the search keeps of the kernel."""

    def pull(self, theta: Array, K: Gram, slope: KernelSlope) -> Annotated[Array, "p"]:
        """The derivative with respect to the coordinates, from that with respect to K = `gram(theta)`."""

    def penalty(self, theta: Array) -> tuple[float, Array]:  # and (p,)
        """−log p of the coordinates under a prior of strength 1, and its derivative."""


class DenseSpace:
    """All parameters that `saccade.kernels.learned` lists, mostly by their logarithms."""

    def __init__(self, kernel: Annotated[Kernel, "not settled yet"], gram: Gram, weight: PerRow | None = None) -> None:
        self._kernel, self._gram, self._weight = kernel.opened(gram.all_rows()), gram, weight
        self._start, top = learned(self._kernel), np.full(1, abs(gram.all_rows()).max())
        plain = tuple(name for name in self._start if not is_log(self._kernel, name))
        tables = [
            owner_of(self._kernel, name).coordinates(top, np.zeros(1, np.int64)) if name in plain else _logs(value)
            for name, value in self._start.items()
        ]
        names = [name for name, value in self._start.items() for _ in range(value.size)]
        self.coordinates = Coordinates(names, np.concatenate([np.zeros((0, 4)), *tables]), plain)

    def kernel(self, theta: Array) -> Kernel:
        return self._at(theta).resolved(self._gram.all_rows(), self._weight)

    def gram(self, theta: Array) -> Gram:
        return self._gram.with_kernel(self._at(theta), self._weight)

    def _at(self, theta: Array) -> Kernel:
        """The kernel before it is settled on the rows."""
        moved = {name: own.reshape(self._start[name].shape) for name, own in self._split(theta).items()}
        for name in moved.keys() - self.coordinates.plain:
            moved[name] = np.exp(moved[name]) * (self._start[name] > 0)
        return with_values(self._kernel, moved)

    def _split(self, theta: Array) -> dict[str, Array]:
        """The coordinates of each parameter."""
        ends = np.cumsum([value.size for value in self._start.values()])
        return dict(zip(self._start, np.split(theta, ends)[: len(ends)], strict=True))

    def parameters(self, theta: Array) -> dict[str, Any]:
        found = self.kernel(theta).get_params()
        return {name: value for name, value in found.items() if is_number(value) or isinstance(value, np.ndarray)}

    def pull(self, theta: Array, K: Gram, slope: KernelSlope) -> Array:
        kernel, X, A = self._at(theta), self._gram.all_rows(), slope.matrix()
        A = 0.5 * (A + A.T)
        found = kernel.gradient(X, A, self._weight)
        missing = [name for name in self._start if name not in found]  # a user's gradient may leave some out
        found |= differences(kernel, X, A, self._weight, missing)
        if isinstance(slope, CentredSlope):
            more = kernel.centred_gradient(X, 0.5 * (slope.by_part + slope.by_part.T), self._weight)
            found |= {name: found[name] + value for name, value in more.items()}
        return np.concatenate([np.zeros(0), *[np.ravel(found[name]) for name in self._start]])

    def penalty(self, theta: Array) -> tuple[float, Array]:
        """That of the transforms; other parameters have no prior."""
        value, slopes = 0.0, [np.zeros(0)]
        for name, own in self._split(theta).items():
            owner = owner_of(self._kernel, name)
            more, slope = owner.penalty(own) if isinstance(owner, Transform) else (0.0, np.zeros_like(own))
            value += more
            slopes.append(slope)
        return value, np.concatenate(slopes)


def _logs(value: Array) -> Annotated[Array, "p, 4"]:
    """Rows of coordinates for logarithms; a 0 stays 0."""
    start, far = np.log(np.where(value > 0, value, 1.0)).ravel(), np.where(value > 0, np.log(RANGE), 0.0).ravel()
    return np.column_stack([start, start - far, start + far, np.ones_like(start)])
