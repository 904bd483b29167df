"""The slow twins of the compiled loops in saccade.localize.search.loops."""

from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade.localize import iou
from saccade.localize.search import score_model


def shares(boxes: Array, objects: Array, width: float, height: float, fall: float) -> Array:
    centres = [(b[:, :2] + b[:, 2:]) / (2.0 * np.array([width, height])) for b in (boxes, objects)]
    away = np.linalg.norm(centres[0][:, None] - centres[1][None], axis=2)
    return np.stack([iou(boxes, objects), np.exp(-fall * away)])


def predict(given: Any, boxes: Array, objects: Array) -> tuple[Array, Array]:  # (c, h) each
    """Mean and variance of the score of each box, without noise, if each object is the one."""
    known, base, own = given.smooth(boxes)
    D = score_model.shares(boxes, objects, given.evidence.looks.bounds) - known
    mean = base[:, None] + np.einsum("ich,ih->ch", D, given.beta)
    return mean, own[:, None] + np.einsum("ich,ijh,jch->ch", D, given.inverse, D)


def moments(mean: Array, variance: Array, weights: Array) -> tuple[Array, Array]:
    """Of a mixture with means and variances (c, h)."""
    middle = mean @ weights
    return middle, (variance + np.square(mean - middle[:, None])) @ weights
