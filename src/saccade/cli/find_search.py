"""The search for one object in one picture, step by step: what `saccade find` and the demo run and show."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.localize import Found, Localizer
from saccade.localize.sources.base import Source
from saccade.scores.acquisition import expected_improvement


@dataclass(frozen=True)
class Maps:
    """At centres all over the picture, for boxes of the size of the best one."""

    mean: Annotated[Array, "rows, columns"]  # expected score
    variance: Annotated[Array, "rows, columns"]  # of the score
    gain: Annotated[Array, "rows, columns"]  # expected improvement on the best look


@dataclass(frozen=True)
class Step:
    """What is known after a batch of looks."""

    looks: int
    found: Found
    maps: Maps
    seconds: float  # since the start, without what is computed for the report


@dataclass(frozen=True)
class ObjectSearch:
    """One picture, and all steps that were kept."""

    name: str
    picture: Source
    localizer: Localizer
    found: Found
    steps: list[Step]
    seconds: float


def by_search(localizer: Localizer) -> Found:
    """The answer by the search alone, without a calibrator."""
    best = localizer.best()
    return Found(best.box, best.probability, best.present, best.present >= 0.5, best.score, best.looks)


def search(
    name: str,
    picture: Source,
    judge: Callable[[list[Array]], Array],
    localizer: Localizer,
    *,
    keep: bool,  # the steps, for a report
    answer: Callable[[Localizer], Found] = by_search,
    **options: Any,  # looks, batch, sure
) -> ObjectSearch:
    """Look until the best box is probable enough or the looks are used up. Looks that fail are left out."""
    steps, start, shown = list[Step](), time.perf_counter(), 0.0

    def watch() -> None:
        nonlocal shown
        now = time.perf_counter()
        if localizer.looks:
            steps.append(Step(localizer.looks, answer(localizer), maps_of(localizer), now - start - shown))
        shown += time.perf_counter() - now

    localizer.run(judge, picture, **options, watch=watch if keep else None)
    if not localizer.looks:
        raise InvalidInput(f"No look at it could be judged ({localizer.failures[-1].why}).")
    return ObjectSearch(name, picture, localizer, answer(localizer), steps, time.perf_counter() - start - shown)


def maps_of(localizer: Localizer, along: int = limits.REPORT_CENTRES) -> Maps:
    """Mean, variance and expected improvement over the whole picture."""
    x0, y0, x1, y1 = localizer.bounds
    cell = max(x1 - x0, y1 - y0) / along
    columns, rows = (max(1, round(side / cell)) for side in (x1 - x0, y1 - y0))
    mean, variance = localizer.map(rows, columns)
    best = float(localizer.predict(localizer.boxes)[0].max())
    return Maps(mean, variance, expected_improvement(mean, variance, best))
