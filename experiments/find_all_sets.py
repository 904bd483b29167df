"""Pictures with known hits for find_all_rivals.py: cells in mosaics, raccoons in textures and scenes.

Needs boxes/blood_cells, boxes/raccoon and scenes15 in SACCADE_DATA. Half of the photographs (`half` 0) was for
choosing, the other (1) is for reporting.
"""

import csv
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import Array
from giant_pictures import GROUNDS, OTHERS, ground, photograph
from PIL import Image

from saccade.datasets.on_disk import data_folder, scenes15
from saccade.localize.sources.base import open_picture
from saccade.localize.tiles.grid import Tiles, overview, statistics

CELL = (640, 480)  # pixels of a picture of cells
MOSAIC = 6  # pictures across and down
SCENE = 256  # pixels
SIDE, TILE = 32, 64  # tiles of a picture with raccoons, and pixels of a tile
RACCOONS, SIZES = 40, (14, 33)  # pasted, and their width in pixels
EXAMPLES = 5  # crops of other photographs


class Grid(NamedTuple):
    """The truth, and what a search is given."""

    counts: Array  # (rows, columns): hits in each tile
    features: Array  # (tiles, 10): the overview
    examples: Array  # (k, 10): of crops with a hit from pictures of the other half


@cache
def boxes(folder: str, label: str) -> dict[Path, Array]:
    """Boxes (k, 4) of every photograph, by its path."""
    place, found = data_folder() / "boxes" / folder, dict[Path, list[list[float]]]()
    with (place / "boxes.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            own = found.setdefault(place / row["image"], [])
            if row["label"] == label:
                own.append([float(row[side]) for side in ("xmin", "ymin", "xmax", "ymax")])
    return {path: np.array(found[path]).reshape(-1, 4) for path in sorted(found)}


@cache
def read(path: Path) -> Array:
    return np.asarray(Image.open(path).convert("RGB"))


def shrunk(picture: Array, width: int, height: int) -> Array:
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.BOX))


