"""Few labels and many pictures: what do the rows without a label add to GPClassifier?

    python experiments/ask_pool_labels.py [SET …] --data FOLDER --cache FOLDER [--runs 10]

Each run draws a pool of 600 rows and a test part of 300. The first 10, 25, 50 or 100 rows of the pool have labels; all
after the first 100 are the rows without one. Compared on the same rows, by accuracy, log loss and calibration error
(ECE) on the test part:

    alone            GPClassifier() on the labelled rows
    pool             GPClassifier(unlabelled=-1), with the other rows beside
    LabelSpreading   scikit-learn's, kernel="knn"
    SelfTraining     scikit-learn's SelfTrainingClassifier(GPClassifier()), at most 3 rounds, on the first 3 runs

Classes without a label have probability 0, so 1 % is shared among all classes before the log loss, for everyone. The
number of neighbours, their share and the other constants were chosen on digits, Fashion-MNIST's pixels and 25 classes
of Caltech-101 (marked "chosen on"); the other sets were not looked at before. `--data` as for ask_data.py.
"""

import warnings
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from ask_data import Collection, collection
from common import Array, all_pictures, arguments, plots, save_figure, write

SIZES = (10, 25, 50, 100)
POOL, TEST = 600, 300
SLOW_RUNS = 3  # with SelfTraining
ROUNDS = 3  # of self-training: fits of a GPClassifier
OF_A_CLASS = 80  # pictures of Caltech-101
SKIPPED = 4485  # random numbers that were drawn before theirs when this was first measured
CHOSEN_ON = ("digits", "fashion-mnist-pixels", "caltech-even")
SETS = (*CHOSEN_ON, "caltech-odd", "15-scenes", "fashion-mnist", "iris", "wine", "breast-cancer")
MEASURES = ("accuracy", "log loss", "ECE")
COLOURS = {"alone": "#666666", "pool": "#0b6e4f", "LabelSpreading": "#d97706", "SelfTraining": "#7c3aed"}


def caltech_some(first: int, cache: Path | None) -> Collection:
    """Every second one of the 50 largest classes, at most 80 pictures each."""
    from saccade.datasets.on_disk import caltech101
    from saccade.features import image_features

    kept = None if cache is None else cache / f"pool_caltech_{first}.npz"
    if kept is None or not kept.is_file():
        paths, labels = caltech101()
        names, counts = np.unique(labels, return_counts=True)
        rng = np.random.default_rng(0)
        rng.permutation(SKIPPED)
        for half in range(first + 1):
            some = names[np.argsort(-counts)][half:50:2]
            drawn = [rng.permutation(np.flatnonzero(labels == name))[:OF_A_CLASS] for name in some]
            rows = rng.permutation(np.concatenate(drawn))
        X = image_features("deep", cache=cache).fit_transform(all_pictures([paths[row] for row in rows], cache))
        found = Collection(
            X.toarray().astype(np.float32), np.unique(labels[rows], return_inverse=True)[1], some.tolist()
        )
        if kept is None:
            return found
        np.savez(kept, X=found.X, y=found.y, names=found.names)
    with np.load(kept, allow_pickle=False) as file:
        return Collection(file["X"], file["y"], file["names"].tolist())


def rows_of(name: str, data: Path | None, cache: Path | None) -> Collection:
    """A set as vectors and class numbers."""
    if name.startswith("caltech-"):
        return caltech_some(("caltech-even", "caltech-odd").index(name), cache)
    if name == "iris":
        from sklearn.datasets import load_iris

        table = load_iris()
        X = table.data - table.data.min(axis=0)
        return Collection(X / X.max(axis=0), table.target, table.target_names.tolist())
    return collection(name, data, cache)


def judged(p: Array, known: Array, y: Array, classes: int) -> tuple[float, float, float]:
    """Accuracy, log loss and ECE of probabilities (t, m) of the known classes."""
    from saccade.scores.probability import expected_calibration_error

    every = np.zeros((len(p), classes))
    every[:, known] = p
    mixed = 0.99 * every + 0.01 / classes
    log_loss = -np.log(mixed[np.arange(len(y)), y]).mean()
    return float((every.argmax(axis=1) == y).mean()), float(log_loss), expected_calibration_error(every, y)


