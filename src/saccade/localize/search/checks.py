"""Checks of the arguments of a search."""

from typing import Annotated, Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.localize.boxes import as_numbers, check_boxes
from saccade.localize.priors.box_prior import BoxPrior


def check_scores(scores: Any) -> tuple[float, float]:
    """The judge's scores of background and object, with a range that numbers of float64 can be divided by."""
    found = as_numbers(scores, "scores")
    if found.shape != (2,) or not np.abs(found).max() <= limits.SCORE or not np.diff(found)[0] >= 1.0 / limits.SCORE:
        raise InvalidParameter(
            "`scores` must be two numbers, the judge's score of background and of the object, the second larger and "
            f"both at most {limits.SCORE:g} in size, got {scores!r:.100}."
        )
    return float(found[0]), float(found[1])


def check_looks(boxes: Array, told: Array, scores: tuple[float, float] | None, noise: float | None = None) -> None:
    """All looks of a search: not too many, no score too large for sums of squares, none told twice without noise."""
    if len(boxes) > limits.LOOKS:
        raise InvalidInput(f"A search takes at most {limits.LOOKS:,} looks, got {len(boxes):,}. Keep the best ones.")
    low, unit = (0.0, 1.0) if scores is None else (scores[0], scores[1] - scores[0])
    size = np.maximum(np.abs(told), np.abs(told - low) / unit)
    if not (size <= limits.SCORE).all():
        row = int(np.flatnonzero(~(size <= limits.SCORE))[0])
        raise InvalidInput(
            f"Scores must be at most {limits.SCORE:g} in size, as they are and in units of the range "
            f"scores={scores}, got {told[row]:g} for box {boxes[row].tolist()}. Divide the scores, or pass NaN for a "
            "look that failed."
        )
    if noise == 0.0:
        _check_repeated(boxes, told, unit)


FIRST = 10  # looks whose median is about the score far from the object
FAR, FAR_ALL = 3.0, 1.0  # ranges of scores that one look may be off, and all looks, beside what noise explains


def check_scale(told: Array, scores: tuple[float, float] | None, noise: float | None) -> None:
    """Scores far outside the range that they were said to have: the search would be sure of the wrong box."""
    if scores is None or not len(told):
        return
    (low, high), slack = scores, 6.0 * np.sqrt(noise or 0.0)
    off, enough = np.abs(told - low), len(told) >= FIRST
    if off.max() > FAR * (high - low) + slack or (enough and off.min() > FAR_ALL * (high - low) + slack):
        raise InvalidInput(
            f"The judge says from {told.min():g} to {told.max():g}, but scores={scores} say that a box far from the "
            f"object has about {low:g} and the object's own box about {high:g}. Pass `scores` as the judge says "
            "them, or scores=None to learn them."
        )


def check_size(size: Any, bounds: Array) -> tuple[float, float]:
    found, picture = as_numbers(size, "size"), bounds[2:] - bounds[:2]
    if found.shape != (2,) or not (found > 0).all() or (found > picture).any():
        raise InvalidInput(
            f"`size` must be the width and height of a box in a picture of {picture.tolist()}, got {size!r}. If the "
            "object may be larger than the picture, leave it out."
        )
    return float(found[0]), float(found[1])


def check_proposals(proposals: Any, bounds: Array) -> Annotated[Array, "n, 4"]:
    found = check_boxes(proposals, "proposals", bounds)
    if not len(found):
        raise InvalidInput("`proposals` is empty: there is nothing to look at. Pass None to look anywhere.")
    return found


def check_prior(prior: Any, bounds: Array) -> BoxPrior | None:
    if prior is not None and not isinstance(prior, BoxPrior):
        raise InvalidParameter(f"`prior` must be a BoxPrior, as SituationModel.prior gives one, got {prior!r:.100}.")
    if prior is not None and not np.allclose(prior.bounds, bounds):
        raise InvalidInput(f"The prior is of a picture {prior.bounds.tolist()}, but this one is {bounds.tolist()}.")
    return prior


def _check_repeated(boxes: Array, scores: Array, unit: float) -> None:
    """Without noise one box cannot have two scores; a difference of a billionth of the unit is allowed."""
    known: dict[tuple[float, ...], float] = {}
    for box, score in zip(map(tuple, boxes), scores, strict=True):
        if abs(known.setdefault(box, score) - score) > 1e-9 * unit:
            raise InvalidInput(
                f"Box {list(box)} has the scores {known[box]:g} and {score:g}, and noise=0 says that it has one. Pass "
                "noise=None to learn the noise, or its variance."
            )
