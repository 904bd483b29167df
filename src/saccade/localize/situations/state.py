"""The fields of a situation model and of a search for its objects, in a file or a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saccade._core.arrays import Array
from saccade._core.codec import OneOf, Record
from saccade._core.fields import Many, Maybe, Named, Numbers, number, plain, text, whole
from saccade.localize.boxes import check_boxes
from saccade.localize.priors.densities import Density
from saccade.localize.priors.state import DENSITIES, width
from saccade.localize.search.state import LOCALIZER

if TYPE_CHECKING:
    from saccade.localize.search.localizer import Localizer
    from saccade.localize.situations.model import SituationModel
    from saccade.localize.situations.search import SituationSearch

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


def _search(
    situation: SituationModel, sure: float, searches: dict[str, Localizer], found: dict[str, Array]
) -> SituationSearch:
    from saccade.localize.situations.search import SituationSearch

    bounds = [search.bounds.tolist() for search in searches.values()]
    if not bounds or bounds != bounds[:1] * len(bounds):
        raise ValueError("all searches must be in one picture")
    if not found.keys() <= searches.keys():
        raise ValueError(f"{sorted(found.keys() - searches.keys())[0]!r} is found, and was not looked for")
    made = SituationSearch(situation, bounds[0], list(searches), sure=sure)
    made.searches, made.found = searches, {name: check_boxes(box[None])[0] for name, box in found.items()}
    return made


SITUATION_SEARCH = Record(
    _search,
    {"situation": SITUATION_MODEL, "sure": number(0.0, 1.0), "searches": Named(LOCALIZER), "found": Named(Numbers(4))},
    version=1,
    name="SituationSearch",
)
