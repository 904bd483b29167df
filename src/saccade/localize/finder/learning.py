"""What a finder learns, in the order in which it learns it; each step is tried on pictures that it has not seen.

Pictures are split in folds. The judge of a fold learned from the windows of the others; its scores of the fold's own
windows tell the response, and its searches of the fold's own pictures, with the object and without, tell how often
answers are right. The judge that is kept learned from all windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.estimators.regressor import GPRegressor
from saccade.localize.boxes import to_coordinates
from saccade.localize.finder.calibration import Trials, evidence_of
from saccade.localize.finder.windows import beside, most_overlap, training_windows
from saccade.localize.judges import ModelJudge
from saccade.localize.search.localizer import Localizer
from saccade.localize.search.looking import cut
from saccade.localize.search.response import Response
from saccade.localize.situations.model import SituationModel
from saccade.localize.sources.base import Source, open_picture

OBJECT = "object"  # its name in the situation model
SEARCHED = 100  # held-out pictures that are searched, with the object and without it
FITTED_CROPS = 256  # crops that features are fitted on, drawn from more


@dataclass(frozen=True)
class Scene:
    """A picture to learn from, and the boxes of its objects."""

    picture: Any  # what `open_picture` takes
    bounds: Annotated[Array, "width, height"]
    boxes: Annotated[Array, "k, 4"]

    def without(self) -> Scene | None:
        """The largest part that shows none of the objects, as a picture; None where it is too small."""
        part = beside(self.bounds, self.boxes)
        return None if part is None else Scene(_Part(self.picture, part), part[2:] - part[:2], np.zeros((0, 4)))


class _Part:
    """A part of a picture as a source, which is opened when it is read."""

    def __init__(self, picture: Any, box: Annotated[Array, "4"]) -> None:
        self.picture, self.box, self.shape = picture, box, (int(box[3] - box[1]), int(box[2] - box[0]), 3)
        self._source: Source | None = None

    def read(self, box: Any, scale: float = 1.0) -> Array:
        if self._source is None:
            self._source = open_picture(self.picture)
        return self._source.read(np.asarray(box) + np.tile(self.box[:2], 2), scale)


@dataclass(frozen=True)
class Viewed:
    """Windows of a scene."""

    windows: Annotated[Array, "n, 4"]
    overlaps: Annotated[Array, "n"]
    X: Annotated[Any, "n, d"]


@dataclass(frozen=True)
class Plan:
    """How pictures are searched."""

    looks: int
    batch: int
    seed: int

    def search(
        self, picture: Any, bounds: Any, judge: ModelJudge, situation: SituationModel, response: Response
    ) -> Localizer:
        """A search that has used up its looks."""
        search = searching(bounds, situation, response, self.seed)
        search.run(judge, picture, looks=self.looks, batch=self.batch, sure=1.0)
        return search


def searching(bounds: Any, situation: SituationModel, response: Response, seed: int) -> Localizer:
    """A new search of a picture in which the object may be missing."""
    prior = situation.prior(OBJECT, None, bounds)
    return Localizer(bounds, prior, response=response, absent=0.5, random_state=seed)


def situation_of(scenes: Sequence[Scene]) -> SituationModel:
    """Size, shape and place of the objects."""
    boxes = np.vstack([scene.boxes for scene in scenes])
    sizes = np.vstack([np.tile(scene.bounds, (len(scene.boxes), 1)) for scene in scenes])
    return SituationModel().fit({OBJECT: boxes}, sizes)


def viewed(scenes: Sequence[Scene], features: Any, situation: SituationModel, rng: np.random.Generator) -> list[Viewed]:
    """Windows of every scene; the features are fitted on some of them first."""
    chosen = []
    for scene in scenes:
        prior = situation.prior(OBJECT, None, scene.bounds)
        chosen.append(training_windows(scene.bounds, scene.boxes, prior, rng))
    each = -(-FITTED_CROPS // len(scenes))
    some = rng.permutation(len(scenes))[:FITTED_CROPS]
    features.fit([crop for i in some for crop in cut(open_picture(scenes[i].picture), chosen[i][0][:each], None)])
    found = []
    for place, (scene, (boxes, overlaps)) in enumerate(zip(scenes, chosen, strict=True)):
        X = features.transform(cut(open_picture(scene.picture), boxes, None))
        found.append(Viewed(boxes, overlaps, X))
        report("looking at windows", (place + 1) / len(scenes))
    return found


def judge_of(viewed: Sequence[Viewed], features: Any, **settings: Any) -> ModelJudge:
    """A Gaussian process of the overlap."""
    X = _stacked([each.X for each in viewed])
    model = GPRegressor(**settings).fit(X, np.concatenate([each.overlaps for each in viewed]))
    return ModelJudge(model, features, None, (0.0, 1.0))


def response_of(
    scenes: Sequence[Scene], viewed: Sequence[Viewed], folds: Array, judges: Sequence[ModelJudge]
) -> Response:
    """By windows that the judge of their fold has not seen."""
    scores = [np.asarray(judges[f].model.predict(each.X)).ravel() for f, each in zip(folds, viewed, strict=True)]
    views = [
        to_coordinates(each.windows, np.append([0.0, 0.0], scene.bounds))
        for scene, each in zip(scenes, viewed, strict=True)
    ]
    return Response.learn(np.concatenate([each.overlaps for each in viewed]), np.concatenate(scores), views=views)


def trials_of(
    scenes: Sequence[Scene], folds: Array, judges: Sequence[ModelJudge], response: Response, plan: Plan
) -> Trials:
    """Searches of held-out pictures: with the object, without it, and, where these are few, of what is beside it."""
    rng = np.random.default_rng(plan.seed)
    situations = []
    for fold in range(len(judges)):
        others = [scene for scene, f in zip(scenes, folds, strict=True) if f != fold]
        situations.append(situation_of([scene for scene in others if len(scene.boxes)]))
    rows: list[tuple[Any, ...]] = []
    every = _held_out(scenes, rng)
    for done, (place, scene) in enumerate(every):
        fold = folds[place]
        search = plan.search(scene.picture, scene.bounds, judges[fold], situations[fold], response)
        if search.looks:
            hit = most_overlap(search.best().box[None], scene.boxes)[0] >= 0.5
            part = isinstance(scene.picture, _Part)
            rows.append((*evidence_of(search), len(scene.boxes) > 0, hit, part))
        report("searching held-out pictures", (done + 1) / len(every))
    if not rows:
        raise InvalidInput("No held-out picture could be searched: the judge gave no finite score. Check the features.")
    mixed = [rows[k] for k in rng.permutation(len(rows))]
    return Trials(*(np.array(column) for column in zip(*mixed, strict=True)))


def _held_out(scenes: Sequence[Scene], rng: np.random.Generator) -> list[tuple[int, Scene]]:
    """The pictures to search, with their number."""
    every = [(int(i), scenes[i]) for i in rng.permutation(len(scenes))]
    there = [pair for pair in every if len(pair[1].boxes)][:SEARCHED]
    without = [pair for pair in every if not len(pair[1].boxes)][:SEARCHED]
    parts = [(i, scene.without()) for i, scene in there]
    few = max(0, len(there) - len(without))
    return there + without + [(i, part) for i, part in parts if part is not None][:few]


def folds_of(scenes: Sequence[Scene], count: int, rng: np.random.Generator) -> Annotated[Array, "n"]:
    """The fold of each scene: as many with the object in each, and as many without."""
    folds = np.zeros(len(scenes), np.int64)
    there = np.array([len(scene.boxes) > 0 for scene in scenes])
    for kind in (True, False):
        rows = rng.permutation(np.flatnonzero(there == kind))
        folds[rows] = np.arange(len(rows)) % count
    return folds


def _stacked(parts: list[Any]) -> Any:
    import scipy.sparse as sp

    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.vstack(parts)
