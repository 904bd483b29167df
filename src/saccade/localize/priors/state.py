"""A prior over boxes as plain values for JSON, and back. Reading runs no code and checks every number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade.localize.boxes import check_bounds
from saccade.localize.priors.box_prior import BoxPrior
from saccade.localize.priors.densities import Blend, Block, Cells, Density, Held, Normals, PlaceAndRest

D = TypeVar("D", bound=Density)


def as_dict(prior: BoxPrior) -> dict[str, Any]:
    return {
        "bounds": prior.bounds.tolist(),
        "density": _density_as_dict(prior.density),
        "used": list(prior.used),
        "fell_back": prior.fell_back,
        "tail": prior.tail,
    }


def from_dict(state: Mapping[str, Any]) -> BoxPrior:
    """The prior, or a KeyError, TypeError or ValueError."""
    return BoxPrior(
        check_bounds(state["bounds"]),
        _density_from_dict(state["density"], 4),
        tuple(str(name) for name in state["used"]),
        bool(state["fell_back"]),
        float(state["tail"]),
    )


def _density_as_dict(density: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"kind": type(density).__name__}
    for name, value in vars(density).items():
        if isinstance(value, np.ndarray):
            values[name] = value.tolist()
        else:
            parts = value if isinstance(value, tuple) else (value,)
            values[name] = [_density_as_dict(part) for part in parts]
    return values


def _density_from_dict(state: Mapping[str, Any], d: int) -> Density:
    """The density with d coordinates."""
    kind = state["kind"]
    if kind == "Normals":
        return _normals(_array(state["weights"]), _array(state["means"]), _array(state["covariances"]), d)
    if kind == "Block":
        block = Block(_array(state["low"]), _array(state["high"]))
        return _checked(block, block.low.shape == block.high.shape == (d,) and bool((block.high > block.low).all()))
    if kind == "Blend":
        shares, parts = _array(state["shares"]), tuple(_density_from_dict(part, d) for part in state["parts"])
        return _checked(Blend(shares, parts), shares.shape == (len(parts),) and _is_shares(shares))
    if kind == "Held":
        known = _array(state["known"])
        return Held(_density_from_dict(state["free"][0], d - known.size), known)
    if kind == "PlaceAndRest":
        return PlaceAndRest(_density_from_dict(state["place"][0], 2), _density_from_dict(state["rest"][0], d - 2))
    if kind == "Cells":
        table = _array(state["chances"])
        return _checked(
            Cells(table), table.ndim == 2 and d == 2 and table.size <= limits.MAP_CELLS and _is_shares(table)
        )
    raise ValueError(f"a density of kind {kind!r}")


def _normals(weights: Array, means: Array, covariances: Array, d: int) -> Normals:
    k = weights.size
    fits = means.shape == (k, d) and covariances.shape == (k, d, d) and _is_shares(weights)
    found = Normals(weights, means, covariances)
    if fits:
        np.linalg.cholesky(covariances)
    return _checked(found, fits)


def _array(values: Any) -> Array:
    found = np.array(values, np.float64)
    if not np.isfinite(found).all():
        raise ValueError("a number is not finite")
    return found


def _is_shares(values: Array) -> bool:
    return bool((values >= 0).all() and abs(values.sum() - 1.0) < 1e-6)


def _checked(density: D, fits: bool) -> D:
    if not fits:
        raise ValueError(f"the numbers of a {type(density).__name__} do not fit each other")
    return density
