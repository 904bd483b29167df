"""The intersection kernels that tuning may choose from: they differ in their levels, and share the codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from saccade._core.arrays import Array, PerRow
from saccade._core.chunks import in_chunks
from saccade._core.errors import InvalidInput
from saccade.kernels.base import shares
from saccade.kernels.chain import Chain
from saccade.kernels.gram import Gram, TabledGram
from saccade.kernels.intersection import HIK
from saccade.kernels.slope import KernelSlope
from saccade.kernels.space import Coordinates
from saccade.operators.codes import level_dims

if TYPE_CHECKING:
    from saccade.kernels.intersection_gram import IntersectionGram

SCALES = (1e-3, 1e3)  # of the mean self-similarity


class _At(NamedTuple):
    """What belongs to one place in the space."""

    theta: Annotated[Array, "p"]
    chain: Chain
    scale: float
    mean: float  # mean self-similarity of the transformed rows, before the scale
    levels: Annotated[Array, "L"]


class IntersectionSpace:
    """The coordinates of the transforms of an HIK, and the logarithm of its scale where that is "auto"."""

    def __init__(
        self, kernel: Annotated[HIK, "not settled yet"], gram: IntersectionGram, weight: PerRow | None = None
    ) -> None:
        self._gram, self._free = gram, isinstance(kernel.scale, str) and kernel.scale == "auto"
        self._values = gram.codes.values
        self._last: _At | None = None
        self._shares = share = gram.level_sums(shares(gram.shape[0], weight))
        resolved = kernel.scaled(lambda steps: float(share @ HIK(steps, scale=1.0).levels(gram.codes)))
        self._scale = (1.0 if kernel.factor is None else float(kernel.factor)) if self._free else resolved.check_scale()
        chain = resolved.chain()
        self._dims = level_dims(gram.codes.level_starts) % gram.width if chain.by_dimension else np.zeros(0, np.int64)
        values, dims, some = self._values, self._dims, self._shares > 0
        if not some.all():  # levels that no row has
            values, dims = values[some], dims[some] if dims.size else dims
        self._chain = chain.resolved(values, dims, gram.width)
        names, table = self._chain.names(), self._chain.coordinates(values, dims)
        self._own = slice(len(names))  # the coordinates of the transforms
        if self._free:
            names, table = [*names, "scale"], np.vstack([table, [0.0, *np.log(SCALES), 1.0]])
        self.coordinates = Coordinates(names, table)

    def _at(self, theta: Array) -> _At:
        """Made once for all that is asked of one place after the other."""
        if self._last is None or not np.array_equal(self._last.theta, theta):
            self._last = None  # its levels may go
            self._last = self._made(theta)
        return self._last

    def _made(self, theta: Array) -> _At:
        """Where the scale is "auto", it is e^θ over the mean self-similarity."""
        chain = self._chain.moved(theta[self._own])
        y = chain(self._values, self._dims)
        mean, scale = float(self._shares @ y), self._scale
        if self._free:
            if not 1e-300 < mean < 1e300:
                needed = "There must be features above zero, and about 1."
                raise InvalidInput(f"The mean self-similarity of the data is {mean:.3g}. {needed}")
            scale = float(self._scale * np.exp(theta[-1]) / mean)
        levels = np.empty_like(y) if np.may_share_memory(y, self._values) else y

        def weigh(some: slice) -> None:
            with np.errstate(over="ignore"):  # the matrix complains
                np.multiply(y[some], scale, out=levels[some])

        in_chunks(weigh, y.size)
        return _At(theta.copy(), chain, scale, mean, levels)

    def kernel(self, theta: Array) -> HIK:
        at = self._at(theta)
        return HIK(at.chain.short, scale=at.scale)

    def gram(self, theta: Array) -> IntersectionGram:
        return self._gram.with_levels(self.kernel(theta), self._at(theta).levels)

    def parameters(self, theta: Array) -> dict[str, Any]:
        at = self._at(theta)
        return {"scale": at.scale} | at.chain.parameters()

    def pull(self, theta: Array, K: Gram, slope: KernelSlope) -> Array:
        assert isinstance(K, TabledGram)
        at, up = self._at(theta), K.level_gradient(slope)
        along = float(up @ at.levels)
        share = along / at.mean if self._free else 0.0  # the scale follows the transforms

        def follow(some: slice) -> None:
            up[some] *= at.scale
            up[some] -= share * self._shares[some]

        in_chunks(follow, up.size)
        by_theta = at.chain.by_coordinates(self._values, self._dims, up)
        return np.append(by_theta, along) if self._free else by_theta

    def penalty(self, theta: Array) -> tuple[float, Array]:
        value, own = self._chain.penalty(theta[self._own])
        return value, np.append(own, np.zeros(theta.size - own.size))
