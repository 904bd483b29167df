import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade.active.stopping import Audit, Look, reserve


def audit_of(m: int, **options: Any) -> Audit:
    return Audit(np.arange(m), **options)


def answers(right: int, n: int) -> Array:
    return np.arange(n) < right


def looks_at(counts: list[int], rights: list[int], m: int = 160) -> list[Look]:
    """A campaign that is looked at after so many audited rows, of which so many were right; m were set apart."""
    audit = audit_of(m)
    for n, right in zip(counts, rights, strict=True):
        audit = audit.looked(answers(right, n), labels=9 * n)
    return list(audit.looks)


def ends_of_looks(counts: list[int], m: int = 160) -> list[Array]:
    """For each look, the interval of every possible number of right guesses, (n + 1, 2)."""
    found = []
    for place, n in enumerate(counts):
        before = [0] * place
        found.append(np.array([looks_at(counts[: place + 1], [*before, k], m)[-1][-2:] for k in range(n + 1)]))
    return found


COUNTS = [16, 20, 25, 32, 40, 50, 63, 79, 99, 124, 155]


def test_one_model_is_missed_by_any_look_in_at_most_one_campaign_of_twenty() -> None:
    """Exact: the probability of every path of right guesses, by dynamic programming over the looks."""
    ends = ends_of_looks(COUNTS)
    for p in (0.02, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99):
        alive, n = np.ones(1), 0  # probability of each number of right guesses, while no interval has missed
        for count, end in zip(COUNTS, ends, strict=True):
            alive = np.convolve(alive, binom.pmf(np.arange(count - n + 1), count - n, p))
            alive, n = np.where((end[:, 0] <= p) & (p <= end[:, 1]), alive, 0.0), count
        assert 1 - alive.sum() <= 0.05
        assert 1 - alive.sum() > 1e-3  # it can miss: an interval [0, 1] would pass the line above


def test_any_sequence_of_models_is_missed_in_at_most_one_campaign_of_twenty() -> None:
    """Exact: the sum over the looks of the worst probability of a miss bounds every sequence of models."""
    worst = 0.0
    for n, end in zip(COUNTS, ends_of_looks(COUNTS), strict=True):
        shares = np.concatenate([np.linspace(0, 1, 201), (end - 1e-9).ravel(), (end + 1e-9).ravel()]).clip(0, 1)
        misses = (shares[:, None] < end[:, 0]) | (shares[:, None] > end[:, 1])
        worst += (misses * binom.pmf(np.arange(n + 1), n, shares[:, None])).sum(axis=1).max()
    assert 0.045 < worst <= 0.05 * (1 + 1e-5)  # next to all of it is used


@pytest.mark.parametrize("m", [32, 63, 160])
def test_holds_for_the_rows_set_apart_as_well(m: int) -> None:
    """Without any assumption about the pool: the audited rows are a random sample of the rows set apart."""
    counts = [n for n in COUNTS if n <= m]
    worst = 0.0
    for n, end in zip(counts, ends_of_looks(counts, m), strict=True):
        rights = np.arange(m + 1)[:, None]  # of all m rows
        misses = (rights / m < end[:, 0] - 1e-12) | (rights / m > end[:, 1] + 1e-12)
        worst += (misses * hypergeom.pmf(np.arange(n + 1), m, rights, n)).sum(axis=1).max()
    assert worst <= 0.05


@pytest.mark.parametrize(("old", "new"), [(40, 40), (100, 10), (20, 140)])
@pytest.mark.parametrize(("accuracy", "of_new"), [(1.0, 0.0), (0.9, 0.4), (0.3, 1.0), (0.8, 0.8)])
def test_a_pool_that_grew_is_missed_in_at_most_one_campaign_of_twenty(
    old: int, new: int, accuracy: float, of_new: float
) -> None:
    """Exact: rows of two accuracies in random order; the share of both together is the truth."""
    truth, worst = (old * accuracy + new * of_new) / (old + new), 0.0
    counts = [n for n in COUNTS if n <= old + new]
    for n, end in zip(counts, ends_of_looks(counts, old + new), strict=True):
        misses = (truth < end[:, 0] - 1e-12) | (truth > end[:, 1] + 1e-12)
        for k in range(n + 1):  # new rows among the n
            pmf = np.convolve(binom.pmf(np.arange(n - k + 1), n - k, accuracy), binom.pmf(np.arange(k + 1), k, of_new))
            worst += hypergeom.pmf(k, old + new, new, n) * float(pmf[misses].sum())
    assert worst <= 0.05


