"""A finder trained on boxes (`saccade fit --boxes`), on pictures that it has not seen, with the object and without.

    python experiments/find_trained.py --cache <folder> [--sets raccoon blood_cells:WBC caltech101:butterfly]

Needs boxes/ and caltech101/ in SACCADE_DATA. Half of the pictures of a set (at most --train) teach, the other half (at
most --test) is reported on, together with as many pictures without the object: background and classes of Caltech-101.
The finder is given no picture without the object to learn from. Rivals have the judge of the finder and as many looks,
and answer with the window that scores highest: windows of a grid of several sizes, windows drawn anywhere, windows
drawn from the learned prior; and the mean box of the training pictures, which takes no look.
"""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, plots, save_figure, show_progress, write

from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.datasets.on_disk import BACKGROUND, caltech101, caltech101_boxes, data_folder
from saccade.localize import BoxPrior, Finder, iou, open_picture
from saccade.localize.boxes import clip, from_coordinates, to_coordinates
from saccade.localize.search.looking import cut

SETS = ("raccoon", "blood_cells:WBC", "blood_cells:Platelets", "caltech101:butterfly")
OTHERS = (BACKGROUND, "chair", "Leopards", "watch", "ketch")  # classes that show none of these objects
SIDE = 128  # px: crops as the network sees them
SIZES = (0.15, 0.3, 0.6)  # of windows of the grid, as shares of the picture's sides
RELIABLE = 30  # searches in a bin of said and true
FOUND = 0.5  # overlap


def pictures_of(name: str) -> tuple[list[Path], list[Array]]:
    """Files and the boxes (k, 4) of the objects in each."""
    folder, _, label = name.partition(":")
    if folder == "caltech101":
        files, boxes = caltech101_boxes(label)
        return files, [box[None] for box in boxes]
    place = data_folder() / "boxes" / folder
    found: dict[Path, list[list[float]]] = {}
    with (place / "boxes.csv").open(encoding="utf-8") as table:
        for row in csv.DictReader(table):
            if label in ("", row["label"]):
                found.setdefault(place / row["image"], []).append([float(row[k]) for k in _CORNERS])
    kept: dict[Path, Array] = {}
    for path in sorted(found):
        height, width = open_picture(path).shape[:2]
        inside, _ = clip(np.array(found[path]), np.array([0.0, 0.0, width, height]))
        if len(inside):
            kept[path] = inside
    return list(kept), list(kept.values())


_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def without(count: int, rng: np.random.Generator) -> list[Path]:
    """Pictures that show none of the objects."""
    paths, names = caltech101(background=True)
    some = [path for path, name in zip(paths, names, strict=True) if name in OTHERS]
    return [some[i] for i in rng.permutation(len(some))[:count]]


def grid(bounds: Array, looks: int) -> Array:
    """Windows of three sizes on even places, about as many of each."""
    found = []
    for size in SIZES:
        side = max(1, int(np.sqrt(looks / len(SIZES))))
        x, y = np.meshgrid(np.linspace(0, 1 - size, side), np.linspace(0, 1 - size, side))
        low = np.column_stack([x.ravel(), y.ravel()])
        found.append(np.hstack([low, low + size]) * np.tile(bounds, 2))
    return np.vstack(found)[:looks]


def rivals(finder: Finder, path: Path, mean: Array, seed: int) -> dict[str, Array]:
    """The answer of each rival."""
    source, rng = open_picture(path), np.random.default_rng(seed)
    bounds = np.array([source.shape[1], source.shape[0]], np.float64)
    prior = finder.situation_.prior("object", None, bounds)
    windows = {
        "grid": grid(bounds, finder.looks),
        "random": BoxPrior.unknown(bounds).sample(finder.looks, rng),
        "random, prior": prior.sample(finder.looks, rng),
    }
    best = {name: some[int(np.argmax(finder.judge_(cut(source, some, None))))] for name, some in windows.items()}
    whole = np.append([0.0, 0.0], bounds)
    return best | {"mean box": clip(from_coordinates(mean[None], whole), whole)[0][0]}


