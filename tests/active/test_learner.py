"""The learner: every answer counts at once, and nothing is half applied. Files: test_campaign_files.py."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from saccade import GPClassifier
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.active import ActiveLearner
from saccade.active.pool_model import PoolModel
from saccade.kernels import HIK, RBF
from tests.tolerances import assert_close

DIGITS, TRUTH = load_digits(return_X_y=True)
X, y = DIGITS[:300], TRUTH[:300]


def campaign(rounds: int = 3, k: int = 10, **options: Any) -> ActiveLearner:
    learner = ActiveLearner(X, random_state=0, **options)
    for _ in range(rounds):
        rows = learner.ask(k)
        learner.tell(rows, y[rows])
    return learner


def assert_same(a: ActiveLearner, b: ActiveLearner) -> None:
    """They know the same, and ask the same."""
    assert a.labels == b.labels
    assert a.history == b.history
    np.testing.assert_array_equal(a.ask(7), b.ask(7))
    assert a.accuracy() == b.accuracy() or np.isnan(a.accuracy().estimate)
    assert_close(a.field.mean, b.field.mean)
    assert_close(a.field.variance, b.field.variance)


def test_the_posterior_is_that_of_the_model() -> None:
    learner = campaign(audit=0.0)
    model = learner.model
    mean, variance = model.latent_mean_and_variance(X)
    assert_close(learner.field.mean, mean)
    assert_close(learner.field.variance, variance)
    found = learner.pool_model.beliefs(learner.labels, learner.strategy).probability(np.arange(300))
    assert_close(found, model.predict_proba(X), np.float32)  # the sharpness is searched for to 1e-8


def test_asking_changes_nothing() -> None:
    learner = campaign()
    first = learner.ask(12)
    np.testing.assert_array_equal(learner.ask(12), first)
    assert np.unique(first).size == 12
    assert not np.isin(first, list(learner.labels)).any()


def test_new_classes_and_changed_labels() -> None:
    learner = ActiveLearner(X, audit=0.0)
    learner.tell([0, 1, 2], [0, 0, 0])
    assert learner.ask(2).size == 2  # one class: typical examples
    with pytest.raises(InvalidInput, match="two classes; so far there are labels of 1"):
        _ = learner.model
    learner.tell([3], [1])
    learner.tell([2, 9, 4], [7, 7, 1])
    assert learner.classes.tolist() == [0, 1, 7]
    fresh = ActiveLearner(X, audit=0.0)
    fresh.tell([0, 1, 2, 3, 9, 4], [0, 0, 7, 1, 7, 1])
    assert_close(learner.field.mean, fresh.field.mean)
    assert_close(learner.model.predict_proba(X[:50]), fresh.model.predict_proba(X[:50]))


def test_two_classes_are_enough_for_a_model() -> None:
    learner = ActiveLearner(X, audit=0.0)
    learner.tell([0, 1, 10, 11], y[[0, 1, 10, 11]])
    assert learner.model.predict(X[[0, 1]]).tolist() == [0, 1]


def test_a_label_may_change_from_a_number_to_text() -> None:
    learner = ActiveLearner(X, audit=0.0)
    learner.tell([4, 5], [3, 3])
    learner.tell([4, 5], (name for name in ("cat", "dog")))
    learner.tell(6, np.array("dog"))
    assert learner.classes.tolist() == ["cat", "dog"]


@pytest.mark.parametrize("last", ["new rows", "changed labels", "nobody can tell", "a new class"])
def test_undo_takes_the_last_answers_back(last: str) -> None:
    learner, same = campaign(), campaign()
    known = [row for row in learner.labels if not learner.is_audit(row)]
    answers: dict[str, tuple[list[int], list[Any]]] = {
        "new rows": ([5, 6, 7], [1, 2, 3]),
        "changed labels": (known[:3], [(learner.labels[row] + 1) % 10 for row in known[:3]]),
        "nobody can tell": ([*known[1:3], 250], [None, None, None]),
        "a new class": ([5, known[0]], [11, 11]),
    }
    learner.tell(*answers[last])
    assert learner.labels != same.labels
    told = learner.undo()
    assert told.rows == tuple(answers[last][0])
    assert {k: learner.labels[k] for k in same.labels} == same.labels
    assert_close(learner.field.mean[:, :10], same.field.mean)
    assert_close(learner.field.variance, same.field.variance)
    np.testing.assert_array_equal(learner.ask(5), same.ask(5))


def test_undo_of_nothing() -> None:
    with pytest.raises(InvalidInput, match="Nothing was told yet"):
        ActiveLearner(X).undo()


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        ([300], [1], "row 300, and the pool has rows 0 to 299"),
        ([-1], [1], "row -1"),
        ([0.5], [1], "row numbers"),
        ([0, 1], [1], "2 rows and 1 labels"),
        ([0, 0], [1, 2], "two labels in one call, 1 and 2"),
        ([0, 5], [1, "cat"], "all text or all numbers"),
        ([0], ["cat"], "all text or all numbers"),
        ([0], [[1, 2]], "all text or all numbers"),
        ([0], [1.5], "text or whole numbers, the names of classes, got 1.5"),
        ([0], [np.inf], "text or whole numbers"),
        ([0], np.array(["2020-01-02"], "datetime64[ns]"), "all text or all numbers"),
    ],
)
def test_a_bad_answer_changes_nothing(rows: Any, labels: Any, message: str) -> None:
    learner, same = campaign(2), campaign(2)
    with pytest.raises(InvalidInput, match=message):
        learner.tell(rows, labels)
    assert_same(learner, same)


def test_an_interrupted_answer_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, same = campaign(2), campaign(2)

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PoolModel, "looked", stop)
    with pytest.raises(KeyboardInterrupt):
        learner.tell([0], [1])
    assert_same(learner, same)


def test_text_labels_and_answers_that_nobody_knows() -> None:
    names = np.array([f"digit {c}" for c in y])
    learner = ActiveLearner(sp.csr_matrix(X), audit=0.0)
    rows = learner.ask(30)
    learner.tell(rows, [None, np.nan, "", *names[rows[3:]]])
    assert [learner.labels[int(row)] for row in rows[:3]] == [None, None, None]
    assert not np.isin(learner.ask(200), rows).any()  # what nobody can tell is not asked again
    assert learner.model.score(X, names) > 0.6


def test_every_row_is_asked_once_and_then_there_is_nothing_left() -> None:
    few = X[:23]
    learner, seen = ActiveLearner(few, audit=0.2), list[int]()
    while len(seen) < 23:
        rows = learner.ask(4)
        learner.tell(rows, y[rows])
        seen += rows.tolist()
    assert sorted(seen) == list(range(23))
    with pytest.raises(InvalidInput, match="nothing left to ask"):
        learner.ask()


def test_audits_are_a_tenth_and_never_teach() -> None:
    learner = campaign(rounds=12, k=10)
    audits = [row for row in learner.labels if learner.is_audit(row)]
    assert len(audits) == 12
    assert not np.isin(learner.pool_model.rows[learner.field.rows], audits).any()
    accuracy = learner.accuracy()
    assert accuracy.audited == 8  # the next look comes with 16
    for _ in range(8):
        rows = learner.ask(10)
        learner.tell(rows, y[rows])
    accuracy = learner.accuracy()
    assert accuracy.audited == 20
    assert accuracy.low < accuracy.estimate <= accuracy.high
    audited = np.array([row for row in learner.labels if learner.is_audit(row)])
    assert accuracy.estimate == (learner.model.predict(X[audited]) == y[audited]).mean()
    assert not learner.should_stop(0.99)
    assert learner.should_stop(0.05)
    assert learner.fit().gp_.gram.shape[0] == 200
    assert learner.model.gp_.gram.shape[0] == 180


def test_labels_told_unasked_do_not_fill_a_batch_with_audits() -> None:
    learner = ActiveLearner(X, random_state=0)
    rows = learner.pool_model.rows[:100]
    learner.tell(rows, y[rows])
    assert learner.is_audit(learner.ask(10)).sum() == 2
    assert learner.is_audit(learner.ask(40)).sum() == 8


def test_audits_change_no_question() -> None:
    """Wrong answers to audit questions must not move the others: otherwise the interval would not hold."""
    honest, lying = (ActiveLearner(X, random_state=1, audit=0.3) for _ in range(2))
    for _ in range(4):
        a, b = honest.ask(10), lying.ask(10)
        np.testing.assert_array_equal(a, b)
        honest.tell(a, y[a])
        lying.tell(b, np.where(lying.is_audit(b), (y[b] + 1) % 10, y[b]))


def test_audit_rows_told_unasked_count_in_their_turn() -> None:
    learner = campaign(audit=0.3, rounds=2)  # 6 audits
    rest = learner.audit.next_rows(84, np.fromiter(learner.labels, int))
    learner.tell(rest[1:20], y[rest[1:20]])  # somebody's own choice, without the next one
    assert learner.accuracy().audited == 6
    learner.tell(rest[:1], y[rest[:1]])
    assert learner.accuracy().audited == 26


@pytest.mark.parametrize("known", [0, 1])
def test_a_look_before_there_are_two_classes(known: int) -> None:
    """Without a label every guess is wrong; with one class it is the guess everywhere."""
    learner = ActiveLearner(X, random_state=0, audit=0.3)
    if known:
        rows = learner.pool_model.rows[y[learner.pool_model.rows] == 3][:5]
        learner.tell(rows, y[rows])
    audited = learner.audit.rows[:20]
    learner.tell(audited, y[audited])
    look = learner.accuracy().curve[-1]
    assert (look.audited, look.labels) == (20, 5 * known)
    assert look.right == known * (y[audited] == 3).sum()
    assert (y[audited] == 3).any()


@pytest.mark.parametrize(
    "model",
    [
        GPClassifier(inference="laplace"),
        GPClassifier(balanced=True),
        GPClassifier(HIK(), levels=16),
        GPClassifier(noise=100.0, tune="loo"),  # what is learned from labels is for `model`
    ],
)
@pytest.mark.filterwarnings("ignore:Tuning ended at the bound")
def test_other_models(model: GPClassifier) -> None:
    learner = campaign(rounds=4, k=15, model=model, audit=0.3)
    assert learner.model.score(X, y) > 0.6
    accuracy, audited = learner.accuracy(), learner.audit.in_turn(np.fromiter(learner.labels, int))
    assert accuracy.audited == audited.size == 18
    right = learner.model.predict(X[audited]) == y[audited]
    assert accuracy.estimate == right.mean()  # of the model that has not seen them
    assert accuracy.estimate < (learner.fit().predict(X[audited]) == y[audited]).mean()
    assert accuracy.labels == learner.model.gp_.gram.shape[0] == 42


def test_audit_rows_that_nobody_can_label_are_left_out() -> None:
    learner = ActiveLearner(X, audit=0.3, random_state=0)
    rows = np.setdiff1d(np.arange(100), learner.audit.rows)
    learner.tell(rows, y[rows])
    audits = learner.audit.rows[:24]
    learner.tell(audits, [None if k % 4 == 0 else y[row] for k, row in enumerate(audits)])
    counted = np.delete(audits, np.arange(0, 24, 4))
    assert learner.accuracy().audited == 18
    assert learner.accuracy().estimate == (learner.model.predict(X[counted]) == y[counted]).mean()


def test_costs_belong_to_the_rows_of_the_pool() -> None:
    costs = np.where(np.arange(300) % 2, 1.0, 1e6)
    learner = ActiveLearner(X, costs=costs, audit=0.3, random_state=0)
    asked = learner.ask(30)
    assert (asked[~learner.is_audit(asked)] % 2 == 1).all()


def test_random_questions_and_places_of_audits_are_random() -> None:
    learner, asked, places = ActiveLearner(X, strategy="random", audit=0.0, random_state=0), list[int](), list[int]()
    for _ in range(12):
        rows = learner.ask()
        asked += rows.tolist()
        learner.tell(rows, y[rows])
    assert (np.diff(asked) == 1).sum() < 6  # the numbers of one draw would give neighbours
    learner = ActiveLearner(X, audit=0.1, random_state=0)
    for _ in range(12):
        rows = learner.ask(10)
        places += np.flatnonzero(learner.is_audit(rows)).tolist()
        learner.tell(rows, y[rows])
    assert len(places) == 12
    assert len(set(places)) > 3


def test_parameters() -> None:
    with pytest.raises(InvalidParameter, match="strategy"):
        ActiveLearner(X, strategy="best")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="audit"):
        ActiveLearner(X, audit=0.9)
    with pytest.raises(InvalidParameter, match="GPClassifier"):
        ActiveLearner(X, RBF())
    with pytest.raises(InvalidInput, match="costs"):
        ActiveLearner(X, costs=np.zeros(300))
    with pytest.raises(InvalidInput, match="costs"):
        ActiveLearner(X, costs=["dear"] * 300)
    with pytest.raises(InvalidParameter, match="noise"):
        ActiveLearner(X, GPClassifier(noise=np.nan))
    spoilt = X.copy()
    spoilt[41, 2] = np.nan
    with pytest.raises(InvalidInput, match="Row 41 of the pool"):
        ActiveLearner(spoilt)
    with pytest.raises(InvalidParameter, match="`k`"):
        ActiveLearner(X).ask(0)


def test_a_learner_in_words() -> None:
    learner = ActiveLearner(X, audit=0.3, random_state=0)
    mine, audits = np.setdiff1d(np.arange(300), learner.audit.rows)[:5], learner.audit.rows[:2]
    learner.tell([*mine, *audits], [0, 1, 1, 2, None, 1, 0])
    assert repr(learner) == "ActiveLearner(300 rows, 4 labels of 3 classes, 2 audits)"


def test_rows_without_a_label_vote_in_the_model_and_not_in_the_questions(tmp_path: Any) -> None:
    X, y = load_digits(return_X_y=True)
    X, y, new, truth = X[:600], y[:600], X[600:1000], y[600:1000]
    learners = [ActiveLearner(X, use_pool=use_pool, audit=0.2) for use_pool in (False, True)]
    for _ in range(3):
        rows = [learner.ask(20) for learner in learners]
        np.testing.assert_array_equal(*rows)
        for learner in learners:
            learner.tell(rows[0], y[rows[0]])
    plain, pooled = (learner.model for learner in learners)
    assert pooled.votes_ is not None
    assert pooled.score(new, truth) > plain.score(new, truth)
    graph = learners[1].pool_model.graph
    assert graph is not None
    assert graph.X.shape[0] == 600 - learners[1].audit.rows.size  # no audited row votes
    audited = learners[1].audit.rows
    np.testing.assert_array_equal(
        learners[1].pool_model.guesses(learners[1].labels, audited), pooled.predict(X[audited])
    )
    learners[1].save(tmp_path / "c.saccade")
    again = ActiveLearner.load(tmp_path / "c.saccade", X)
    assert again.use_pool
    np.testing.assert_array_equal(again.model.predict_proba(new), pooled.predict_proba(new))


def test_a_pool_too_small_for_votes() -> None:
    X, y = load_digits(return_X_y=True)
    learner = ActiveLearner(X[:12], use_pool=True, audit=0.0)
    learner.tell(np.arange(6), y[:6])
    assert learner.model.votes_ is None
