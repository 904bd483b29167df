"""Every saved state, damaged in every way: one clear error each, or an answer; never a crash, never much memory."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saccade
from saccade import GPClassifier, OneClassGP
from saccade._core import codec, model_file
from saccade._core.errors import ModelFileError, SaccadeError
from saccade.active import ActiveLearner
from saccade.active.stopping import Audit
from saccade.kernels import HIK, RBF, Power, Weights
from saccade.localize import BoxPrior, Finder, Localizer, Response, SituationModel, SituationSearch, TileSearch
from saccade.localize.finder.calibration import Calibrator, Trials
from saccade.localize.finder.file import FINDER
from tests.memory import at_most

MEMORY = 1 << 30
rng = np.random.default_rng(0)
X = rng.gamma(0.5, 1.0, (24, 4))
Y = np.where(X[:, 0] > X[:, 1], "a", "b")


def a_search() -> dict[str, Any]:
    overlaps = rng.random(200)
    response = Response.learn(overlaps, overlaps > 0.5)
    prior = BoxPrior.of_map((64, 48), rng.random((3, 4)), BoxPrior.unknown((64, 48)))
    search = Localizer((64, 48), prior, response=response, proposals=prior.sample(5, rng), random_state=0)
    search.tell(search.ask(2), [0.1, 0.4])
    search.tell([[0, 0, 10, 10]], [np.nan])
    return search.to_state()


def a_hedged_search() -> dict[str, Any]:
    boxes = BoxPrior.unknown((64, 48)).sample(9, rng)
    prior = SituationModel().fit({"dog": boxes}, (64, 48)).prior("dog", None, (64, 48))
    return Localizer((64, 48), prior.of_size((9, 9)).hedged(0.1), random_state=0).to_state()


def tiles() -> dict[str, Any]:
    known = {"features": rng.random((12, 2)), "examples": rng.random((2, 2)), "prior": rng.uniform(0.1, 0.3, (3, 4))}
    search = TileSearch((80, 60), 20, budget=9, **known)
    boxes = search.ask(3)
    search.tell(boxes, [1.0, np.nan, 0.0], [[[*box[:2], *(box[:2] + 5)]] for box in boxes])
    search.ask(1)
    return search.to_state()


def a_situation() -> dict[str, Any]:
    boxes = BoxPrior.unknown((64, 48)).sample(9, rng)
    return SituationModel().fit({"dog": boxes, "cat": boxes[::-1]}, (64, 48)).to_dict()


def a_search_of_several() -> dict[str, Any]:
    model = SituationModel.from_dict(a_situation())
    search = SituationSearch(model, (64, 48), sure=0.0, random_state=0)
    search.tell("dog", [[10, 10, 20, 20]], [0.7])
    return search.to_state()


def an_audit() -> dict[str, Any]:
    return Audit(np.arange(30), 0.2).looked(np.ones(20, bool), 40).state()


def a_finder() -> dict[str, Any]:
    found = Finder(looks=5)
    found.situation_ = SituationModel().fit({"object": BoxPrior.unknown((64, 48)).sample(9, rng)}, (64, 48))
    found.response_ = Response.learn(rng.random(200), rng.random(200))
    there = np.arange(20) % 2 == 0
    found.calibrator_ = Calibrator.learn(Trials(rng.random((20, 2)), rng.random((20, 3)), there, there, ~there))
    return codec.to_json(FINDER, found)


STATES: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[Any], Any]]] = {
    "search": (a_search, Localizer.from_state),
    "hedged search": (a_hedged_search, Localizer.from_state),
    "tiles": (tiles, TileSearch.from_state),
    "situation": (a_situation, SituationModel.from_dict),
    "several": (a_search_of_several, SituationSearch.from_state),
    "audit": (an_audit, Audit.from_state),
    "finder": (a_finder, lambda state: codec.from_json(FINDER, state)),
}


# Parts that may be missing: older states lack them, or it is one object less to look for.
LATER = {
    "situation": ("kind",),
    "several": ("kind", "dog", "cat"),
    "tiles": ("examples",),
    "search": ("offset",),
    "finder": ("kind", "offset"),
}


def places(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value, of lists only to the first and last entries."""
    yield path
    if isinstance(state, dict):
        for key in state:
            yield from places(state[key], (*path, key))
    elif isinstance(state, list):
        for key in sorted({0, len(state) - 1} & set(range(len(state)))):
            yield from places(state[key], (*path, key))


def nest(depth: int) -> Any:
    found: Any = []
    for _ in range(depth):
        found = [found]
    return found


WRONG: dict[str, Any] = {
    "none": None,
    "text": "x" * 20,
    "true": True,
    "negative": -1,
    "huge": 10**12,
    "larger than float": 10**400,
    "NaN": float("nan"),
    "infinite": float("-inf"),
    "a list": [1, 2],
    "named": {"kind": "Block"},
    "deep": nest(3000),
    "a mixed list": [1.0, "x" * 1000, None],
}


