"""An honest stop: audit questions, an accuracy with an interval, and when it is high enough.

Labels that a model chose itself say nothing unbiased about its accuracy, because it asks for the difficult examples.
So some rows are set apart at the start, a uniform random sample of the pool. The model never chooses among them and
never trains on them; about one question in ten is the next of them. The accuracy of the current model is its share of
right guesses at all that were answered so far.

What the interval says. All intervals of a campaign together hold with the stated confidence: with probability 0.95, not
one of them misses the accuracy of the model it was made for, on new rows from the source of the pool. So it also holds
at whatever look the campaign stops. It is exact, and not an approximation for many rows, because:

- Models and questions never depend on an answer to an audit question. Given the rest of the pool, the guesses of the
  model of a look are independent draws that are right with the probability that is its accuracy.
- The model is another one at each look. A confidence sequence for one share would therefore not do. Each look has its
  own exact interval, and their errors add up to 5 % (union bound): `saccade.scores.accuracy.error_spent`.
- Looks come at numbers of audited rows that are fixed beforehand: 1, 2, 4, 8, 16, 20, 25, 32, … Between two looks the
  last one stands, and `Accuracy.labels` says for which model: the one with so many labels.

A pool that grows. Its new rows may be of another kind, so what was shown for the old pool says nothing about the new
one: `Audit.grown` sets the same share of the new rows apart and mixes them into the sequence at random. Each place of
the sequence then belongs to an old or a new row with the probability that these have in the pool, and the accuracy is
that of the whole pool. Looks begin anew, and the 5 % are for each pool: 0.95 is the probability that no interval misses
between two growths. Answers from before count again, so growth must not depend on an audit either; that it hardly
matters where people do add rows after a stop was measured: docs/decisions/041.

What it asks of you. Do not show the model's guess before the answer. Do not show audit rows to the strategy, not even
without labels; a class that only the audit has met stays unknown to the model. Do not change the model, the strategy or
the number of audit questions because of an audit. A row that nobody can label is left out: the accuracy is then that of
rows that can be labelled. Rows of the pool must be independent: with ten pictures of each object in it, the accuracy is
for further pictures of these objects, not for other objects. Rows that the model left unlabelled are mostly easier than
new ones, because it took the difficult ones; the interval is about new ones. After the stop the model may learn the
audited rows as well; the interval remains that of the model without them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from saccade._core import codec
from saccade._core.arrays import Array
from saccade._core.checks import check_count, check_share, is_number
from saccade._core.codec import Record
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.fields import Many, Numbers, Row, number, whole
from saccade.scores.accuracy import error_spent, looks_until, share_interval


class Look(NamedTuple):
    """The accuracy of one model, as the audit saw it."""

    labels: int  # that the model was trained on
    audited: int  # rows that its guesses were compared with
    right: int  # guesses among them
    low: float  # the interval
    high: float

    @property
    def estimate(self) -> float:
        return self.right / self.audited


@dataclass(frozen=True)
class Accuracy:
    """What is known about the accuracy of the model with `labels` labels: the last of the looks in `curve`.

    Before the first look nothing is known: `estimate` is NaN, the interval is [0, 1].
    """

    estimate: float  # share of the audited rows that the model guessed right
    low: float  # all intervals of `curve` hold together with probability `confidence`
    high: float
    confidence: float
    audited: int  # rows that the estimate comes from
    labels: int  # that the model was trained on
    curve: tuple[Look, ...]  # every look so far

    def reaches(self, target: float) -> bool:
        """Whether the whole interval lies at or above the target, so that the campaign can stop."""
        if not is_number(target) or not 0.0 < target < 1.0:
            raise InvalidParameter(f"`target` must lie between 0 and 1, got {target!r:.100}. Pass 0.9 for 90 %.")
        return self.low >= target


def reserve(candidates: Annotated[Array, "n"], share: float, rng: np.random.Generator) -> Annotated[Array, "m"]:
    """Rows to set apart for the audit, as they will be asked: a random share of the candidates, rows without a label.

    Call it once, before the first question. Later, the model has taken the difficult rows, and the rest is too easy.

    >>> reserve(np.arange(100, 120), 0.1, np.random.default_rng(0)).shape
    (2,)
    """
    rows = np.unique(_row_numbers("candidates", candidates))  # ascending: the sample depends on the set alone
    share = check_share("share", share, 1.0, "Pass 0.1 for one question in ten, 0 for no audit.")
    return np.asarray(rng.permutation(rows)[: round(share * rows.size)])


@dataclass(frozen=True, eq=False)
class Audit:
    """The rows that were set apart, and the looks so far. It never changes: `looked` gives a new one.

    Examples
    --------
    >>> audit = Audit(reserve(np.arange(1000), 0.1, np.random.default_rng(0)))
    >>> audit.due(asked=0, batch=20, audited=0)
    2
    >>> audit.accuracy().low, audit.accuracy().high
    (0.0, 1.0)
    >>> audit = audit.looked(np.ones(20, bool), labels=180)  # all 20 guesses right
    >>> round(audit.accuracy().low, 2), audit.accuracy().reaches(0.9)
    (0.81, False)
    """

    rows: Array  # from `reserve`
    share: float = 0.1  # of all questions
    confidence: float = 0.95  # of all intervals together
    looks: tuple[Look, ...] = ()

    def __post_init__(self) -> None:
        rows = _row_numbers("rows", self.rows)
        if np.unique(rows).size != rows.size:
            raise InvalidInput("`rows` must have each row once. Make them with `reserve`.")
        object.__setattr__(self, "rows", rows)
        check_share("share", self.share, 1.0, "Pass 0.1 for one question in ten, 0 for no audit.")
        if not is_number(self.confidence) or not 0.5 <= self.confidence < 1.0:
            raise InvalidParameter(f"`confidence` must lie in [0.5, 1), got {self.confidence!r:.100}. Pass 0.95.")

    def grown(self, before: int, after: int, rng: np.random.Generator) -> "Audit":
        """The audit of a pool that grew from `before` rows to `after`: again a random sample of all of it.

        As many new rows are set apart as keep the share. New and old ones are mixed at random, old ones in their order:
        their answers count as soon as the new rows before them have answers too. Looks begin anew.

        >>> Audit(np.array([7, 2, 5])).grown(30, 50, np.random.default_rng(0)).rows
        array([ 7, 34, 49,  2,  5])
        """
        wanted = max(0, round(self.share * after) - self.rows.size)
        new = rng.permutation(np.arange(before, after))[:wanted]
        rows = np.concatenate([self.rows, new])
        old = rng.permutation(rows.size) < self.rows.size  # the places of old rows
        rows[old], rows[~old] = self.rows, new
        return Audit(rows, self.share, self.confidence)

    def due(self, asked: int, batch: int, audited: int) -> int:
        """How many of the next `batch` questions are audit questions.

        `asked` questions were put so far, `audited` of them from the audit, answered or not. The answer depends on
        these numbers alone, never on answers: otherwise the intervals would not hold.
        """
        wanted = int(np.floor(self.share * (asked + batch) + 1e-9)) - audited  # 0.29 · 100 is 28.999999999999996
        return max(0, min(wanted, batch, self.rows.size - audited))

    def next_rows(self, count: int, taken: Array) -> Annotated[Array, "count"]:
        """The next audit questions: rows that are not in `taken`, fewer at the end."""
        count = check_count("count", count, "Ask for no audit question with 0.", least=0)
        return np.asarray(self.rows[~np.isin(self.rows, taken)][:count])

    def in_turn(self, told: Array) -> Array:
        """The audit rows that count: those before the first one of the sequence that was not `told`.

        "Nobody can tell" is an answer too. An audit row that somebody labels unasked counts when its turn comes.
        Otherwise the audited rows would be partly chosen by a person, and no longer a random sample.
        """
        missing = ~np.isin(self.rows, told)
        return np.asarray(self.rows[: int(missing.argmax())] if missing.any() else self.rows)

    def looks_at(self, audited: int) -> bool:
        """Whether it is time for a look: this number of answers reaches the next number of the schedule."""
        return looks_until(audited) > looks_until(self.looks[-1].audited if self.looks else 0)

    def looked(
        self,
        right: Annotated[Array, "n"],  # bool: whether the current model guesses each of the n audited rows right
        labels: int,  # that this model was trained on
    ) -> "Audit":
        """The audit after the current model was compared with all answers so far; call it after each change of either.

        It is a look only if the number of answers has reached the next number of the schedule, and otherwise nothing
        happens. Numbers that a large batch has jumped over leave their part of the error to this look.
        """
        right = self._guesses(right)
        if not self.looks_at(right.size):
            return self
        before = self.looks[-1].audited if self.looks else 0
        labels = check_count("labels", labels, "Pass how many labels the model was trained on.", least=0)
        look = _look(labels, right.size, int(right.sum()), before, self.rows.size, self.confidence)
        return Audit(self.rows, self.share, self.confidence, (*self.looks, look))

    def _guesses(self, right: Any) -> Array:
        """Whether guesses are right: one truth value per audited row."""
        right = np.asarray(right)
        if right.ndim != 1 or right.dtype != bool or right.size > self.rows.size:
            raise InvalidInput(
                f"`right` must be one True or False per audited row, at most {self.rows.size}; "
                f"got {right.dtype} of shape {right.shape}."
            )
        return np.asarray(right)

    def follows(self, changed: bool, labels: int, believed: Callable[[], float]) -> Self:
        """The audit after an answer that may have changed the model: it goes on as it is."""
        return self

    def accuracy(self) -> Accuracy:
        """The last look, and all looks as a curve."""
        if not self.looks:
            return Accuracy(float("nan"), 0.0, 1.0, self.confidence, 0, 0, ())
        last = self.looks[-1]
        return Accuracy(last.estimate, last.low, last.high, self.confidence, last.audited, last.labels, self.looks)

    def state(self) -> dict[str, Any]:
        """The whole audit in lists and numbers, for JSON."""
        return codec.to_json(AUDIT, self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Audit":
        """The audit that `state` was taken from; the intervals are computed again from the numbers."""
        found: Audit = codec.from_json(AUDIT, state)
        return found


def _audit(rows: Array, share: float, confidence: float, looks: list[tuple[int, int, int]]) -> Audit:
    """The audit of a state; the intervals are computed again from the numbers."""
    found = Audit(rows, share, confidence)
    before, seen = 0, list[Look]()
    for labels, audited, right in looks:
        if not right <= audited <= rows.size or looks_until(audited) <= looks_until(before):
            raise InvalidInput(f"The look {[labels, audited, right]} of a saved audit is impossible.")
        seen.append(_look(labels, audited, right, before, rows.size, confidence))
        before = audited
    return replace(found, looks=tuple(seen))


AUDIT = Record(
    _audit,
    {
        "rows": Numbers("rows", dtype=np.int64, least=0),
        "share": number(0.0, 1.0),
        "confidence": number(0.5, 1.0),
        "looks": Many(Row((whole(), whole(), whole()))),
    },
    name="Audit",
    take=lambda audit: {**vars(audit), "looks": [look[:3] for look in audit.looks]},
)


def _row_numbers(name: str, values: Any) -> Array:
    rows = np.asarray(values)
    if rows.ndim != 1 or (rows.size and (rows.dtype.kind not in "iu" or rows.min() < 0)):
        raise InvalidInput(f"`{name}` must be row numbers from 0 on, got {rows.dtype} of shape {rows.shape}.")
    return rows.astype(np.int64)


def _look(labels: int, audited: int, right: int, before: int, most: int, confidence: float) -> Look:
    """The look at `audited` rows, when the last one was at `before`, and at `most` there will be no further one."""
    error = (1.0 - confidence) * (error_spent(audited) - error_spent(before)) / error_spent(most)
    return Look(labels, audited, right, *share_interval(right, audited, error))
