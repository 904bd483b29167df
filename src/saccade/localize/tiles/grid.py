"""A grid of tiles over a picture."""

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from scipy.linalg import solve_triangular

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import check_count, check_share, is_number
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.localize.boxes import as_numbers, check_bounds, check_boxes
from saccade.localize.sources.base import Source, open_picture

RIDGE = 1e-5  # share of all variance that every feature has beyond its own, so that what is constant tells nothing


@dataclass(frozen=True, eq=False)
class Tiles:
    """Boxes of one size in rows and columns that cover the picture; the last ones lie at the edge and overlap more.

    Examples
    --------
    >>> tiles = Tiles.of((100, 60), tile=40)
    >>> tiles.shape, tiles.boxes[[0, 1, 2, 5]].tolist()
    ((2, 3), [[0.0, 0.0, 40.0, 40.0], [40.0, 0.0, 80.0, 40.0], [60.0, 0.0, 100.0, 40.0], [60.0, 20.0, 100.0, 60.0]])
    """

    bounds: Annotated[Array, "4"]
    tile: int
    overlap: float
    shape: tuple[int, int]  # rows, columns
    boxes: Annotated[Array, "rows · columns, 4"]  # row by row

    @classmethod
    def of(cls, bounds: Any, tile: int, overlap: float = 0.0) -> Self:
        """The grid over a picture, with tiles of `tile` pixels; a neighbour covers the share `overlap` of it."""
        edges = check_bounds(bounds)
        tile = check_count("tile", tile, "Pass the side of a tile in pixels, such as 1024.")
        if tile > limits.BOX_COORDINATE:
            raise InvalidParameter(f"`tile` must be at most {limits.BOX_COORDINATE:g} pixels, got {tile}.")
        share = check_share("overlap", overlap, 0.9, "0.1 finds objects that the border of two tiles would cut.")
        if edges.ndim != 1:
            raise InvalidInput("A search is over one picture; pass the bounds of one.")
        step = max(1.0, round(tile * (1.0 - share)))
        columns, rows = (_count(edges[k + 2] - edges[k], tile, step) for k in (0, 1))
        if rows * columns > limits.TILES:
            raise InvalidParameter(
                f"`tile` of {tile} makes {rows * columns} tiles; at most {limits.TILES} are taken. Take larger tiles."
            )
        starts = [_starts(edges[k], edges[k + 2], tile, step, n) for k, n in ((0, columns), (1, rows))]
        x, y = (part.ravel() for part in np.meshgrid(*starts))
        right, bottom = np.minimum(x + tile, edges[2]), np.minimum(y + tile, edges[3])
        return cls(edges, tile, share, (rows, columns), np.column_stack([x, y, right, bottom]))

    @property
    def places(self) -> Annotated[Array, "n, 2"]:
        """Row and column of each tile."""
        return np.column_stack(np.unravel_index(np.arange(len(self.boxes)), self.shape)).astype(np.float64)

    def numbers(self, boxes: Annotated[Any, "m, 4"]) -> Annotated[Array, "m"]:
        """Numbers of the tiles that these boxes are, or an error that names one that is not a tile."""
        found = check_boxes(boxes)
        nearest = [np.abs(self.boxes[None, :, k] - found[:, None, k]).argmin(axis=1) for k in (0, 1)]
        numbers = nearest[1] // self.shape[1] * self.shape[1] + nearest[0] % self.shape[1]
        wrong = np.flatnonzero(np.abs(self.boxes[numbers] - found).max(axis=1, initial=0.0) > 1e-6 * self.tile)
        if wrong.size:
            raise InvalidInput(
                f"Box {int(wrong[0])} of `boxes`, {found[wrong[0]].tolist()}, is not a tile of this search. Pass boxes "
                "as `ask` gave them; what is found inside a tile goes to `inside`."
            )
        return np.asarray(numbers)


def _count(length: float, tile: int, step: float) -> int:
    """Tiles along one side."""
    return 1 if length <= tile else int(np.ceil((length - tile) / step - 1e-9)) + 1


def _starts(low: float, high: float, tile: int, step: float, count: int) -> Array:
    """Where tiles begin along one side."""
    return np.asarray(low + np.maximum(np.minimum(np.arange(count) * step, high - low - tile), 0.0))


def first_tiles(shape: tuple[int, int], count: int, rng: np.random.Generator) -> tuple[Array, int]:
    """The first looks: one random tile from each cell of a coarse grid, so that no large part stays unseen.

    About `count` tile numbers in random order, and how many tiles the largest cell has.

    >>> numbers, cell = first_tiles((8, 8), 4, np.random.default_rng(0))
    >>> sorted((number // 8 // 4, number % 8 // 4) for number in numbers.tolist()), cell
    ([(0, 0), (0, 1), (1, 0), (1, 1)], 16)
    """
    rows, columns = shape
    side = np.sqrt(rows * columns / max(count, 1))  # of a cell, in tiles
    down = min(rows, max(1, round(min(rows / side, count))))
    across = min(columns, max(1, round(count / down)))
    y, x = (
        np.rint(np.linspace(0, length, parts + 1)).astype(int) for length, parts in ((rows, down), (columns, across))
    )
    numbers = [
        int(rng.integers(y[a], y[a + 1])) * columns + int(rng.integers(x[b], x[b + 1]))
        for a in range(down)
        for b in range(across)
    ]
    return rng.permutation(np.array(numbers)), int(np.diff(y).max() * np.diff(x).max())


