"""Pictures of find_objects.py: Caltech-101 with boxes in two halves, windows of them, and mosaics."""

from typing import NamedTuple

import numpy as np
from common import all_pictures

from saccade._core.arrays import Array
from saccade.datasets.on_disk import BACKGROUND, caltech101, caltech101_boxes
from saccade.features.pixels import resize, to_rgb
from saccade.localize import BoxPrior
from saccade.localize.boxes import clip, from_coordinates, to_coordinates


class Half(NamedTuple):
    """Pictures with the box of their object."""

    pictures: list[Array]
    boxes: Array  # (n, 4)

    @property
    def sizes(self) -> Array:  # (n, 2)
        return np.array([[picture.shape[1], picture.shape[0]] for picture in self.pictures], np.float64)

    def some(self, places: Array) -> "Half":
        return Half([self.pictures[i] for i in places], self.boxes[places])


def halves(name: str, most: int) -> tuple[Half, Half]:
    paths, boxes = caltech101_boxes(name)
    order = np.random.default_rng(0).permutation(len(paths))
    train, test = order[: len(order) // 2], order[len(order) // 2 :][:most]
    pictures = all_pictures([paths[i] for i in np.concatenate([train, test])], None)
    whole = Half([np.asarray(picture) for picture in pictures], boxes[np.concatenate([train, test])])
    return whole.some(np.arange(len(train))), whole.some(np.arange(len(train), len(order[: len(train)]) + len(test)))


def windows(
    box: Array,  # (4,)
    size: Array,  # (2,)
    rng: np.random.Generator,
) -> Array:  # (14, 4)
    """Three nearly on the object, three around it, and eight anywhere."""
    bounds = np.array([0.0, 0.0, *size])
    sides = np.array([*((box[2:] - box[:2]) / size), 1.0, 1.0])
    u = np.repeat(to_coordinates(box[None], bounds), 6, axis=0)
    spread = np.repeat([0.05, 0.3], 3)[:, None] * np.array([1.0, 1.0, 1.5, 1.0]) * sides
    near = from_coordinates(u + spread * rng.standard_normal(u.shape), bounds)
    return np.vstack([clip(near, bounds)[0], BoxPrior.unknown(size).sample(8, rng)])


def elsewhere(count: int, skip: int = 0) -> list[Array]:
    """Pictures without any of the objects."""
    paths, names = caltech101(background=True)
    some = [path for path, name in zip(paths, names, strict=True) if name == BACKGROUND][skip : skip + count]
    return [np.asarray(picture) for picture in all_pictures(some, None)]


def mosaic(half: Half, others: list[Array], tiles: int, rng: np.random.Generator) -> Half:
    """Each picture as one of tiles² of its size; the others are background."""
    pictures, boxes = [], []
    for picture, box in zip(half.pictures, half.boxes, strict=True):
        height, width = picture.shape[:2]
        parts = [resize(to_rgb(others[i]), (width, height)) for i in rng.permutation(len(others))[: tiles**2]]
        parts += parts[: tiles**2 - len(parts)]
        place = int(rng.integers(tiles**2))
        parts[place] = to_rgb(picture)
        rows = [np.hstack(parts[row * tiles : (row + 1) * tiles]) for row in range(tiles)]
        pictures.append(np.vstack(rows))
        boxes.append(box + np.tile([place % tiles * width, place // tiles * height], 2))
    return Half(pictures, np.array(boxes))
