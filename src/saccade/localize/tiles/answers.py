"""What was asked and told about tiles, in order: all that a search over tiles has to keep."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.localize.tiles.grid import Tiles


@dataclass
class TileAnswers:
    """Answers, failures and open questions of a search.

    Examples
    --------
    >>> answers = TileAnswers(Tiles.of((100, 60), tile=40), threshold=None)
    >>> answers.take(3, 2.0, [], "")
    >>> answers.told, answers.has_hit(np.array([0, 3])), answers.without().tolist()
    ({3: 2.0}, array([False,  True]), [0, 1, 2, 4, 5])
    """

    tiles: Tiles
    threshold: float | None  # None: answers are numbers of hits; else a tile with at least this score has a hit
    told: dict[int, float] = field(default_factory=dict)  # answer by tile, in the order in which they came
    failed: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)  # and not answered yet
    inside: list[list[float]] = field(default_factory=list)  # tile, x0, y0, x1, y1, score
    problems: list[dict[str, Any]] = field(default_factory=list)  # "tile", "box" and "what"

    def __post_init__(self) -> None:
        self.hits = np.full(len(self.tiles.boxes), np.nan)
        self.hits[self.rows] = list(self.told.values())

    @property
    def rows(self) -> Array:
        """Tiles with an answer, in order."""
        return np.fromiter(self.told, np.int64, len(self.told))

    @property
    def spent(self) -> int:
        """Looks taken, open questions included."""
        return len(self.told) + len(self.failed) + len(self.asked)

    def possible(self, value: float) -> bool:
        """Whether it is a number of hits, or a score of any sign where there is a threshold."""
        return 0.0 <= value <= limits.HITS if self.threshold is None else abs(value) <= limits.SCORE

    def check(self, values: Array, n: int) -> None:
        """Refuse what cannot be the answers for n tiles."""
        if values.shape != (n,):
            raise InvalidInput(
                f"`hits` must be {n} numbers, one for each tile, got shape {values.shape}. Pass NaN for a tile without "
                "an answer."
            )
        wrong = [value for value in values.tolist() if not np.isnan(value) and not self.possible(value)]
        if wrong:
            raise InvalidInput(
                f"`hits` must be numbers of hits from 0 to {limits.HITS:g}, got {wrong[0]:g}. Set `threshold` if they "
                f"are scores, which may be from {-limits.SCORE:g} to {limits.SCORE:g}."
            )

    def take(self, number: int, value: float, own: list[list[float]], problem: str) -> None:
        """Take one answer and the boxes inside the tile; `problem` is the reason if the answer is NaN."""
        self.asked = [each for each in self.asked if each != number]
        before = self.told.get(number)
        if np.isnan(value):
            self._note(number, problem)
            if before is None and number not in self.failed:
                self.failed.append(number)
            return
        if before is None:
            self.failed = [each for each in self.failed if each != number]
        elif before != value:
            self._note(number, f"changed from {before:g} to {value:g}")
        self.told[number] = self.hits[number] = value
        self.inside = [each for each in self.inside if each[0] != number] + own

    def _note(self, number: int, what: str) -> None:
        self.problems.append({"tile": number, "box": self.tiles.boxes[number].tolist(), "what": what})

    def without(self, *, to_ask: bool = False) -> Array:
        """Tiles without an answer; `to_ask` leaves out those that were asked or failed, too."""
        taken = [*self.told, *(self.asked + self.failed if to_ask else ())]
        return np.setdiff1d(np.arange(len(self.tiles.boxes)), np.array(taken, np.int64))

    def has_hit(self, numbers: Array) -> Array:
        """Whether each of these tiles has a hit; False where there is no answer."""
        with np.errstate(invalid="ignore"):
            found = self.hits[numbers]
            return np.asarray(found > 0 if self.threshold is None else found >= self.threshold)

    def hits_in_a_tile(self) -> Array:
        """Numbers of hits in the tiles that have some; 1 where they are not known."""
        values = self.hits[self.rows]
        some = values[values > 0] if self.threshold is None else np.zeros(0)
        return some if some.size else np.ones(1)
