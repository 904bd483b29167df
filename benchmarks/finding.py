"""How fast objects are found and decisions explained.

    OPENBLAS_NUM_THREADS=1 python benchmarks/finding.py

1. `explain` of 10,000 histograms, 1,000 dimensions and 200 non-zeros, two and ten classes: seconds. Goal: 1 s.
2. `best_window` on three photographs of scikit-image, 200 words on a grid of 8 px: bounds as a share of the windows
   that a scan with step 8 would look at, and seconds; counts, roots of counts and shares ("l1"). Goal: 1 %. The models
   have seen windows of the same photographs at other sizes, so the search is measured here, not the recognition. With
   step 32 a real scan checks the score.

Writes benchmarks/results/finding.json.
"""

import time
from itertools import combinations
from typing import Any, NamedTuple

import measure
import numpy as np
from harness import arguments
from skimage import data

from saccade import GPClassifier
from saccade.datasets.synthetic import histograms
from saccade.features import BagOfWords, DenseSIFT
from saccade.features.pixels import resize
from saccade.kernels import HIK, Power
from saccade.localize import best_window, iou

TRAIN, EXPLAINED, REPEATS = 2000, 10_000, 5
GOAL_EXPLAIN_S, GOAL_WINDOWS = 1.0, 0.01
STEP, SIZES, COARSE, WORDS = 8, (None, 96), 32, 200
OBJECTS = {"astronaut": (170, 10, 290, 180), "coffee": (160, 60, 470, 330), "chelsea": (120, 20, 330, 230)}
OTHER_SIZES, SHAKEN, ELSEWHERE = (0.85, 1.1), 60, 150  # of the photographs, and windows of each to learn from
MODELS = {"counts": (HIK(), None), "roots of counts": (HIK(Power(0.5)), None), "shares": (HIK(), "l1")}


def explaining() -> list[dict[str, Any]]:
    """Seconds for the shares of all features, with their sums checked against the decision in the same run."""
    X, y = histograms(TRAIN + EXPLAINED, rng=np.random.default_rng(0))
    old, new = X[:TRAIN], X[TRAIN:]
    ten = np.random.default_rng(1).integers(0, 5, TRAIN) + 5 * y[:TRAIN]
    rows = []
    for classes, labels in ((2, y[:TRAIN]), (10, ten)):
        for levels in (None, 64):
            model = GPClassifier(levels=levels, variance=None, random_state=0).fit(old, labels)
            off = np.abs(model.explain(new).decision() - model.decision_function(new).reshape(EXPLAINED, -1)).max()
            assert off < 1e-10
            row = {"classes": classes, "levels": levels, "examples": EXPLAINED, "largest difference": float(off)}
            row["explain, s"] = measure.seconds(lambda m=model: m.explain(new), REPEATS)
            start = time.process_time()
            model.explain(new)
            row["explain, s of CPU"] = time.process_time() - start  # of all threads, where others use the machine too
            row["decision_function, s"] = measure.seconds(lambda m=model: m.decision_function(new), REPEATS)
            print(row, flush=True)
            rows.append(row)
    return rows


class Seen(NamedTuple):
    """A photograph as words at places, and the box of its object."""

    name: str
    shape: tuple[int, int]  # (width, height)
    box: Any  # (4,)
    words: Any  # (k,)
    points: Any  # (k, 2)

    def histograms(self, boxes: Any, norm: str | None) -> Any:  # (b, 4) to (b, WORDS)
        found = np.stack([np.bincount(self.words[self.inside(box)], minlength=WORDS) for box in boxes]).astype(float)
        return found / np.maximum(found.sum(axis=1, keepdims=True), 1.0) if norm == "l1" else found

    def inside(self, box: Any) -> Any:
        return ((self.points >= box[:2]) & (self.points < box[2:])).all(axis=1)


def photographs(sizes: tuple[float, ...], bag: BagOfWords | None = None) -> tuple[list[Seen], BagOfWords]:
    """All photographs at all sizes; the codebook is learned from them where there is none yet."""
    sift, named = DenseSIFT(STEP, (16,)), []
    for (name, box), size in ((item, size) for item in OBJECTS.items() for size in sizes):
        whole = getattr(data, name)()
        picture = resize(whole, (round(size * whole.shape[1]), round(size * whole.shape[0])))
        named.append((name, picture.shape[1::-1], size * np.array(box), sift.make(picture)))
    items = [item for *_, item in named]
    bag = BagOfWords(WORDS, sample=20_000, random_state=0, n_jobs=1).fit(items) if bag is None else bag
    return [
        Seen(name, shape, box, bag.words_of(item.values)[0][:, 0], item.positions * shape)
        for name, shape, box, item in named
    ], bag


def learned(train: list[Seen], name: str, kernel: HIK, norm: str | None) -> GPClassifier:
    """A model of the object: shaken boxes around it against windows anywhere that overlap it little."""
    rng, X, y = np.random.default_rng(0), [], []
    for seen in train:
        ends = np.sort(rng.random((20 * ELSEWHERE, 2, 2)), axis=1).reshape(-1, 4) * np.tile(seen.shape, 2)
        far = np.ones(len(ends), bool) if seen.name != name else iou(ends, seen.box) < 0.4
        boxes = ends[far & ((ends[:, 2:] - ends[:, :2]) > 32).all(axis=1)][:ELSEWHERE]
        X, y = [*X, seen.histograms(boxes, norm)], [*y, np.zeros(len(boxes))]
        if seen.name == name:
            shaken = seen.box + rng.normal(0.0, 10.0, (SHAKEN, 4))
            X, y = [*X, seen.histograms(shaken, norm)], [*y, np.ones(SHAKEN)]
    return GPClassifier(kernel, noise=0.01, variance=None).fit(np.vstack(X), np.concatenate(y))


def windows() -> list[dict[str, Any]]:
    """Bounds and seconds of the search for the best window."""
    (train, bag), rows = photographs(OTHER_SIZES), []
    for seen in photographs((1.0,), bag)[0]:
        for how, (kernel, norm) in MODELS.items():
            model = learned(train, seen.name, kernel, norm)
            asked = model, seen.points, seen.words, seen.shape
            coarse = best_window(*asked, norm=norm, step=COARSE)
            assert abs(coarse.score - scanned(model, seen, norm)) < 1e-9
            for least in SIZES:
                start = time.perf_counter()
                found = best_window(*asked, norm=norm, step=STEP, min_size=least)
                took = time.perf_counter() - start
                assert found.gap == 0.0
                row = {"photograph": seen.name, "points": len(seen.points), "histograms": how, "least side": least}
                row |= {"windows": found.windows, "bounds": found.bounds, "share": found.bounds / found.windows}
                rows.append(row | {"seconds": took, "IOU with the object": float(iou(found.box, seen.box))})
                print(rows[-1], flush=True)
    return rows


def scanned(model: GPClassifier, seen: Seen, norm: str | None) -> float:
    """The best decision of all windows on the coarse grid."""
    x, y = (np.append(np.arange(0, side, COARSE), side) for side in seen.shape)
    boxes = np.array([(x0, y0, x1, y1) for x0, x1 in combinations(x, 2) for y0, y1 in combinations(y, 2)])
    return float(model.decision_function(seen.histograms(boxes, norm)).max())


def main() -> None:
    options = arguments(__doc__).parse_args()
    record: dict[str, Any] = {"goal, explain, s": GOAL_EXPLAIN_S, "explain": explaining()}
    record |= {"goal, share of the windows": GOAL_WINDOWS, "best window": windows()}
    measure.write_json(options.out / "finding.json", record)


if __name__ == "__main__":
    main()
