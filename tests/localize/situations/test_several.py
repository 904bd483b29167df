"""Several objects in turn."""

import json

import numpy as np
import pytest

from saccade._core.errors import InvalidInput, ModelFileError
from saccade.localize import SituationModel, SituationSearch, iou

rng = np.random.default_rng(0)
X, Y = rng.uniform(100, 500, 60), rng.uniform(200, 350, 60)
DOGS = np.column_stack([X, Y, X + 80, Y + 60])
BOXES = {"dog": DOGS, "walker": DOGS + np.array([90.0, -150.0, 70.0, 20.0])}
MODEL = SituationModel().fit({name: boxes[1:] for name, boxes in BOXES.items()}, (640, 480))
TRUTH = {name: boxes[0] for name, boxes in BOXES.items()}


def test_a_found_object_sharpens_the_prior_of_the_other() -> None:
    search = SituationSearch(MODEL, (640, 480), random_state=0)
    before = search.searches["walker"].prior
    while "dog" not in search.found:
        name, boxes = search.ask(10)
        search.tell(name, boxes, iou(boxes, TRUTH["dog"]) if name == "dog" else np.zeros(len(boxes)))
    after = search.searches["walker"].prior
    assert before is not None
    assert after is not None
    assert after.used == ("dog",)
    assert after.log_density(TRUTH["walker"])[0] > before.log_density(TRUTH["walker"])[0] + 1.0


def test_all_are_found_in_turn() -> None:
    search = SituationSearch(MODEL, (640, 480), random_state=0)
    order = []
    while search.open and search.looks < 120:
        name, boxes = search.ask(5)
        order.append(name)
        search.tell(name, boxes, iou(boxes, TRUTH[name]))
    assert search.open == []
    assert order[:2] == ["dog", "walker"]
    assert all(iou(found.box, TRUTH[name]) > 0.5 for name, found in search.best().items())
    name, boxes = search.ask(5)  # it may go on
    assert boxes.shape == (5, 4)


def test_a_find_that_later_looks_contradict_is_given_up() -> None:
    search = SituationSearch(MODEL, (640, 480), random_state=0, sure=0.5)
    wrong = np.array([100.0, 300.0, 180.0, 360.0])
    near = wrong + np.random.default_rng(0).normal(0, 12, (12, 4))
    search.tell("dog", near, iou(near, wrong))
    search.tell("dog", DOGS[:12], iou(DOGS[:12], wrong))  # what is near could all be clutter, if nothing else was seen
    assert "dog" in search.found
    for _ in range(3):
        search.tell("dog", near, np.zeros(12))
    assert "dog" not in search.found
    prior = search.searches["walker"].prior
    assert prior is not None
    assert prior.used == ()


def test_options_of_each_object() -> None:
    proposals = {name: boxes[:20] for name, boxes in BOXES.items()}
    search = SituationSearch(MODEL, (640, 480), proposals=proposals, policy="pi", random_state=0)
    name, boxes = search.ask(4)
    assert {tuple(box) for box in boxes} <= {tuple(box) for box in proposals[name]}


def test_bad_names() -> None:
    with pytest.raises(InvalidInput, match="cat"):
        SituationSearch(MODEL, (640, 480), ["cat"])
    with pytest.raises(InvalidInput, match="empty"):
        SituationSearch(MODEL, (640, 480), [])
    with pytest.raises(InvalidInput, match="not for 'cat'"):
        SituationSearch(MODEL, (640, 480)).tell("cat", [[0, 0, 1, 1]], [0.0])


def test_a_saved_search_asks_the_same_next() -> None:
    search = SituationSearch(MODEL, (640, 480), ["walker", "dog"], sure=0.5, random_state=0, policy="pi")
    near = DOGS[0] + np.random.default_rng(0).normal(0, 4, (12, 4))
    search.tell("dog", near, iou(near, DOGS[0]))
    search.tell(
        "dog", DOGS[1:13], iou(DOGS[1:13], DOGS[0])
    )  # what is near could all be clutter, if nothing else was seen
    search.tell("walker", [[0, 0, 60, 60]], [np.nan])
    assert list(search.found) == ["dog"]
    again = SituationSearch.from_state(json.loads(json.dumps(search.to_state())))
    assert again.to_state() == search.to_state()
    assert (again.open, again.looks, again.sure) == (["walker"], 25, 0.5)
    for _ in range(2):
        (name, boxes), (same, expected) = again.ask(4), search.ask(4)
        assert name == same == "walker"
        np.testing.assert_array_equal(boxes, expected)
        for each in (again, search):
            each.tell(name, boxes, iou(boxes, TRUTH[name]))
    assert again.best()["walker"].probability == search.best()["walker"].probability


@pytest.mark.parametrize("change", ["another picture", "nothing to search", "found what was not looked for", "no box"])
def test_states_that_contradict_themselves_are_refused(change: str) -> None:
    state = SituationSearch(MODEL, (640, 480), random_state=0).to_state()
    small = SituationSearch(MODEL, (64, 48), random_state=0).to_state()["searches"]
    state |= {
        "another picture": {"searches": {**state["searches"], "dog": small["dog"]}},
        "nothing to search": {"searches": {}},
        "found what was not looked for": {"found": {"cat": [0, 0, 1, 1]}},
        "no box": {"found": {"dog": [5, 5, 1, 1]}},
    }[change]
    with pytest.raises(ModelFileError):
        SituationSearch.from_state(state)
