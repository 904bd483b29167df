"""The demo's search: a face, in a photograph of which the model has seen nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from examples.demo.contenders import SEED
from saccade import GPRegressor
from saccade._core.arrays import Array
from saccade.cli.find_search import ObjectSearch, search
from saccade.datasets import embedded
from saccade.features import HOG
from saccade.features.pixels import resize, to_grey
from saccade.kernels import HIK, GeneralizedRBF
from saccade.localize import Localizer, SituationModel, iou
from saccade.localize.judges import ModelJudge, model_judge, windows
from saccade.localize.priors.box_prior import BoxPrior
from saccade.localize.sources.base import open_picture

FACE = (175.0, 60.0, 275.0, 190.0)  # of the astronaut, from the forehead to the chin, drawn by hand
SIZE = (120.0, 120.0)  # told to the search: about that of a crop of the faces learned from, a square
LOOKS, BATCH = 40, 10
STEP = 8  # pixels, of the scan that the search is compared with
SIDE = 32  # pixels of a face that the judge learns from; the piece of photograph around it is three times as large
FADE = 0.125  # share of the face's side over which it fades out
WINDOWS = 20  # per face
EMPTY = 600  # windows without a face
SCORES = (0.17, 0.78)  # what the judge says of background and of faces, medians over the scenes of docs/decisions/031


# Faces in portraits as people frame them, as shares of the picture; typed in, before any search.
PORTRAITS = (
    (0.35, 0.15, 0.65, 0.45),
    (0.30, 0.10, 0.60, 0.42),
    (0.42, 0.18, 0.66, 0.44),
    (0.38, 0.22, 0.70, 0.56),
    (0.44, 0.08, 0.62, 0.30),
)


@dataclass(frozen=True)
class FaceSearch:
    """The demo's search, and how it went without knowing where faces usually are."""

    crops: int  # that the judge learned from
    windows: int  # of the given size in the whole photograph, with a step of 8 pixels
    looks: int
    overlap: float  # of the found box with FACE
    probability: float  # by the search itself
    looks_to_half: int | None  # after which the best box overlapped by a half or more, and stayed there
    looks_to_half_anywhere: int | None  # the same for a search that expects the face anywhere
    seconds: float
    search: ObjectSearch = field(repr=False)


def face_judge(faces: Array, backgrounds: Array, rng: np.random.Generator) -> tuple[ModelJudge, int]:
    """A model that says how much of a face a crop shows; and the number of crops it learned from.

    Each face is laid over a piece of another photograph, and windows around it have their overlap as target. All
    choices were made on held-out faces in other photographs than these and the astronaut's: docs/decisions/031.
    """
    photographs = [to_grey(np.asarray(picture)) for picture in _photographs()]
    crops, overlaps = [*faces, *backgrounds], [*np.ones(len(faces)), *np.zeros(len(backgrounds))]
    for face in faces:
        scene = _laid_over(_piece(photographs, rng), face if rng.random() < 0.5 else face[:, ::-1])
        boxes, shown = windows(scene.shape, (SIDE, SIDE, 2 * SIDE, 2 * SIDE), WINDOWS, rng)
        crops += [scene[y0:y1, x0:x1] for x0, y0, x1, y1 in boxes.astype(int)]
        overlaps += shown.tolist()
    for _ in range(EMPTY):
        width, height = rng.integers(SIDE // 2, 3 * SIDE, 2)
        crops.append(_piece(photographs, rng)[:height, :width])
        overlaps.append(0.0)
    features = HOG((64, 64), cell=16, bins=18, angle=360)
    model = GPRegressor(GeneralizedRBF(HIK()), random_state=SEED)
    model.fit(features.fit_transform(crops), np.array(overlaps))
    return model_judge(model, features, scores=SCORES), len(crops)


def _photographs() -> list[Any]:
    """Without people, out of scikit-image."""
    from skimage import data

    names = ("chelsea", "coffee", "brick", "grass", "coins", "rocket", "gravel", "page", "clock", "moon")
    return [getattr(data, name)() for name in names]


def _piece(photographs: list[Array], rng: np.random.Generator) -> Array:  # (3 SIDE, 3 SIDE)
    """A random square of one of them."""
    picture = photographs[rng.integers(len(photographs))]
    side = int(rng.integers(100, min(picture.shape) + 1))
    y, x = (int(rng.integers(0, whole - side + 1)) for whole in picture.shape)
    return resize(picture[y : y + side, x : x + side], (3 * SIDE, 3 * SIDE))


def _laid_over(piece: Array, face: Array) -> Array:
    """The face in the middle of the piece, fading out at its border, so that no edge gives it away."""
    inside = (np.arange(SIDE) + 0.5) / SIDE
    fade = np.minimum(1.0, np.minimum(inside, 1.0 - inside) / FADE)
    share = np.outer(fade, fade)
    made, middle = piece.astype(np.float64), slice(SIDE, 2 * SIDE)
    made[middle, middle] = share * resize(face, (SIDE, SIDE)) + (1.0 - share) * made[middle, middle]
    return np.rint(made).astype(np.uint8)


def astronaut() -> Array:  # (512, 512, 3)
    """A photograph of Eileen Collins by NASA, public domain, out of scikit-image."""
    from skimage.data import astronaut as load

    picture: Any = load  # carries no types
    return np.asarray(picture())


def expected_place() -> BoxPrior:
    """Where a face is in a portrait."""
    boxes = 512.0 * np.array(PORTRAITS)
    return SituationModel().fit({"face": boxes}, (512, 512)).prior("face", None, (512, 512))


def learned_judge() -> tuple[ModelJudge, int]:
    """The judge that learned from all faces of scikit-image."""
    X, y = embedded.faces()
    pictures = np.rint(255.0 * X).astype(np.uint8).reshape(-1, *embedded.FACE_SHAPE)
    return face_judge(pictures[y == 1], pictures[y == 0], np.random.default_rng(SEED))


def search_astronaut(
    judge: ModelJudge, prior: BoxPrior | None, size: Any, seed: int, looks: int = LOOKS
) -> ObjectSearch:
    localizer = Localizer((512, 512), prior, size=size, scores=judge.scores, random_state=seed)
    picture = open_picture(astronaut())
    return search("astronaut", picture, judge, localizer, looks=looks, batch=BATCH, sure=1.0, keep=True)


def looks_to_half(found: ObjectSearch) -> int | None:
    """Looks after which the best box overlapped the face by a half or more, and stayed there."""
    overlaps = [float(iou(step.found.box, np.array(FACE))) for step in found.steps]
    missed = [k for k, overlap in enumerate(overlaps) if overlap < 0.5]
    after = missed[-1] + 1 if missed else 0
    return found.steps[after].looks if after < len(overlaps) else None


def find_face() -> FaceSearch:
    """Search the astronaut's face, once with an idea of where it is and once without."""
    judge, learned = learned_judge()
    found = search_astronaut(judge, expected_place(), SIZE, SEED)
    places = [int((512 - side) // STEP) + 1 for side in SIZE]
    return FaceSearch(
        crops=learned,
        windows=places[0] * places[1],
        looks=found.found.looks,
        overlap=float(iou(found.found.box, np.array(FACE))),
        probability=found.found.probability,
        looks_to_half=looks_to_half(found),
        looks_to_half_anywhere=looks_to_half(search_astronaut(judge, None, SIZE, SEED)),
        seconds=found.seconds,
        search=found,
    )
