"""What a search is made with, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.checks import is_number
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.localize.boxes import as_numbers, check_boxes
from saccade.localize.prior import BoxPrior


def check_scores(scores: Any) -> tuple[float, float]:
    if len(scores) != 2 or not all(is_number(score) for score in scores) or not scores[1] > scores[0]:
        raise InvalidParameter(
            f"`scores` must be two numbers, the judge's score of background and of the object, got {scores!r}."
        )
    return float(scores[0]), float(scores[1])


def check_size(size: Any, bounds: Array) -> tuple[float, float]:
    found, picture = as_numbers(size, "size"), bounds[2:] - bounds[:2]
    if found.shape != (2,) or not (found > 0).all() or (found > picture).any():
        raise InvalidInput(
            f"`size` must be the width and height of a box in a picture of {picture.tolist()}, got {size!r}. If the "
            "object may be larger than the picture, leave it out."
        )
    return float(found[0]), float(found[1])


def check_proposals(proposals: Any, bounds: Array) -> Array:  # (n, 4)
    found = check_boxes(proposals, "proposals", bounds)
    if not len(found):
        raise InvalidInput("`proposals` is empty: there is nothing to look at. Pass None to look anywhere.")
    return found


def check_prior(prior: Any, bounds: Array) -> BoxPrior | None:
    if prior is not None and not isinstance(prior, BoxPrior):
        raise InvalidParameter(f"`prior` must be a BoxPrior, as SituationModel.prior gives one, got {prior!r:.100}.")
    if prior is not None and not np.allclose(prior.bounds, bounds):
        raise InvalidInput(f"The prior is of a picture {prior.bounds.tolist()}, and this one is {bounds.tolist()}.")
    return prior


def check_repeated(boxes: Array, scores: Array, unit: float) -> None:
    """Without noise one box cannot have two scores; what differs by a billionth of the unit is the same."""
    known: dict[tuple[float, ...], float] = {}
    for box, score in zip(map(tuple, boxes), scores, strict=True):
        if abs(known.setdefault(box, score) - score) > 1e-9 * unit:
            raise InvalidInput(
                f"Box {list(box)} has the scores {known[box]:g} and {score:g}, and noise=0 says that it has one. Pass "
                "noise=None to learn the noise, or its variance."
            )
