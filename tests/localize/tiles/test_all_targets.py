"""A search over tiles: it finds clusters in few looks, survives bad answers, and goes on after a reload."""

import json
from typing import Any

import numpy as np
import pytest

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade.localize import TileSearch
from saccade.localize.tiles.left import FEW, TRUST, interval

SIDE, TILE = 1400, 100  # 196 tiles
PICTURE = np.full((400, 600, 3), 90, np.uint8)
PICTURE[120:130, 210:225] = (250, 20, 20)
PICTURE[320:330, 410:425] = (250, 20, 20)


def cluster(boxes: Array) -> Array:
    """Hits within 250 pixels of one place: 21 tiles of 196."""
    middle = 0.5 * (boxes[:, :2] + boxes[:, 2:])
    return (np.square(middle - (950, 450)).sum(axis=1) < 250**2).astype(float)


def finished(search: TileSearch, answer: Any = cluster, n: int = 10) -> TileSearch:
    while len(boxes := search.ask(n)):
        search.tell(boxes, answer(boxes))
    return search


def test_a_cluster_is_found_in_a_quarter_of_the_looks() -> None:
    search = finished(TileSearch((SIDE, SIDE), TILE, budget=49, random_state=0))
    every = cluster(search.tiles.boxes).sum()
    assert (~np.isnan(search.hits)).sum() == 49
    assert np.nansum(search.hits) >= 0.8 * every  # a quarter of them at random
    left = search.left()
    assert left.low <= every - np.nansum(search.hits) <= left.high
    assert left.low <= left.expected <= left.high
    assert left.at_most_tiles >= every - np.nansum(search.hits)


def test_features_lead_to_scattered_hits() -> None:
    rng = np.random.default_rng(3)
    hit = rng.permutation(196) < 10
    features = rng.standard_normal((196, 2)) + 4.0 * hit[:, None]
    with_features, without = (
        TileSearch((SIDE, SIDE), TILE, budget=40, features=given, random_state=0) for given in (features, None)
    )
    for search in (with_features, without):
        finished(search, lambda boxes, search=search: hit[search.tiles.numbers(boxes)].astype(float), n=4)
    assert np.nansum(with_features.hits) >= 9
    assert np.nansum(without.hits) <= 6


def test_the_likeliest_tiles_come_first_with_that_policy() -> None:
    search = TileSearch((SIDE, SIDE), TILE, budget=60, start=0.0, policy="likeliest", random_state=0)
    for boxes in (search.tiles.boxes[::9], search.tiles.boxes[search._first]):
        search.tell(boxes, cluster(boxes))
    p = search.probability_map().ravel()
    p[~np.isnan(search.hits)] = -1.0
    chosen = search.tiles.numbers(search.ask(4))
    np.testing.assert_allclose(np.sort(p[chosen]), np.sort(p)[-4:])


def test_the_overview_of_a_picture_gives_features() -> None:
    search = TileSearch(PICTURE, 50, features="overview", budget=24, random_state=0)
    assert search.features is not None
    assert search.features.shape == (96, 10)
    finished(search, lambda boxes: np.array([float((PICTURE[int(y) : int(y) + 50, int(x) : int(x) + 50] == 250).any())
                                             for x, y, *_ in boxes]), n=2)  # fmt: skip
    assert np.nansum(search.hits) == 2


def test_the_map_and_the_number_left_follow_the_looks() -> None:
    search = TileSearch((SIDE, SIDE), TILE, budget=40, prior=0.05, random_state=0)
    before = search.probability_map()
    assert before.shape == (14, 14)
    np.testing.assert_allclose(before, 0.05)
    assert search.left().expected == pytest.approx(9.8)
    assert search.left().at_most_tiles == 196  # nothing was looked at
    finished(search)
    p, y = search.probability_map().ravel(), cluster(search.tiles.boxes)
    known = ~np.isnan(search.hits)
    np.testing.assert_array_equal(p[known], y[known])
    assert p[known & (y == 1)].min() == 1.0
    assert 0.0 < search.left().expected < p[~known].sum()  # no random look was a surprise