def test_a_grown_audit_is_a_random_order_of_the_whole_pool() -> None:
    """Each place has an old row as often as the pool has, and every new row equally often; 6 standard deviations."""
    first = Audit(np.array([7, 2, 5, 0, 9, 4]), share=0.3)
    grown = [first.grown(20, 30, np.random.default_rng(seed)) for seed in range(4000)]
    rows = np.array([audit.rows for audit in grown])
    assert rows.shape == (4000, 9)  # three tenths of 30
    often = (rows < 20).mean(axis=0)
    assert np.abs(often - 2 / 3).max() < 6 * np.sqrt(2 / 9 / 4000)
    assert all(row[row < 20].tolist() == [7, 2, 5, 0, 9, 4] for row in rows)  # in their order: answers came in it
    drawn = np.bincount(rows[rows >= 20] - 20, minlength=10)
    assert np.abs(drawn - 1200).max() < 6 * np.sqrt(4000 * 0.3 * 0.7)


def test_campaigns_that_stop_and_then_grow_stop_falsely_in_at_most_one_of_twenty() -> None:
    """400 campaigns. The old pool is well above the target, the grown one 2 % below it; answers count again."""
    target, stopped, false = 0.7, 0, 0

    def looked_at(audit: Audit, right: Array) -> Audit:
        """Until the target is reached, or all looks were taken."""
        for n in range(1, audit.rows.size + 1):
            audit = audit.looked(right[audit.rows[:n]], 0)
            if audit.accuracy().reaches(target):
                break
        return audit

    for seed in range(400):
        rng = np.random.default_rng(seed)
        right = rng.random(1200) < np.where(np.arange(1200) < 600, 0.86, 0.50)  # 0.68 together
        audit = looked_at(Audit(reserve(np.arange(600), 0.2, rng), share=0.2), right)
        if not audit.accuracy().reaches(target):
            continue
        stopped, audit = stopped + 1, audit.grown(600, 1200, rng)
        assert not audit.accuracy().reaches(target)  # before, it stayed as it was, and all of these were false stops
        false += looked_at(audit, right).accuracy().reaches(target)
    assert stopped > 300
    assert false <= 20


def test_a_pool_that_grows_little_by_little_keeps_the_share() -> None:
    audit = Audit(reserve(np.arange(100), 0.1, np.random.default_rng(0)))
    for n in range(100, 400, 3):
        audit = audit.grown(n, n + 3, np.random.default_rng(n))
    assert abs(audit.rows.size - 40) <= 1
    assert np.unique(audit.rows).size == audit.rows.size
    assert 15 <= (audit.rows >= 200).sum() <= 25
    assert audit_of(0, share=0.0).grown(10, 90, np.random.default_rng(0)).rows.size == 0


@given(st.lists(st.integers(0, 300), min_size=1, max_size=12), st.floats(0.5, 0.999))
def test_error_of_all_looks_together_is_never_overspent(counts: list[int], confidence: float) -> None:
    """Also when batches jump over looks, or answers are taken back."""
    audit = audit_of(300, confidence=confidence)
    for n in counts:
        audit = audit.looked(np.zeros(n, bool), labels=n)
    spent = [binom.cdf(0, look.audited, look.high) / 0.2 for look in audit.looks]  # by the definition of the upper end
    assert sum(spent) <= (1 - confidence) * (1 + 1e-6)
    assert all(a.audited < b.audited for a, b in pairwise(audit.looks))


def test_fewer_rows_set_apart_have_narrower_intervals() -> None:
    """There are fewer looks to come, so each has more of the error."""
    few, many = (looks_at([32], [30], m)[0] for m in (32, 3200))
    assert few.low > many.low + 0.01
    assert few.high < many.high


def test_looks_jumped_over_leave_their_error_to_the_next() -> None:
    (once,) = looks_at([155], [150])
    last = looks_at(COUNTS, [*(n - 1 for n in COUNTS[:-1]), 150])[-1]
    assert once.low > last.low
    assert once.high < last.high


def test_between_two_looks_the_last_one_stands() -> None:
    audit = audit_of(100).looked(answers(16, 16), labels=144)
    assert audit.looked(answers(19, 19), labels=171) is audit
    assert audit.looked(answers(3, 10), labels=90) is audit  # answers were taken back: no look twice
    assert audit.accuracy().labels == 144
    assert audit.looked(answers(18, 20), labels=180).accuracy().labels == 180


