"""The intersection kernels that tuning may choose from: they differ in their levels, and share the codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import Array
from .._core.errors import InvalidInput
from ..operators.codes import level_dims
from .gram import Gram, TabledGram
from .intersection import HIK
from .slope import KernelSlope
from .space import Coordinates

SCALES = (1e-3, 1e3)  # of the mean self-similarity


class IntersectionSpace:
    """The coordinates of the transforms of an HIK, and the logarithm of its scale where that is "auto"."""

    def __init__(
        self,
        kernel: HIK,  # not settled yet
        gram: TabledGram,
        weight: Array | None = None,  # (n,)
    ) -> None:
        operator, n = gram.operator, gram.shape[0]
        self._gram, self._free = gram, isinstance(kernel.scale, str) and kernel.scale == "auto"
        self._values, self._dims = operator.codes.values, level_dims(operator.starts) % gram.width
        self._shares = operator.level_sums(np.full(n, 1.0 / n) if weight is None else weight / weight.sum())
        settled = gram.with_kernel(kernel, weight).kernel
        self._scale = (1.0 if kernel.factor is None else float(kernel.factor)) if self._free else settled.check_scale()
        some = self._shares > 0  # levels that a row has
        values, dims = self._values[some], self._dims[some]
        self._chain = settled.chain().settled(values, dims, gram.width)
        names, table = self._chain.names(), self._chain.coordinates(values, dims)
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

    def gram(self, theta: Array) -> TabledGram:
        return self._gram.with_kernel(self.kernel(theta))

    def parameters(self, theta: Array) -> dict[str, Any]:
        kernel = self.kernel(theta)
        return {"scale": kernel.scale} | kernel.chain().parameters()

    def pull(self, theta: Array, K: Gram, slope: KernelSlope) -> Array:
        assert isinstance(K, TabledGram)
        chain, up = self._chain.moved(theta[self._own]), slope.levels(K.operator)
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
