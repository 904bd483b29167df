"""What was asked and told about tiles, in order: all that a search over tiles has to keep."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.localize.boxes import as_numbers, check_boxes
from saccade.localize.sources.base import Source, crops
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


NOTHING = np.zeros((0, 5))


class Answer(NamedTuple):
    """The judge's answer for one tile."""

    value: float  # NaN where there is none
    inside: Annotated[Array, "k, 5"]  # boxes in pixels of the picture, and scores
    problem: str = ""

    def as_told(self, answers: TileAnswers) -> tuple[float, str]:
        """The value that a search takes, NaN if it cannot be one, and why."""
        has_scores = answers.threshold is not None and len(self.inside)
        value = float(self.inside[:, 4].max()) if has_scores else self.value
        if not self.problem and not answers.possible(value):
            return np.nan, f"the judge gave {value:g}"
        return value, self.problem


class FoundBoxes(NamedTuple):
    """Boxes inside tiles, highest score first."""

    boxes: Annotated[Array, "k, 4"]
    scores: Annotated[Array, "k"]


def judged(
    judge: Callable[[list[Array]], Any],
    source: Source,
    boxes: Annotated[Array, "n, 4"],
    size: tuple[int, int] | None,
    scale: float,
) -> list[Answer]:
    """The judge's answer for every tile; where a batch fails, its tiles are shown one by one."""
    answers, problem = _ask(judge, source, boxes, size, scale)
    if not problem:
        return answers
    if len(boxes) == 1:
        return [Answer(np.nan, NOTHING, problem)]
    return [judged(judge, source, box[None], size, scale)[0] for box in boxes]


def _ask(
    judge: Callable[[list[Array]], Any], source: Source, boxes: Array, size: tuple[int, int] | None, scale: float
) -> tuple[list[Answer], str]:
    """Answers, or what is wrong with them."""
    try:
        shown = crops(source, boxes, size, scale)
        given = list(judge(shown))
        if len(given) != len(boxes):
            return [], f"the judge gave {len(given)} answers for {len(boxes)} crops"
        pairs = zip(given, boxes, shown, strict=True)
        return [_answer(each, box, crop.shape) for each, box, crop in pairs], ""
    except Exception as error:  # the judge and the pictures are not ours
        return [], f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _answer(given: Any, box: Array, shape: tuple[int, ...]) -> Answer:
    """A number, or boxes in pixels of the crop."""
    if np.ndim(given) == 0:
        return Answer(float(given), NOTHING)
    inside = scored(given)
    factor = (box[2:] - box[:2]) / np.array([shape[1], shape[0]])
    places = inside[:, :4] * np.tile(factor, 2) + np.tile(box[:2], 2)
    return Answer(float(len(inside)), np.column_stack([places, inside[:, 4]]))


def check_inside(inside: Sequence[Any] | None, numbers: Array) -> list[list[list[float]]]:
    """For each tile the rows tile, x0, y0, x1, y1, score."""
    if inside is None:
        return [[] for _ in numbers]
    if len(inside) != numbers.size:
        raise InvalidInput(f"`inside` must have {numbers.size} entries, one for each tile, got {len(inside)}.")
    return [
        [[float(number), *row] for row in scored(own).tolist()] for number, own in zip(numbers, inside, strict=True)
    ]


def scored(boxes: Any) -> Annotated[Array, "k, 5"]:
    """Boxes with scores; boxes without scores get 1."""
    found = as_numbers(boxes, "inside")
    found = found.reshape(-1, 5) if found.size == 0 else np.atleast_2d(found)
    if found.ndim != 2 or found.shape[1] not in (4, 5) or not np.isfinite(found).all():
        raise InvalidInput(f"Boxes inside a tile must be (k, 4) or (k, 5) finite numbers, got shape {found.shape}.")
    check_boxes(found[:, :4], "inside")
    return found if found.shape[1] == 5 else np.column_stack([found, np.ones(len(found))])