def test_nothing_is_known_before_the_first_look() -> None:
    known = audit_of(100).looked(np.ones(0, bool), labels=0).accuracy()
    assert np.isnan(known.estimate)
    assert (known.low, known.high, known.audited, known.curve) == (0.0, 1.0, 0, ())
    assert not known.reaches(1e-9)


def test_something_is_known_from_the_first_audit_on() -> None:
    known = audit_of(100).looked(answers(1, 1), labels=9).accuracy()
    assert (known.estimate, known.audited, known.high) == (1.0, 1, 1.0)
    assert 0.0 < known.low < 0.1
    (plain,), early = looks_at([16], [15]), looks_at([1, 2, 4, 8, 16], [1, 2, 4, 7, 15])[-1]
    assert plain.low - 0.02 < early.low < plain.low  # the early looks cost next to nothing


def test_accuracy_is_the_last_look_and_the_curve_all() -> None:
    audit = audit_of(100).looked(answers(12, 16), labels=144).looked(answers(24, 25), labels=225)
    known = audit.accuracy()
    assert (known.estimate, known.audited, known.labels, known.confidence) == (0.96, 25, 225, 0.95)
    assert [(look.labels, look.audited, look.right) for look in known.curve] == [(144, 16, 12), (225, 25, 24)]
    assert (known.curve[-1].low, known.curve[-1].high) == (known.low, known.high)
    assert known.curve[0].estimate == 0.75


def test_target_is_reached_when_the_lower_end_is() -> None:
    known = audit_of(200).looked(answers(190, 200), labels=1800).accuracy()
    assert known.reaches(known.low)
    assert known.reaches(known.low - 1e-9)
    assert not known.reaches(known.low + 1e-9)
    assert known.low < 0.95 < known.high


def test_more_right_guesses_and_more_rows_say_more() -> None:
    lows = [looks_at([99], [right])[0].low for right in range(100)]
    highs = [looks_at([99], [right])[0].high for right in range(100)]
    assert (np.diff(lows) > 0).all()
    assert (np.diff(highs)[:-1] > 0).all()
    widths = [look.high - look.low for look in looks_at([20, 100, 1000], [18, 90, 900], 1000)]
    assert widths[0] > widths[1] > widths[2]


@given(st.sampled_from([0.0, 0.1, 0.29, 1 / 3, 0.5, 1.0]), st.lists(st.integers(1, 30), max_size=40))
def test_audit_questions_are_the_share_of_all(share: float, batches: list[int]) -> None:
    audit, asked, audited = audit_of(80, share=share), 0, 0
    for batch in batches:
        due = audit.due(asked, batch, audited)
        assert 0 <= due <= batch
        asked, audited = asked + batch, audited + due
        assert audited == min(80, int(np.floor(share * asked + 1e-9)))


def test_a_share_that_rounds_down_is_not_a_question_late() -> None:
    assert audit_of(80, share=0.29).due(asked=99, batch=1, audited=28) == 1  # 0.29 · 100 is 28.999999999999996


def test_a_batch_is_never_more_than_audits() -> None:
    assert audit_of(80).due(asked=200, batch=5, audited=0) == 5
    assert audit_of(3).due(asked=200, batch=5, audited=1) == 2


def test_more_confidence_makes_the_interval_wider() -> None:
    lows = [audit_of(50, confidence=c).looked(answers(45, 50), 450).accuracy().low for c in (0.5, 0.9, 0.95, 0.999)]
    assert (np.diff(lows) < -0.01).all()


def test_next_rows_come_in_the_order_of_the_draw() -> None:
    audit = Audit(np.array([7, 3, 9, 1]))
    assert audit.next_rows(2, np.array([], int)).tolist() == [7, 3]
    assert audit.next_rows(2, np.array([3, 5])).tolist() == [7, 9]  # 3 was asked before, answered or not
    assert audit.next_rows(9, np.array([7])).tolist() == [3, 9, 1]
    assert audit.next_rows(0, np.array([7])).size == 0


def test_rows_told_out_of_turn_count_when_their_turn_comes() -> None:
    audit = Audit(np.array([7, 3, 9, 1]))
    assert audit.in_turn(np.array([], int)).size == 0
    assert audit.in_turn(np.array([3, 1, 5])).size == 0
    assert audit.in_turn(np.array([3, 1, 7])).tolist() == [7, 3]
    assert audit.in_turn(np.array([9, 3, 1, 7])).tolist() == [7, 3, 9, 1]
    assert Audit(np.zeros(0, int)).in_turn(np.array([4])).size == 0


