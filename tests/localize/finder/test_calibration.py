"""The calibrator: said is true on new searches, more evidence never says less, few searches say little."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from saccade.localize import Localizer, iou
from saccade.localize.finder.calibration import (
    DENIED,
    DOUBTED,
    LOST,
    Calibrator,
    Logistic,
    Trials,
    evidence_of,
    left_out,
)


def trials(n: int, seed: int, apart: float = 1.5) -> Trials:
    """Evidence that is higher where the object is, and an answer that is right with a known probability."""
    rng = np.random.default_rng(seed)
    there = rng.random(n) < 0.5
    present = rng.normal(np.where(there, apart, 0.0)[:, None], 1.0, (n, 2))
    right = rng.normal(0.0, 1.0, (n, 3))
    hit = there & (rng.random(n) < expit(1.0 + right[:, 0]))
    return Trials(present, right, there, hit, np.zeros(n, bool))


@pytest.mark.parametrize(("n", "runs", "within"), [(100, 30, 0.06), (3000, 1, 0.04)])
def test_said_is_true_on_new_searches(n: int, runs: int, within: float) -> None:
    new, gaps = trials(20_000, 1), []
    for seed in range(10, 10 + runs):
        said, there, _ = Calibrator.learn(trials(n, seed)).say(new.present, new.right)
        for chances, truth in ((said, new.hit), (there, new.there)):
            bins = np.array_split(np.argsort(chances), 5)
            gaps.append([chances[part].mean() - truth[part].mean() for part in bins])
    assert np.abs(np.mean(np.reshape(gaps, (runs, 2, 5)), axis=0)).max() < within


def test_a_stated_share_shifts_the_odds() -> None:
    calibrator, new = Calibrator.learn(trials(2000, 0)), trials(500, 1)
    rare, often, sure = (calibrator.say(new.present, new.right, share) for share in (0.9, 0.5, 0.0))
    odds = [there / (1.0 - there) for _, there, _ in (rare, often)]
    assert np.allclose(odds[1], 9.0 * odds[0])
    assert (sure[1] == 1.0).all()
    assert sure[2].all()
    assert np.allclose(often[0], often[1] * sure[0])
    assert rare[2].sum() < often[2].sum()


def test_the_threshold_loses_the_share_that_was_promised() -> None:
    lost = []
    for seed in range(60):
        calibrator, new = Calibrator.learn(trials(100, seed)), trials(400, 1000 + seed)
        lost.append(1.0 - calibrator.say(new.present, new.right)[2][new.there].mean())
    assert 0.01 < np.mean(lost) < LOST + 0.015
    clear = Calibrator.learn(trials(400, 0, apart=9.0))
    assert clear.threshold == DENIED
    _, _, stands = clear.say(*(lambda new: (new.present, new.right))(trials(400, 1, apart=9.0)))
    assert stands.mean() == pytest.approx(0.5, abs=0.1)


def test_what_is_improbable_is_not_said_to_be_there() -> None:
    """One object of twelve that looks like none: the threshold of a twentieth alone would be below it."""
    there = np.arange(24) < 12
    present = np.where(there, 4.0, 0.0)[:, None] + np.linspace(-0.5, 0.5, 24)[:, None] * np.ones(2)
    present[0] = -1.0
    some = Trials(present, np.zeros((24, 3)), there, there, np.zeros(24, bool))
    assert Calibrator.learn(some).threshold == DOUBTED


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 30))
def test_more_evidence_never_says_less(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.random(n) < 0.5
    found = Logistic.learn(X, y, np.ones(n))
    assert (found.weights >= 0.0).all()
    assert (found.odds(X + rng.random((n, 3))) >= found.odds(X) - 1e-12).all()
    assert np.isfinite(found.odds(X)).all()


def test_few_searches_are_never_certain_and_none_without_says_nothing_of_presence() -> None:
    few = trials(14, 0, apart=20.0)
    said = Calibrator.learn(few).say(few.present, few.right)[1]
    assert said.max() < 0.9999
    assert said.min() > 0.0001
    only = trials(60, 0)
    only = only.some(only.there)
    calibrator = Calibrator.learn(only)
    right, there, stands = calibrator.say(only.present, only.right)
    assert np.allclose(there, 0.5)
    assert stands.all()
    assert 2.0 * right.mean() == pytest.approx(only.hit.mean(), abs=0.05)


def test_left_out_figures_are_no_better_than_they_should_be() -> None:
    rng = np.random.default_rng(0)
    no = np.zeros(40, bool)
    noise = Trials(rng.normal(size=(40, 2)), rng.normal(size=(40, 3)), rng.random(40) < 0.5, no, no)
    _, there, _ = left_out(noise)
    own = Calibrator.learn(noise).say(noise.present, noise.right)[1]
    loss = [-np.log(np.where(noise.there, p, 1.0 - p)).mean() for p in (there, own)]
    assert loss[0] > loss[1]
    assert loss[0] > np.log(2.0) - 0.01


def test_parts_of_pictures_count_as_easier_than_other_places() -> None:
    found = trials(400, 0, apart=3.0)
    parts = Trials(found.present, found.right, found.there, found.hit, ~found.there)
    plain, hedged = (Calibrator.learn(each).say(found.present, found.right)[1] for each in (found, parts))
    assert hedged[~found.there].mean() < plain[~found.there].mean()
    assert np.array_equal(parts.harder()[found.there], found.present[found.there])
    assert np.array_equal(found.harder(), found.present)


def test_evidence_of_a_search() -> None:
    box = np.array([310.0, 220.0, 400.0, 290.0])
    there, none = (Localizer((640, 480), absent=0.5, random_state=0) for _ in range(2))
    for _ in range(4):
        for search in (there, none):
            boxes = search.ask(10)
            search.tell(boxes, iou(boxes, box) if search is there else np.zeros(len(boxes)))
    found, empty = evidence_of(there), evidence_of(none)
    assert found.present[0] == there.told.max()
    assert found.present[1] > 0.5
    assert (found.present > empty.present).all()
    assert (found.right >= empty.right).all()
