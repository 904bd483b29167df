"""Where an object of one picture may be: a density over boxes, before and between looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.checks import check_count
from saccade.localize.boxes import check_bounds, check_boxes, clip, from_coordinates, to_coordinates
from saccade.localize.densities import Block, Density

REDRAWS = 100  # rounds in which draws with a centre outside the picture are drawn again
LOG_SIZE = (-27.0, 0.0)  # of a drawn box: from a millionth of the picture in each direction to all of it
LOG_SHAPE = (-14.0, 14.0)  # of a drawn box: a million times as wide as high, or the reverse
# Where nothing is known: a thousandth of the picture to all of it, five times as wide as high or the reverse.
UNKNOWN = ((0.0, 0.0, float(np.log(1e-3)), -float(np.log(5.0))), (1.0, 1.0, 0.0, float(np.log(5.0))))


@dataclass(frozen=True)
class BoxPrior:
    """The density of an object's box in one picture, in coordinates (see `to_coordinates`).

    Attributes
    ----------
    bounds : array (4,)
        The picture.
    density : Normals or Block
        Over centre, log size and log shape.
    used : tuple of str
        The found objects that it is conditioned on.
    fell_back : bool
        Whether there were found objects that it is not conditioned on, because they are unlikely to belong together.
    tail : float
        How often objects are farther from what is usual than the found ones; 1 where nothing was found.
    """

    bounds: Array  # (4,)
    density: Density
    used: tuple[str, ...] = ()
    fell_back: bool = False
    tail: float = 1.0

    @classmethod
    def unknown(cls, bounds: Any) -> BoxPrior:
        """Every place, and sizes and shapes from small to large alike: for a search without a situation model."""
        low, high = np.array(UNKNOWN)
        return cls(check_bounds(bounds), Block(low, high))

    def sample(self, n: int, rng: np.random.Generator) -> Array:  # (n, 4)
        """Boxes drawn at random, inside the picture.

        A draw whose centre is outside is drawn again. What extends beyond the picture is cut off, as in the boxes that
        people draw around objects at its edge.
        """
        n = check_count("n", n, "Pass the number of boxes.", least=0)
        u = self.density.draw(n, rng)
        for _ in range(REDRAWS):
            outside = np.flatnonzero(((u[:, :2] < 0.0) | (u[:, :2] > 1.0)).any(axis=1))
            if not outside.size:
                break
            u[outside] = self.density.draw(outside.size, rng)
        u[:, :2] = np.clip(u[:, :2], 0.0, 1.0)
        u[:, 2], u[:, 3] = np.clip(u[:, 2], *LOG_SIZE), np.clip(u[:, 3], *LOG_SHAPE)
        return clip(from_coordinates(u, self.bounds), self.bounds)[0]

    def log_density(
        self,
        boxes: Any,  # (n, 4)
    ) -> Array:  # (n,)
        """The log density of each box, per unit of u. Draws are cut at the picture's edge; the density is not."""
        return self.density.log_density(to_coordinates(check_boxes(boxes), self.bounds))
