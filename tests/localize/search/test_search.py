"""The search for one object: what it finds, and what it does with bad input."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade.localize import BoxPrior, Localizer, SituationModel, iou
from saccade.localize.search.asking import most_overlapping, random_numbers

DOG = np.array([310.0, 220.0, 400.0, 290.0])


def searched(looks: int = 40, **options: Any) -> Localizer:
    search = Localizer((640, 480), random_state=0, **options)
    for _ in range(looks // 10):
        boxes = search.ask(10)
        search.tell(boxes, iou(boxes, DOG))
    return search


@pytest.mark.parametrize("policy", ["ei", "pi", "ucb", "thompson"])
def test_an_object_of_unknown_size_is_found(policy: Any) -> None:
    found = searched(50, policy=policy).best()
    assert iou(found.box, DOG) > 0.5
    assert found.probability > 0.5
    assert found.looks == 50


def test_largest_variance_looks_at_places_far_apart() -> None:
    boxes = searched(10, policy="variance").ask(6)
    assert iou(boxes, boxes)[np.triu_indices(6, 1)].max() < 0.9


def test_objects_of_half_a_hundredth_of_the_picture_and_more_are_found() -> None:
    truths = BoxPrior.unknown((640, 480)).sample(6, np.random.default_rng(1))
    for seed, truth in enumerate(truths):
        found = Localizer((640, 480), random_state=seed).run(lambda boxes, truth=truth: iou(boxes, truth), looks=60)
        assert iou(found.box, truth) >= 0.5 or np.prod(truth[2:] - truth[:2]) < 0.005 * 640 * 480
        assert 0.0 <= found.probability <= 1.0


def test_a_prior_that_is_wrong_is_outweighed() -> None:
    boxes = np.tile([[20.0, 20.0, 90.0, 80.0]], (30, 1)) + np.random.default_rng(0).normal(0, 5, (30, 4))
    prior = SituationModel().fit({"dog": boxes}, (640, 480)).prior("dog", None, (640, 480))
    assert prior.log_density(DOG)[0] < -50
    assert iou(searched(60, prior=prior).best().box, DOG) > 0.5


def test_asked_again_it_gives_the_same_boxes() -> None:
    search = searched(20)
    np.testing.assert_array_equal(search.ask(7), search.ask(7))


def test_the_same_seed_gives_the_same_search() -> None:
    np.testing.assert_array_equal(searched(30).boxes, searched(30).boxes)


def test_a_state_goes_through_json_to_the_same_next_question() -> None:
    model = SituationModel().fit({"dog": BoxPrior.unknown((640, 480)).sample(30, np.random.default_rng(0))}, (640, 480))
    map_ = np.random.default_rng(1).random((12, 16))
    for options in (
        {},
        {"prior": model.prior("dog", None, (640, 480)), "noise": 0.0},
        {"prior": BoxPrior.of_map((640, 480), map_), "step": 10.0, "absent": 0.1},
        {"size": (90, 70)},
        {"proposals": BoxPrior.unknown((640, 480)).sample(50, np.random.default_rng(0)), "policy": "pi"},
    ):
        search = searched(10, **options)
        search.tell([[0, 0, 10, 10]], [np.nan], "broken")
        other = Localizer.from_state(json.loads(json.dumps(search.to_state())))
        assert other.to_state() == search.to_state()
        boxes = search.ask(10)
        np.testing.assert_array_equal(other.ask(10), boxes)
        for each in (search, other):  # and the one after
            each.tell(boxes, iou(boxes, DOG))
        np.testing.assert_array_equal(other.ask(5), search.ask(5))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version 1"),
        ({"estimator": "HIK"}, "Localizer"),
        ({"told": [1.0]}, "does not describe"),
        ({"boxes": [[0, 0, 1]]}, "does not describe"),
        ({"options": {}}, "does not describe"),
    ],
)
def test_a_foreign_state_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelFileError, match=words):
        Localizer.from_state(searched(10).to_state() | change)


def test_a_state_nested_without_end_is_refused() -> None:
    density: dict[str, Any] = {"kind": "Block", "low": [0] * 4, "high": [1] * 4}
    for _ in range(5000):
        density = {"kind": "Blend", "shares": [1.0], "parts": [density]}
    state = Localizer((640, 480)).to_state()
    prior = {"bounds": [0, 0, 640, 480], "density": density, "used": [], "fell_back": False, "tail": 1.0}
    with pytest.raises(ModelFileError, match="RecursionError"):
        Localizer.from_state(state | {"options": state["options"] | {"prior": prior}})


def test_proposals_are_the_only_boxes_and_run_out() -> None:
    proposals = np.vstack([BoxPrior.unknown((640, 480)).sample(24, np.random.default_rng(0)), DOG])
    search = Localizer((640, 480), proposals=proposals, random_state=0)
    found = search.run(lambda boxes: iou(boxes, DOG), looks=100, sure=1.0)
    assert found.looks == 25
    assert {tuple(box) for box in search.boxes} == {tuple(box) for box in proposals}
    assert len(search.ask(3)) == 0


def test_of_a_huge_pool_those_that_overlap_the_hypotheses_are_chosen_from() -> None:
    boxes = BoxPrior.unknown((640, 480)).sample(300, np.random.default_rng(0))
    objects = boxes[7] + np.random.default_rng(1).normal(0, 2, (20, 4))
    kept = most_overlapping(boxes, objects, 40)
    mean = iou(boxes, objects).mean(axis=1)
    assert {tuple(box) for box in kept} >= {tuple(box) for box in boxes[mean > np.sort(mean)[-39]]}
    assert len(kept) == 40
    proposals = np.vstack([BoxPrior.unknown((640, 480)).sample(3000, np.random.default_rng(0)), DOG])
    search = Localizer((640, 480), proposals=proposals, random_state=0)
    search.run(lambda boxes: iou(boxes, DOG), looks=60)
    assert iou(search.boxes, DOG).max() > 0.5


def test_a_watcher_is_called_after_every_batch() -> None:
    search, seen = Localizer((640, 480), random_state=0), list[int]()
    search.run(lambda boxes: iou(boxes, DOG), looks=25, sure=1.0, watch=lambda: seen.append(search.looks))
    assert seen == [10, 20, 25]


def test_boxes_lie_on_the_grid_and_inside() -> None:
    boxes = searched(40, step=10.0).boxes
    np.testing.assert_array_equal(boxes % 10.0, np.zeros_like(boxes))
    assert len(np.unique(boxes, axis=0)) == len(boxes)
    assert (boxes >= 0).all()
    assert (boxes[:, 2] <= 640).all()


def test_a_known_size_stays() -> None:
    boxes = searched(30, size=(90, 70)).boxes
    inside = (boxes[:, :2] > 0).all(axis=1) & (boxes[:, 2] < 640) & (boxes[:, 3] < 480)
    np.testing.assert_allclose((boxes[:, 2:] - boxes[:, :2])[inside], np.tile([90.0, 70.0], (inside.sum(), 1)))


def test_scores_may_have_any_unit() -> None:
    plain, other = searched(20), Localizer((640, 480), scores=(-50.0, 150.0), random_state=0)
    for first in (0, 10):
        np.testing.assert_allclose(other.ask(10), plain.boxes[first : first + 10], rtol=1e-6)
        boxes = plain.boxes[first : first + 10]
        other.tell(boxes, 200.0 * iou(boxes, DOG) - 50.0)
    mean, variance = plain.predict(DOG)
    found, spread = other.predict(DOG)
    np.testing.assert_allclose(found, 200.0 * mean - 50.0, rtol=1e-6)
    np.testing.assert_allclose(spread, 200.0**2 * variance, rtol=1e-6)
    np.testing.assert_allclose(other.best().score, 200.0 * plain.best().score - 50.0, rtol=1e-6)


# ---- a judge who fails


def test_a_judge_who_fails_now_and_then_is_no_obstacle() -> None:
    calls = 0

    def judge(boxes: Array) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise RuntimeError("out of memory")
        if calls == 3:
            return [0.5]
        scores = iou(boxes, DOG)
        scores[0] = np.nan
        return scores

    search = Localizer((640, 480), random_state=0)
    with pytest.warns(UserWarning, match=r"failed at 2\d of 80 looks"):
        found = search.run(judge, looks=80, sure=1.0)
    assert iou(found.box, DOG) > 0.5
    whys = [failure.why for failure in search.failures]
    assert whys.count("RuntimeError: out of memory") == 10
    assert whys.count("1 scores for 10 boxes") == 10
    assert whys.count("no finite score") == 6
    looked = {tuple(box) for box in search.boxes}
    assert not looked & {tuple(failure.box) for failure in search.failures}


def test_a_proposal_that_cannot_be_judged_is_asked_for_once() -> None:
    proposals = BoxPrior.unknown((640, 480)).sample(12, np.random.default_rng(0))
    search = Localizer((640, 480), proposals=proposals, random_state=0)
    with pytest.warns(UserWarning, match="failed at 4 of 12 looks"):
        search.run(lambda boxes: np.where(boxes[:, 0] < np.sort(proposals[:, 0])[4], np.nan, 0.0), looks=50)
    assert len(search.failures) == 4
    assert search.looks == 8


def test_a_search_ends_when_it_is_sure() -> None:
    search = Localizer((640, 480), random_state=0)
    found = search.run(lambda boxes: iou(boxes, DOG), looks=200, sure=0.9)
    assert found.probability >= 0.9
    assert found.looks < 100


def test_crops_of_a_picture_are_judged() -> None:
    picture = np.zeros((480, 640, 3), np.uint8)
    picture[220:290, 310:400] = 255

    def judge(crops: list[Array]) -> list[float]:
        """How much of the white patch is inside, and how much of the crop is white."""
        white = [(crop[..., 0] > 127).sum() for crop in crops]
        return [w / (crop[..., 0].size + 90 * 70 - w) for w, crop in zip(white, crops, strict=True)]

    found = Localizer((640, 480), random_state=0).run(judge, picture, looks=60, sure=0.99)
    assert iou(found.box, DOG) > 0.6
    with pytest.raises(InvalidInput, match="640 × 480"):
        Localizer((641, 480)).run(judge, picture)


def test_crops_have_one_size_or_few_pixels() -> None:
    shapes = []

    def judge(crops: list[Array]) -> list[float]:
        shapes.extend(crop.shape for crop in crops)
        return [0.0] * len(crops)

    picture = np.zeros((3000, 4000, 3), np.uint8)
    Localizer((4000, 3000), random_state=0).run(judge, picture, crop=(32, 24), looks=10)
    assert set(shapes) == {(24, 32, 3)}
    shapes.clear()
    Localizer((4000, 3000), size=(3900, 2900), random_state=0).run(judge, picture, looks=10)
    assert all(2**19 < height * width < 1.01 * 2**20 for height, width, _ in shapes)


def test_an_interrupted_search_goes_on_from_its_file(tmp_path: Path) -> None:
    class Stop(BaseException):
        pass

    calls = 0

    def judge(boxes: Array) -> Array:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Stop
        return np.asarray(iou(boxes, DOG))

    with pytest.raises(Stop):
        Localizer((640, 480), random_state=0).run(judge, looks=50, sure=1.0, state=tmp_path / "search.json")
    found = Localizer((640, 480), random_state=0).run(judge, looks=50, sure=1.0, state=tmp_path / "search.json")
    whole = Localizer((640, 480), random_state=0).run(lambda boxes: iou(boxes, DOG), looks=50, sure=1.0)
    np.testing.assert_array_equal(found.box, whole.box)
    with pytest.raises(InvalidInput, match="another bounds"):
        Localizer((640, 400), random_state=0).run(judge, state=tmp_path / "search.json")
    (tmp_path / "search.json").write_text("{")
    with pytest.raises(ModelFileError, match="no JSON"):
        Localizer((640, 480), random_state=0).run(judge, state=tmp_path / "search.json")


# ---- bad input


def test_contradictory_scores_of_one_box() -> None:
    search = Localizer((640, 480), noise=0.0)
    search.tell([DOG], [0.5])
    with pytest.raises(InvalidInput, match=r"0\.5 and 0\.7"):
        search.tell([DOG], [0.7])
    assert search.looks == 1
    noisy = Localizer((640, 480), random_state=0)
    noisy.tell([DOG] * 8, [0.5, 0.7] * 4)
    assert noisy.looks == 8
    assert noisy.predict(DOG)[0][0] == pytest.approx(0.6, abs=0.1)


@pytest.mark.parametrize(
    ("boxes", "scores", "words"),
    [
        ([[0, 0, 700, 100]], [0.1], "not inside"),
        ([[10, 10, 5, 20]], [0.1], "inverted"),
        ([[0, 0, np.nan, 10]], [0.1], "not finite"),
        ([[0, 0, 10, 10]], [0.1, 0.2], "as many scores"),
        ([[0, 0, 10, 10]], ["high"], "numbers"),
    ],
)
def test_bad_tells_change_nothing(boxes: Any, scores: Any, words: str) -> None:
    search = searched(10)
    before = search.to_state()
    with pytest.raises(InvalidInput, match=words):
        search.tell(boxes, scores)
    assert search.to_state() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": (700, 10)}, "700"),
        ({"size": (-1, 10)}, "size"),
        ({"scores": (1.0, 0.0)}, "scores"),
        ({"policy": "best"}, "policy"),
        ({"noise": -1.0}, "noise"),
        ({"from_prior": 0.7, "at_random": 0.5}, "at_random"),
        ({"prior": "dog"}, "BoxPrior"),
        ({"prior": BoxPrior.unknown((10, 10))}, "10"),
        ({"proposals": [[0, 0, 900, 10]]}, "not inside"),
        ({"proposals": []}, "nothing to look at"),
        ({"step": 0.0}, "step"),
        ({"absent": 2.0}, "absent"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises((InvalidInput, InvalidParameter), match=words):
        Localizer((640, 480), **options)


def test_bad_bounds() -> None:
    for bounds in ((0, 0), (10, 10, 5, 20), (np.nan, 3), "dog"):
        with pytest.raises(InvalidInput):
            Localizer(bounds)
    with pytest.raises(InvalidInput, match="one picture"):
        Localizer([[10, 10], [20, 20]])


def test_before_any_look_the_answer_is_the_prior() -> None:
    found = Localizer((640, 480), random_state=0).best()
    assert found.looks == 0
    assert found.probability < 0.3


def settings() -> dict[str, dict[str, Any]]:
    """Searches that differ in where the object may be."""
    rng, sizes = np.random.default_rng(0), (640, 480)
    corner = np.array([0.0, 420.0, 40.0, 470.0]) + rng.uniform(0, 20, (30, 1)) + rng.uniform(0, 9, (30, 4))
    prior = SituationModel().fit({"dog": np.clip(corner, 0, 480)}, sizes).prior("dog", None, sizes)
    pool = BoxPrior.unknown(sizes).sample(40, rng)
    return {
        "nothing": {},
        "size": {"size": (90, 70)},
        "prior": {"prior": prior},
        "prior and size": {"prior": prior, "size": (90, 70)},
        "map": {"prior": BoxPrior.of_map((640, 480), np.eye(7))},
        "proposals": {"proposals": pool},
        "proposals far from the prior": {"proposals": pool[pool[:, 2] < 300][:5], "prior": prior, "crowd": False},
        "proposals, size and prior": {"proposals": pool, "size": (90, 70), "prior": prior},
        "proposals that crowd": {"proposals": np.vstack([pool, pool[:1] + 0.5]), "crowd": False},
    }


@pytest.mark.parametrize("setting", settings())
@pytest.mark.parametrize("absent", [0.001, 0.5, 0.9])
def test_before_any_look_it_is_present_as_often_as_was_said(setting: str, absent: float) -> None:
    search = Localizer((640, 480), absent=absent, random_state=0, **settings()[setting])
    assert search.best().present == pytest.approx(1.0 - absent, abs=1e-12)


@pytest.mark.parametrize("setting", settings())
def test_looks_that_say_nothing_leave_it_so(setting: str) -> None:
    """With noise of a thousand ranges every object explains the scores alike."""
    search = Localizer((640, 480), absent=0.5, noise=1e6, random_state=0, **settings()[setting])
    search.tell(BoxPrior.unknown((640, 480)).sample(3, np.random.default_rng(1)), [0.1, 0.9, 0.4])
    assert search.best().present == pytest.approx(0.5, abs=0.005)


def test_random_numbers_follow_from_seed_looks_failures_and_purpose() -> None:
    """The same of all four: the same numbers, after a reload too. Another one: others, so that no two rounds agree."""

    def drawn(seed: int, looks: int, failures: int, stream: int) -> float:
        search = Localizer((100, 100), random_state=seed)
        search.tell([[10 + k, 10, 30 + k, 40] for k in range(looks + failures)], [0.1] * looks + [np.nan] * failures)
        numbers = [random_numbers(one, stream).random() for one in (search, Localizer.from_state(search.to_state()))]
        assert numbers[0] == numbers[1]
        return float(numbers[0])

    assert drawn(0, 1, 1, 1) == drawn(0, 1, 1, 1)
    assert len({drawn(0, 2, 1, 1), drawn(3, 2, 1, 1), drawn(0, 3, 1, 1), drawn(0, 2, 2, 1), drawn(0, 2, 1, 2)}) == 5
    assert drawn(0, 2, 1, 1) != drawn(0, 1, 2, 1)
