"""The fields of a search over tiles in a state: settings, answers in order and open questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from saccade._core import limits
from saccade._core.codec import Record
from saccade._core.fields import Many, Maybe, Numbers, Row, number, text, whole
from saccade.localize.tiles.answers import TileAnswers
from saccade.localize.tiles.grid import Tiles
from saccade.localize.tiles.policy import Policy

if TYPE_CHECKING:
    from saccade.localize.tiles.search import TileSearch


def _fields(search: TileSearch) -> dict[str, Any]:
    answers, tiles = search.answers, search.tiles
    grid = {"bounds": tiles.bounds, "tile": tiles.tile, "overlap": tiles.overlap, "features": search.features}
    grid["examples"] = search.examples
    options = {name: getattr(search, name) for name in ("budget", "start", "policy", "threshold", "seed")}
    prior = search.prior if np.ptp(search.prior) else search.prior[:1]
    told = {name: getattr(answers, name) for name in ("failed", "asked", "inside", "problems")}
    return {**grid, **options, **told, "prior": prior, "looks": answers.told.items()}


def _made(**values: Any) -> TileSearch:
    from saccade.localize.tiles.search import TileSearch

    looks, inside, problems, seed, prior = (values.pop(k) for k in ("looks", "inside", "problems", "seed", "prior"))
    failed, asked = (values.pop(name).tolist() for name in ("failed", "asked"))
    bounds, tile = values.pop("bounds"), values.pop("tile")
    prior = float(prior[0]) if prior.size == 1 else prior.reshape(Tiles.of(bounds, tile, values["overlap"]).shape)
    search = TileSearch(bounds, tile, prior=prior, **values)
    numbers = [tile for tile, _ in looks] + failed + asked
    if len(set(numbers)) < len(numbers) or max([*numbers, *inside[:, 0]], default=0) >= len(search.tiles.boxes):
        raise ValueError("a tile is in it twice, or is none of the picture")
    if not all(search.answers.possible(value) for _, value in looks):
        raise ValueError("an answer is no number of hits, and no score")
    told = {"told": dict(looks), "failed": failed, "asked": asked, "inside": inside.tolist(), "problems": problems}
    search.resume(seed, TileAnswers(search.tiles, search.threshold, **told))
    return search


def _upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """In older states a prior that is equal everywhere is a number, and there are no examples."""
    alike = {"prior": [state["prior"]]} if isinstance(state.get("prior"), float) else {}
    return {"examples": None, **state, **alike}


TILE_SEARCH = Record(
    _made,
    {
        "bounds": Numbers(4),
        "tile": whole(1),
        "overlap": number(0.0, 0.9),
        "features": Maybe(Numbers("n", "d")),
        "examples": Maybe(Numbers("examples", "d")),
        "prior": Numbers("prior", least=0.0, most=1.0),
        "budget": Maybe(whole(1)),
        "start": number(0.0, 1.0),
        "policy": text(*get_args(Policy)),
        "threshold": Maybe(number()),
        "seed": whole(),
        "looks": Many(Row((whole(), number())), limits.TILES),
        "failed": Numbers("failed", dtype=np.int64, least=0, count=limits.TILES),
        "asked": Numbers("asked", dtype=np.int64, least=0, count=limits.TILES),
        "inside": Numbers("inside", 6),
        "problems": Many(Record(dict, {"tile": whole(), "box": Many(number(), 4), "what": text()}, take=dict)),
    },
    version=1,
    name="TileSearch",
    key="kind",
    upgrade=_upgraded,
    take=_fields,
)
