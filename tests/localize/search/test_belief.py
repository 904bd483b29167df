"""What is said of an object against sums over all hypotheses, and against how often it is true."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.localize import BoxPrior, Localizer, iou
from saccade.localize.boxes import pairs_iou
from saccade.localize.search.belief import Belief
from saccade.localize.search.misfits import Misfits
from saccade.localize.search.score_model import BETA, BETA_SPREAD, Views, clutter_and_offset, shares

BOUNDS = np.array([0.0, 0.0, 640.0, 480.0])


@cache
def some_belief(seed: int) -> tuple[Belief, Array]:
    """After 24 looks at random, half of them around an object, with scores drawn from the model; and the object."""
    rng, prior = np.random.default_rng(seed), BoxPrior.unknown(BOUNDS).of_size((110.0, 90.0))
    truth, misfits = prior.sample(1, rng)[0], Misfits.of(None)
    misfit = misfits.each[rng.choice(len(misfits.shares), p=misfits.shares)]
    near = np.clip(truth + np.tile(rng.normal(0.0, 60.0, (8, 2)), 2), 0.0, np.tile(BOUNDS[2:], 2))
    near = near[(near[:, 2:] - near[:, :2] > 1.0).all(axis=1)]
    boxes = np.vstack([prior.sample(24 - len(near), rng), near])
    H = shares(boxes, truth[None], BOUNDS)[:, :, 0]
    C = clutter_and_offset(boxes, boxes, BOUNDS, misfit) + misfit.noise**2 * np.eye(len(boxes))
    scores = rng.multivariate_normal(rng.normal(BETA, BETA_SPREAD) @ H, C)
    return Belief.after(Views.of(BOUNDS, boxes, scores), prior, misfits, 0.0, rng), truth


def said_and_true(first: int, last: int) -> tuple[Array, Array]:
    found = [some_belief(seed) for seed in range(first, last)]
    answers = [belief.best() for belief, _ in found]
    right = [iou(box, truth) >= 0.5 for (box, _), (_, truth) in zip(answers, found, strict=True)]
    return np.array([probability for _, probability in answers]), np.array(right, np.float64)


def test_the_answer_is_right_as_often_as_it_says() -> None:
    said, true = said_and_true(0, 150)
    assert abs((said - true).sum()) < 3.0 * np.sqrt((said * (1.0 - said)).sum())
    assert 0.2 < said.mean() < 0.8  # else this says little


@pytest.mark.parametrize("seed", range(5))
def test_the_probability_is_that_of_all_hypotheses(seed: int) -> None:
    belief, _ = some_belief(seed)
    box, probability = belief.best()
    overlap = pairs_iou(np.vstack([box, belief.evidence.looks.boxes]), belief.where.boxes)
    assert probability == pytest.approx((overlap[0] >= 0.5) @ belief.where.weights, abs=2e-3)
    expected = overlap @ belief.where.weights
    assert expected[0] >= expected[1:].max() - 2e-3  # the answer is expected to overlap as much as any look


@pytest.mark.parametrize("seed", range(3))
def test_predicted_scores_are_those_of_all_hypotheses(seed: int) -> None:
    belief, _ = some_belief(seed)
    boxes = BoxPrior.unknown(BOUNDS).sample(20, np.random.default_rng(seed))
    mean, variance = belief.moments(boxes)
    every = belief.evidence.given(belief.where.boxes).moments(boxes, belief.where.boxes, belief.where.weights)
    np.testing.assert_allclose(mean, every[0], atol=0.15 * np.sqrt(every[1]).max())
    np.testing.assert_allclose(np.sqrt(variance).mean() / np.sqrt(every[1]).mean(), 1.0, atol=0.05)


TRUTH = np.array([200.0, 150.0, 320.0, 260.0])


CHANGES: dict[str, Callable[[Array], Array]] = {
    "percent": lambda p: 100.0 * p,
    "tenfold": lambda p: 10.0 * p,
    "plus three": lambda p: p + 3.0,
    "log p": lambda p: np.log(0.01 + 0.98 * p),
    "logits": lambda p: np.log((0.01 + 0.98 * p) / (0.99 - 0.98 * p)),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_judge_on_another_scale_is_understood(kind: str) -> None:
    search = Localizer((640, 480), scores=None, random_state=0)
    found = search.run(lambda boxes: CHANGES[kind](iou(boxes, TRUTH)), looks=60)
    assert iou(found.box, TRUTH) >= 0.5
    assert found.probability > 0.5
    low, high = CHANGES[kind](np.array([0.0, 1.0]))
    assert low - 0.3 * (high - low) < found.score < high + 0.3 * (high - low)
    again = Localizer.from_state(search.to_state())
    np.testing.assert_array_equal(again.best().box, found.box)


@pytest.mark.parametrize("kind", sorted(CHANGES.keys() - {"tenfold"}))  # which looks like a judge of small objects
def test_a_judge_far_from_its_scale_is_refused(kind: str) -> None:
    search = Localizer((640, 480), random_state=0)
    with pytest.raises(InvalidInput, match=r"Pass `scores` as the judge says them, or scores=None to learn them"):
        search.run(lambda boxes: CHANGES[kind](iou(boxes, TRUTH)), looks=60)
    assert search.looks == 0


def test_the_answer_is_as_good_as_the_best_look_where_few_draws_are_likely() -> None:
    """Exact scores leave a needle of likely boxes: draws that miss it must not make the answer sure and wrong."""
    rng, looked, answered, said = np.random.default_rng(0), [], [], []
    for seed in range(10):
        middle, sides = rng.uniform(500, 1500, 2), rng.permutation([rng.uniform(60, 120), rng.uniform(200, 500)])
        thin = np.concatenate([middle - sides / 2, middle + sides / 2])
        search = Localizer((2000, 2000), random_state=seed)
        for _ in range(5):
            boxes = search.ask(10)
            search.tell(boxes, 0.9 * iou(boxes, thin))
        best, top = search.best(), search.boxes[int(np.argmax(search.told))]
        looked.append(float(iou(top, thin)) >= 0.5)
        answered.append(float(iou(best.box, thin)) >= 0.5)
        said.append(best.probability)
    assert sum(looked) >= 8
    assert sum(answered) >= sum(looked) - 1
    assert np.mean(said) < np.mean(answered) + 0.1