def overview(source: Source, tiles: Tiles, pixels: int = 16) -> Annotated[Array, "n, 10"]:
    """Cheap features of every tile from one coarse look: mean and deviation of each colour, and how much it changes.

    The coarse copy shows a tile by about `pixels` × `pixels` pixels. Reading it costs (pixels / tile)² of a full look
    at all tiles where the source has coarse copies. Columns: three means, three standard deviations, two mean
    differences between neighbours (across, down), the darkest and the lightest grey value; all in units of 255.
    """
    scale = min(1.0, pixels / tiles.tile)
    out = np.empty((len(tiles.boxes), 10))
    for row in range(tiles.shape[0]):
        here = slice(row * tiles.shape[1], (row + 1) * tiles.shape[1])
        some = tiles.boxes[here]
        band = source.read((some[0, 0], some[0, 1], some[-1, 2], some[-1, 3]), scale)
        edges = np.rint((some[:, [0, 2]] - some[0, 0]) * scale).astype(int)
        for number, (left, right) in enumerate(edges):
            left = min(left, band.shape[1] - 1)
            out[here.start + number] = statistics(band[:, left : max(right, left + 1)])
    return out


def statistics(pixels: Annotated[Array, "h, w, 3"]) -> Annotated[Array, "10"]:
    """The ten numbers of `overview` for one tile."""
    values = pixels.astype(np.float64) / 255.0
    grey = values.mean(axis=2)
    across, down = (np.abs(np.diff(grey, axis=axis)).mean() if grey.shape[axis] > 1 else 0.0 for axis in (1, 0))
    flat = values.reshape(-1, 3)
    return np.array([*flat.mean(axis=0), *flat.std(axis=0), across, down, grey.min(), grey.max()])


def source_and_bounds(picture: Any) -> tuple[Source | None, Any]:
    """(width, height) or (x0, y0, x1, y1) are bounds; everything else is a picture."""
    if isinstance(picture, tuple | list) and len(picture) in (2, 4) and all(is_number(side) for side in picture):
        return None, picture
    if isinstance(picture, np.ndarray) and picture.shape in ((2,), (4,)):
        return None, picture
    source = open_picture(picture)
    return source, (source.shape[1], source.shape[0])


def check_features(features: Any, n: int) -> Array | None:
    if features is None:
        return None
    found = as_numbers(features, "features")
    if found.ndim != 2 or len(found) != n or not found.shape[1] or not np.isfinite(found).all():
        raise InvalidInput(
            f"`features` must be {n} rows of finite numbers, one for each tile, got shape {found.shape}."
        )
    return found


def check_examples(examples: Any, of_overview: bool, features: Array | None) -> Array | None:
    """Features of examples: an array of rows, or crops that are looked at as the tiles of an overview are."""
    if examples is None:
        return None
    if features is None:
        raise InvalidParameter(
            '`examples` need `features`, by which tiles may look like them: pass features="overview".'
        )
    if isinstance(examples, np.ndarray) and examples.ndim == 2:
        found = as_numbers(examples, "examples")
    elif of_overview:
        found = np.vstack(
            [np.zeros((0, features.shape[1])), *(_seen_from_afar(open_picture(crop)) for crop in examples)]
        )
    else:
        found = np.zeros((0, 0))
    if (
        not 0 < len(found) <= limits.TILE_EXAMPLES
        or found.shape[1] != features.shape[1]
        or not np.isfinite(found).all()
    ):
        raise InvalidInput(
            f"`examples` must be 1 to {limits.TILE_EXAMPLES} rows of {features.shape[1]} finite numbers, as `features` "
            f'has them, or with features="overview" a list of crops (h, w, 3); got an array of shape {found.shape}.'
        )
    return found


def _seen_from_afar(crop: Source) -> Annotated[Array, "1, 10"]:
    """As one tile of an overview."""
    height, width = crop.shape[:2]
    return overview(crop, Tiles.of((width, height), max(width, height)))


def standardised(
    features: Annotated[Array, "n, d"] | None, examples: Annotated[Array, "k, d"] | None = None
) -> Annotated[Array, "n + k, d"] | None:
    """Mean 0 and deviation 1 over the tiles, divided by the root of their number: two tiles are about √2 apart."""
    if features is None:
        return None
    deviation = features.std(axis=0)
    flat = deviation <= 1e-12 * (1.0 + np.abs(features).max(axis=0))
    every = features if examples is None else np.vstack([features, examples])
    return np.asarray((every - features.mean(axis=0)) / np.where(flat, np.inf, deviation) / np.sqrt(features.shape[1]))


def outliers(features: Annotated[Array, "n, d"]) -> Annotated[Array, "n"]:
    """Tiles by how unlike the others they look: by the variance of a Gaussian process of linear functions.

    Its order is that of the Mahalanobis distance from the mean. `features` are `standardised`; it takes n·d² steps.

    >>> outliers(np.array([[0.1, 0.0], [-0.1, 0.1], [0.2, -0.1], [3.0, 2.0]]))[:1].tolist()
    [3]
    """
    C = features.T @ features
    L = np.linalg.cholesky(C + (RIDGE * np.trace(C) + 1e-300) * np.eye(len(C)))
    away = np.square(solve_triangular(L, features.T, lower=True)).sum(axis=0)
    return np.argsort(-away.round(9), kind="stable")


def check_prior(prior: Any, shape: tuple[int, int]) -> Annotated[Array, "n"]:
    found = as_numbers(prior, "prior")
    if found.shape not in ((), shape) or not ((found > 0.0) & (found < 1.0)).all():
        raise InvalidParameter(
            f"`prior` must be a probability between 0 and 1, or an array of shape {shape} of such, got {prior!r}."
        )
    return np.broadcast_to(found, shape).ravel().copy()
