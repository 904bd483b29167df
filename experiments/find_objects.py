"""Faces, motorbikes, airplanes and cars in few looks: a Gaussian process on deep features of crops as judge.

    python experiments/find_objects.py --cache <folder> [--pictures 25]

Needs caltech101 with boxes.csv in SACCADE_DATA. Half of each class is for training, and the other half is searched.
From 40 training pictures the judge learns windows on the object, beside it and elsewhere; from 20 others the response
(score by overlap) is learned, and the kind of judge is chosen: classifier of windows, or regression of their overlap.
The size of the object is not known. Priors: none; the situation model of the training boxes; and the heat map of a
classifier of whole pictures, which has seen no box. Rivals: windows drawn at random from the same prior; the mean box
of the training half, which takes no look; and the best window of a model of SIFT words, by branch and bound.

Most of these objects fill the middle of their picture. With --tiles 3 each test picture is one tile, at a place drawn
at random, of 3 × 3; the others are background pictures. Judge and response stay those of single pictures.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import arguments, plots, save_figure, show_progress, write
from find_objects_pictures import Half, elsewhere, halves, mosaic, windows
from find_objects_words import by_words, salience_model, salience_prior

from saccade import GPClassifier, GPRegressor
from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.localize import BoxPrior, Localizer, Response, SituationModel, iou
from saccade.localize.boxes import from_coordinates, to_coordinates

CLASSES = ("Faces", "Motorbikes", "airplanes", "car_side")
LEARN, HELD = 40, 20  # training pictures of the judge, and of its response
BATCH = 5  # looks at a time
SHARES = {"from_prior": 0.1, "at_random": 0.1}  # of a batch: one look of five each
LINES = (11, 25)  # published looks of a learned agent (Caicedo and Lazebnik 2015)
STEP = 8  # px: of the exhaustive scan that is counted, not run
SIDE = 128  # px: crops as the network sees them; a picture has 240 at most
FOUND = 0.5  # overlap
WAYS = ("search", "search, prior", "search, heat map", "linear response", "random", "random, prior")


class Judge(NamedTuple):
    """Scores of boxes of a picture."""

    kind: str
    crops: "Crops"
    model: Any
    response: Response
    scores: tuple[float, float]  # usual score of the background, and of an object's box

    def __call__(self, picture: Array, boxes: Array) -> Array:
        return self.scored(self.crops(picture, boxes))

    def scored(self, X: Array) -> Array:
        return np.asarray(self.model.decision_function(X) if self.kind == "classifier" else self.model.predict(X))


class Crops:
    """Deep features of crops; counts them."""

    def __init__(self, cache: Path | None) -> None:
        from saccade.features import DeepFeatures

        self.network, self.count = DeepFeatures(size=SIDE, cache=cache, n_jobs=1), 0

    def __call__(self, picture: Array, boxes: Array) -> Array:  # (n, 1280)
        self.count += len(boxes)
        return np.asarray(self.network.fit_transform([crop(picture, box) for box in boxes]).toarray(), np.float64)


def crop(picture: Array, box: Array) -> Array:
    """The pixels of a box, two each way at least."""
    height, width = picture.shape[:2]
    x0, y0 = min(int(box[0] + 0.5), width - 2), min(int(box[1] + 0.5), height - 2)
    return picture[y0 : max(int(box[3] + 0.5), y0 + 2), x0 : max(int(box[2] + 0.5), x0 + 2)]


def examples(half: Half, crops: Crops, rng: np.random.Generator) -> tuple[Array, Array]:
    """Features of windows and their overlaps with the object."""
    X, overlaps = [], []
    for picture, box, size in zip(half.pictures, half.boxes, half.sizes, strict=True):
        some = windows(box, size, rng)
        X.append(crops(picture, some))
        overlaps.append(iou(some, box))
    return np.vstack(X), np.concatenate(overlaps)


def learn_judge(train: Half, crops: Crops) -> tuple[Judge, dict[str, Any]]:
    """The kind of judge whose scores of held-out training windows have the ranks of the overlaps best."""
    from scipy.stats import spearmanr

    rng = np.random.default_rng(1)
    X, o = examples(train.some(np.arange(LEARN)), crops, rng)
    held = train.some(np.arange(LEARN, LEARN + HELD))
    H, told = examples(held, crops, rng)
    plain = (o >= 0.6) | (o < 0.3)  # what is between is neither class
    models: dict[str, Any] = {
        "classifier": GPClassifier().fit(X[plain], o[plain] >= 0.6),
        "regression": GPRegressor().fit(X, o),
    }
    judges, ranks = {}, {}
    for kind, model in models.items():
        judge = Judge(kind, crops, model, None, (0.0, 1.0))  # type: ignore[arg-type]
        y = judge.scored(H)
        usual = float(np.median(y[told < 0.1])), float(np.median(y[told > 0.6]))
        judges[kind] = judge._replace(
            response=Response.learn(told, y), scores=(usual[0], max(usual[1], usual[0] + 1e-3))
        )
        ranks[kind] = round(float(spearmanr(told, y)[0]), 4)
    best = max(ranks, key=lambda kind: ranks[kind])
    means = judges[best].response.expected(np.linspace(0, 1, 6)).round(3).tolist()
    return judges[best], {"chosen": best, "rank correlations": ranks, "mean score at overlaps 0, 0.2, … 1": means}


def look(way: str, judge: Judge, picture: Array, prior: BoxPrior | None, most: int) -> tuple[Array, Array, list[Array]]:
    """Boxes and scores, and the answer after every batch."""
    size = np.array(picture.shape[1::-1], np.float64)
    if way.startswith("random"):
        boxes = (prior or BoxPrior.unknown(size)).sample(most, np.random.default_rng(0))
        scores = judge(picture, boxes)
        return boxes, scores, [boxes[int(np.argmax(scores[:n]))] for n in range(BATCH, most + 1, BATCH)]
    told: dict[str, Any] = {"scores": judge.scores} if way == "linear response" else {"response": judge.response}
    search, answers = Localizer(size, prior, random_state=0, **SHARES, **told), list[Array]()
    while search.looks < most:
        boxes = search.ask(BATCH)
        search.tell(boxes, judge(picture, boxes))
        answers.append(search.best().box)
    return search.boxes, search.told, answers


def row_of(boxes: Array, scores: Array, answers: list[Array], truth: Array) -> dict[str, Any]:
    overlaps = iou(boxes, truth)
    top = [float(overlaps[int(np.argmax(scores[:n]))]) for n in range(BATCH, len(boxes) + 1, BATCH)]
    hits = np.flatnonzero(overlaps >= FOUND)
    return {
        "first": int(hits[0]) + 1 if hits.size else np.inf,
        "answer": [bool(iou(box, truth) >= FOUND) for box in answers],
        "top": [value >= FOUND for value in top],
        "overlap": float(iou(answers[-1], truth)),
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    first = np.array([row["first"] for row in rows])
    right = np.array([row["answer"] for row in rows])
    looks = BATCH * np.arange(1, right.shape[1] + 1)
    stays = np.array([looks[len(row) - np.cumprod(row[::-1]).sum()] if row[-1] else np.inf for row in right])
    medians = {"a look overlaps by a half": np.median(first), "the answer does, and stays so": np.median(stays)}
    return {
        "median looks until": {name: float(value) if np.isfinite(value) else None for name, value in medians.items()},
        "looks": looks.tolist(),
        "answer right by looks": right.mean(axis=0).round(4).tolist(),
        "highest score right by looks": np.mean([row["top"] for row in rows], axis=0).round(4).tolist(),
        "looked at it by looks": [round(float((first <= n).mean()), 4) for n in looks],
        "mean overlap of the last answer": round(float(np.mean([row["overlap"] for row in rows])), 4),
    }


def exhaustive(train: Half, test: Half) -> float:
    """Windows of a scan: sides and places at multiples of STEP, sides in the range of the training boxes."""
    sides = train.boxes[:, 2:] - train.boxes[:, :2]
    low, high = np.floor(sides.min(axis=0) / STEP), np.ceil(sides.max(axis=0) / STEP)
    counts = []
    for size in test.sizes // STEP:
        each = [np.maximum(size[axis] - np.arange(low[axis], high[axis] + 1) + 1, 0).sum() for axis in (0, 1)]
        counts.append(each[0] * each[1])
    return float(np.median(counts))


def one_class(name: str, options: Any, keep: Callable[[dict[str, Any]], None]) -> None:
    train, test = halves(name, options.pictures)
    if options.tiles > 1:
        test = mosaic(test, elsewhere(100, LEARN), options.tiles, np.random.default_rng(2))
    crops = Crops(options.cache)
    judge, told = learn_judge(train, crops)
    model = SituationModel().fit({name: train.boxes}, train.sizes)
    middle = to_coordinates(train.boxes, np.hstack([np.zeros_like(train.sizes), train.sizes])).mean(axis=0)
    found: dict[str, Any] = {"training pictures": len(train.boxes), "test pictures": len(test.boxes), "judge": told}
    bounds = np.hstack([np.zeros_like(test.sizes), test.sizes])
    plain = from_coordinates(np.tile(middle, (len(bounds), 1)), bounds)
    found["mean box of the training half"] = round(float((iou(plain, test.boxes, pairwise=False) >= FOUND).mean()), 4)
    found["windows of an exhaustive scan"] = exhaustive(train, test)
    learn, held = train.some(np.arange(LEARN)), train.some(np.arange(LEARN, LEARN + HELD))
    found["best window by words"] = by_words(learn, held, test, windows)
    salience = salience_model(learn.pictures, elsewhere(LEARN), options.cache)
    found["ways"] = {}
    for way in options.ways:
        rows = []
        for place, (picture, box, size) in enumerate(zip(test.pictures, test.boxes, test.sizes, strict=True)):
            prior = model.prior(name, None, size) if "prior" in way else None
            prior = salience_prior(salience, picture) if "heat map" in way else prior
            rows.append(row_of(*look(way, judge, picture, prior, options.looks), box))
            report(f"{name}, {way}", (place + 1) / len(test.boxes))
        found["ways"][way] = summary(rows)
        found["crops"] = crops.count
        keep(found)


def draw(record: dict[str, Any], out: Path) -> None:
    found = record["classes"]
    figure, panels = plots().subplots(
        1, len(found), figsize=(3.6 * len(found), 4), sharey=True, constrained_layout=True
    )
    for axes, (name, one) in zip(np.atleast_1d(panels), found.items(), strict=True):
        for way, curve in one["ways"].items():
            axes.semilogx(curve["looks"], curve["answer right by looks"], "o-", ms=3, label=way)
        axes.axhline(one["mean box of the training half"], color="0.6", lw=0.8, ls=":")
        axes.axhline(one["best window by words"]["rate"], color="0.6", lw=0.8, ls="-.")
        for line in (*LINES, one["windows of an exhaustive scan"]):
            axes.axvline(line, color="0.7", lw=0.8)
        axes.set(title=name, xlabel="looks", ylim=(0, 1.02))
        axes.grid(alpha=0.3)
    np.atleast_1d(panels)[0].set_ylabel("answer overlaps by a half or more")
    np.atleast_1d(panels)[-1].legend(frameon=False, fontsize=8)
    figure.suptitle(
        "Lines: 11 and 25 looks, exhaustive scan; dotted: mean training box; dash-dotted: best window by words"
    )
    save_figure(figure, out, record["name"])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--pictures", type=int, default=25, help="test pictures of each class")
    parser.add_argument("--looks", type=int, default=50, help="at a picture")
    parser.add_argument("--tiles", type=int, default=1, help="each test picture is one of so many squared")
    parser.add_argument("--classes", nargs="*", default=list(CLASSES))
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS)
    options = parser.parse_args()
    record: dict[str, Any] = {
        "data": "Caltech-101 with boxes",
        "most looks": options.looks,
        "batch": BATCH,
        "lines": LINES,
    }
    record |= {"judge's pictures": LEARN, "response's pictures": HELD, "crop side": SIDE, "seeds": "0 for every search"}
    record |= {
        "lines": LINES,
        "name": "find_objects" if options.tiles == 1 else "find_objects_mosaic",
        "tiles": options.tiles,
    }
    record["classes"] = {}
    with show_progress():
        for name in options.classes:

            def keep(found: dict[str, Any], name: str = name) -> None:
                record["classes"][name] = found
                write(options.out, record["name"], record, quiet=True)

            one_class(name, options, keep)
    draw(record, options.out)
    for name, one in record["classes"].items():
        print(name, {way: curve["median looks until"] for way, curve in one["ways"].items()})


if __name__ == "__main__":
    main()
