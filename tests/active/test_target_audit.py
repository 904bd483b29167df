"""An audit with a target: it comes late, tests a frozen model, and stops falsely in at most one campaign of twenty."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saccade._core.errors import InvalidParameter, ModelFileError
from saccade.active import ActiveLearner
from saccade.active.target_audit import TargetAudit
from tests.active.test_learner import DIGITS, TRUTH, assert_same

Array = np.ndarray[Any, np.dtype[Any]]


def audit_of(m: int = 400, **options: Any) -> TargetAudit:
    return TargetAudit(np.arange(m), 0.3, **{"target": 0.8, **options})


def campaign(accuracies: list[float], rng: np.random.Generator, target: float, m: int = 300) -> tuple[bool, float]:
    """Models that get half as many labels again each time, and believe too much; whether one is shown, and the last."""
    audit, audited, labels, accuracy = audit_of(m, target=target), 0, 60, 0.0
    for accuracy in accuracies:
        right = rng.random(m) < accuracy
        audit = audit.follows(True, labels, lambda: 0.99).looked(right[:audited], labels)
        while audit.testing and (due := audit.due(labels, 8, audited)):
            audited += due
            audit = audit.looked(right[:audited], labels)
        if audit.accuracy().reaches(target):
            return True, accuracy
        labels = labels * 3 // 2
    return False, accuracy


def test_false_stops_are_rare_however_many_models_are_tested() -> None:
    """150 campaigns of six models, all of them a hair below the target."""
    ends = [campaign([0.8 - 1e-9] * 6, np.random.default_rng(seed), 0.8) for seed in range(150)]
    assert sum(stopped for stopped, _ in ends) <= 10


def test_good_models_are_shown_after_poor_ones() -> None:
    ends = [campaign([0.7, 0.78, 0.93, 0.95], np.random.default_rng(seed), 0.8) for seed in range(20)]
    assert sum(stopped and accuracy > 0.9 for stopped, accuracy in ends) >= 17
    assert all(accuracy > 0.8 for stopped, accuracy in ends if stopped)


def test_no_audit_before_the_model_believes_in_the_target() -> None:
    audit = audit_of().follows(True, 100, lambda: 0.79)
    assert (audit.testing, audit.due(100, 10, 0)) == (False, 0)
    assert not audit_of().follows(True, 100, lambda: 0.81).testing  # it would take hundreds of audits
    assert audit_of().follows(True, 100, lambda: 0.95).due(100, 10, 0) == 10
    assert not audit_of().follows(True, 10, lambda: 0.95).testing  # ten labels more are cheaper than a test
    assert not audit_of().follows(True, 0, lambda: 0.95).testing


def test_a_model_that_changes_ends_its_test_and_the_next_one_needs_a_quarter_more_labels() -> None:
    audit = audit_of().follows(True, 100, lambda: 0.95).looked(np.ones(4, bool), 100)
    assert audit.follows(False, 100, lambda: 0.0).testing
    assert not audit.follows(True, 124, lambda: 0.99).testing
    later = audit.follows(True, 125, lambda: 0.99)
    assert later.testing
    later = later.looked(np.ones(4, bool), 125)  # the four rows count for it too
    assert [(look.labels, look.audited) for look in later.looks] == [(100, 4), (125, 4)]
    assert later.looks[1].low < later.looks[0].low  # the second model that is tested has less of the error


def test_a_hopeless_test_is_given_up_and_a_shown_target_stays() -> None:
    audit = audit_of().follows(True, 100, lambda: 0.95)
    assert audit.looked(np.arange(20) < 15, 100).testing is False
    assert audit.looked(np.arange(20) < 18, 100).testing is True
    shown = audit.looked(np.ones(40, bool), 100)
    assert (shown.testing, shown.accuracy().reaches(0.8)) == (False, True)
    later = shown.follows(True, 500, lambda: 0.99)
    assert (later.testing, later.accuracy()) == (False, shown.accuracy())
    few = audit_of(30).follows(True, 100, lambda: 0.95)
    assert few.looked(np.arange(30) < 27, 100).testing is False  # no row is left to ask


def test_a_pool_that_grew_is_tested_anew() -> None:
    shown = audit_of(60).follows(True, 100, lambda: 0.95).looked(np.ones(40, bool), 100)
    grown = shown.grown(200, 300, np.random.default_rng(0))
    assert isinstance(grown, TargetAudit)
    assert (grown.rows.size, grown.looks, grown.testing, grown.target) == (90, (), False, 0.8)
    assert grown.follows(True, 100, lambda: 0.95).testing


def test_state_goes_through_json_and_back() -> None:
    audit = audit_of(confidence=0.9).follows(True, 100, lambda: 0.95).looked(np.arange(20) < 15, 100)
    audit = audit.follows(True, 200, lambda: 0.95).looked(np.arange(50) < 45, 200)
    again = TargetAudit.from_state(json.loads(json.dumps(audit.state())))
    assert again.accuracy() == audit.accuracy()
    assert (again.target, again.testing, again.confidence) == (0.8, audit.testing, 0.9)
    assert again.rows.tolist() == audit.rows.tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"looks": [[9, 0, 0]]},
        {"looks": [[9, 20, 21]]},
        {"looks": [[9, 20, 3], [9, 30, 3]]},
        {"looks": [[9, 401, 3]]},
        {"target": 1.0},
        {"target": "high"},
        {"testing": 1},
    ],
)
def test_state_of_something_else_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ModelFileError):
        TargetAudit.from_state(audit_of().state() | change)


def led(target: float = 0.8, **options: Any) -> tuple[ActiveLearner, list[Array]]:
    learner, asked = ActiveLearner(DIGITS[:900], target=target, random_state=1, **options), list[Array]()
    while not learner.should_stop():
        asked.append(learner.ask(20))
        learner.tell(asked[-1], TRUTH[asked[-1]])
    return learner, asked


def test_a_campaign_learns_first_and_audits_late(tmp_path: Path) -> None:
    learner, asked = led()
    audits = [bool(learner.is_audit(rows).all()) for rows in asked]
    assert not any(learner.is_audit(rows).any() != every for rows, every in zip(asked, audits, strict=True))
    assert audits[-1]
    assert not any(audits[:3])
    assert sum(map(len, asked)) < 300
    known = learner.accuracy()
    assert known.low >= 0.8
    assert known.labels == learner.field.rows.size
    assert (learner.model.predict(DIGITS[900:]) == TRUTH[900:]).mean() > 0.8
    assert learner.should_stop(0.7)
    learner.save(tmp_path / "c.saccade")
    again = ActiveLearner.load(tmp_path / "c.saccade", DIGITS[:900])
    assert (again.target, again.should_stop()) == (0.8, True)
    assert_same(again, learner)
    grown = ActiveLearner.load(tmp_path / "c.saccade", DIGITS[:1200])
    assert not grown.should_stop()  # shown for the old pool only
    assert grown.audit.rows.size == 360


def test_what_a_test_finds_changes_no_model() -> None:
    """Wrong answers to audits decide when a model comes to be tested, and not which one: the intervals rest on it."""
    honest, lying = (ActiveLearner(DIGITS[:600], target=0.8, strategy="random", random_state=1) for _ in range(2))
    learned: list[list[int]] = [[], []]
    for found, learner in zip(learned, (honest, lying), strict=True):
        while len(found) < 160:
            rows = learner.ask(10)
            audits = learner.is_audit(rows)
            found += rows[~audits].tolist()
            learner.tell(rows, np.where(audits, 99 if learner is lying else TRUTH[rows], TRUTH[rows]))
    assert len(lying.labels) > 160  # there were audits
    assert learned[0] == learned[1]


def test_a_file_keeps_a_test_that_is_under_way(tmp_path: Path) -> None:
    learner = ActiveLearner(DIGITS[:900], target=0.8, random_state=1)
    while not learner.is_audit(rows := learner.ask(5)).any():
        learner.tell(rows, TRUTH[rows])
    learner.tell(rows, TRUTH[rows])
    learner.save(tmp_path / "c.saccade")
    again = ActiveLearner.load(tmp_path / "c.saccade", DIGITS[:900])
    assert again.is_audit(again.ask(5)).all()
    assert_same(again, learner)
    rows = np.setdiff1d(learner.pool_model.rows, learner.field.rows)[:1]
    again.tell(rows, TRUTH[rows])  # somebody labels a row: the model is another one
    assert not again.is_audit(again.ask(5)).any()


def test_a_target_that_cannot_be_shown_is_refused() -> None:
    with pytest.raises(
        InvalidParameter, match=r"`target`=0\.9 needs at least 34 rows to be shown, and audit=0\.3 sets 30"
    ):
        ActiveLearner(DIGITS[:100], target=0.9)
    with pytest.raises(InvalidParameter, match="`target` must lie between 0 and 1, got 90"):
        ActiveLearner(DIGITS[:100], target=90)
    with pytest.raises(InvalidParameter, match="`target` is missing"):
        ActiveLearner(DIGITS[:100]).should_stop()
