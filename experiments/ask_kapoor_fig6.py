"""K Fig. 6 and Table 2: four classes of Caltech-101 from 0 to 120 labels, asked about actively or at random.

    python experiments/ask_kapoor_fig6.py --cache FOLDER [--runs 40] [--features pyramid deep]

airplanes, Motorbikes, Faces and car_side, all pictures. Active: in every round the picture that each one-against-rest
process is most uncertain about, K (7), so four questions per round; the first four are random. Random questions for the
GP without asking and for the SVM (libsvm, one against rest, C = 10,000 as in the paper), on the same kernel matrix. All
pictures without a label are the test set, which shrinks with the labels; the rate is the mean over the classes. K has
1,155 rear views of cars in place of the 123 pictures of car_side: ours are less balanced, and random questions suffer.
"""

from pathlib import Path
from typing import Any

import numpy as np
from ask_kapoor import NOISE, TITLES, Detector, add_options, similarity
from common import Array, arguments, class_rate, plots, save_figure, show_progress, svm_rest_answers, write

CLASSES = ["airplanes", "Motorbikes", "Faces", "car_side"]
LABELS = 120
COST = 10_000.0  # C of the SVM, K §7
PAPER = {"active GP": 98.48, "random GP": 95.6, "random SVM": 95.19}  # % after 120 labels
COLOURS = {"active GP": "#0b6e4f", "random GP": "#666666", "random SVM": "#d97706"}


def targets(y: Array, count: int) -> Array:
    return np.where(y[:, None] == np.arange(count), 1.0, -1.0)


def one_a_class(K: Array, y: Array, labelled: Array, count: int) -> list[int]:
    """A picture for each class: the one that its process is most uncertain about and no class before it took."""
    left = np.setdiff1d(np.arange(len(y)), labelled)
    model = Detector(K[np.ix_(labelled, labelled)], targets(y[labelled], count))
    doubt = model.doubt(K[np.ix_(left, labelled)], np.diagonal(K)[left])
    chosen: list[int] = []
    for column in doubt.T:
        column[np.isin(left, chosen)] = np.inf
        chosen.append(int(left[column.argmin()]))
    return chosen


def answers(K: Array, y: Array, labelled: Array, test: Array, count: int, svm: bool) -> Array:
    """Of a class that no label is known of, the SVM cannot say anything; the GP's process for it says −1."""
    inner, cross = K[np.ix_(labelled, labelled)], K[np.ix_(test, labelled)]
    if not svm:
        return np.asarray(Detector(inner, targets(y[labelled], count)).mean(cross).argmax(axis=1))
    if len(np.unique(y[labelled])) == 1:
        return np.full(len(test), y[labelled][0])
    return svm_rest_answers(inner, cross, y[labelled], COST)


def campaign(K: Array, y: Array, method: str, count: int, seed: int) -> tuple[list[float], Array]:
    """The rate after each round, and the confusion matrix in the end (rows: the truth), as shares."""
    order, labelled = np.random.default_rng(seed).permutation(len(y)), np.zeros(0, int)
    rates, confusion = [], np.zeros((count, count))
    while len(labelled) < LABELS:
        if method == "active GP" and len(labelled):
            new = one_a_class(K, y, labelled, count)
        else:  # the same first pictures for all methods
            new = order[len(labelled) : len(labelled) + count].tolist()
        labelled = np.concatenate([labelled, new]).astype(int)
        test = np.setdiff1d(np.arange(len(y)), labelled)
        found = answers(K, y, labelled, test, count, method == "random SVM")
        rates.append(class_rate(y[test], found))
    np.add.at(confusion, (y[test], found), 1.0)
    return rates, confusion / confusion.sum(axis=1, keepdims=True)


def measure(K: Array, y: Array, names: list[str], runs: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for method in COLOURS:
        found = [campaign(K, y, method, len(names), seed) for seed in range(runs)]
        rates = 100 * np.array([rates for rates, _ in found])
        result[method] = {
            "after all labels": float(rates[:, -1].mean()),
            "mean rates": rates.mean(axis=0).round(2).tolist(),
            "standard errors": (rates.std(axis=0, ddof=min(1, runs - 1)) / np.sqrt(runs)).round(3).tolist(),
            "confusion": (100 * np.mean([c for _, c in found], axis=0)).round(2).tolist(),
        }
        print(method, round(result[method]["after all labels"], 2), flush=True)
    return result


def draw(record: dict[str, Any], out: Path) -> None:
    kinds = list(record["features"])
    figure, grid = plots().subplots(
        1, len(kinds), figsize=(5.4 * len(kinds), 4.2), constrained_layout=True, squeeze=False
    )
    for axes, kind in zip(grid[0], kinds, strict=True):
        for method, colour in COLOURS.items():
            row = record["features"][kind][method]
            labels = len(record["classes"]) * np.arange(1, len(row["mean rates"]) + 1)
            axes.errorbar(
                labels, row["mean rates"], yerr=row["standard errors"], color=colour, label=method, elinewidth=0.8
            )
        axes.set(title=f"K Fig. 6, {TITLES[kind]}", xlabel="labels", ylabel="mean rate of the classes, %")
        axes.legend(frameon=False, loc="lower right")
    save_figure(figure, out, "ask_kapoor_fig6")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=40)
    add_options(parser)
    options = parser.parse_args()
    record: dict[str, Any] = {"figure": "K Fig. 6 and Table 2", "runs": options.runs, "noise": NOISE, "C": COST}
    record |= {"seeds": f"0 to {options.runs - 1}", "labels": LABELS, "K, %": PAPER, "features": {}}
    with show_progress():
        for kind in options.features:
            K, y, names = similarity(kind, options.cache, CLASSES)
            record |= {"classes": names, "pictures": np.bincount(y).tolist()}
            print(kind, flush=True)
            record["features"][kind] = measure(K, y, names, options.runs)
            write(options.out, "ask_kapoor_fig6", record, quiet=True)
    draw(record, options.out)


if __name__ == "__main__":
    main()
