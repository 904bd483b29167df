"""Small pictures with one object each, and a judge that learned from some of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from saccade import GPClassifier, GPRegressor
from saccade._core.arrays import Array
from saccade.features import HOG
from saccade.localize.judges import windows

WIDTH, HEIGHT = 160, 120


def scene(seed: int) -> tuple[Array, Array]:  # (120, 160, 3), (4,)
    """Grey noise, and rings on it in a box of 40 to 60 pixels."""
    rng = np.random.default_rng(seed)
    picture = rng.integers(90, 130, (HEIGHT, WIDTH)).astype(np.uint8)
    side = int(rng.integers(40, 61))
    x, y = int(rng.integers(0, WIDTH - side + 1)), int(rng.integers(0, HEIGHT - side + 1))
    place = (np.arange(side) + 0.5) / side * 2.0 - 1.0
    away = np.hypot(place[:, None], place)
    rings = np.where(np.floor(away * 3.0) % 2 == 0, 230, 20).astype(np.uint8)
    picture[y : y + side, x : x + side] = np.where(away < 1.0, rings, picture[y : y + side, x : x + side])
    return np.repeat(picture[..., None], 3, axis=2), np.array([x, y, x + side, y + side], np.float64)


@cache
def crops_and_overlaps() -> tuple[list[Array], Array]:
    """Windows around the objects of eight scenes."""
    rng, crops, overlaps = np.random.default_rng(0), [], []
    for seed in range(8):
        picture, box = scene(seed)
        found, shown = windows((WIDTH, HEIGHT), box, 30, rng)
        crops += [picture[y0:y1, x0:x1] for x0, y0, x1, y1 in found.astype(int)]
        overlaps.append(shown)
    return crops, np.concatenate(overlaps)


def hog() -> HOG:
    return HOG((32, 32), cell=8, n_jobs=1)


@cache
def overlap_model() -> tuple[Any, Any]:
    """A GPRegressor of the overlap, and its features."""
    crops, overlaps = crops_and_overlaps()
    features = hog()
    return GPRegressor(random_state=0).fit(features.fit_transform(crops), overlaps), features


@cache
def class_model() -> tuple[Any, Any]:
    """A GPClassifier of windows that show at least 0.4 of the object, and others."""
    crops, overlaps = crops_and_overlaps()
    features = hog()
    labels = np.where(overlaps >= 0.4, "rings", "background")
    return GPClassifier(random_state=0).fit(features.fit_transform(crops), labels), features
