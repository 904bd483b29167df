"""The learned response against dense algebra, and what it is for: judges that are silent until a box fits well."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, ModelFileError
from saccade.kernels import RBF
from saccade.localize import Localizer, iou
from saccade.localize.boxes import pairs_iou, to_coordinates
from saccade.localize.priors.box_prior import BoxPrior
from saccade.localize.search.belief import grid_boxes
from saccade.localize.search.importance import hypotheses_of_pool
from saccade.localize.search.response import GRID, LEAST_TAIL, Judgement, Response
from saccade.localize.search.score_model import CLUTTER_SCALES, Views
from tests.tolerances import assert_close

BOUNDS = np.array([0.0, 0.0, 640.0, 480.0])
OBJECT = np.array([310.0, 220.0, 400.0, 290.0])


def silent(overlaps: Array, rng: np.random.Generator) -> Array:
    """A judge that says nothing below an overlap of 0.55, and misses three of ten objects above."""
    seen = (overlaps > 0.55) & (rng.random(overlaps.shape) > 0.3)
    return np.where(seen, 0.9, 0.0) + 0.02 * rng.random(overlaps.shape)


def response(together: float = 0.5) -> Response:
    rng = np.random.default_rng(0)
    overlaps = np.append(np.zeros(3000), rng.random(1000))
    return Response.learn(overlaps, silent(overlaps, rng), together=together)


def pool(rng: np.random.Generator, n: int = 300) -> Array:
    near = OBJECT + rng.normal(0.0, 8.0, (8, 4))
    return np.vstack([BoxPrior.unknown(BOUNDS).sample(n - 8, rng), near])[rng.permutation(n)]


def test_table_holds_how_often_scores_come() -> None:
    found = response()
    assert np.allclose(found.table.sum(axis=1), 1.0)
    loud = found.bins(np.array([0.905]))[0]
    share = found.table[:, loud:].sum(axis=1) + found.table[:, loud - 1]
    assert share[GRID < 0.3].max() < 0.4
    assert found.expected(np.array([0.0, 0.9])) == pytest.approx([0.01, 0.7 * 0.9], abs=0.05)


def test_overlaps_without_windows_are_like_the_nearest() -> None:
    overlaps = np.linspace(0.0, 0.7, 800)
    found = Response.learn(overlaps, overlaps)
    assert found.expected(np.array([1.0]))[0] > 0.6
    assert found.table[-1].argmax() == len(found.edges)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.5, 0.9]), st.sampled_from([0.0, 0.05]))
def test_log_likelihood_is_that_of_the_copula(seed: int, together: float, offset: float) -> None:
    rng, learned = np.random.default_rng(seed), replace(response(together), offset=offset)
    boxes, objects = BoxPrior.unknown(BOUNDS).sample(6, rng), BoxPrior.unknown(BOUNDS).sample(4, rng)
    boxes[3] = boxes[2] + 1e-3  # nearly the same
    looks = Views.of(BOUNDS, boxes, silent(iou(boxes, OBJECT), rng))
    u = to_coordinates(looks.boxes, BOUNDS)
    K = (
        RBF(length_scale=CLUTTER_SCALES, amplitude=1.0)(u, u) * together
        + offset
        + (1.0 - together - offset) * np.eye(6)
    )
    found = Judgement(looks, learned).log_likelihood(objects)
    for place, box in enumerate(objects):
        o, bins = pairs_iou(looks.boxes, box[None])[:, 0], learned.bins(looks.scores)
        lower = np.clip(np.cumsum(learned.table, axis=1) - 0.5 * learned.table, LEAST_TAIL, 1.0 - LEAST_TAIL)
        r = np.array([np.interp(o[i], GRID, norm.ppf(lower[:, bins[i]])) for i in range(6)])
        logs = sum(np.interp(o[i], GRID, np.log(learned.table[:, bins[i]])) for i in range(6))
        dense = logs + multivariate_normal(np.zeros(6), K).logpdf(r) - norm.logpdf(r).sum()
        assert found[place] == pytest.approx(dense, rel=1e-8, abs=1e-8)


def test_of_nothing_is_that_of_overlap_zero() -> None:
    rng = np.random.default_rng(0)
    boxes = np.array([[10.0, 10, 60, 60], [100, 10, 160, 60]])
    judged = Judgement(Views.of(BOUNDS, boxes, silent(np.zeros(2), rng)), response())
    far = np.array([[500.0, 400.0, 560.0, 460.0]])
    assert judged.log_likelihood_of_none() == pytest.approx(judged.log_likelihood(far)[0], rel=1e-12)


def looks_until_found(told: Response | None, seed: int) -> int:
    rng = np.random.default_rng(seed)
    boxes = pool(rng)
    search = Localizer(BOUNDS, proposals=boxes, crowd=False, response=told, random_state=seed)
    while search.looks < 120:
        some = search.ask(5)
        if (iou(some, OBJECT) >= 0.5).any():
            break
        search.tell(some, silent(iou(some, OBJECT), rng))
    return search.looks


def test_a_silent_judge_needs_the_learned_response() -> None:
    learned = np.median([looks_until_found(response(), seed) for seed in range(5)])
    linear = np.median([looks_until_found(None, seed) for seed in range(5)])
    assert learned < 0.8 * linear


def test_search_without_proposals() -> None:
    """Of a judge whose score is no straight line."""
    rng, large = np.random.default_rng(0), np.array([290.0, 200.0, 430.0, 310.0])
    overlaps = np.append(np.zeros(1000), rng.random(1500))
    told = Response.learn(overlaps, overlaps**1.5 + rng.normal(0.0, 0.02, 2500))
    search = Localizer(BOUNDS, response=told, random_state=0)
    for _ in range(6):
        boxes = search.ask(10)
        search.tell(boxes, iou(boxes, large) ** 1.5 + rng.normal(0.0, 0.02, len(boxes)))
    assert iou(search.best().box, large) > 0.5


def test_state_asks_the_same_next_question() -> None:
    rng = np.random.default_rng(1)
    search = Localizer(BOUNDS, proposals=pool(rng), crowd=False, response=response(), random_state=3)
    boxes = search.ask(4)
    search.tell(boxes, silent(iou(boxes, OBJECT), rng))
    state = json.loads(json.dumps(search.to_state()))
    again = Localizer.from_state(state)
    assert not again.crowd
    assert (again.ask(4) == search.ask(4)).all()
    state["options"]["response"]["table"] = [[1.0]]
    with pytest.raises(ModelFileError):
        Localizer.from_state(state)


def test_crowds_count_only_where_they_should() -> None:
    rng = np.random.default_rng(0)
    crowded, lonely = np.array([100.0, 100.0, 180.0, 160.0]), np.array([450.0, 300.0, 530.0, 360.0])
    boxes = np.vstack([np.tile(crowded, (9, 1)) + rng.normal(0.0, 1.0, (9, 4)), lonely])
    for crowd, share in ((True, 0.1), (False, 0.5)):
        found = hypotheses_of_pool(
            boxes, BoxPrior.unknown(BOUNDS), lambda b: np.zeros(len(b)), 2000, crowd, np.random.default_rng(0)
        )
        assert found.weights[found.boxes[:, 0] > 320].sum() == pytest.approx(share, abs=0.02)


def test_map_is_what_predict_says() -> None:
    rng, search = np.random.default_rng(0), Localizer(BOUNDS, response=response(), random_state=0)
    boxes = search.ask(20)
    search.tell(boxes, silent(iou(boxes, OBJECT), rng))
    size = np.array([90.0, 70.0])
    assert_close(np.ravel(search.map(6, 8, size)), np.ravel(search.predict(inside := grid_boxes(BOUNDS, size, 6, 8))))
    mean, variance = search.predict(inside)
    assert (variance >= 0).all()
    assert mean.max() <= response().means.max() + 1e-9


@pytest.mark.parametrize(
    ("overlaps", "scores", "says"),
    [
        ([0.1, 0.2], [1.0], "2 overlaps and 1 scores"),
        ([0.1, 1.2], [1.0, 2.0], "from 0 to 1"),
        ([0.1, 0.2], [1.0, np.nan], "from 0 to 1"),
        ([0.1, 0.2], [1.0, 1.0], "the same of every box"),
        ([], [], "0 overlaps"),
    ],
)
def test_bad_windows(overlaps: list[float], scores: list[float], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        Response.learn(overlaps, scores)


def shared_errors(
    rho: float, tau: float, rng: np.random.Generator, pictures: int = 60
) -> tuple[Array, Array, list[Array]]:
    """Scores whose errors nearby boxes, and all boxes of a picture, have in common: overlaps, scores, coordinates."""
    overlaps, scores, views = [], [], []
    for _ in range(pictures):
        box = BoxPrior.unknown(BOUNDS).sample(1, rng)[0]
        boxes = np.vstack([np.tile(box, (8, 1)) + rng.uniform(-2, 2, (8, 4)), BoxPrior.unknown(BOUNDS).sample(8, rng)])
        u = to_coordinates(boxes, BOUNDS)
        K = rho * RBF(length_scale=CLUTTER_SCALES, amplitude=1.0)(u, u) + tau + (1 - rho - tau) * np.eye(len(u))
        o = rng.random(len(u))
        overlaps.append(o)
        scores.append(o + 0.2 * rng.multivariate_normal(np.zeros(len(u)), K))
        views.append(u)
    return np.concatenate(overlaps), np.concatenate(scores), views


@pytest.mark.parametrize(("rho", "tau"), [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.35, 0.35)])
def test_shared_errors_are_learned(rho: float, tau: float) -> None:
    overlaps, scores, views = shared_errors(rho, tau, np.random.default_rng(1))
    found = Response.learn(overlaps, scores, views=views)
    assert found.together == pytest.approx(rho, abs=0.2)
    assert found.offset == pytest.approx(tau, abs=0.2)
    assert Response.from_dict(json.loads(json.dumps(found.to_dict()))).offset == found.offset


def test_views_must_fit_the_windows() -> None:
    with pytest.raises(InvalidInput, match="3 windows, and there are 2"):
        Response.learn([0.1, 0.9], [0.0, 1.0], views=[np.zeros((3, 4))])
