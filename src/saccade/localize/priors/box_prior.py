"""Where an object of one picture may be: a density over boxes, before and between looks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.checks import check_count, check_share
from saccade._core.errors import InvalidInput
from saccade.localize.boxes import as_numbers, check_bounds, check_boxes, clip, from_coordinates, to_coordinates
from saccade.localize.priors.densities import Blend, Block, Cells, Density, Held, Normals, PlaceAndRest

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

    @classmethod
    def of_map(
        cls,
        bounds: Any,
        salience: Any,  # (rows, columns): not negative; the picture from its top left to its bottom right
        like: BoxPrior | None = None,
        floor: float = 0.1,
    ) -> BoxPrior:
        """The centre by a map, such as where a model sees its class; sizes and shapes as in another prior.

        A share `floor` of the density is the same everywhere: an object where the map shows nothing is found too.
        Without `like`, sizes and shapes are unknown.
        """
        table = as_numbers(salience, "salience")
        if table.ndim != 2 or not table.size or not np.isfinite(table).all() or (table < 0).any():
            raise InvalidInput(
                f"`salience` must be a table of finite numbers from 0 on, got an array of shape {table.shape}. Cut off "
                "what is negative, or add to it."
            )
        floor = check_share("floor", floor, 1.0, "The default is 0.1.")
        even = np.full(table.shape, 1.0 / table.size)
        chances = floor * even + (1.0 - floor) * (table / table.sum() if table.sum() > 0 else even)
        sizes: Density = (cls.unknown(bounds) if like is None else like).part(np.arange(2, 4))
        return cls(check_bounds(bounds), PlaceAndRest(Cells(chances), sizes))

    def part(self, places: Array) -> Density:
        """The density of some coordinates alone."""
        if isinstance(self.density, Block):
            return Block(self.density.low[places], self.density.high[places])
        if isinstance(self.density, Normals):
            return self.density.part(places)
        raise InvalidInput(f"A {type(self.density).__name__} cannot be split. Pass a prior of a SituationModel.")

    def sample(self, n: int, rng: np.random.Generator) -> Array:  # (n, 4)
        """Boxes drawn at random, inside the picture.

        A draw whose centre is outside is drawn again. What extends beyond the picture is cut off, as in the boxes that
        people draw around objects at its edge.
        """
        n = check_count("n", n, "Pass the number of boxes.", least=0)
        return self.boxes(self.draw(n, rng))

    def draw(self, n: int, rng: np.random.Generator) -> Array:  # (n, 4)
        """Coordinates drawn at random, with the centre inside the picture."""
        u = self.density.draw(n, rng)
        for _ in range(REDRAWS):
            outside = np.flatnonzero(((u[:, :2] < 0.0) | (u[:, :2] > 1.0)).any(axis=1))
            if not outside.size:
                break
            u[outside] = self.density.draw(outside.size, rng)
        u[:, :2] = np.clip(u[:, :2], 0.0, 1.0)
        return u

    def boxes(
        self,
        u: Array,  # (n, 4), with the centre inside the picture
    ) -> Array:  # (n, 4)
        """The boxes that have these coordinates, cut at the picture's edge."""
        size, shape = np.clip(u[:, 2], *LOG_SIZE), np.clip(u[:, 3], *LOG_SHAPE)
        return clip(from_coordinates(np.column_stack([u[:, :2], size, shape]), self.bounds), self.bounds)[0]

    def hedged(self, share: float) -> BoxPrior:
        """The same with a share of nothing known: for objects that lie where none of those learned from did."""
        low, high = np.array(UNKNOWN)
        shares = np.array([1.0 - share, share])
        if isinstance(self.density, Held):
            free = Blend(shares, (self.density.free, Block(low[:2], high[:2])))
            return replace(self, density=Held(free, self.density.known))
        return replace(self, density=Blend(shares, (self.density, Block(low, high))))

    def of_size(
        self,
        size: Any,  # (width, height)
    ) -> BoxPrior:
        """The density of the place of a box whose width and height are known."""
        width, height = check_bounds(size)[2:] - check_bounds(size)[:2]
        x, y = self.bounds[:2]
        known = to_coordinates(np.array([[x, y, x + width, y + height]]), self.bounds)[0, 2:]
        density, place, rest = self.density, np.arange(2), np.arange(2, 4)
        if isinstance(density, Normals):
            return replace(self, density=Held(density.given(rest, known, place), known))
        if isinstance(density, PlaceAndRest):
            return replace(self, density=Held(density.place, known))
        return replace(self, density=Held(self.part(place), known))

    def log_density(
        self,
        boxes: Any,  # (n, 4)
    ) -> Array:  # (n,)
        """The log density of each box, per unit of u. Draws are cut at the picture's edge; the density is not."""
        return self.density.log_density(to_coordinates(check_boxes(boxes), self.bounds))