def test_counts_scale_what_is_left() -> None:
    one = finished(TileSearch((SIDE, SIDE), TILE, budget=49, random_state=0))
    three = finished(TileSearch((SIDE, SIDE), TILE, budget=49, random_state=0), lambda boxes: 3.0 * cluster(boxes))
    assert three.left().expected == pytest.approx(3.0 * one.left().expected)
    assert three.left().high >= 2.9 * one.left().high
    assert three.left().at_most_tiles == one.left().at_most_tiles


def test_scores_with_a_threshold() -> None:
    whole = finished(TileSearch((SIDE, SIDE), TILE, budget=30, random_state=0))
    scores = finished(
        TileSearch((SIDE, SIDE), TILE, budget=30, threshold=0.0, random_state=0),
        lambda boxes: np.where(cluster(boxes) > 0, 0.3, -7.0),
    )
    assert list(scores.answers.told) == list(whole.answers.told)
    assert scores.left() == whole.left()


def test_the_state_puts_the_same_next_question() -> None:
    rng = np.random.default_rng(0)
    search = TileSearch((SIDE, SIDE), TILE, features=rng.random((196, 2)), prior=rng.uniform(0.01, 0.1, (14, 14)))
    for _ in range(3):
        boxes = search.ask(9)
        search.tell(boxes, cluster(boxes), [[[*box[:2], *(box[:2] + 5)]] for box in boxes])
    search.tell(search.ask(2), [np.nan, 1.0])
    search.ask(2)  # open questions are kept
    again = TileSearch.from_state(json.loads(json.dumps(search.to_state())))
    assert again.to_state() == search.to_state()
    np.testing.assert_array_equal(again.ask(7), search.ask(7))
    assert again.left() == search.left()
    np.testing.assert_array_equal(again.found().boxes, search.found().boxes)
    for one in (search, again):
        finished_boxes = one.ask(3)
        one.tell(finished_boxes, cluster(finished_boxes))
    np.testing.assert_array_equal(again.ask(3), search.ask(3))


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"kind": "Localizer"},
        {"looks": [[0, 1.0], [0, 1.0]]},
        {"looks": [[999, 1.0]]},
        {"looks": [[3, float("nan")]]},
        {"looks": None},
        {"tile": -1},
        {"inside": [[1, 2]]},
        {"asked": ["x"]},
        {"prior": [1.0]},
    ],
)
def test_states_of_others_are_refused(change: dict[str, Any]) -> None:
    state = TileSearch((SIDE, SIDE), TILE).to_state()
    with pytest.raises(ModelFileError):
        TileSearch.from_state(state | change)
    with pytest.raises(ModelFileError):
        TileSearch.from_state({key: value for key, value in state.items() if key not in change})
    with pytest.raises(ModelFileError):
        TileSearch.from_state([])  # type: ignore[arg-type]


def test_no_answers_are_listed_left_out_and_not_asked_again() -> None:
    search = TileSearch((SIDE, SIDE), TILE, budget=40, random_state=0)
    bad = search.ask(4)
    search.tell(bad, [np.nan, 0.0, np.nan, 0.0])
    assert [problem["what"] for problem in search.problems] == ["no number"] * 2
    assert search.problems[0]["box"] == bad[0].tolist()
    seen = [search.tiles.numbers(bad)]
    while len(boxes := search.ask(8)):
        seen.append(search.tiles.numbers(boxes))
        search.tell(boxes, cluster(boxes))
    numbers = np.concatenate(seen)
    assert np.unique(numbers).size == numbers.size == 40
    assert np.isfinite(search.left()).all()
    search.tell(bad[:1], [1.0])  # a late answer counts
    assert search.hits[search.tiles.numbers(bad[:1])[0]] == 1.0


