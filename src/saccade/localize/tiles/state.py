"""A search over tiles as plain values and back: a dict for JSON. Reading it runs no code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from saccade._core.errors import InvalidInput
from saccade.localize.tiles.grid import Tiles

if TYPE_CHECKING:
    from saccade.localize.tiles.search import TileSearch

NAME, VERSION = "TileSearch", 1


def to_state(search: TileSearch) -> dict[str, Any]:
    """Settings, answers in order, and open questions; the model is made again from them."""
    order = search._order
    return {
        "kind": NAME,
        "version": VERSION,
        "bounds": search.tiles.bounds.tolist(),
        "tile": search.tiles.tile,
        "overlap": search.tiles.overlap,
        "features": None if search.features is None else search.features.tolist(),
        "prior": search.prior.tolist() if np.ptp(search.prior) else float(search.prior[0]),
        "budget": search.budget,
        "start": search.start,
        "policy": search.policy,
        "threshold": search.threshold,
        "seed": search._seed,
        "looks": [[number, float(search.hits[number])] for number in order],
        "failed": list(search._failed),
        "asked": list(search._asked),
        "inside": [list(row) for row in search._inside],
        "problems": [dict(problem) for problem in search.problems],
    }


def from_state(kind: type[TileSearch], state: Mapping[str, Any]) -> TileSearch:
    """The search; an InvalidInput where the state is another's, of another version, or damaged."""
    if not isinstance(state, Mapping) or state.get("kind") != NAME or state.get("version") != VERSION:
        what = (
            f"{state.get('kind')!r} of version {state.get('version')!r}" if isinstance(state, Mapping) else repr(state)
        )
        raise InvalidInput(f"This is the state of {what}, and a {NAME} of version {VERSION} is needed. Save it anew.")
    search = kind.__new__(kind)
    try:
        search.tiles = Tiles.of(state["bounds"], state["tile"], state["overlap"])
        prior = state["prior"]
        prior = np.reshape(prior, search.tiles.shape) if isinstance(prior, list) else prior
        own = (state["budget"], state["start"], state["policy"], state["threshold"], state["seed"])
        search._setup(state["features"], prior, *own)
        looks = [(_tile(search, number), float(value)) for number, value in state["looks"]]
        search._order = [number for number, _ in looks]
        search.hits[search._order] = [value for _, value in looks]
        search._failed = [_tile(search, number) for number in state["failed"]]
        search._asked = [_tile(search, number) for number in state["asked"]]
        search._inside = [[float(value) for value in row] for row in state["inside"]]
        search.problems = [dict(problem) for problem in state["problems"]]
        if len({*search._order, *search._failed, *search._asked}) < search._spent or not all(
            search._possible(value) for _, value in looks
        ):
            raise ValueError("a tile is in it twice, or without its answer")
        if any(len(row) != 6 for row in search._inside):
            raise ValueError("boxes must be tile, x0, y0, x1, y1, score")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if type(error) is not ValueError and isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"Not the whole state of a {NAME} ({error}). Pass what `to_state` gave.") from error
    return search


def _tile(search: TileSearch, number: Any) -> int:
    if type(number) is not int or not 0 <= number < len(search.tiles.boxes):
        raise ValueError(f"there is no tile {number!r}")
    return number
