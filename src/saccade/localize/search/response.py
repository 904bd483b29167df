"""How the score of a look depends on where the object is: the model of a judge of boxes.

Scores are in units in which a box far from any object has about 0 and the object's own box about 1:

    score of box b, if the object is t  =  offset + β₁ overlap(b, t) + β₂ nearness(b, t) + clutter(b) + noise

overlap is the intersection over union; nearness = exp(−3 ‖difference of the centres‖), in shares of the picture, is
how S §12 lets a judge sense an object from a distance. β₁, β₂ and the offset are normal with broad priors and never
set to a value. Clutter is a smooth function, a Gaussian process over place, size and shape: what the judge takes for an
object, what it misses, and what this form gets wrong.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from saccade._core.arrays import Array
from saccade._core.threads import ranged, share_calls, thread_count
from saccade.kernels import RBF
from saccade.localize.boxes import to_coordinates

FALL = 3.0  # γ of S §12
OFFSET = 0.1  # standard deviation of the score far from the object
BETA = np.array([0.8, 0.1])  # mean of the shares that overlap and nearness have in the score ...
BETA_SPREAD = np.array([0.25, 0.1])  # ... and their standard deviations
# The distance over which clutter changes: centre in shares of the picture, log size, log shape.
CLUTTER_SCALES = np.array([0.1, 0.1, 0.5, 0.5])


@dataclass(frozen=True)
class Misfit:
    """Standard deviations of what overlap and nearness do not explain of a score."""

    noise: float = 0.1  # differs at every look, even of one box
    clutter: float = 0.05  # nearly equal for nearly equal boxes


def shares(
    boxes: Annotated[Array, "n, 4"], objects: Annotated[Array, "h, 4"], bounds: Annotated[Array, "4"]
) -> Annotated[Array, "2, n, h"]:
    """Overlap and nearness of every box with every object."""
    from saccade.localize.search import loops as look_loops

    found = np.empty((2, len(boxes), len(objects)))
    width, height = bounds[2:] - bounds[:2]
    read = np.ascontiguousarray(boxes), np.ascontiguousarray(objects), float(width), float(height), FALL
    share_calls(ranged(look_loops.shares, read, (found,)), len(boxes), thread_count())
    return found


def clutter_and_offset(
    a: Annotated[Array, "n, 4"], b: Annotated[Array, "m, 4"], bounds: Annotated[Array, "4"], misfit: Misfit
) -> Annotated[Array, "n, m"]:
    """The covariance, between boxes a and b, of the score that no object explains."""
    if not len(a) or not len(b):
        return np.zeros((len(a), len(b)))
    kernel = RBF(length_scale=CLUTTER_SCALES, amplitude=max(misfit.clutter**2, 1e-300))
    return kernel(to_coordinates(a, bounds), to_coordinates(b, bounds)) + OFFSET**2
