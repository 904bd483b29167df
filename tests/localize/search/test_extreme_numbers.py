"""Numbers that float64 cannot hold, or whose squares it cannot: one clear error each, before anything changes."""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from saccade import GPRegressor
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError, SaccadeError
from saccade.localize import (
    BoxPrior,
    Localizer,
    Response,
    SituationModel,
    SituationSearch,
    TileSearch,
    best_window,
    crops,
    iou,
    non_maximum_suppression,
    open_picture,
)

BEYOND = 10**400
BOX = [10.0, 10.0, 30.0, 40.0]
PICTURE = np.zeros((40, 60, 3), np.uint8)


def situation() -> SituationModel:
    x = np.random.default_rng(0).uniform(10, 60, 20)
    dog = np.column_stack([x, np.full(20, 30.0), x + 10, np.full(20, 50.0)])
    return SituationModel().fit({"dog": dog, "walker": dog + np.array([5, -5, 5, 5])}, sizes=(100, 100))


def told() -> Localizer:
    search = Localizer((100, 100), random_state=0)
    search.tell([BOX, [50, 50, 70, 70]], [0.4, 0.1])
    return search


def zeros(what: Any) -> Any:
    return np.zeros(len(what))


@pytest.mark.parametrize("score", [1e300, -1e300, 1e101])
def test_scores_of_a_localizer(score: float) -> None:
    search = told()
    before = json.dumps(search.to_state())
    with pytest.raises(InvalidInput, match=r"at most 1e\+100 in size.*got -?1e\+"):
        search.tell([[20, 20, 40, 50], BOX], [0.3, score])
    assert json.dumps(search.to_state()) == before
    state = search.to_state()
    state["told"][0] = score
    with pytest.raises(ModelFileError, match=r"at most 1e\+100"):
        Localizer.from_state(state)
    search.tell([BOX], [np.inf])  # still says that the judge failed
    assert len(search.failures) == 1


def test_scores_in_units_of_a_small_range() -> None:
    search = Localizer((100, 100), scores=(0.0, 1e-90), random_state=0)
    with pytest.raises(InvalidInput, match="in units of the range"):
        search.tell([BOX], [1e50])
    search.tell([BOX], [1e-90])
    assert np.isfinite(search.best().probability)


def test_the_largest_score_is_worked_with() -> None:
    search = Localizer((100, 100), scores=None, random_state=0)
    search.tell([BOX, [20, 20, 40, 50]], [0.1, 1e100])
    assert np.isfinite(search.best().score)
    assert np.isfinite(search.ask(3)).all()


def test_a_judge_with_scores_beyond_fails_there() -> None:
    search = Localizer((100, 100), random_state=0)
    with pytest.warns(UserWarning, match="failed at 2 of 4 looks"):
        search.run(lambda boxes: [0.1, 1e300], looks=4, batch=2)
    assert search.looks == 2


@pytest.mark.parametrize("score", [1e300, -1e300])
def test_scores_of_a_situation_search(score: float) -> None:
    search = SituationSearch(situation(), (100, 100), random_state=0)
    name, boxes = search.ask(2)
    with pytest.raises(InvalidInput, match=r"at most 1e\+100"):
        search.tell(name, boxes, [0.1, score])
    assert search.looks == 0


@pytest.mark.parametrize("threshold", [None, 0.5])
@pytest.mark.parametrize("score", [1e300, -1e300])
def test_scores_of_tiles(threshold: float | None, score: float) -> None:
    search = TileSearch((100, 100), 10, threshold=threshold, random_state=0)
    with pytest.raises(InvalidInput, match=re.escape(f"got {score:g}")):
        search.tell(search.tiles.boxes[:2], [1.0, score])
    assert np.isnan(search.hits).all()
    search.tell(search.tiles.boxes[:1], [1.0])
    state = search.to_state()
    state["looks"][0][1] = score
    with pytest.raises(ModelFileError, match="does not describe TileSearch"):
        TileSearch.from_state(state)


@pytest.mark.parametrize("name", ["noise", "xi", "from_prior", "at_random", "absent", "step", "random_state"])
def test_parameters_of_a_localizer(name: str) -> None:
    with pytest.raises(InvalidParameter, match=f"`{name}`"):
        Localizer((100, 100), **{name: BEYOND})


@pytest.mark.parametrize("name", ["overlap", "budget", "start", "threshold", "random_state", "prior", "tile"])
def test_parameters_of_tiles(name: str) -> None:
    with pytest.raises(SaccadeError, match=f"`{name}`"):
        TileSearch((100, 100), **({"tile": 10} | {name: BEYOND}))