def one_set(name: str, options: Any) -> dict[str, Any]:
    from saccade.features import DeepFeatures

    files, boxes = pictures_of(name)
    order, rng = np.random.default_rng(0).permutation(len(files)), np.random.default_rng(1)
    learn, test = order[: len(order) // 2][: options.train], order[len(order) // 2 :][: options.test]
    finder = Finder(DeepFeatures(size=SIDE, cache=options.cache, n_jobs=1), looks=options.looks, label=name)
    finder.fit([files[i] for i in learn], [boxes[i] for i in learn])
    sizes = [np.array(open_picture(files[i]).shape[1::-1], np.float64) for i in learn]
    u = [to_coordinates(boxes[i], np.append([0.0, 0.0], size)) for i, size in zip(learn, sizes, strict=True)]
    mean = np.vstack(u).mean(axis=0)
    rows, others = [], []
    every = [(files[i], boxes[i]) for i in test] + [(path, None) for path in without(len(test), rng)]
    for done, (path, there) in enumerate(every):
        found = finder.find(path)
        right = there is not None and bool(iou(found.box, there).max() >= FOUND)
        rows.append((there is not None, right, found.found, found.probability, found.present))
        if there is not None and done < options.rivals:
            answers = rivals(finder, path, mean, done)
            others.append({way: bool(iou(box, there).max() >= FOUND) for way, box in answers.items()})
        report(name, (done + 1) / len(every))
    held = finder.trials_.hit[finder.trials_.there]
    return {"training pictures": len(learn), "held-out answers right": round(float(held.mean()), 3)} | summary(
        np.array(rows, np.float64), others
    )


def summary(rows: Array, others: list[dict[str, bool]]) -> dict[str, Any]:
    there, right, stands, said, present = rows.T
    order = np.argsort(said, kind="stable")
    bins = np.array_split(order, max(1, len(order) // RELIABLE))
    with_it, on_rivals = there > 0, right[: len(others)]
    return {
        "pictures with, without": [int(with_it.sum()), int((~with_it).sum())],
        "answer right": round(float(right[with_it].mean()), 3),
        "lost": round(float(1.0 - stands[with_it].mean()), 3),
        "not found where it is not": round(float(1.0 - stands[~with_it].mean()), 3),
        "said, true": [[round(float(said[part].mean()), 3), round(float(right[part].mean()), 3)] for part in bins],
        "said, true with the object": [round(float(v), 3) for v in (said[with_it].mean(), right[with_it].mean())],
        "present where it is, is not": [round(float(present[part].mean()), 3) for part in (with_it, ~with_it)],
        "rivals": {"pictures": len(others), "finder": round(float(on_rivals.mean()), 3)}
        | {way: round(float(np.mean([each[way] for each in others])), 3) for way in others[0]},
    }


def draw(record: dict[str, Any], out: Path) -> None:
    figure, (left, right) = plots().subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    sets = record["sets"]
    ways = ["finder", "grid", "random", "random, prior", "mean box"]
    for k, way in enumerate(ways):
        heights = [one["rivals"][way] for one in sets.values()]
        left.bar(np.arange(len(sets)) + 0.15 * k, heights, 0.14, label=way)
    left.set_xticks(np.arange(len(sets)) + 0.3, list(sets), fontsize=7)
    left.set(ylabel="answer right", ylim=(0, 1.02))
    left.legend(frameon=False, fontsize=7, ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    for name, one in sets.items():
        right.plot(*np.array(one["said, true"]).T, "o-", ms=4, label=name)
    right.plot([0, 1], [0, 1], "0.7", lw=0.8)
    right.set(xlabel="said", ylabel="true")
    right.legend(frameon=False, fontsize=7)
    save_figure(figure, out, record["name"])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--train", type=int, default=100, help="training pictures of a set, at most")
    parser.add_argument("--test", type=int, default=100, help="pictures with the object, and as many without, at most")
    parser.add_argument("--rivals", type=int, default=30, help="pictures on which rivals are tried")
    parser.add_argument("--looks", type=int, default=60, help="at a picture")
    options = parser.parse_args()
    record: dict[str, Any] = {"name": "find_trained", "looks": options.looks, "crop side": SIDE, "sets": {}}
    with show_progress():
        for name in options.sets:
            record["sets"][name] = one_set(name, options)
            write(options.out, record["name"], record, quiet=True)
    draw(record, options.out)
    for name, one in record["sets"].items():
        print(name, one)


if __name__ == "__main__":
    main()
