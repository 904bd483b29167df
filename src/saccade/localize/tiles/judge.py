"""A judge's answers for tiles; failures are recorded, so that one bad tile does not end a search of hours."""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from saccade._core.arrays import Array
from saccade.localize.sources.base import Source, crops
from saccade.localize.tiles.answers import TileAnswers
from saccade.localize.tiles.checks import scored

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