def compared(alone: Any, graph: Any, X: Array, labels: Array, test: Collection, slow: bool) -> dict[str, Any]:
    """What each method makes of the same rows; `labels` are −1 where there is none. SelfTraining only if `slow`."""
    from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

    from saccade import GPClassifier

    told = labels >= 0
    alone.fit(X[told], labels[told])
    pooled = copy(alone)
    pooled.take_votes(graph)  # as GPClassifier(unlabelled=-1) does, which makes the graph at every fit
    models = {
        "alone": alone,
        "pool": pooled,
        "LabelSpreading": LabelSpreading(kernel="knn").fit(X, labels),
    }
    if slow:
        models["SelfTraining"] = SelfTrainingClassifier(GPClassifier(variance=None), max_iter=ROUNDS).fit(X, labels)
    found: dict[str, Any] = {}
    for name, model in models.items():
        p = np.nan_to_num(model.predict_proba(test.X))  # LabelSpreading divides by 0 where no label arrives
        found[name] = judged(p, model.classes_, test.y, len(test.names))
    return found | {"weight": 0.0 if pooled.votes_ is None else pooled.votes_.weight}


def run(rows: Collection, seed: int) -> dict[int, dict[str, Any]]:
    """All sizes on the rows of one seed."""
    from saccade import GPClassifier
    from saccade.estimators.neighbours import Neighbours
    from saccade.kernels import HIK

    order = np.random.default_rng([25, seed]).permutation(len(rows.y))
    size = min(POOL, int(0.6 * len(order)))
    pool, test = order[:size], order[size : size + TEST]
    X, y, found = rows.X[pool], rows.y[pool], {}
    sizes = [size for size in SIZES if size <= 0.5 * len(pool) and np.unique(y[:size]).size >= 2]
    silent = X[max(sizes) :]
    graph = Neighbours.of(HIK().resolved(silent), silent)
    for size in sizes:
        labels = np.where(np.arange(len(pool)) < size, y, -1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of LabelSpreading, and of many classes for few labels
            part = Collection(rows.X[test], rows.y[test], rows.names)
            found[size] = compared(GPClassifier(variance=None), graph, X, labels, part, seed < SLOW_RUNS)
    return found


def summary(runs: list[dict[int, dict[str, Any]]]) -> dict[str, Any]:
    """Means by size, and the difference of "pool" and "alone" with its standard error over paired runs."""
    found: dict[str, Any] = {}
    for size in SIZES:
        some = [one[size] for one in runs if size in one]
        if len(some) < 2:
            continue
        means = {n: np.mean([one[n] for one in some if n in one], axis=0).round(4).tolist() for n in COLOURS}
        gain = np.array([np.subtract(one["pool"], one["alone"]) for one in some])
        error = gain.std(axis=0, ddof=1) / np.sqrt(len(some))
        gains = {m: [float(gain[:, k].mean()), float(error[k])] for k, m in enumerate(MEASURES)}
        weight = float(np.mean([one["weight"] for one in some]))
        found[str(size)] = {"runs": len(some), "means": means, "pool less alone": gains, "weight": weight}
    return found


def draw(record: dict[str, Any], out: Path) -> None:
    figure, axes = plots().subplots(1, len(record["sets"]), figsize=(2.6 * len(record["sets"]), 2.6), squeeze=False)
    for axis, (name, found) in zip(axes[0], record["sets"].items(), strict=True):
        for method, colour in COLOURS.items():
            axis.plot(
                [int(s) for s in found], [f["means"][method][0] for f in found.values()], color=colour, label=method
            )
        axis.set_title(name, fontsize=8)
        axis.set_xscale("log")
    axes[0, 0].set_ylabel("accuracy")
    axes[0, 0].legend(fontsize=6, frameon=False)
    figure.tight_layout()
    save_figure(figure, out, "ask_pool_labels")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("name", nargs="*", help=f"which sets, of {SETS}; none: all")
    parser.add_argument("--data", type=Path, default=None, help="the folder that has fashion-mnist/")
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    if unknown := set(options.name) - set(SETS):
        parser.error(f"{sorted(unknown)} is not one of {SETS}.")
    record: dict[str, Any] = {"runs": options.runs, "chosen on": CHOSEN_ON, "measures": MEASURES, "sets": {}}
    for name in options.name or SETS:
        rows = rows_of(name, options.data, options.cache)
        record["sets"][name] = summary([run(rows, seed) for seed in range(options.runs)])
        for size, found in record["sets"][name].items():
            print(
                name,
                size,
                found["means"],
                "gain",
                found["pool less alone"],
                f"weight {found['weight']:.2f}",
                flush=True,
            )
    draw(record, options.out)
    write(options.out, "ask_pool_labels", record, quiet=True)


if __name__ == "__main__":
    main()
