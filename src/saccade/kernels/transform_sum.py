"""The transform behind a sum of intersection kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saccade.kernels.base import Array
from saccade.kernels.chain import Chain
from saccade.kernels.intersection import HIK
from saccade.kernels.learned import prefixed
from saccade.kernels.level_gradient import level_gradient
from saccade.kernels.transforms import Transform

FAR = np.log(1e3)  # how far learning may move the scale of a part


class TransformSum(Transform):
    """Sum g(x) = Σ_p s_p g_p(x), what ``HIK(g_1, scale=s_1) + HIK(g_2, scale=s_2)`` is the HIK of.

    All g_p rise, so min(Σ_p g_p(a), Σ_p g_p(b)) = Σ_p min(g_p(a), g_p(b)): one intersection kernel is the sum of
    several, exactly, and costs what one costs.

    A part with scale "auto" is divided by its own mean self-similarity on the training data, as if it were alone.
    `tune` learns the transforms of all parts, and their scales from there; ``Tune(fixed=...)`` says "part_scale".

    Parameters
    ----------
    parts : list of HIK
        The kernels that are added. Part k is ``part{k}`` in `get_params` and `set_params`.

    Examples
    --------
    >>> from saccade.kernels import Power
    >>> TransformSum([HIK(scale=1.0), HIK(Power(2.0), scale=0.5)])(np.array([0.0, 1.0, 2.0]), np.zeros(3, np.int64))
    array([0. , 1.5, 4. ])
    """

    learned = "parts"

    def __init__(self, parts: Sequence[HIK]) -> None:
        self.parts = parts

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        found: dict[str, Any] = {"parts": self.parts}
        for k, part in enumerate(self.parts if deep else []):
            found |= {f"part{k}": part} | prefixed(f"part{k}", part.get_params())
        return found

    @property
    def width(self) -> int:
        return max(part.chain().width for part in self.parts)

    def check_width(self, width: int) -> None:
        for part in self.parts:
            part.check_width(width)

    def __call__(self, x: Array, dims: Array) -> Array:
        with np.errstate(over="ignore"):  # `HIK.features` complains
            return np.asarray(sum(part.apply(x, dims) for part in self.parts))

    def scaled(self, mean: Callable[[list[Transform]], float]) -> TransformSum:
        return TransformSum([part.scaled(mean) for part in self.parts])

    def resolved(self, x: Array, dims: Array, width: int) -> TransformSum:
        chains = [part.chain().resolved(x, dims, width) for part in self.parts]
        return self._of(chains, [part.check_scale() for part in self.parts])

    def coordinates(self, x: Array, dims: Array) -> Array:
        # Those of the transforms of each part, then its log scale.
        tables = []
        for part in self.parts:
            start = np.log(part.check_scale())
            tables += [part.chain().coordinates(x, dims), np.array([[start, start - FAR, start + FAR, 1.0]])]
        return np.concatenate(tables)

    def names(self) -> list[str]:
        return [name for part in self.parts for name in [*part.chain().names(), "part_scale"]]

    def moved(self, theta: Array) -> TransformSum:
        chains = [part.chain().moved(own[:-1]) for part, own in self._split(theta)]
        return self._of(chains, [float(np.exp(own[-1])) for _, own in self._split(theta)])

    def pull(self, x: Array, dims: Array, upstream: Array) -> tuple[Array, Array]:
        by_theta, by_x = list[Array](), np.zeros_like(upstream)
        for part in self.parts:
            chain, up = part.chain(), part.check_scale() * upstream
            found, more = chain.pull(x, dims, up)
            by_theta.append(np.append(found, up @ chain(x, dims)))
            by_x += more
        return np.concatenate(by_theta), by_x

    def gradient(self, x: Array, dims: Array, upstream: Array, share: Array) -> tuple[dict[str, Array], Array]:
        # As `pull`, by the names of the parameters; a scale that is "auto" follows the transforms of its part.
        found, by_x = dict[str, Array](), np.zeros_like(upstream)
        for k, part in enumerate(self.parts):
            own, more = level_gradient(part, x, dims, upstream, share)
            found |= prefixed(f"part{k}", own)
            by_x += more
        return found, by_x

    def penalty(self, theta: Array) -> tuple[float, Array]:
        # That of the parts; their scales have no prior.
        found = [part.chain().penalty(own[:-1]) for part, own in self._split(theta)]
        return sum(value for value, _ in found), np.concatenate([np.append(slope, 0.0) for _, slope in found])

    def _split(self, theta: Array) -> list[tuple[HIK, Array]]:
        """Each part with its coordinates."""
        ends = np.cumsum([len(part.chain().names()) + 1 for part in self.parts])
        return list(zip(self.parts, np.split(theta, ends[:-1]), strict=True))

    @staticmethod
    def _of(chains: list[Chain], scales: list[float]) -> TransformSum:
        return TransformSum([HIK(chain.short, scale=s) for chain, s in zip(chains, scales, strict=True)])


def sum_of(*kernels: HIK) -> HIK:
    """The HIK of the sum of their transforms."""
    return HIK(TransformSum([part for kernel in kernels for part in parts_of(kernel)]), scale=1.0)


def parts_of(kernel: HIK) -> list[Any]:
    """The kernels that this one is the sum of."""
    if not isinstance(kernel.transform, TransformSum) or isinstance(kernel.scale, str):
        return [kernel]
    times = kernel.scale * (1.0 if kernel.factor is None else kernel.factor)
    return [part if times == 1.0 else times * part for part in kernel.transform.parts]
