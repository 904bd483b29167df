"""Synthetic pictures of a gigapixel and more, made where they are read: photographs pasted into texture.

The texture is grass, gravel or brick of scikit-image, tinted, with brightness that changes slowly. Targets are copies
of one photograph (the cat), distractors copies of others, 192 to 448 pixels wide. Targets lie in three to five
clusters, or anywhere; distractors, twice as many, lie anywhere. Nothing is written to disk, and reading a box
holds only its own pixels.
"""

from functools import cache
from typing import Any

import numpy as np
from common import Array
from PIL import Image

TARGET = "chelsea"
OTHERS = ("astronaut", "coffee", "rocket", "camera")
GROUNDS = ("grass", "gravel", "brick")
TILE = 1024
KINDS = ("clustered", "scattered")
SPREAD = (1.2, 2.2)  # of a cluster: standard deviation in tiles
SIZES = (192, 448)  # pixels


@cache
def photograph(name: str, width: int) -> Array:
    from skimage import data

    image = Image.fromarray(np.asarray(getattr(data, name)())).convert("RGB")
    return np.asarray(image.resize((width, max(1, round(width * image.height / image.width))), Image.Resampling.BOX))


@cache
def ground(name: str, side: int) -> Array:
    """The texture, 512 pixels wide, averaged down to this side."""
    from skimage import data

    image = Image.fromarray(np.asarray(getattr(data, name)())).resize((side, side), Image.Resampling.BOX)
    return np.asarray(image, np.float32) / 255.0


def places(kind: str, count: int, tiles: int, rng: np.random.Generator) -> Array:  # (count, 2)
    """Centres of the targets, in tiles."""
    if kind == "scattered":
        return rng.uniform(0.3, tiles - 0.3, (count, 2))
    clusters = int(rng.integers(3, 6))
    centre, spread = rng.uniform(1, tiles - 1, (clusters, 2)), rng.uniform(*SPREAD, clusters)
    which = rng.integers(0, clusters, count)
    return np.clip(centre[which] + spread[which, None] * rng.standard_normal((count, 2)), 0.3, tiles - 0.3)


class GiantPicture:
    """A source (`shape`, `read`) with known targets."""

    def __init__(self, seed: int, kind: str, tiles: int, targets: int) -> None:
        rng = np.random.default_rng(seed)
        self.side = tiles * TILE
        self.shape = (self.side, self.side, 3)
        centre = np.vstack([places(kind, targets, tiles, rng), rng.uniform(0.3, tiles - 0.3, (2 * targets, 2))]) * TILE
        self.centre = centre[:targets]  # of the targets: x, y
        self.names = [TARGET] * targets + [OTHERS[k] for k in rng.integers(0, len(OTHERS), 2 * targets)]
        self.width = rng.integers(SIZES[0], SIZES[1] + 1, 3 * targets)
        self.corner = np.rint(centre).astype(int) - self.width[:, None] // 2
        self.ground = GROUNDS[int(rng.integers(len(GROUNDS)))]
        self.tint = rng.uniform(0.7, 1.0, 3)
        self.waves = rng.uniform(-1.0, 1.0, (4, 3)) * np.array([6.0 / self.side, 6.0 / self.side, 3.0])

    def read(self, box: Any, scale: float = 1.0) -> Array:
        x0, y0, x1, y1 = (int(side) for side in box)
        width, height = max(1, round((x1 - x0) * scale)), max(1, round((y1 - y0) * scale))
        x, y = x0 + (np.arange(width) + 0.5) / scale, y0 + (np.arange(height) + 0.5) / scale
        texture = ground(self.ground, max(1, int(512 * min(1.0, scale))))
        step = 512 / len(texture)
        grey = texture[np.ix_((y // step).astype(int) % len(texture), (x // step).astype(int) % len(texture))]
        light = np.ones((height, width), np.float32)
        for a, b, phase in self.waves:
            light += 0.06 * np.sin(a * x[None] + b * y[:, None] + phase).astype(np.float32)
        out = np.clip(grey[..., None] * light[..., None] * self.tint * 255.0, 0, 255).astype(np.uint8)
        for k in np.flatnonzero(
            (self.corner < (x1, y1)).all(axis=1) & (self.corner + 2 * SIZES[1] > (x0, y0)).all(axis=1)
        ):
            self._paste(out, k, x0, y0, scale)
        return out

    def _paste(self, out: Array, k: int, x0: int, y0: int, scale: float) -> None:
        stamp = photograph(self.names[k], max(1, round(int(self.width[k]) * scale)))
        left, top = (round((int(c) - start) * scale) for c, start in zip(self.corner[k], (x0, y0), strict=True))
        a, b = max(0, left), max(0, top)
        right, bottom = min(out.shape[1], left + stamp.shape[1]), min(out.shape[0], top + stamp.shape[0])
        if a < right and b < bottom:
            out[b:bottom, a:right] = stamp[b - top : bottom - top, a - left : right - left]

    def counts(self) -> Array:  # (tiles, tiles)
        """Targets whose centre lies in each tile."""
        found = np.zeros((self.side // TILE,) * 2, int)
        column, row = np.minimum(self.centre // TILE, self.side // TILE - 1).astype(int).T
        np.add.at(found, (row, column), 1)
        return found