def damaged(state: dict[str, Any], path: tuple[Any, ...], value: Any = ...) -> Any:
    """A copy with another value there, or with nothing."""
    if not path:
        return value
    state = copy.deepcopy(state)
    inner: Any = state
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return state


def one_clear_error(read: Callable[[], Any], kind: type[SaccadeError] = ModelFileError) -> bool:
    """Whether it was refused in a sentence; any error of another kind is a failure of the test."""
    said = ""
    try:
        read()
    except kind as error:
        said = str(error)
    assert not said or said.endswith((".", "…"))
    return said != ""


@pytest.mark.parametrize("name", STATES)
def test_a_state_without_a_part_is_refused(name: str) -> None:
    make, read = STATES[name]
    state = json.loads(json.dumps(make()))
    read(state)
    for path in places(state):
        if path and isinstance(path[-1], str) and path[-1] not in LATER.get(name, ()):
            assert one_clear_error(lambda at=path: read(damaged(state, at))), path


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("name", STATES)
def test_a_state_with_a_wrong_part_is_read_or_refused(name: str, kind: str) -> None:
    make, read = STATES[name]
    state, refused, tried = json.loads(json.dumps(make())), 0, 0
    with at_most(MEMORY):
        for path in places(state):
            refused += one_clear_error(lambda at=path: read(damaged(state, at, WRONG[kind])))
            tried += 1
    assert refused > 0.3 * tried  # some values are right where a number may be negative or None


@pytest.mark.parametrize("name", [name for name in STATES if name != "audit"])
def test_a_state_of_another_kind_or_version(name: str) -> None:
    make, read = STATES[name]
    state = make()
    with pytest.raises(ModelFileError, match="of version 1 is needed"):
        read(state | {"version": 2})
    for key in {"estimator", "kind"} & set(state):
        with pytest.raises(ModelFileError, match="'GPClassifier' of version 1, and"):
            read(state | {key: "GPClassifier"})
    for other in set(STATES) - {name, "hedged search"} - ({"search"} if name == "hedged search" else set()):
        assert one_clear_error(lambda made=STATES[other][0]: read(made()))


# ---- files with tensors


def a_campaign(path: Path) -> None:
    learner = ActiveLearner(X, GPClassifier(noise=0.1), costs=np.ones(24), audit=0.2, random_state=0)
    learner.tell(np.arange(6), Y[:6])
    learner.save(path)


FILES: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any]]] = {
    "campaign": (a_campaign, lambda path: ActiveLearner.load(path, X)),
    "situation": (
        lambda path: SituationModel().fit({"dog": [[1, 1, 5, 5], [2, 3, 6, 9]]}, (64, 48)).save(path),
        SituationModel.load,
    ),
    "tables": (lambda path: GPClassifier(HIK([Power(0.5), Weights(np.ones(4))])).fit(X, Y).save(path), saccade.load),
    "rows": (lambda path: OneClassGP(RBF() + HIK()).fit(X).save(path), saccade.load),
    "support": (lambda path: GPClassifier(RBF(), approximation="fitc").fit(X, Y).save(path), saccade.load),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FILES)
def test_a_file_whose_header_is_forged(name: str, tmp_path: Path) -> None:
    """Its digest is right, and what it says is not."""
    save, load = FILES[name]
    save(tmp_path / "m")
    header, tensors = model_file.read(tmp_path / "m")
    header = {key: value for key, value in header.items() if key not in ("format", "saccade")}
    some = [WRONG[kind] for kind in ("none", "huge", "NaN", "a mixed list", "named")]
    refused = 0
    with at_most(MEMORY):
        for path in list(places(header))[1:]:
            for value in (..., *some):
                model_file.write(tmp_path / "m", damaged(header, path, value), tensors)
                refused += one_clear_error(lambda: load(tmp_path / "m"), SaccadeError)
    assert refused > 50


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FILES)
def test_a_file_whose_tensors_are_forged(name: str, tmp_path: Path) -> None:
    save, load = FILES[name]
    save(tmp_path / "m")
    header, tensors = model_file.read(tmp_path / "m")
    for key, tensor in tensors.items():
        for other in (None, tensor[None], tensor.ravel()[:0], tensor.astype(np.int8), np.zeros(50_000)):
            changed = {k: v for k, v in tensors.items() if k != key} | ({} if other is None else {key: other})
            model_file.write(tmp_path / "m", header, changed)
            with at_most(MEMORY):
                refused = one_clear_error(lambda: load(tmp_path / "m"), SaccadeError)
            assert refused or name in ("tables", "rows", "support") or (key, other) == ("costs", None), (key, other)
