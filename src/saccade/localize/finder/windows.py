"""Windows that a judge learns from: around the boxes, where objects often are, and anywhere."""

from typing import Annotated

import numpy as np

from saccade._core.arrays import Array
from saccade.localize.boxes import areas, pairs_iou
from saccade.localize.judges import windows
from saccade.localize.priors.box_prior import BoxPrior

AROUND, ELSEWHERE = 12, 8  # windows of a picture: around its boxes, and half by the prior, half anywhere
BOXES_OF_PICTURE = 3  # boxes around which there are windows, drawn from more
LEAST_SIDE = 32.0  # pixels: of what is left of a picture beside its objects ...
LEAST_SHARE = 0.1  # ... and its share of the picture


def training_windows(
    bounds: Annotated[Array, "width, height"],
    boxes: Annotated[Array, "k, 4"],  # of the objects; k = 0 for a picture without one
    prior: BoxPrior,
    rng: np.random.Generator,
) -> tuple[Array, Array]:  # (n, 4), (n,)
    """Windows, and the largest overlap of each with an object."""
    chosen = boxes[rng.permutation(len(boxes))[:BOXES_OF_PICTURE]]
    found = [windows(bounds, box, AROUND // len(chosen), rng)[0] for box in chosen]
    others = ELSEWHERE if len(chosen) else AROUND + ELSEWHERE
    found += [prior.sample(others // 2, rng), BoxPrior.unknown(bounds).sample(others - others // 2, rng)]
    every = np.vstack(found)
    return every, most_overlap(every, boxes)


def most_overlap(windows: Annotated[Array, "n, 4"], boxes: Annotated[Array, "k, 4"]) -> Annotated[Array, "n"]:
    """The largest intersection over union of each window with any box; 0 without boxes."""
    return np.asarray(pairs_iou(windows, boxes).max(axis=1)) if len(boxes) else np.zeros(len(windows))


def beside(bounds: Annotated[Array, "width, height"], boxes: Annotated[Array, "k, 4"]) -> Array | None:  # (4,)
    """The largest part of a picture that shows none of its objects: left, right, above or below; None if too small."""
    width, height = (float(side) for side in bounds)
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    parts = np.array(
        [[0, 0, low[0], height], [high[0], 0, width, height], [0, 0, width, low[1]], [0, high[1], width, height]]
    )
    parts = np.hstack([np.ceil(parts[:, :2]), np.floor(parts[:, 2:])])
    sides = parts[:, 2:] - parts[:, :2]
    large = (sides.min(axis=1) >= LEAST_SIDE) & (areas(parts) >= LEAST_SHARE * width * height)
    return parts[np.argmax(np.where(large, areas(parts), -1.0))] if large.any() else None
