"""`Finder`: train on pictures with boxes, then find the object in new ones, or say that it is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from sklearn.exceptions import NotFittedError

from saccade._core.arrays import Array
from saccade._core.checks import check_count, check_share
from saccade._core.errors import InvalidInput
from saccade.localize.boxes import check_boxes
from saccade.localize.finder import learning
from saccade.localize.finder.calibration import Calibrator, Trials, evidence_of
from saccade.localize.judges import ModelJudge
from saccade.localize.search.localizer import Localizer
from saccade.localize.search.response import Response
from saccade.localize.situations.model import SituationModel
from saccade.localize.sources.base import open_picture

LEAST_PICTURES = 10  # with the object: fewer do not tell how often an answer is right
MOST_ABSENT = 0.999
VARIANCE_RANK = 8


@dataclass(frozen=True)
class Found:
    """The answer to one picture.

    Parameters
    ----------
    box : array of shape (4,)
        x0, y0, x1, y1: the best place, also where the object was not found.
    probability : float
        That the box overlaps an object by a half or more.
    present : float
        That the picture shows an object at all.
    found : bool
        False: the answer is "not found".
    score : float
        Expected overlap of the box, as the judge would score it.
    looks : int
        Number of crops that were judged.

    Examples
    --------
    >>> Found(np.array([0.0, 0.0, 9.0, 9.0]), 0.02, 0.03, False, 0.1, 60).found
    False
    """

    box: Annotated[Array, "4"]
    probability: float
    present: float
    found: bool
    score: float
    looks: int


class Finder:
    """Learns from boxes to find an object in few looks, to say how sure it is, and to say when the object is not there.

    `fit` trains a judge of crops (a GPRegressor of the overlap), learns how it errs, and where objects are and how
    large; then it searches training pictures that it has not seen, with the object and without, and learns from these
    searches how probable an answer is.

    Parameters
    ----------
    features : transformer or Pipeline of saccade.features, optional
        What makes vectors of crops. None: `DeepFeatures(size=128)`, which needs the extra `deep`.
    looks : int
        Crops to judge in a picture, in training and in `find`.
    batch : int
        Crops judged at a time.
    folds : int
        Parts of the training pictures, each held out once.
    random_state : int
        Seed of all random choices.
    label : str
        Name of the object.

    Attributes
    ----------
    judge_ : ModelJudge
        The judge of crops.
    situation_ : SituationModel
        Size, shape and place of the object, which it calls "object".
    response_ : Response
        How the judge scores a box by its overlap with the object.
    calibrator_ : Calibrator
        How probable an answer is by what the search knows, and the threshold of "not found".
    trials_ : Trials
        The searches of held-out pictures that the calibrator learned from; not in files.

    Examples
    --------
    >>> from saccade.features import HOG
    >>> rng, pictures, boxes = np.random.default_rng(0), [], []
    >>> for x, y in rng.integers(0, 60, (12, 2)):
    ...     picture = rng.integers(90, 130, (100, 100, 3)).astype(np.uint8)
    ...     picture[y : y + 40, x : x + 40] = 250
    ...     pictures.append(picture)
    ...     boxes.append([[x, y, x + 40, y + 40]])
    >>> finder = Finder(HOG((16, 16), cell=8, n_jobs=1), looks=20).fit(pictures, boxes)
    >>> finder.find(pictures[0]).box.shape
    (4,)
    """

    judge_: ModelJudge
    situation_: SituationModel
    response_: Response
    calibrator_: Calibrator
    trials_: Trials

    def __init__(
        self,
        features: Any = None,
        *,
        looks: int = 60,
        batch: int = 10,
        folds: int = 5,
        random_state: int = 0,
        label: str = "object",
    ) -> None:
        self.features = features
        self.looks = check_count("looks", looks, "The default is 60.")
        self.batch = check_count("batch", batch, "The default is 10.")
        self.folds = check_count("folds", folds, "The default is 5.", least=2)
        self.random_state = check_count("random_state", random_state, "Pass a whole number from 0 on.", least=0)
        self.label = label

    def __repr__(self) -> str:
        return f"Finder({self.label!r}, looks={self.looks})"

    def fit(self, pictures: Sequence[Any], boxes: Sequence[Any]) -> Finder:
        """Learn from pictures with boxes, and from pictures without the object.

        Parameters
        ----------
        pictures : list of array, path or source
            What `open_picture` takes; at least 10 of them with the object.
        boxes : list of arrays of shape (k, 4)
            The boxes x0, y0, x1, y1 of all objects in each picture; an empty list for a picture without the object.

        Returns
        -------
        Finder
            Itself.
        """
        scenes = _scenes(pictures, boxes)
        rng = np.random.default_rng(self.random_state)
        features = self.features if self.features is not None else default_features()
        with_it = [scene for scene in scenes if len(scene.boxes)]
        if len(with_it) < LEAST_PICTURES:
            raise InvalidInput(
                f"{len(with_it)} pictures have a box, and a finder learns from at least {LEAST_PICTURES}. Draw more."
            )
        self.situation_ = learning.situation_of(with_it)
        viewed = learning.viewed(scenes, features, self.situation_, rng)
        settings = _settings(viewed[0].X.shape[1], self.random_state)
        folds = learning.folds_of(scenes, self.folds, rng)
        judges = []
        for fold in range(self.folds):
            others = [each for each, f in zip(viewed, folds, strict=True) if f != fold]
            judges.append(learning.judge_of(others, features, **settings))
        self.response_ = learning.response_of(scenes, viewed, folds, judges)
        plan = learning.Plan(self.looks, self.batch, self.random_state)
        self.trials_ = learning.trials_of(scenes, folds, judges, self.response_, plan)
        self.calibrator_ = Calibrator.learn(self.trials_)
        self.judge_ = learning.judge_of(viewed, features, **settings)
        return self

    def search(self, bounds: Annotated[Any, "width, height"], random_state: int | None = None) -> Localizer:
        """A new search of a picture: run it with `judge_`, then call `answer`.

        Parameters
        ----------
        bounds : (width, height)
            The picture.
        random_state : int, optional
            Seed of the search. None: that of the finder.

        Returns
        -------
        Localizer
            With the prior and the response that were learned.
        """
        seed = self.random_state if random_state is None else random_state
        return learning.searching(bounds, self._fitted().situation_, self.response_, seed)

    def answer(self, search: Localizer, absent: float = 0.5) -> Found:
        """What the looks of a search mean, by the calibrator.

        Parameters
        ----------
        search : Localizer
            Made by `search`, with looks.
        absent : float from 0 to 0.999
            Share of pictures without the object, as far as is known beforehand. 0: it is in every picture.

        Returns
        -------
        Found
            The best box, probabilities, and whether the object was found.
        """
        share = check_share("absent", absent, MOST_ABSENT, "The default is 0.5.")
        if not search.looks:
            raise InvalidInput("A search without looks has no answer. Call its `run` with the judge first.")
        where, evidence = search.best(), evidence_of(search)
        right, there, stands = self._fitted().calibrator_.say(evidence.present[None], evidence.right[None], share)
        return Found(where.box, float(right[0]), float(there[0]), bool(stands[0]), where.score, search.looks)

    def find(self, picture: Any, *, absent: float = 0.5, random_state: int | None = None) -> Found:
        """Search one picture.

        Parameters
        ----------
        picture : array, path or source
            What `open_picture` takes.
        absent : float from 0 to 0.999
            Share of pictures without the object, as far as is known beforehand. 0: it is in every picture.
        random_state : int, optional
            Seed of the search. None: that of the finder.

        Returns
        -------
        Found
            The best box, how probable it is, and whether the object was found.
        """
        source = open_picture(picture)
        search = self.search((source.shape[1], source.shape[0]), random_state)
        search.run(self.judge_, source, looks=self.looks, batch=self.batch, sure=1.0)
        return self.answer(search, absent)

    def save(self, path: Any) -> None:
        """Write judge, features and all that was learned to one file, without any picture or training row.

        Parameters
        ----------
        path : path
            The file; one that exists is replaced. `saccade.load` and `saccade find` read it.
        """
        from saccade.localize.finder.file import save

        save(self._fitted(), Path(path))

    def _fitted(self) -> Finder:
        if not hasattr(self, "judge_"):
            raise NotFittedError("This Finder has learned nothing yet. Call `fit` with pictures and boxes first.")
        return self


def default_features() -> Any:
    """Crops seldom have more pixels than 128 × 128, and the network takes a third of its usual time for these."""
    from saccade.features.deep import DeepFeatures

    return DeepFeatures(size=128)


def _settings(width: int, seed: int) -> dict[str, Any]:
    """Of the judge: as `saccade fit` chooses levels for features of pictures."""
    from saccade.features.recipes import recommended_settings

    variance = {"variance": "lowrank", "variance_rank": VARIANCE_RANK}  # a file has one; the search asks for none
    return {"levels": recommended_settings(width)["levels"], "random_state": seed, **variance}


def _scenes(pictures: Sequence[Any], boxes: Sequence[Any]) -> list[learning.Scene]:
    if len(pictures) != len(boxes):
        raise InvalidInput(f"{len(pictures)} pictures need as many lists of boxes, got {len(boxes)}.")
    scenes = []
    for picture, drawn in zip(pictures, boxes, strict=True):
        height, width = open_picture(picture).shape[:2]
        given = np.zeros((0, 4)) if not len(drawn) else drawn
        bounds = np.array([width, height], np.float64)
        scenes.append(learning.Scene(picture, bounds, check_boxes(given, "boxes", bounds=bounds)))
    return scenes