def test_a_changed_answer_replaces_and_is_listed() -> None:
    search = TileSearch((SIDE, SIDE), TILE, random_state=0)
    boxes = search.ask(10)
    search.tell(boxes, np.zeros(10))
    search.tell(boxes[:2], [1.0, 0.0])
    fresh = TileSearch((SIDE, SIDE), TILE, random_state=0)
    fresh.tell(boxes, [1.0, *np.zeros(9)])
    assert [problem["what"] for problem in search.problems] == ["changed from 0 to 1"]
    np.testing.assert_allclose(search.probability_map(), fresh.probability_map())


def test_changed_answers_are_learned_from_as_if_told_first() -> None:
    """Also which settings are kept: once the tiles' places decide, then their features."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((196, 2))
    search = TileSearch((SIDE, SIDE), TILE, features=features, budget=40, start=1.0, random_state=0)
    boxes = search.ask(40)
    search.tell(boxes, cluster(boxes))
    search.probability_map()
    search.tell(boxes, features[search.tiles.numbers(boxes), 0] > 0.5)
    again = TileSearch.from_state(search.to_state())
    np.testing.assert_array_equal(again.probability_map(), search.probability_map())


def test_bad_tells_change_nothing() -> None:
    search = TileSearch((SIDE, SIDE), TILE, random_state=0)
    boxes, state = search.ask(3), search.to_state()
    for hits in ([1.0, 0.0], [1.0, -1.0, 0.0], [np.inf, 0.0, 0.0], ["a", 0, 0]):
        with pytest.raises(InvalidInput, match="`hits`"):
            search.tell(boxes, hits)
    for wrong in (boxes + 1.0, boxes[:, [2, 1, 0, 3]], np.full((3, 4), np.nan)):
        with pytest.raises(InvalidInput):
            search.tell(wrong, np.zeros(3))
    with pytest.raises(InvalidInput, match="`inside`"):
        search.tell(boxes, np.zeros(3), [[]])
    with pytest.raises(InvalidInput, match="inverted"):
        search.tell(boxes, np.ones(3), [[[5, 5, 1, 1]], [], []])
    assert search.to_state() == state


def judge(crops: list[Array]) -> list[Any]:
    """Boxes of what is red in each crop; the score is its area."""
    found = []
    for crop in crops:
        y, x = np.nonzero(crop[..., 0] > 200)
        found.append(
            np.array([[x.min(), y.min(), x.max() + 1, y.max() + 1, x.size / 1000]]) if x.size else np.zeros((0, 5))
        )
    return found


def test_boxes_inside_tiles_come_back_once() -> None:
    search = TileSearch((600, 400), 100, overlap=0.5, random_state=0)
    while search.look(judge, PICTURE, 40):
        pass
    found = search.found(overlap=0.3)
    assert sorted(found.boxes.tolist()) == [[210.0, 120.0, 225.0, 130.0], [410.0, 320.0, 425.0, 330.0]]
    np.testing.assert_array_equal(found.scores, [0.15, 0.15])
    assert np.nansum(search.hits) > 2  # neighbours that overlap have seen the same


def test_boxes_of_a_coarse_look_are_in_pixels_of_the_picture() -> None:
    search = TileSearch((600, 400), 100, random_state=0)
    while search.look(judge, PICTURE, 24, scale=0.2):
        pass
    assert sorted(search.found().boxes.tolist()) == [[210.0, 120.0, 225.0, 130.0], [410.0, 320.0, 425.0, 330.0]]


def test_a_judge_that_fails_does_not_end_the_search() -> None:
    calls = []

    def moody(crops: list[Array]) -> Any:
        calls.append(len(crops))
        if any((crop == 250).any() for crop in crops):
            raise RuntimeError("no memory left")
        return [0.0] * (len(crops) - (len(crops) > 1))  # too few, but for one alone

    search = TileSearch((600, 400), 100, random_state=0)
    while search.look(moody, PICTURE, 6):
        pass
    assert calls.count(1) == 24
    assert [problem["what"] for problem in search.problems] == ["RuntimeError: no memory left"] * 2
    assert np.isnan(search.hits).sum() == 2
    assert search.left().expected > 0.0
    search = TileSearch((600, 400), 100, random_state=0)
    search.look(lambda crops: [-1.0, np.nan, np.inf, 2.0], PICTURE, 4)
    assert [problem["what"] for problem in search.problems] == [
        f"the judge gave {word}" for word in ("-1", "nan", "inf")
    ]
    assert np.nansum(search.hits) == 2.0


def test_parameters_are_checked() -> None:
    for options in (
        {"budget": 0}, {"start": 2.0}, {"policy": "best"}, {"threshold": "high"},
        {"prior": 1.0}, {"prior": np.full((3, 3), 0.1)},
        {"features": np.zeros((3, 2))}, {"features": np.full((196, 2), np.nan)}, {"features": "deep"},
        {"features": "overview"}, {"examples": np.zeros((2, 2))}, {"features": np.eye(196), "examples": np.eye(4)},
        {"features": np.eye(196), "examples": [PICTURE]}, {"tile": 0}, {"overlap": 1.0},
    ):  # fmt: skip
        with pytest.raises((InvalidInput, InvalidParameter)):
            TileSearch((SIDE, SIDE), **({"tile": TILE} | options))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="`n`"):
        TileSearch((SIDE, SIDE), TILE).ask(0)


def test_one_tile_is_a_search_too() -> None:
    search = TileSearch((30, 20), 1024)
    boxes = search.ask(5)
    assert boxes.tolist() == [[0.0, 0.0, 30.0, 20.0]]
    search.tell(boxes, [1.0])
    assert len(search.ask(5)) == 0
    assert search.left() == (0.0, 0, 0, 0)


def test_constant_features_do_no_harm() -> None:
    search = finished(TileSearch((SIDE, SIDE), TILE, budget=49, features=np.ones((196, 3)), random_state=0))
    assert np.nansum(search.hits) >= 0.8 * cluster(search.tiles.boxes).sum()


def test_random_looks_correct_what_the_model_expects() -> None:
    """Model and random looks by the formula; hits where the model expects none raise the number left."""
    low, high = (TileSearch((2000, 2000), TILE, prior=0.05, budget=200, start=0.3, random_state=0) for _ in "ab")
    boxes = low.ask(60)
    low.tell(boxes, np.zeros(60))
    surprising = np.arange(60) % 6 == 0
    high.tell(boxes, surprising.astype(float))
    for search, seen in ((low, 0), (high, 10)):
        belief, free = search._believe(), np.isnan(search.hits)
        p = belief.probability[free]
        tested = belief.left_out <= p.max()
        hits = int((search.hits[search.answers.rows] * tested).sum())
        assert hits <= seen
        factor = (TRUST + hits) / (TRUST + belief.left_out[tested].sum())
        assert search.left().expected == pytest.approx(p.sum() * factor)
        most = search.left().at_most_tiles
        ends = [
            interval(mean, mean + mean**2 / shape, most)
            for mean, shape in ((p.sum(), TRUST), (p.sum() * factor, TRUST + hits))
        ]
        assert search.left()[1:3] == (ends[1][0], max(ends[0][1], ends[1][1]) if seen >= FEW else most)
    assert high.left().low > 10 > low.left().low
    assert low.left().at_most_tiles < high.left().at_most_tiles < 340


def odd_tiles(share: float = 0.03) -> tuple[Array, Array]:
    """Features of 400 tiles, and which of them are unlike the others."""
    rng = np.random.default_rng(0)
    odd = rng.permutation(400) < share * 400
    return rng.standard_normal((400, 3)) + 6.0 * odd[:, None], odd


def test_outliers_come_first_and_random_looks_between() -> None:
    features, odd = odd_tiles()
    search = TileSearch((2000, 2000), TILE, features=features, budget=80, random_state=0)
    first = search.tiles.numbers(search.ask(8))
    np.testing.assert_array_equal(first[:2], search._first[:2])
    assert odd[first[2:]].all()
    every = finished(search, lambda boxes: odd[search.tiles.numbers(boxes)].astype(float), n=4)
    assert np.nansum(every.hits) == odd.sum()


def test_outliers_without_hits_are_given_up() -> None:
    features, odd = odd_tiles(0.2)
    search = TileSearch((2000, 2000), TILE, features=features, budget=80, random_state=0)
    finished(search, lambda boxes: np.zeros(len(boxes)), n=4)
    looked = ~np.isnan(search.hits)
    assert odd[looked].mean() < 0.6


def test_how_many_looks_are_random_does_not_depend_on_answers() -> None:
    features, odd = odd_tiles()
    taken = []
    for answer in (odd, ~odd, np.zeros(400, bool)):
        search = TileSearch((2000, 2000), TILE, features=features, budget=80, random_state=0)
        for _ in range(6):
            boxes = search.ask(5)
            search.tell(boxes, answer[search.tiles.numbers(boxes)].astype(float))
        assert (~np.isnan(search.hits[search._first[:8]])).all()
        taken.append(search._random_looks(search.answers.spent))
    assert taken == [8, 8, 8]


def test_examples_lead_to_tiles_that_look_like_them() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((400, 4))
    alike = np.square(features - (1.0, -1.0, 1.0, 0.0)).sum(axis=1).argsort()[:12]
    hit = np.isin(np.arange(400), alike)
    found = []
    for examples in (None, np.array([[1.0, -1.0, 1.0, 0.0]] * 3)):
        search = TileSearch((2000, 2000), TILE, features=features, examples=examples, budget=32, random_state=0)
        found.append(hit[search.tiles.numbers(search.ask(8))].sum())
    assert found[1] >= 4 > found[0] + 2


def test_crops_are_examples_for_the_overview() -> None:
    crop = np.full((50, 50, 3), 90, np.uint8)
    crop[20:30, 10:25] = (250, 20, 20)
    search = TileSearch(PICTURE, 50, features="overview", examples=[crop], budget=24, random_state=0)
    assert search.examples is not None
    assert search.features is not None
    nearest = np.abs(search.features - search.examples).sum(axis=1).argsort()[:2]
    boxes = search.tiles.boxes[nearest]
    assert all((PICTURE[int(y) : int(y) + 50, int(x) : int(x) + 50] == 250).any() for x, y, *_ in boxes)


def test_asking_twice_gives_the_same_tiles() -> None:
    features, _ = odd_tiles()
    for given in (features, None):
        search = TileSearch((2000, 2000), TILE, features=given, budget=30, random_state=0)
        boxes = search.ask(12)
        np.testing.assert_array_equal(search.ask(12), boxes)
        np.testing.assert_array_equal(search.ask(5), boxes[:5])
        np.testing.assert_array_equal(search.ask(14)[:12], boxes)
        search.tell(boxes[:3], [0.0, np.nan, 1.0])
        np.testing.assert_array_equal(search.ask(9), boxes[3:])
        assert search.answers.spent == 14
        search.tell(asked := search.ask(400), np.zeros(len(asked)))
        assert search.answers.spent == 30
        assert len(search.ask(3)) == 0


def test_a_judge_who_gives_numbers_finds_no_boxes() -> None:
    search = TileSearch(PICTURE, 100, budget=8, random_state=0)
    search.look(lambda crops: [float((crop == 250).any()) for crop in crops], PICTURE, 8)
    assert np.isfinite(search.hits).sum() == 8
    assert not search.problems
    assert search.found().boxes.shape == (0, 4)
    assert not search.answers.inside
