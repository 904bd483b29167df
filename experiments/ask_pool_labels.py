"""Few labels and many pictures: what do the rows without a label add to GPClassifier?

    python experiments/ask_pool_labels.py [SET …] --data FOLDER --cache FOLDER [--runs 10]

Each run draws a pool of 600 rows and a test part of 300 from at most 1,500. The first 10, 25, 50 or 100 rows of the
pool have labels; all after the first 100 are the rows without one. Compared on the same rows, by accuracy, log loss and
calibration error (ECE) on the test part:

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
import scipy.sparse as sp
from ask_data import Collection, collection
from common import Array, all_pictures, arguments, plots, save_figure, write

from saccade.kernels import Kernel

SIZES = (10, 25, 50, 100)
ROWS, POOL, TEST = 1500, 600, 300
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


class Known(Kernel):
    """Rows are numbers, and the kernel looks their values up: HIK of the features, made once for all runs of a set."""

    table: Array = np.zeros((0, 0))  # of the set at hand

    def __call__(self, X: Any, Z: Any = None) -> Array:
        return Known.table[np.ix_(X[:, 0].astype(int), (X if Z is None else Z)[:, 0].astype(int))]

    def diag(self, X: Any) -> Array:
        return np.diagonal(Known.table)[X[:, 0].astype(int)]


def compared(rows: Collection, pool: Array, test: Array, graph: Any, size: int, slow: bool) -> dict[str, Any]:
    """What each method makes of the same rows; SelfTraining only if `slow`."""
    from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

    from saccade import GPClassifier

    labels = np.where(np.arange(len(pool)) < size, rows.y[pool], -1)
    numbers, new = pool[:, None].astype(float), test[:, None].astype(float)
    alone = GPClassifier(Known(), variance=None).fit(numbers[:size], labels[:size])
    pooled = copy(alone)
    pooled.take_votes(graph)  # as GPClassifier(unlabelled=-1) does, which makes the graph at every fit
    spreading = LabelSpreading(kernel="knn").fit(rows.X[pool], labels)
    models = {"alone": (alone, new), "pool": (pooled, new), "LabelSpreading": (spreading, rows.X[test])}
    if slow:
        teaching = SelfTrainingClassifier(GPClassifier(Known(), variance=None), max_iter=ROUNDS)
        models["SelfTraining"] = teaching.fit(numbers, labels), new
    found: dict[str, Any] = {}
    for name, (model, some) in models.items():
        p = np.nan_to_num(model.predict_proba(some))  # LabelSpreading divides by 0 where no label arrives
        found[name] = judged(p, model.classes_, rows.y[test], len(rows.names))
    return found | {"weight": 0.0 if pooled.votes_ is None else pooled.votes_.weight}


def run(rows: Collection, seed: int) -> dict[int, dict[str, Any]]:
    """All sizes on the rows of one seed."""
    from saccade.estimators.neighbours import Neighbours

    order = np.random.default_rng([25, seed]).permutation(len(rows.y))
    count = min(POOL, int(0.6 * len(order)))
    pool, test, found = order[:count], order[count : count + TEST], {}
    sizes = [size for size in SIZES if size <= 0.5 * count and np.unique(rows.y[pool[:size]]).size >= 2]
    graph = Neighbours.of(Known(), pool[max(sizes) :, None].astype(float))
    for size in sizes:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of LabelSpreading, and of many classes for few labels
            found[size] = compared(rows, pool, test, graph, size, seed < SLOW_RUNS)
    return found


def some_rows(rows: Collection) -> Collection:
    """At most so many rows that their kernel matrix is quick, and that matrix with a mean self-similarity of 1."""
    from saccade.kernels import HIK

    some = np.random.default_rng(0).permutation(len(rows.y))[:ROWS]
    X = rows.X[some].toarray() if sp.issparse(rows.X) else rows.X[some]
    K = HIK(scale=1.0)(X)
    Known.table = K / np.diagonal(K).mean()
    return Collection(X, rows.y[some], rows.names)


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
        rows = some_rows(rows_of(name, options.data, options.cache))
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
