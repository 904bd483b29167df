"""The demo's search: a face, in a photograph of which the model has seen nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saccade import GPRegressor
from saccade._core.arrays import Array
from saccade.cli.demo_contenders import SEED
from saccade.cli.find_search import Search, search
from saccade.datasets import embedded
from saccade.features import HOG
from saccade.localize import Localizer, iou
from saccade.localize.judges import ModelJudge, model_judge, windows
from saccade.localize.source import open_source

FACE = (175.0, 60.0, 275.0, 190.0)  # of the astronaut, from the forehead to the chin, drawn by hand
WINDOWS = 10  # per face
LOOKS, BATCH, SURE = 60, 10, 0.95


@dataclass(frozen=True)
class FaceSearch:
    windows: int  # that the judge learned from
    looks: int
    overlap: float  # of the found box with FACE
    probability: float  # by the search itself
    looks_to_half: int | None  # after which the best box overlapped by a half or more, and stayed there
    seconds: float
    search: Search = field(repr=False)


def face_judge(faces: Array, backgrounds: Array, rng: np.random.Generator) -> tuple[ModelJudge, int]:
    """A model that says how much of a face a crop shows; and the number of windows it learned from.

    Each face lies in the middle of eight pieces of background, and windows around it have their overlap as target.
    Features, kernel and the number of windows were chosen on scenes made of held-out faces: docs/decisions/031.
    """
    side = faces.shape[1]
    crops, overlaps = [*faces, *backgrounds], [*np.ones(len(faces)), *np.zeros(len(backgrounds))]
    for face in faces:
        around = backgrounds[rng.integers(len(backgrounds), size=9)]
        around[4] = face
        scene = around.reshape(3, 3, side, side).transpose(0, 2, 1, 3).reshape(3 * side, 3 * side)
        boxes, shown = windows(scene.shape, (side, side, 2 * side, 2 * side), WINDOWS, rng)
        crops += [scene[y0:y1, x0:x1] for x0, y0, x1, y1 in boxes.astype(int)]
        overlaps += shown.tolist()
    features = HOG((32, 32), cell=8, bins=18, angle=360)
    model = GPRegressor(random_state=SEED).fit(features.fit_transform(crops), np.array(overlaps))
    return model_judge(model, features), len(crops)


def astronaut() -> Array:  # (512, 512, 3)
    """A photograph of Eileen Collins by NASA, public domain, out of scikit-image."""
    from skimage.data import astronaut as load

    picture: Any = load  # carries no types
    return np.asarray(picture())


def find_face() -> FaceSearch:
    """Learn from all faces of scikit-image, then search the astronaut's."""
    X, y = embedded.faces()
    pictures = np.rint(255.0 * X).astype(np.uint8).reshape(-1, *embedded.FACE_SHAPE)
    judge, learned = face_judge(pictures[y == 1], pictures[y == 0], np.random.default_rng(SEED))
    picture = open_source(astronaut())
    localizer = Localizer((512, 512), scores=judge.scores, random_state=SEED)
    found = search("astronaut", picture, judge, localizer, looks=LOOKS, batch=BATCH, sure=SURE, keep=True)
    overlaps = [float(iou(step.found.box, np.array(FACE))) for step in found.steps]
    missed = [k for k, overlap in enumerate(overlaps) if overlap < 0.5]
    after = missed[-1] + 1 if missed else 0
    reached = found.steps[after].looks if after < len(overlaps) else None
    return FaceSearch(learned, found.found.looks, overlaps[-1], found.found.probability, reached, found.seconds, found)
