"""Where an object of one picture may be: a density over boxes, before and between looks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from saccade._core import limits
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
    """The density of an object's box in one picture, over centre, log size and log shape.

    `unknown`, `of_map` and `SituationModel.prior` make one. The centre is in shares of the picture, the size is a share
    of its area, and the shape is width over height.

    Parameters
    ----------
    bounds : array of shape (4,)
        x0, y0, x1, y1 of the picture.
    density : Density
        Over these four coordinates.
    used : tuple of str
        The found objects that it is conditioned on.
    fell_back : bool
        True if there were found objects that it is not conditioned on, because the model finds them unlikely.
    tail : float
        Tail probability of the found objects: how often such objects are less typical. 1 where nothing was found.

    Examples
    --------
    >>> prior = BoxPrior.unknown((640, 480))
    >>> boxes = prior.sample(3, np.random.default_rng(0))
    >>> boxes.shape, prior.log_density(boxes).round(2)
    ((3, 4), array([-3.1, -3.1, -3.1]))
    """

    bounds: Annotated[Array, "4"]
    density: Density
    used: tuple[str, ...] = ()
    fell_back: bool = False
    tail: float = 1.0

    @classmethod
    def unknown(cls, bounds: Any) -> BoxPrior:
        """Every place, size and shape alike: for a search without a situation model.

        Sizes go from a thousandth of the picture to all of it, shapes from five times as wide as high to the reverse.

        Parameters
        ----------
        bounds : (width, height) or (x0, y0, x1, y1)
            The picture.

        Returns
        -------
        BoxPrior
            The uniform density.
        """
        low, high = np.array(UNKNOWN)
        return cls(check_bounds(bounds), Block(low, high))

    @classmethod
    def of_map(
        cls, bounds: Any, salience: Annotated[Any, "rows, columns"], like: BoxPrior | None = None, floor: float = 0.1
    ) -> BoxPrior:
        """The centre by a map, such as where a model sees its class; sizes and shapes as in another prior.

        Parameters
        ----------
        bounds : (width, height) or (x0, y0, x1, y1)
            The picture.
        salience : array of shape (rows, columns)
            Numbers from 0 on, in proportion to the probability; the picture from its top left to its bottom right.
        like : BoxPrior, optional
            Where sizes and shapes come from, such as `SituationModel.prior`. None: they are unknown.
        floor : float from 0 to 1
            Share of the density that is equal everywhere, so that an object is found also where the map shows nothing.

        Returns
        -------
        BoxPrior
            The density; place and size are independent in it.
        """
        table = as_numbers(salience, "salience")
        if table.ndim != 2 or not table.size or not np.isfinite(table).all() or (table < 0).any():
            raise InvalidInput(
                f"`salience` must be a table of finite numbers from 0 on, got an array of shape {table.shape}. Set "
                "negative numbers to 0, or add a constant."
            )
        if table.size > limits.MAP_CELLS:
            raise InvalidInput(
                f"`salience` has {table.shape[0]} x {table.shape[1]} cells, a map at most {limits.MAP_CELLS:,}. "
                "Average neighbouring cells first."
            )
        floor = check_share("floor", floor, 1.0, "The default is 0.1.")
        even = np.full(table.shape, 1.0 / table.size)
        chances = floor * even + (1.0 - floor) * (table / table.sum() if table.sum() > 0 else even)
        sizes: Density = (cls.unknown(bounds) if like is None else like).part(np.arange(2, 4))
        return cls(check_bounds(bounds), PlaceAndRest(Cells(chances), sizes))

    def part(self, places: Array) -> Density:
        """The density of some coordinates alone, where it is uniform or made of normals.

        Parameters
        ----------
        places : array of int
            Which of the four coordinates: 0 and 1 for the centre, 2 for log size, 3 for log shape.

        Returns
        -------
        Density
            Over these coordinates.
        """
        if isinstance(self.density, Block):
            return Block(self.density.low[places], self.density.high[places])
        if isinstance(self.density, Normals):
            return self.density.part(places)
        raise InvalidInput(
            f"A density {type(self.density).__name__} cannot be split. Pass a prior of a SituationModel."
        )

    def sample(self, n: int, rng: np.random.Generator) -> Annotated[Array, "n, 4"]:
        """Boxes drawn at random, inside the picture.

        A draw whose centre is outside is drawn again. What extends beyond the picture is cut off, as in the boxes that
        people draw around objects at its edge.

        Parameters
        ----------
        n : int
            Number of boxes.
        rng : numpy.random.Generator
            Source of all random numbers.

        Returns
        -------
        array of shape (n, 4)
            x0, y0, x1, y1.
        """
        n = check_count("n", n, "Pass the number of boxes.", least=0)
        return self.boxes(self.draw(n, rng))

    def draw(self, n: int, rng: np.random.Generator) -> Annotated[Array, "n, 4"]:
        """Coordinates drawn at random, with the centre inside the picture.

        Parameters
        ----------
        n : int
            Number of draws.
        rng : numpy.random.Generator
            Source of all random numbers.

        Returns
        -------
        array of shape (n, 4)
            Centre, log size and log shape.
        """
        u = self.density.draw(n, rng)
        for _ in range(REDRAWS):
            outside = np.flatnonzero(((u[:, :2] < 0.0) | (u[:, :2] > 1.0)).any(axis=1))
            if not outside.size:
                break
            u[outside] = self.density.draw(outside.size, rng)
        u[:, :2] = np.clip(u[:, :2], 0.0, 1.0)
        return u

    def boxes(self, u: Annotated[Array, "n, 4"]) -> Annotated[Array, "n, 4"]:
        """The boxes that have these coordinates, cut at the picture's edge.

        Parameters
        ----------
        u : array of shape (n, 4)
            Centre (inside the picture), log size and log shape.

        Returns
        -------
        array of shape (n, 4)
            x0, y0, x1, y1.
        """
        size, shape = np.clip(u[:, 2], *LOG_SIZE), np.clip(u[:, 3], *LOG_SHAPE)
        return clip(from_coordinates(np.column_stack([u[:, :2], size, shape]), self.bounds), self.bounds)[0]

    def hedged(self, share: float) -> BoxPrior:
        """This prior mixed with that of nothing known, for objects that lie where none did in training.

        Parameters
        ----------
        share : float
            Share of the density where nothing is known, from 0 to 1.

        Returns
        -------
        BoxPrior
            The mixture.
        """
        low, high = np.array(UNKNOWN)
        shares = np.array([1.0 - share, share])
        if isinstance(self.density, Held):
            free = Blend(shares, (self.density.free, Block(low[:2], high[:2])))
            return replace(self, density=Held(free, self.density.known))
        return replace(self, density=Blend(shares, (self.density, Block(low, high))))

    def of_size(self, size: Annotated[Any, "width, height"]) -> BoxPrior:
        """The density of the place of a box whose width and height are known.

        Parameters
        ----------
        size : (width, height)
            In the units of the picture.

        Returns
        -------
        BoxPrior
            All draws have this size.
        """
        width, height = check_bounds(size)[2:] - check_bounds(size)[:2]
        x, y = self.bounds[:2]
        known = to_coordinates(np.array([[x, y, x + width, y + height]]), self.bounds)[0, 2:]
        density, place, rest = self.density, np.arange(2), np.arange(2, 4)
        if isinstance(density, Normals):
            return replace(self, density=Held(density.given(rest, known, place), known))
        if isinstance(density, PlaceAndRest):
            return replace(self, density=Held(density.place, known))
        return replace(self, density=Held(self.part(place), known))

    def log_density(self, boxes: Annotated[Any, "n, 4"]) -> Annotated[Array, "n"]:
        """The log density of each box, per unit of centre, log size and log shape.

        Draws are cut at the picture's edge; the density is not.

        Parameters
        ----------
        boxes : array of shape (n, 4)
            x0, y0, x1, y1.

        Returns
        -------
        array of shape (n,)
            −inf where the density is 0.
        """
        return self.density.log_density(to_coordinates(check_boxes(boxes), self.bounds))
