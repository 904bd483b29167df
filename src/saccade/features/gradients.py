"""Histograms of oriented gradients of a whole picture: HOG (A §7.1) and PHOG (O §5).

Both by hand: OpenCV 5 dropped its HOGDescriptor, and scikit-image would be a large requirement for these few lines;
the tests compare with its `hog`.
"""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from saccade._core import limits
from saccade._core.arrays import Array, FilePath
from saccade._core.checks import check_choice, check_count
from saccade._core.errors import InvalidParameter
from saccade.features.base import VectorEncoder, nonzero
from saccade.features.opencv import opencv
from saccade.features.pixels import check_pixels, resize, to_grey

CLIP = 0.2  # of L2-Hys: no bin of a block holds more
TINY = 1e-5
SMOOTHING = 1.4  # px, before the edges are searched
NOT_EDGES = 0.7  # the share of pixels whose gradient is too weak to start an edge
WEAKER = 0.4  # an edge goes on where the gradient is at least this share of what starts one


class Gradients(VectorEncoder):
    """Base of HOG and PHOG: there is nothing to learn, and a grey picture gives a dense vector."""

    PACKAGES = ("opencv-python-headless", "pillow")

    def encode(self, item: Array) -> tuple[Array, Array]:
        return nonzero(self._vector(to_grey(item)))

    @abstractmethod
    def _vector(self, grey: Annotated[Array, "h, w"]) -> Annotated[Array, "width()"]:
        """The histograms of a grey picture, uint8, one after the other."""