def test_every_row_is_set_apart_equally_often() -> None:
    """And is at each place equally often: 20 rows, 5 places, so 1/20 each; 6 standard deviations."""
    drawn = np.array([reserve(np.arange(20), 0.25, np.random.default_rng(seed)) for seed in range(4000)])
    assert drawn.shape == (4000, 5)
    for place in range(5):
        often = np.bincount(drawn[:, place], minlength=20)
        assert np.abs(often - 200).max() < 6 * np.sqrt(4000 * 0.05 * 0.95)


def test_reserve_takes_the_share_of_the_candidates() -> None:
    rng = np.random.default_rng
    assert reserve(np.arange(1005), 0.1, rng(0)).size == 100
    assert reserve(np.arange(10), 0.0, rng(0)).size == 0
    assert sorted(reserve(np.arange(5, 9), 1.0, rng(0))) == [5, 6, 7, 8]
    assert reserve(np.array([], int), 0.1, rng(0)).size == 0
    some = np.array([4, 8, 2, 8, 30, 6])
    assert (reserve(some, 0.5, rng(3)) == reserve(np.unique(some)[::-1], 0.5, rng(3))).all()


def test_state_goes_through_json_and_back() -> None:
    audit = Audit(reserve(np.arange(500), 0.2, np.random.default_rng(1)), share=0.2, confidence=0.9)
    audit = audit.looked(answers(15, 17), labels=68).looked(answers(60, 70), labels=280)
    again = Audit.from_state(json.loads(json.dumps(audit.state())))
    assert again.accuracy() == audit.accuracy()
    assert again.rows.tolist() == audit.rows.tolist()
    assert (again.share, again.confidence) == (0.2, 0.9)
    later = answers(80, 90)
    assert again.looked(later, 360).accuracy() == audit.looked(later, 360).accuracy()
    assert Audit.from_state(json.loads(json.dumps(audit_of(0).state()))).rows.size == 0


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"rows": [1, 1]}, "each row once"),
        ({"rows": [1.5]}, "`rows`"),
        ({"rows": [-1]}, "`rows`"),
        ({"rows": [[1], [2, 3]]}, "does not describe"),
        ({"share": 2}, "`share`"),
        ({"confidence": 1.0}, "`confidence`"),
        ({"confidence": "high"}, "`confidence`"),
        ({"looks": [[9, 16]]}, "does not describe"),
        ({"looks": [[9, 16, 17]]}, "is impossible"),
        ({"looks": [[9, 16, 1.5]]}, r"`looks\.0\.2` must be a whole number"),
        ({"looks": [[9, 0, 0]]}, "is impossible"),
        ({"looks": [[9, 20, 3], [9, 20, 3]]}, "is impossible"),
        ({"looks": [[9, 500, 3]]}, "is impossible"),
        ({"looks": 7}, "does not describe"),
    ],
)
def test_state_of_something_else_is_refused(change: dict[str, Any], part: str) -> None:
    with pytest.raises(ModelFileError, match=part):
        Audit.from_state(audit_of(40).state() | change)


def test_state_without_a_part_is_refused() -> None:
    with pytest.raises(ModelFileError, match="`looks` is missing"):
        Audit.from_state({"rows": [1], "share": 0.1, "confidence": 0.95})


@pytest.mark.parametrize("right", [np.ones(16), np.ones((4, 4), bool), np.ones(51, bool)])
def test_guesses_must_be_true_or_false_one_per_row(right: Array) -> None:
    with pytest.raises(InvalidInput, match="at most 50"):
        audit_of(50).looked(right, labels=1)


@pytest.mark.parametrize("target", [0, 1.0, 90, "high", None, float("nan"), True])
def test_target_must_be_an_accuracy(target: Any) -> None:
    with pytest.raises(InvalidParameter, match="`target`"):
        audit_of(10).accuracy().reaches(target)


@pytest.mark.parametrize("candidates", [np.zeros((2, 2), int), np.array([0.5]), np.array([-1]), np.array(["a"])])
def test_candidates_must_be_row_numbers(candidates: Array) -> None:
    with pytest.raises(InvalidInput, match="`candidates`"):
        reserve(candidates, 0.1, np.random.default_rng(0))


@pytest.mark.parametrize("share", [-0.1, 1.5, "all", None])
def test_share_must_be_a_share(share: Any) -> None:
    with pytest.raises(InvalidParameter, match="`share`"):
        reserve(np.arange(5), share, np.random.default_rng(0))


def test_no_audit_is_due_when_there_are_enough() -> None:
    assert audit_of(80).due(asked=100, batch=5, audited=20) == 0
    assert audit_of(3).due(asked=200, batch=5, audited=3) == 0
