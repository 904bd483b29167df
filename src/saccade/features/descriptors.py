"""SIFT descriptors of a picture, on a regular grid or at interest points: K §7 (every 8 px), O §5 (colour, 10 px).

A patch has 4 × 4 bins. For large patches the picture shrinks, because OpenCV's time for a descriptor grows with the
square of the patch.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Annotated, Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import check_choice, check_count
from saccade._core.errors import InvalidParameter
from saccade.features.base import PerPicture
from saccade.features.lazy import Descriptors
from saccade.features.opencv import opencv
from saccade.features.pixels import to_grey, to_rgb

LARGEST = 16  # px of the side of a patch that is described in the picture as it is
SHRUNK = 12  # px of larger ones after shrinking: a third faster than 16
SMALLEST = 4  # px, one per bin
SIDE_PER_SIZE = 6  # OpenCV makes a bin 3/2 of a keypoint's size, and a patch has four
SIFT_NORM = 512.0  # OpenCV's descriptors have this length and are rounded to whole numbers
NO_BLUR = 0.5  # px: what SIFT takes a picture's own blur to be. Its usual 1.6 costs 3.7 points (docs/decisions/012)


@dataclass(eq=False, repr=False)
class DenseSIFT(PerPicture):
    """SIFT descriptors, upright, on a grid that covers the picture; lazy items of `Descriptors` of 128 dimensions.

    Parameters
    ----------
    step : int
        Pixels between neighbouring descriptors.
    scales : sequence of float
        Sides of the square patches in pixels, each at least 4.
    points : "dense" or "interest"
        "interest": the places, sizes and orientations that SIFT's own detector finds (K §7 uses Harris-Affine); a
        picture without any gets the grid.
    contrast : float
        Patches whose grey values have a smaller standard deviation give zeros, because scaling to unit length would
        turn their noise into structure. Rounding alone makes 0.3; 0 keeps every patch.
    root : bool
        Take the square roots of the bins' shares (RootSIFT). Descriptors have unit length either way.

    Examples
    --------
    >>> picture = np.random.default_rng(0).integers(0, 256, (64, 96, 3), np.uint8)
    >>> DenseSIFT(scales=(16,)).fit_transform([picture])[0].values.shape
    (77, 128)
    """

    PACKAGES = ("opencv-python-headless",)

    step: int = 8
    scales: Sequence[float] = (12, 24)
    _: KW_ONLY
    points: str = "dense"
    contrast: float = 0.5
    root: bool = False

    def make(self, item: Array) -> Descriptors:
        planes = self._planes(item)
        if self.points == "interest":
            found = _at_interest_points(planes, self.contrast, self.root)
            if found is not None:
                return found
        made = [_on_grid(planes, self.step, float(scale), self.contrast, self.root) for scale in self.scales]
        parts = zip(*((d.values, d.positions, d.sizes) for d in made), strict=True)
        return Descriptors(*map(np.concatenate, parts))

    def _planes(self, picture: Annotated[Array, "h, w | h, w, 3 | h, w, 4"]) -> list[Array]:  # of (h, w) uint8
        """The grey pictures whose descriptors stand side by side; interest points are those of the last."""
        return [to_grey(picture)]

    def check(self) -> None:
        check_count("step", self.step, "Default: 8 px, and 10 px for OpponentSIFT.")
        scales = list(self.scales) if isinstance(self.scales, Sequence | np.ndarray) else []
        if not scales or isinstance(self.scales, str):
            raise InvalidParameter(f"`scales` must list sides of patches in px, got {self.scales!r}. Try (12, 24).")
        for scale in scales:
            _check_number("scales", scale, SMALLEST, "A patch has 4 × 4 bins of at least one px.")
        _check_number("contrast", self.contrast, 0, "0 keeps every patch.")
        check_choice("points", self.points, ("dense", "interest"))


@dataclass(eq=False, repr=False)
class OpponentSIFT(DenseSIFT):
    """SIFT of three opponent colours, side by side: lazy items of `Descriptors` of 384 dimensions (O §5).

    The colours are O1 = (R−G)/√2, O2 = (R+G−2B)/√6 and O3 = (R+G+B)/√3. Where there is no colour, the first two thirds
    of a descriptor are zeros.

    Parameters
    ----------
    step, scales, points, contrast, root : int, sequence of float, str, float, bool
        As for `DenseSIFT`. Interest points are those of O3; a patch without contrast in a colour gives zeros for it.

    Examples
    --------
    >>> picture = np.random.default_rng(0).integers(0, 256, (64, 96, 3), np.uint8)
    >>> OpponentSIFT(scales=(16,)).fit_transform([picture])[0].values.shape
    (45, 384)
    """

    step: int = 10

    def _planes(self, picture: Array) -> list[Array]:
        """O1, O2 and O3, each scaled to 0…255; the descriptors do not depend on the factors."""
        red, green, blue = (to_rgb(picture)[..., k].astype(np.int16) for k in range(3))
        return [
            ((red - green + 255) // 2).astype(np.uint8),
            ((red + green - 2 * blue + 510) // 4).astype(np.uint8),
            ((red + green + blue) // 3).astype(np.uint8),
        ]


@dataclass(frozen=True, slots=True)
class PatchGrid:
    """Where the patches of one size lie in pictures of one shape."""

    shape: tuple[int, int]  # of the shrunk picture
    side: Annotated[Array, ""]  # of a patch there, px
    keypoints: tuple[Any, ...]  # cv2.KeyPoint, k of them, in the shrunk picture
    pixels: Annotated[Array, "k, 2"]  # their x and y there
    positions: Annotated[Array, "k, 2"]


def _grid(height: int, width: int, side: float, step: int) -> PatchGrid:
    """The grid, in the middle of the picture; one patch in the middle where the picture is smaller than a patch."""
    share = SHRUNK / side if side > LARGEST else 1.0
    shape = (max(1, round(height * share)), max(1, round(width * share)))
    down, across = _centres(height, side, step) / height, _centres(width, side, step) / width
    positions = np.stack([np.tile(across, len(down)), np.repeat(down, len(across))], axis=1)
    pixels = np.floor(positions * shape[::-1] + 1e-6).astype(np.int32)  # OpenCV would round halves to even numbers
    with opencv() as cv2:
        keypoints = cv2.KeyPoint.convert(pixels.astype(np.float32), size=side * share / SIDE_PER_SIZE)
    for keypoint in keypoints:
        keypoint.angle = 0.0
    return PatchGrid(shape, np.array(round(side * share)), tuple(keypoints), pixels, positions.astype(np.float32))


_kept_grid = lru_cache(maxsize=limits.KEPT_GRIDS)(_grid)


def _centres(length: int, side: float, step: int) -> Array:
    """The middles of patches every `step` px within the length, as far from one end as from the other."""
    count = 1 + max(0, int((length - side) // step))
    return length / 2 + step * (np.arange(count) - (count - 1) / 2)


def _on_grid(
    planes: list[Array], step: int, side: float, contrast: float, root: bool, most_kept: int = limits.KEPT_GRID_POINTS
) -> Descriptors:
    height, width = planes[0].shape
    grid = (_grid if height * width > most_kept * step**2 else _kept_grid)(height, width, side, step)
    parts = []
    with opencv() as cv2:
        sift = cv2.SIFT_create(sigma=NO_BLUR)  # costs nothing, and is not for two threads
        for plane in planes:
            if plane.shape != grid.shape:
                plane = cv2.resize(plane, grid.shape[::-1], interpolation=cv2.INTER_AREA)
            values = _scaled(sift.compute(plane, grid.keypoints)[1], root)
            values[_deviation(cv2, plane, grid.pixels, grid.side) < contrast] = 0.0
            parts.append(values)
    sizes = np.broadcast_to(np.array([side / width, side / height], np.float32), grid.positions.shape)
    return Descriptors(np.concatenate(parts, axis=1), grid.positions, sizes)


def _at_interest_points(planes: list[Array], contrast: float, root: bool) -> Descriptors | None:
    """SIFT where its detector finds something; None where it finds nothing."""
    height, width = planes[-1].shape
    parts = []
    with opencv() as cv2:
        sift = cv2.SIFT_create()
        keypoints = sift.detect(planes[-1])
        if not keypoints:
            return None
        at = cv2.KeyPoint.convert(keypoints)
        sides = np.array([keypoint.size * SIDE_PER_SIZE for keypoint in keypoints], np.int32)
        for plane in planes:
            values = _scaled(sift.compute(plane, keypoints)[1], root)
            values[_deviation(cv2, plane, np.rint(at).astype(np.int32), sides) < contrast] = 0.0
            parts.append(values)
    positions = np.clip((at + 0.5) / np.array([width, height], np.float32), 0.0, 1.0)
    sizes = (sides[:, None] / np.array([width, height])).astype(np.float32)
    return Descriptors(np.concatenate(parts, axis=1), positions, sizes)


def _deviation(
    cv2: Any, plane: Annotated[Array, "h, w"], pixels: Annotated[Array, "k, x and y"], side: Annotated[Array, "k | one"]
) -> Annotated[Array, "k"]:
    """The standard deviation within the square around each pixel, as far as it lies in the picture; from two tables."""
    x, y = pixels[:, 0] - side // 2, pixels[:, 1] - side // 2
    height, width = plane.shape
    left, right = np.clip(x, 0, width - 1), np.clip(x + side, 1, width)
    top, bottom = np.clip(y, 0, height - 1), np.clip(y + side, 1, height)
    n = ((right - left) * (bottom - top)).astype(np.float64)
    total, squares = (
        table[bottom, right] - table[top, right] - table[bottom, left] + table[top, left]
        for table in cv2.integral2(plane, sdepth=cv2.CV_64F, sqdepth=cv2.CV_64F)
    )
    deviation: Array = np.sqrt(np.maximum(n * squares - total**2, 0.0)) / n
    return deviation


def _scaled(values: Annotated[Array, "k, 128"], root: bool) -> Array:
    """OpenCV's descriptors at unit length: of the descriptor, or of the roots of its shares."""
    if not root:
        return values * np.float32(1.0 / SIFT_NORM)
    roots: Array = np.sqrt(values / np.maximum(values.sum(axis=1, keepdims=True), 1.0))
    return roots


def _check_number(name: str, value: Any, least: float, remedy: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not least <= value < np.inf:
        raise InvalidParameter(f"`{name}` must be a number from {least} on, got {value!r}. {remedy}")
