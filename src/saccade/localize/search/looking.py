"""A search from start to end with a judge that may fail: failed looks are recorded and the search goes on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from saccade._core import codec, limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.localize.boxes import areas, as_numbers
from saccade.localize.search.state import LOCALIZER, OPTIONS
from saccade.localize.sources.base import Source, crops, open_picture

if TYPE_CHECKING:
    from saccade.localize.search.localizer import Localizer

Judge = Callable[[Any], Any]


def look(
    search: Localizer,
    scores: Callable[[Array], tuple[Array, str]],  # of boxes, and why there is none
    after: Callable[[], None],  # every batch
    *,
    looks: int,
    batch: int,
    sure: float,
) -> None:
    """Ask and tell until the looks are spent, the object is surely found, or nothing is left to look at."""
    while (left := looks - search.looks - len(search.failures)) > 0:
        boxes = search.ask(min(batch, left))
        if not len(boxes):
            break
        search.tell(boxes, *scores(boxes))
        report("looking", (looks - left + len(boxes)) / looks)
        after()
        if sure < 1.0 and search.looks and search.best().probability >= sure:
            break
    report("looking", 1.0)
    if search.failures:
        last = search.failures[-1]
        warnings.warn(
            f"The judge failed at {len(search.failures)} of {search.looks + len(search.failures)} looks, which are "
            f"left out; the last one was {last.box.round(1).tolist()}: {last.why}",
            stacklevel=3,
        )


def judge_of_boxes(search: Localizer, judge: Judge, picture: Any, crop: Any) -> Callable[[Array], tuple[Array, str]]:
    """The judge's scores of boxes, and why there is none; with a picture it is shown crops."""
    source = None if picture is None else _source(search, picture)
    return lambda boxes: judged(judge, boxes if source is None else cut(source, boxes, crop))


def cut(source: Source, boxes: Array, size: Any) -> list[Array]:
    """The crop of each box: of one size if it is given; else at full resolution, or coarser where it is too large."""
    if size is not None:
        return crops(source, boxes, size)
    scales = np.minimum(np.sqrt(limits.CROP_PIXELS / areas(boxes)), 1.0)
    return [source.read(box, float(scale)) for box, scale in zip(boxes, scales, strict=True)]


def judged(judge: Judge, what: Any) -> tuple[Array, str]:
    """The scores (n,) of n boxes or crops, NaN where there is none, and the reason."""
    n = len(what)
    try:
        scores = as_numbers(judge(what), "scores").ravel()
    except Exception as error:
        return np.full(n, np.nan), f"{type(error).__name__}: {error}"
    if len(scores) != n:
        return np.full(n, np.nan), f"{len(scores)} scores for {n} boxes"
    return np.where(np.abs(scores) <= limits.SCORE, scores, np.nan), "no finite score"


def _source(search: Localizer, picture: Any) -> Source:
    source = open_picture(picture)
    height, width = source.shape[:2]
    if (search.bounds[:2] < 0).any() or search.bounds[2] > width or search.bounds[3] > height:
        raise InvalidInput(
            f"The picture is {width} × {height}, but the search goes from {search.bounds[:2].tolist()} to "
            f"{search.bounds[2:].tolist()}. Make the Localizer with ({width}, {height})."
        )
    return source


def go_on(search: Localizer, state: Any) -> None:
    """Take over the looks of a file that was written by a search with these options."""
    before: Localizer = codec.from_json(LOCALIZER, codec.read_json(state), state)
    if not search.seed_given:
        search.random_state = before.random_state
    mine, other = (codec.to_json(OPTIONS, each) for each in (search, before))
    changed = [name for name in mine if mine[name] != other[name]]
    if changed:
        raise InvalidInput(
            f"{state} has a search with another {', '.join(changed)}: {other[changed[0]]!r:.80}. Pass the same, or "
            "name another file."
        )
    if search.looks or search.failures:
        raise InvalidInput(f"This search has looks already, and {state} has its own. Begin with a new Localizer.")
    search.boxes, search.told, search.failures = before.boxes, before.told, before.failures
    search.learn_prior(search.prior)  # forgets what was believed without these looks
