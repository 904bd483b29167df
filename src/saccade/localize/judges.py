"""Judges of crops: a model of pictures as the score that a `Localizer` searches with.

A search needs a score that rises with the share of the object that a box shows. Two kinds of model give one:

- `GPRegressor` trained on windows around objects with the overlap as target (`windows` makes them): its prediction is
  the score, about 0 for background and 1 for the object's own box. Best where boxes to learn from are known.
- `GPClassifier`: the score is the latent mean of the class, which training pulls towards −1 for other classes and 1 for
  this one. Its calibrated probability is worse to search with: it is 0 or 1 nearly everywhere, so that looks beside
  the object do not tell where it is. With inference="laplace" or "ep" the latent mean has no such scale, and the score
  is 2p − 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.localize.boxes import check_boxes, iou
from saccade.scores.probability import class_means

__all__ = ["ModelJudge", "model_judge", "windows"]

BACKGROUND = ("background", "negative", "none", "nothing", "other", "rest", "no", "false", "0", "-1")
NAMED = 12  # classes in a message
# How far windows to learn overlap from differ from the object's box: log of size, log of shape, and place.
WINDOW_SIZE, WINDOW_SHAPE, WINDOW_AWAY = float(np.log(2.5)), 0.6, 1.2


@dataclass(frozen=True)
class ModelJudge:
    """A fitted model that scores crops: call it with a list of them. `model_judge` makes one.

    Parameters
    ----------
    model : GPClassifier or GPRegressor
        Fitted.
    features : transformer
        What makes vectors of pictures for the model.
    label : str or number
        The class to look for; None with a GPRegressor.
    scores : (float, float)
        About what the model says of background and of the object: `scores` of a `Localizer`.

    Examples
    --------
    >>> from saccade import GPRegressor
    >>> from saccade.features import HOG
    >>> pictures = [np.full((32, 32, 3), 10 * k, np.uint8) for k in range(6)]
    >>> hog = HOG((32, 32), cell=8, n_jobs=1)
    >>> model = GPRegressor().fit(hog.fit_transform(pictures), np.linspace(0, 1, 6))
    >>> ModelJudge(model, hog, None, (0.0, 1.0))(pictures[:2]).shape
    (2,)
    """

    model: Any
    features: Any
    label: Any
    scores: tuple[float, float]

    def __call__(self, crops: Sequence[Annotated[Array, "h, w, 3"]]) -> Annotated[Array, "n"]:
        """The score of each crop."""
        step = limits.PICTURE_ROWS_AT_ONCE
        parts = [self._judge(list(crops[k : k + step])) for k in range(0, len(crops), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _judge(self, crops: list[Array]) -> Array:
        X = self.features.transform(crops)
        if self.label is None:
            return np.asarray(self.model.predict(X), np.float64).reshape(len(crops))
        place = int(np.flatnonzero(self.model.classes_ == self.label)[0])
        if self.model.inference == "regression":
            means = class_means(np.asarray(self.model.decision_function(X)).reshape(len(crops), -1))
            return np.asarray(means[:, place])
        return np.asarray(2.0 * self.model.predict_proba(X)[:, place] - 1.0)


def model_judge(
    model: Any, features: Any = None, label: Any = None, scores: tuple[float, float] | None = None
) -> ModelJudge:
    """A model of pictures as a judge of crops.

    Parameters
    ----------
    model : GPClassifier, GPRegressor, or a Pipeline that ends in one
        Fitted, or what `saccade.load` gives.
    features : transformer, optional
        The transformer of `saccade.features` that made vectors of pictures for it. A Pipeline has its own.
    label : str or number, optional
        The class to look for. None: of two classes the one that is not called background or the like, or else the
        second. Must be None with a GPRegressor.
    scores : (float, float), optional
        About what the model says of background and of the object. None: (0, 1) for a GPRegressor, (−1, 1) for a
        GPClassifier.

    Returns
    -------
    ModelJudge
        Call it with a list of crops.

    Examples
    --------
    >>> from saccade import GPClassifier
    >>> from saccade.features import HOG
    >>> rng = np.random.default_rng(0)
    >>> pictures = [rng.integers(0, 50 + 200 * (k % 2), (32, 32, 3)).astype(np.uint8) for k in range(20)]
    >>> hog = HOG((32, 32), cell=8, n_jobs=1)
    >>> model = GPClassifier().fit(hog.fit_transform(pictures), ["background", "noise"] * 10)
    >>> judge = model_judge(model, hog)
    >>> judge.label, judge(pictures[:3]).shape
    ('noise', (3,))
    """
    steps = getattr(model, "steps", None)
    if steps is not None and features is None:
        model, features = steps[-1][1], model[:-1]
    if features is None:
        raise InvalidInput("A judge of crops needs what makes vectors of pictures. Pass `features`, such as HOG().")
    if hasattr(model, "classes_"):
        return ModelJudge(model, features, _label(model.classes_, label), scores or (-1.0, 1.0))
    if not hasattr(model, "predict") or hasattr(model, "offset_"):
        raise InvalidInput(f"A judge must be a GPClassifier or a GPRegressor, got a {type(model).__name__}.")
    if label is not None:
        raise InvalidParameter(f"`label` is for models of classes, and this one predicts numbers; got {label!r}.")
    return ModelJudge(model, features, None, scores or (0.0, 1.0))


def _label(classes: Array, label: Any) -> Any:
    """The class that is meant. Text that says a number means the number."""
    named = f"{', '.join(map(str, classes[:NAMED]))}{', …' if len(classes) > NAMED else ''}"
    if label is not None:
        found = [each for each in classes.tolist() if str(each) == str(label)]
        if not found:
            raise InvalidInput(f"The model does not know the class {label!r}. It knows {named}.")
        return found[0]
    if len(classes) > 2:
        raise InvalidInput(f"The model knows {len(classes)} classes; say which to look for with `label`: {named}.")
    objects = [each for each in classes.tolist() if not _background(str(each))]
    return objects[0] if len(objects) == 1 else classes.tolist()[1]


def _background(name: str) -> bool:
    """
    >>> [_background(name) for name in ("BACKGROUND_Google", "not a face", "face", "notebook")]
    [True, True, False, False]
    """
    words = name.casefold().replace("_", " ").replace("-", " ").split() or [name]
    return name.casefold() in BACKGROUND or words[0] in ("not", "background") or words == ["no"]


def windows(
    bounds: Annotated[Any, "width, height"], box: Annotated[Any, "4"], count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Windows around an object and their overlap with it: what a GPRegressor learns a judge from.

    Each window differs from the object's box in size by up to a factor of 2.5, in shape by up to 1.8, and in place by
    up to 1.2 of the object's size, all times a random share from 0 to 1, so that all overlaps occur. What lies outside
    the picture is cut off, and sides are whole pixels.

    Parameters
    ----------
    bounds : (width, height)
        The picture.
    box : array of shape (4,)
        x0, y0, x1, y1 of the object.
    count : int
        Number of windows.
    rng : numpy.random.Generator
        Source of all random numbers.

    Returns
    -------
    boxes : array of shape (count, 4)
        The windows.
    overlaps : array of shape (count,)
        Intersection over union of each with the object.

    Examples
    --------
    >>> boxes, overlaps = windows((640, 480), [300, 200, 400, 300], 50, np.random.default_rng(0))
    >>> boxes.shape, bool(overlaps.max() > 0.9)
    ((50, 4), True)
    """
    width, height = (float(side) for side in bounds)
    x0, y0, x1, y1 = check_boxes(np.asarray(box)[None], "box", (width, height))[0]
    t = rng.random(count)
    size, shape = (np.exp(t * rng.uniform(-most, most, count)) for most in (WINDOW_SIZE, 0.5 * WINDOW_SHAPE))
    half = 0.5 * np.column_stack([(x1 - x0) * size * shape, (y1 - y0) * size / shape])
    away = t[:, None] * rng.uniform(-WINDOW_AWAY, WINDOW_AWAY, (count, 2)) * np.array([x1 - x0, y1 - y0])
    centre = np.clip(np.array([x0 + x1, y0 + y1]) / 2.0 + away, 1.0, np.array([width, height]) - 1.0)
    low = np.round(np.maximum(centre - half, 0.0))
    high = np.round(np.minimum(centre + half, np.array([width, height])))
    found = np.hstack([np.minimum(low, high - 1.0), high])
    return found, np.asarray(iou(found, np.array([x0, y0, x1, y1])))
