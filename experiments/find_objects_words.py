"""What find_objects.py compares with: the best window of a model of words, and a heat map as prior."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saccade import GPClassifier
from saccade._core.arrays import Array
from saccade.kernels import HIK, Power
from saccade.localize import best_window, heat_map, iou
from saccade.localize.priors.box_prior import BoxPrior

WORDS, STEP = 200, 8  # px between words, and between the lines that windows begin and end at
SIDE = 224  # px: a heat map has a seventh of it for one of its squares
BUDGET = 20_000  # bounds: what is found then is the best so far
MODELS = {"counts": (HIK(), None), "roots of counts": (HIK(Power(0.5)), None), "shares": (HIK(), "l1")}


class Words(NamedTuple):
    """A picture as words at places."""

    size: tuple[int, int]
    words: Array  # (k,)
    points: Array  # (k, 2)

    def histograms(
        self,
        boxes: Array,  # (b, 4)
        norm: str | None,
    ) -> Array:  # (b, WORDS)
        inside = [((self.points >= box[:2]) & (self.points < box[2:])).all(axis=1) for box in boxes]
        found = np.stack([np.bincount(self.words[some], minlength=WORDS) for some in inside]).astype(np.float64)
        return found / np.maximum(found.sum(axis=1, keepdims=True), 1.0) if norm == "l1" else found


class WordModel(NamedTuple):
    """Windows with the object against windows without."""

    how: str
    model: GPClassifier
    norm: str | None

    def best(self, seen: Words, least: Array) -> Array:  # (4,)
        """The window with the largest decision whose sides are those of the smallest training box or larger."""
        found = best_window(
            self.model, seen.points, seen.words, seen.size, norm=self.norm, step=STEP, min_size=least, budget=BUDGET
        )
        return found.box


def as_words(pictures: list[Array], bag: Any = None) -> tuple[list[Words], Any]:
    from saccade.features import BagOfWords, DenseSIFT

    sift = DenseSIFT(STEP, (16,))
    items = [sift.make(picture) for picture in pictures]
    bag = BagOfWords(WORDS, sample=20_000, random_state=0, n_jobs=1).fit(items) if bag is None else bag
    sizes = [picture.shape[1::-1] for picture in pictures]
    found = zip(sizes, items, strict=True)
    return [Words(size, bag.words_of(item.values)[0][:, 0], item.positions * size) for size, item in found], bag


def by_words(train: Any, held: Any, test: Any, windows: Callable[[Array, Array, Any], Array]) -> dict[str, Any]:
    """The rate of the best window; how words are counted is chosen on held training pictures."""
    rng = np.random.default_rng(0)
    seen, bag = as_words(train.pictures)
    boxes = [windows(box, size, rng) for box, size in zip(train.boxes, train.sizes, strict=True)]
    overlaps = np.concatenate([iou(some, box) for some, box in zip(boxes, train.boxes, strict=True)])
    plain, least = (overlaps >= 0.6) | (overlaps < 0.3), (train.boxes[:, 2:] - train.boxes[:, :2]).min(axis=0)
    models, rates = {}, {}
    for how, (kernel, norm) in MODELS.items():
        X = np.vstack([one.histograms(some, norm) for one, some in zip(seen, boxes, strict=True)])
        models[how] = WordModel(how, GPClassifier(kernel, variance=None).fit(X[plain], overlaps[plain] >= 0.6), norm)
        rates[how] = _rate(models[how], as_words(held.pictures, bag)[0], held.boxes, least)
    best = max(rates, key=lambda how: rates[how])
    rate = _rate(models[best], as_words(test.pictures, bag)[0], test.boxes, least)
    return {"chosen": best, "rates on held training pictures": rates, "rate": rate}


def _rate(model: WordModel, seen: list[Words], boxes: Array, least: Array) -> float:
    found = [iou(model.best(one, np.minimum(least, one.size)), box) for one, box in zip(seen, boxes, strict=True)]
    return round(float(np.mean(np.array(found) >= 0.5)), 4)


def salience_model(pictures: list[Array], others: list[Array], cache: Any) -> Any:
    """A classifier of whole pictures, with the object and without. No box is used."""
    from sklearn.pipeline import make_pipeline

    from saccade.features import DeepFeatures

    whole = make_pipeline(DeepFeatures(size=SIDE, cache=cache, n_jobs=1), GPClassifier(variance=None))
    return whole.fit([*pictures, *others], np.repeat([1, 0], [len(pictures), len(others)]))


def salience_prior(model: Any, picture: Array) -> BoxPrior:
    """The centre where the heat map is positive; sizes and shapes are unknown."""
    return BoxPrior.of_map(picture.shape[1::-1], np.maximum(heat_map(model, picture), 0.0))