@dataclass(eq=False, repr=False)
class HOG(Gradients):
    """Histograms of oriented gradients (Dalal and Triggs 2005) of a picture brought to one size.

    Parameters
    ----------
    size : (width, height)
        Size that pictures are brought to, in pixels: multiples of `cell`, at least one block.
    cell : int
        Side of a square cell in pixels; each cell gets a histogram.
    bins : int
        Orientations of a histogram.
    block : int
        Cells along the side of a block. Blocks overlap; each is scaled to unit length, clipped at 0.2 and scaled again
        (L2-Hys).
    angle : 180 or 360
        Range of the orientations in degrees; with 360 dark-to-bright differs from bright-to-dark.
    soft : bool
        A gradient between two orientations counts for both.
    cache, n_jobs : path and int, optional
        Folder that keeps results, by content and settings (None: none); number of threads (None and -1: every core).

    Examples
    --------
    >>> picture = np.random.default_rng(0).integers(0, 256, (100, 80, 3), np.uint8)
    >>> HOG(n_jobs=1).fit_transform([picture]).shape
    (1, 1764)
    """

    size: tuple[int, int] = (128, 128)
    _: KW_ONLY
    cell: int = 16
    bins: int = 9
    block: int = 2
    angle: int = 180
    soft: bool = True
    cache: FilePath | None = None
    n_jobs: int | None = None

    def width(self) -> int:
        across, down = self._cells()
        return (across - self.block + 1) * (down - self.block + 1) * self.block**2 * self.bins

    def _vector(self, grey: Array) -> Array:
        across, down = self._cells()
        dx, dy = _differences(resize(grey, (self.size[0], self.size[1])).astype(np.float32))
        row, column = (np.arange(side) // self.cell for side in dx.shape)
        cells = row[:, None] * across + column
        histograms = _histograms(cells, dx, dy, across * down, self.bins, self.angle, self.soft)
        grid = histograms.reshape(down, across, self.bins) / self.cell**2
        blocks = sliding_window_view(grid, (self.block, self.block), (0, 1))
        rows = blocks.transpose(0, 1, 3, 4, 2).reshape(-1, self.block**2 * self.bins)
        return _unit(np.minimum(_unit(rows), CLIP)).ravel()

    def check(self) -> None:
        for name, value in (("cell", self.cell), ("bins", self.bins), ("block", self.block)):
            check_count(name, value, "HOG() has cells of 16 px, 9 bins, and blocks of 2 × 2 cells.")
        check_choice("angle", self.angle, (180, 360))
        if not isinstance(self.size, tuple | list) or len(self.size) != 2:
            raise InvalidParameter(f"`size` must be (width, height), got {self.size!r}.")
        for side in self.size:
            check_count("size", side, "Default: (128, 128).")
            if side % self.cell or side < self.cell * self.block:
                raise InvalidParameter(
                    f"`size` must be whole cells of {self.cell} px, at least {self.block} of them along each side, got "
                    f"{tuple(self.size)}. Choose multiples of {self.cell} from {self.cell * self.block} on."
                )
        check_pixels((self.size[0], self.size[1]))

    def _cells(self) -> tuple[int, int]:
        return self.size[0] // self.cell, self.size[1] // self.cell


@dataclass(eq=False, repr=False)
class PHOG(Gradients):
    """The pyramid of histograms of oriented gradients along edges (Bosch, Zisserman and Muñoz 2007; O §5).

    Each cell has a histogram of the orientations of Canny's edges, weighted by the gradient. A row sums to 1, or to 0
    where there is no edge.

    Parameters
    ----------
    bins : int
        Orientations of a histogram.
    depth : int
        Number of grids: level l has 2^l × 2^l cells, l from 0 to L = depth − 1.
    angle : 180 or 360
        Range of the orientations in degrees; with 360 dark-to-bright differs from bright-to-dark.
    weighted : bool
        True: the levels weigh 2^−L, 2^−L, 2^(1−L), …, ½ as in the spatial pyramid match, so that the intersection of
        two rows is that match. False: all levels weigh alike.
    cache, n_jobs : path and int, optional
        Folder that keeps results, by content and settings (None: none); number of threads (None and -1: every core).

    Examples
    --------
    >>> picture = np.zeros((40, 40), np.uint8)
    >>> picture[:, 20:] = 255
    >>> row = PHOG(bins=4, depth=2, n_jobs=1).fit_transform([picture])
    >>> row.shape, float(row[0, 0].round(3))  # a vertical edge has a horizontal gradient
    ((1, 20), 0.5)
    """

    bins: int = 20
    _: KW_ONLY
    depth: int = 4
    angle: int = 180
    weighted: bool = False
    cache: FilePath | None = None
    n_jobs: int | None = None

    def width(self) -> int:
        return self.bins * ((1 << 2 * self.depth) - 1) // 3  # 1 + 4 + 16 + … cells

    def _vector(self, grey: Array) -> Array:
        (y, x), dx, dy = _edges(grey)
        height, width = grey.shape
        side = 2 ** (self.depth - 1)
        cells = y * side // height * side + x * side // width
        finest = _histograms(cells, dx, dy, side * side, self.bins, self.angle, soft=False)
        grids = [finest.reshape(side, side, self.bins)]
        for _ in range(self.depth - 1):  # a coarser cell is four finer ones
            half = len(grids[-1]) // 2
            grids.append(grids[-1].reshape(half, 2, half, 2, self.bins).sum(axis=(1, 3)))
        shares = [w * g.ravel() for w, g in zip(self._weights(), reversed(grids), strict=True)]
        return np.concatenate(shares) / max(float(finest.sum()), TINY)

    def check(self) -> None:
        check_count("bins", self.bins, "Default: 20; take 40 with angle=360.")
        check_count("depth", self.depth, "Default: 4; 1 is one histogram of the whole picture.")
        if self.depth > limits.GRADIENT_DEPTH:
            raise InvalidParameter(f"`depth` must be at most {limits.GRADIENT_DEPTH}, got {self.depth}. Default: 4.")
        check_choice("angle", self.angle, (180, 360))

    def _weights(self) -> list[float]:
        """What each level sums to, the coarsest first."""
        if not self.weighted:
            return [1.0 / self.depth] * self.depth
        L = self.depth - 1
        return [2.0**-L] + [2.0 ** (level - 1 - L) for level in range(1, self.depth)]


def _histograms(
    cells: Annotated[Array, "number of each pixel's cell"],
    dx: Array,
    dy: Array,
    count: int,
    bins: int,
    angle: int,
    soft: bool,
) -> Annotated[Array, "count, bins"]:
    """Sum of gradient lengths per cell and orientation; angles grow from 0° on the x axis towards the y axis."""
    at = np.degrees(np.arctan2(dy, dx, dtype=np.float64)) % angle * (bins / angle)
    length = np.hypot(dx, dy, dtype=np.float64)
    if not soft:
        return _counted(cells, np.minimum(at.astype(np.intp), bins - 1), length, count, bins)
    lower = np.floor(at - 0.5)  # bins are known by their middles
    above = at - 0.5 - lower
    lower = lower.astype(np.intp)
    return _counted(cells, lower % bins, length * (1.0 - above), count, bins) + _counted(
        cells, (lower + 1) % bins, length * above, count, bins
    )


def _counted(cells: Array, at: Array, weight: Array, count: int, bins: int) -> Array:
    sums: Array = np.bincount((cells * bins + at).ravel(), weight.ravel(), minlength=count * bins)
    return sums.reshape(count, bins)


def _differences(grey: Annotated[Array, "h, w"]) -> tuple[Array, Array]:
    """Central differences along x and y, zero at the border."""
    dx, dy = np.zeros_like(grey), np.zeros_like(grey)
    dx[:, 1:-1] = grey[:, 2:] - grey[:, :-2]
    dy[1:-1] = grey[2:] - grey[:-2]
    return dx, dy


def _edges(grey: Annotated[Array, "h, w"]) -> tuple[tuple[Array, Array], Array, Array]:
    """Rows and columns of the pixels on Canny's edges, and the gradients there; thresholds as in MATLAB's `edge`."""
    with opencv() as cv2:
        smooth = cv2.GaussianBlur(grey, (0, 0), SMOOTHING)
        dx, dy = cv2.Sobel(smooth, cv2.CV_16S, 1, 0), cv2.Sobel(smooth, cv2.CV_16S, 0, 1)
        high = float(np.quantile(np.hypot(dx, dy, dtype=np.float32), NOT_EDGES))
        row, column = np.nonzero(cv2.Canny(dx, dy, WEAKER * high, high, L2gradient=True))
    return (row, column), dx[row, column], dy[row, column]


def _unit(rows: Annotated[Array, "m, d"]) -> Array:
    lengths: Array = np.sqrt((rows**2).sum(axis=1, keepdims=True) + TINY**2)
    return rows / lengths