def counted(centres: Array, tiles: Tiles) -> Array:
    """Centres (x, y) in each tile."""
    found, (rows, columns) = np.zeros(tiles.shape, int), tiles.shape
    x, y = (centres // tiles.tile).astype(int).T
    np.add.at(found, (np.minimum(y, rows - 1), np.minimum(x, columns - 1)), 1)
    return found


def cells(label: str, tile: int, seed: int, half: int) -> Grid:
    """A mosaic of microscope pictures: hits are centres of cells of one kind."""
    every, (width, height), rng = boxes("blood_cells", label), CELL, np.random.default_rng(seed)
    own = list(every)[half::2]
    canvas, centres = np.zeros((MOSAIC * height, MOSAIC * width, 3), np.uint8), list[Array]()
    for place, number in enumerate(np.resize(rng.permutation(len(own)), MOSAIC**2)):
        corner = np.array([place % MOSAIC * width, place // MOSAIC * height])
        canvas[corner[1] : corner[1] + height, corner[0] : corner[0] + width] = shrunk(read(own[number]), width, height)
        middle = 0.5 * (every[own[number]][:, :2] + every[own[number]][:, 2:])
        centres += list(corner + np.minimum(middle, np.subtract(CELL, 1)))
    tiles = Tiles.of((MOSAIC * width, MOSAIC * height), tile)
    others = [(read(path), box) for path in list(every)[1 - half :: 2] for box in every[path]]
    return Grid(counted(np.array(centres), tiles), overview(open_picture(canvas), tiles), crops(others, tile, rng))


def crops(others: list[tuple[Array, Array]], tile: int, rng: np.random.Generator) -> Array:
    """What the overview says of some tiles around the centre of a box."""
    found = []
    for number in rng.permutation(len(others))[:EXAMPLES]:
        picture, box = others[number]
        x, y = (int(max(0, 0.5 * (box[k] + box[k + 2]) - tile / 2)) for k in (0, 1))
        found.append(statistics(shrunk(picture[y : y + tile, x : x + tile], 16, 16)))
    return np.array(found)


def raccoon(path: Path, box: Array, width: int) -> Array:
    x0, y0, x1, y1 = (int(side) for side in box)
    return shrunk(read(path)[y0:y1, x0:x1], width, max(4, min(TILE // 2, round(width * (y1 - y0) / (x1 - x0)))))


def raccoons(where: str, seed: int, half: int) -> Grid:
    """Raccoons pasted anywhere into a texture with other photographs, or, without colours, into a mosaic of scenes."""
    rng, every = np.random.default_rng(seed), boxes("raccoon", "raccoon")
    pairs = [[(path, box) for path in list(every)[part::2] for box in every[path]] for part in (half, 1 - half)]
    canvas = texture(rng) if where == "texture" else scenes(rng, half)
    stamps = [raccoon(*pairs[0][k], int(rng.integers(*SIZES))) for k in rng.integers(0, len(pairs[0]), RACCOONS)]
    coloured = grey if where == "scenes" else np.asarray
    centres = paste(canvas, [coloured(stamp) for stamp in stamps], rng)
    tiles = Tiles.of((SIDE * TILE, SIDE * TILE), TILE)
    found = []
    for k in rng.permutation(len(pairs[1]))[:EXAMPLES]:
        stamp, plain = raccoon(*pairs[1][k], SIZES[1] - 10), canvas[: 2 * TILE, : 2 * TILE].mean(axis=(0, 1))
        crop = np.full((TILE, TILE, 3), plain, np.uint8)
        crop[10 : 10 + len(stamp), 20 : 20 + stamp.shape[1]] = coloured(stamp)
        found.append(statistics(shrunk(crop, 16, 16)))
    return Grid(counted(centres, tiles), overview(open_picture(canvas), tiles), np.array(found))


def texture(rng: np.random.Generator) -> Array:
    """A ground with photographs that are no raccoons."""
    side = SIDE * TILE
    one = ground(GROUNDS[int(rng.integers(len(GROUNDS)))], 128)[..., None] * rng.uniform(0.7, 1.0, 3) * 255.0
    canvas = np.tile(one, (-(-side // 128), -(-side // 128), 1))[:side, :side].astype(np.uint8)
    names = rng.integers(0, len(OTHERS), 2 * RACCOONS)
    paste(canvas, [photograph(OTHERS[k], int(rng.integers(*SIZES))) for k in names], rng)
    return canvas


def scenes(rng: np.random.Generator, half: int) -> Array:
    """Photographs of streets, rooms and coasts side by side."""
    paths, across = scenes15("train")[0][half::2], -(-SIDE * TILE // SCENE)
    some = [shrunk(read(paths[k]), SCENE, SCENE) for k in rng.integers(0, len(paths), across**2)]
    rows = [np.hstack(some[k * across : (k + 1) * across]) for k in range(across)]
    return np.vstack(rows)[: SIDE * TILE, : SIDE * TILE].copy()


def grey(picture: Array) -> Array:
    return np.repeat(picture.mean(axis=2, keepdims=True).astype(np.uint8), 3, axis=2)


def paste(canvas: Array, stamps: list[Array], rng: np.random.Generator) -> Array:
    """The stamps at random places; their centres (x, y)."""
    centres = []
    for stamp in stamps:
        height, width = stamp.shape[:2]
        x, y = int(rng.integers(0, canvas.shape[1] - width)), int(rng.integers(0, canvas.shape[0] - height))
        canvas[y : y + height, x : x + width] = stamp
        centres.append((x + width / 2, y + height / 2))
    return np.array(centres)


SETS: dict[str, Callable[[int, int], Grid]] = {
    "white cells": lambda seed, half: cells("WBC", 80, seed, half),
    "white cells, larger tiles": lambda seed, half: cells("WBC", 160, seed, half),
    "platelets": lambda seed, half: cells("Platelets", 80, seed, half),
    "raccoons in texture": lambda seed, half: raccoons("texture", seed, half),
    "raccoons in scenes": lambda seed, half: raccoons("scenes", seed, half),
}
