"""What a search gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from saccade._core.arrays import Array


@dataclass(frozen=True)
class Location:
    """Where the object is, by the looks so far."""

    box: Array  # (4,): x0, y0, x1, y1
    score: float  # expected of this box, in the judge's units
    probability: float  # that the box overlaps the object by a half or more, if the judge takes nothing else for it
    present: float  # probability that there is an object at all
    looks: int


class Failure(NamedTuple):
    """A look of which the judge gave no score."""

    box: Array  # (4,)
    why: str
