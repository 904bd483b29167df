"""The fields of a situation model in a file or a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saccade._core.codec import OneOf, Record
from saccade._core.fields import Many, Maybe, number, plain, text, whole
from saccade.localize.priors.densities import Density
from saccade.localize.priors.state import DENSITIES, width

if TYPE_CHECKING:
    from saccade.localize.situations.model import SituationModel

PARAMETERS = ("kind", "components", "doubt")


def _fields(model: SituationModel) -> dict[str, Any]:
    return {
        "parameters": model,
        "objects": model.objects_,
        "situations": model.n_situations_,
        "shrinkage": model.shrinkage_,
        "density": model.density_,
    }


def _made(
    parameters: dict[str, Any], objects: list[str], situations: int, shrinkage: float | None, density: Density
) -> SituationModel:
    from saccade.localize.situations.model import SituationModel

    model = SituationModel(**parameters)
    if len(set(objects)) < max(1, len(objects)) or width(density) != 4 * len(objects):
        raise ValueError(f"{len(objects)} different objects must have 4 coordinates each, got {width(density)}")
    if _kind_of(model.kind) != type(density).__name__:
        raise ValueError(f"the density of kind {model.kind!r} is no {type(density).__name__}")
    model.objects_, model.n_situations_ = objects, situations
    model.shrinkage_, model.density_ = shrinkage, density
    return model


def _kind_of(kind: str) -> str:
    return "Block" if kind == "uniform" else "Normals"


def with_kind(state: dict[str, Any]) -> dict[str, Any]:
    """States of before do not name the density."""
    density = {"kind": _kind_of(state["parameters"]["kind"]), **state.get("density", {})}
    return state | {"density": density}


SITUATION_MODEL = Record(
    _made,
    {
        "parameters": Record(dict, {name: plain() for name in PARAMETERS}),
        "objects": Many(text()),
        "situations": whole(),
        "shrinkage": Maybe(number()),
        "density": OneOf({name: DENSITIES[name] for name in ("Normals", "Block")}),
    },
    version=1,
    name="SituationModel",
    upgrade=with_kind,
    take=_fields,
)
