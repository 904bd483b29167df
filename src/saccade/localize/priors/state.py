"""The fields of densities and of priors over boxes in a state."""

from typing import Any, ClassVar, Self

import numpy as np

from saccade._core import codec, limits
from saccade._core.arrays import Array
from saccade._core.codec import OneOf, Record
from saccade._core.fields import Many, Numbers, flag, number, text
from saccade.localize.boxes import check_bounds
from saccade.localize.priors.box_prior import BoxPrior
from saccade.localize.priors.densities import Blend, Block, Cells, Density, Held, Normals, PlaceAndRest


class AsDict:
    """An object that goes through plain values and back, by the record of its class."""

    record: ClassVar[Record]

    def to_dict(self) -> dict[str, Any]:
        """The object as plain values for JSON.

        Returns
        -------
        dict
            What `from_dict` takes.
        """
        return codec.to_json(self.record, self)

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """The object that `to_dict` was called on.

        Parameters
        ----------
        state : dict
            What `to_dict` returned.

        Returns
        -------
        object
            Of this class; ModelFileError says what is missing, damaged or of another version.
        """
        found: Self = codec.from_json(cls.record, state)
        return found


def _shares(values: Array) -> Array:
    if abs(values.sum() - 1.0) > 1e-6:
        raise ValueError(f"the shares of a density must sum to 1, got {values.sum():g}")
    return values


def _normals(weights: Array, means: Array, covariances: Array) -> Normals:
    if not np.allclose(covariances, covariances.transpose(0, 2, 1), rtol=1e-9, atol=1e-9 * np.ptp(covariances)):
        raise ValueError("a covariance is not symmetric")
    np.linalg.cholesky(covariances)
    return Normals(_shares(weights), means, covariances)


def _block(low: Array, high: Array) -> Block:
    if not (high > low).all():
        raise ValueError("the ranges of a block must end after they begin")
    return Block(low, high)


def _blend(shares: Array, parts: list[Density]) -> Blend:
    if len({width(part) for part in parts}) != 1 or len(parts) != shares.size:
        raise ValueError("the parts of a blend must have equally many coordinates, and a share each")
    return Blend(_shares(shares), tuple(parts))


def _prior(bounds: Array, density: Density, used: list[str], fell_back: bool, tail: float) -> BoxPrior:
    if width(density) != 4:
        raise ValueError(f"the density of a box must have 4 coordinates, got {width(density)}")
    return BoxPrior(check_bounds(bounds), density, tuple(used), fell_back, tail)


def width(density: Density) -> int:
    """The number of its coordinates."""
    if isinstance(density, Held):
        return width(density.free) + density.known.size
    if isinstance(density, PlaceAndRest):
        return width(density.place) + width(density.rest) if width(density.place) == 2 else 0
    if isinstance(density, Blend):
        return width(density.parts[0])
    return (
        density.low.size
        if isinstance(density, Block)
        else density.means.shape[1]
        if isinstance(density, Normals)
        else 2
    )


def _alone(state: dict[str, Any]) -> dict[str, Any]:
    """Older states have a part as a list of one."""
    return {
        name: part[0] if name in ("free", "place", "rest") and isinstance(part, list) else part
        for name, part in state.items()
    }


DENSITIES: dict[str, Record] = {}
DENSITY = OneOf(DENSITIES)
_share = Numbers("k", least=0.0)
DENSITIES |= {
    "Normals": Record(_normals, {"weights": _share, "means": Numbers("k", "d"), "covariances": Numbers("k", "d", "d")}),
    "Block": Record(_block, {"low": Numbers("d"), "high": Numbers("d")}),
    "Blend": Record(_blend, {"shares": _share, "parts": Many(DENSITY)}),
    "Held": Record(Held, {"free": DENSITY, "known": Numbers("h")}, upgrade=_alone),
    "PlaceAndRest": Record(PlaceAndRest, {"place": DENSITY, "rest": DENSITY}, upgrade=_alone),
    "Cells": Record(
        lambda chances: Cells(_shares(chances)),
        {"chances": Numbers("rows", "columns", least=0.0, count=limits.MAP_CELLS)},
    ),
}
BOX_PRIOR = Record(
    _prior,
    {"bounds": Numbers(4), "density": DENSITY, "used": Many(text()), "fell_back": flag(), "tail": number(0.0, 1.0)},
)