@pytest.mark.parametrize("kind", [Localizer, partial(TileSearch, tile=4)])
def test_a_generator_is_a_random_state(kind: Any) -> None:
    first, again, other = (kind((100, 100), random_state=np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(first.ask(3), again.ask(3))
    assert not np.array_equal(first.ask(3), other.ask(3))


SOURCE = open_picture(PICTURE)
CALLS: dict[str, Callable[[Any], Any]] = {
    "bounds": lambda v: Localizer((v, 100)),
    "scores": lambda v: Localizer((100, 100), scores=(0, v)),
    "scores that are infinitely far apart": lambda v: Localizer((100, 100), scores=(-1e308, 1e308)),
    "size": lambda v: Localizer((100, 100), size=(v, 1)),
    "proposals": lambda v: Localizer((100, 100), proposals=[[0, 0, v, 1]]),
    "ask": lambda v: told().ask(v),
    "a score": lambda v: told().tell([BOX], [v]),
    "a box": lambda v: told().tell([[0, 0, v, 1]], [0.1]),
    "predict": lambda v: told().predict([[0, 0, v, 1]]),
    "rows of a map": lambda v: told().map(v, 3),
    "cells of a map": lambda v: told().map(10**6, 10**6),
    "looks": lambda v: told().run(zeros, looks=v),
    "batch": lambda v: told().run(zeros, looks=4, batch=v),
    "sure": lambda v: told().run(zeros, looks=4, sure=v),
    "crop": lambda v: Localizer((60, 40)).run(zeros, SOURCE, looks=4, crop=(v, 3)),
    "pixels of a crop": lambda v: Localizer((60, 40)).run(zeros, SOURCE, looks=4, crop=(10**6, 10**6)),
    "tiles of a picture": lambda v: TileSearch((v, 100), 10),
    "tiles to ask": lambda v: TileSearch((100, 100), 10).ask(v),
    "hits": lambda v: TileSearch((100, 100), 10).tell([[0, 0, 10, 10]], [v]),
    "boxes inside": lambda v: TileSearch((100, 100), 10).tell([[0, 0, 10, 10]], [1], [[[0, 0, v, 1]]]),
    "size of crops of tiles": lambda v: TileSearch(PICTURE, 10).look(zeros, PICTURE, 2, size=(v, 3)),
    "scale of crops of tiles": lambda v: TileSearch(PICTURE, 10).look(zeros, PICTURE, 2, scale=v),
    "found": lambda v: TileSearch((100, 100), 10).found(v),
    "sure of a situation": lambda v: SituationSearch(situation(), (100, 100), sure=v),
    "sizes of a situation": lambda v: SituationModel().fit({"a": [BOX] * 3}, sizes=(v, 100)),
    "components": lambda v: SituationModel(components=v).fit({"a": [BOX] * 3}, sizes=(100, 100)),
    "doubt": lambda v: SituationModel(doubt=v).fit({"a": [BOX] * 3}, sizes=(100, 100)),
    "what was found": lambda v: situation().prior("dog", {"walker": [0, 0, v, 1]}, (100, 100)),
    "iou": lambda v: iou([0, 0, v, 1], BOX),
    "suppression": lambda v: non_maximum_suppression([BOX], [v]),
    "overlap": lambda v: non_maximum_suppression([BOX], [1.0], v),
    "size of crops": lambda v: crops(SOURCE, [BOX], (v, 3)),
    "scale of crops": lambda v: crops(SOURCE, [BOX], scale=v),
    "together": lambda v: Response.learn([0, 0.5, 1], [0, 0.5, 1], together=v),
    "scores of windows": lambda v: Response.learn([0, 0.5, 1], [0, 0.5, v]),
    "a map": lambda v: BoxPrior.of_map(np.array([[1, v]], object), (100, 100)),
    "points": lambda v: best_window(MODEL, [[v, 1.0]], [0], (10, 10)),
    "words": lambda v: best_window(MODEL, [[1.0, 1.0]], [v], (10, 10)),
    "norm": lambda v: best_window(MODEL, [[1.0, 1.0]], [0], (10, 10), norm=v),
    "grid": lambda v: best_window(MODEL, [[1.0, 1.0]], [0], (10, 10), step=v),
    "budget": lambda v: best_window(MODEL, [[1.0, 1.0]], [0], (10, 10), budget=v),
    "smallest window": lambda v: best_window(MODEL, [[1.0, 1.0]], [0], (10, 10), min_size=v),
}
MODEL = GPRegressor(normalize_y=False, noise=1e-6).fit([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])


@pytest.mark.parametrize("name", CALLS)
def test_integers_beyond_float64(name: str) -> None:
    with pytest.raises(SaccadeError) as caught:
        CALLS[name](BEYOND)
    assert len(str(caught.value)) < 500  # not all of its digits
