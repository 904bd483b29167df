"""The result of a search."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from saccade._core.arrays import Array


@dataclass(frozen=True)
class Location:
    """Where the object is, by the looks so far.

    Parameters
    ----------
    box : array of shape (4,)
        x0, y0, x1, y1.
    score : float
        Expected score of this box, in the judge's units.
    probability : float
        That the box overlaps the object by a half or more, if the judge does not take something else for the object.
    present : float
        Probability that there is an object at all.
    looks : int
        Number of scores behind it.

    Examples
    --------
    >>> from saccade.localize import Localizer
    >>> found = Localizer((640, 480), random_state=0).best()
    >>> found.box.shape, found.looks, found.present
    ((4,), 0, 1.0)
    """

    box: Annotated[Array, "4"]
    score: float
    probability: float
    present: float
    looks: int


class Failure(NamedTuple):
    """A look for which the judge gave no score."""

    box: Annotated[Array, "4"]
    why: str
