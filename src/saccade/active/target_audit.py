"""An audit that comes late: a target is tested when the model believes that it is there.

`Audit` spreads its questions over the whole campaign, and so knows little about the model of today. Here no audit
question is asked until the model believes that it is there: if its accuracy is the mean of its largest probability,
over the rows without a label, then at most twice as many audits as it has labels will show the target. Then the
model is frozen. Audit questions follow until the target is shown, or until that would need more audits than so: then
learning is the cheaper way, and the next test waits until there are a quarter more labels. Audited rows count for all
later models.

What the interval says. With the stated confidence, no interval of the campaign ever misses the accuracy of the model it
was made for, on new rows from the source of the pool. So the probability that a campaign stops with a model below the
target is at most 1 − confidence. It holds at all moments, because:

- Which models are tested depends on questions and labels outside the audit alone, also where a test before was given
  up: it decides when a model comes to be tested, and not which one. So for each of them, the guesses at all audited
  rows, the earlier ones too, are independent draws that are right with the probability that is its accuracy.
- For each model the interval holds at all numbers of audited rows together: `saccade.scores.accuracy.share_sequence`.
  When a test is given up or stopped may therefore depend on the audit in any way.
- The k-th model tested has 2/(4k² − 1) of the error, which adds up to all of it (union bound).

What it asks of you is what `Audit` asks. Answer an audit batch before others: a label outside the audit changes the
model, and so ends the test.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saccade._core import codec
from saccade._core.arrays import Array
from saccade._core.checks import is_number
from saccade._core.codec import Record
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.fields import Maybe, flag, number
from saccade.active.stopping import AUDIT, Audit, Look
from saccade.scores.accuracy import draws_to_show, share_sequence

SHARE = 0.3  # of the pool that is set apart for tests
SPACING = 1.25  # as many labels for the next test
PATIENCE = 2.0  # audits per label that a test may need
LOW_SIDE = 0.9  # share of the error that the lower end gets: it decides


@dataclass(frozen=True, eq=False)
class TargetAudit(Audit):
    """The rows that were set apart, and the last look at each model that was tested.

    Examples
    --------
    >>> audit = TargetAudit(np.arange(300), target=0.9)
    >>> audit.due(asked=0, batch=20, audited=0)
    0
    >>> audit = audit.follows(True, 100, lambda: 0.96)  # the model changed, and believes in the target
    >>> audit.due(asked=100, batch=20, audited=0)
    20
    >>> audit.looked(np.ones(60, bool), labels=100).accuracy().reaches(0.9)
    True
    """

    target: float = 0.9
    testing: bool = False  # whether a test is under way: the model stays as it is

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_number(self.target) or not 0.0 < self.target < 1.0:
            raise InvalidParameter(f"`target` must lie between 0 and 1, got {self.target!r:.100}. Pass 0.9 for 90 %.")

    @classmethod
    def enough(cls, rows: Array, share: float, target: float) -> "TargetAudit":
        """An audit that can show the target: an error if it cannot, even if all guesses are right."""
        found = cls(rows, share, target=target)
        needed = int(np.ceil(draws_to_show(0, 0, target, LOW_SIDE * found._error(1))))
        if rows.size < needed:
            raise InvalidParameter(
                f"`target`={target:g} needs at least {needed} rows to be shown, and audit={share:g} sets {rows.size} "
                "of this pool apart. Pass a larger `audit`, or more rows."
            )
        return found

    def grown(self, before: int, after: int, rng: np.random.Generator) -> "TargetAudit":
        """The audit of the pool that grew: nothing is shown for it yet."""
        return replace(self, rows=super().grown(before, after, rng).rows, looks=(), testing=False)

    def due(self, asked: int, batch: int, audited: int) -> int:
        """All questions of a batch during a test, else none."""
        return min(batch, self.rows.size - audited) if self.testing else 0

    def follows(self, changed: bool, labels: int, believed: Callable[[], float]) -> "TargetAudit":
        """After an answer: a model that changed ends the test, and may begin the next one."""
        if not changed:
            return self
        last = self.looks[-1].labels if self.looks else 0
        if labels < SPACING * last or not labels or self.accuracy().reaches(self.target):
            return replace(self, testing=False)
        audits = draws_to_show(0, 0, self.target, LOW_SIDE * self._error(len(self.looks) + 1), believed())
        return replace(self, testing=bool(audits <= PATIENCE * labels))

    def looks_at(self, audited: int) -> bool:
        """At every number of answers during a test."""
        return self.testing and audited > 0

    def looked(self, right: Array, labels: int) -> "TargetAudit":
        """The audit with a look at the frozen model, and whether its test goes on."""
        right = self._guesses(right)
        if not self.looks_at(right.size):
            return self
        before = self.looks[:-1] if self.looks and self.looks[-1].labels == labels else self.looks
        look = self.look(len(before) + 1, labels, right.size, int(right.sum()))
        error = LOW_SIDE * self._error(len(before) + 1)
        rest = draws_to_show(look.right, look.audited, self.target, error)
        on = look.low < self.target and bool(rest <= min(PATIENCE * labels, self.rows.size - look.audited))
        return replace(self, looks=(*before, look), testing=on)

    def state(self) -> dict[str, Any]:
        """The whole audit in lists and numbers, for JSON."""
        return codec.to_json(AUDITS, self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "TargetAudit":
        """The audit that `state` was taken from."""
        found: TargetAudit = codec.from_json(AUDITS, state)
        return found

    def look(self, number: int, labels: int, audited: int, right: int) -> Look:
        """The look at the `number`-th model that is tested."""
        return Look(labels, audited, right, *share_sequence(right, audited, self._error(number), LOW_SIDE))

    def _error(self, number: int) -> float:
        return (1.0 - self.confidence) * 2.0 / (4.0 * number**2 - 1.0)


def _audit(target: float | None, testing: bool, looks: list[tuple[int, int, int]], **given: Any) -> Audit:
    """The audit of a state, of either kind; the intervals are computed again from the numbers."""
    if target is None:
        plain: Audit = AUDIT.make(looks=looks, **given)
        return plain
    found, before = TargetAudit(**given, target=target, testing=testing), 0
    for labels, audited, right in looks:
        if not 0 < audited <= found.rows.size or right > audited or labels <= before:
            raise InvalidInput(f"The look {[labels, audited, right]} of a saved audit is impossible.")
        before = labels
    seen = tuple(found.look(number + 1, *look) for number, look in enumerate(looks))
    return replace(found, looks=seen)


AUDITS = Record(
    _audit,
    {**AUDIT.fields, "target": Maybe(number(0.0, 1.0), default=None), "testing": Maybe(flag(), default=False)},
    name="Audit",
    take=lambda audit: {"target": None, "testing": False, **vars(audit), "looks": [look[:3] for look in audit.looks]},
)
