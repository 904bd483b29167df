"""Novelty at scale: every Fashion-MNIST picture of nine classes is normal, the tenth has never been seen.

    python experiments/novelty_scale.py --data FOLDER [--held 0 1 … 9 cifar10] [--only NAME …] [--rows pixels "sum 1"]

Each detector, alone in a fresh process with one thread, learns the 54,000 training pictures of nine classes and ranks
the 10,000 test pictures, of which the 1,000 of the class that was held out are novel: ten tasks. "cifar10" is another
one: all 60,000 are normal, and 10,000 grey photographs of CIFAR-10, 28 × 28, are novel. Default settings but for what
the names say. All get the same rows, once as pixels and once with every picture divided by its sum, as histograms are:
which of the two is better differs from task to task and from detector to detector, so nobody's is chosen for him.

A detector that takes longer than --limit seconds is stopped and marked; one that used up --budget seconds leaves the
tasks after it out, and is compared with ours on the tasks it did. Seconds are CPU time of the one thread. Memory is the
peak beyond the data. Detectors that this run leaves out keep the rows of the file that is there.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import Array, arguments, plots, save_figure, write

TASKS = [str(c) for c in range(10)] + ["cifar10"]
ROWS = ("pixels", "sum 1")
OURS = "GP-HIK, variance"
COLOURS = {"saccade": "#0b6e4f", "scikit-learn": "#d97706", "PyOD": "#64748b", "FAISS": "#7c3aed"}


class Detector(NamedTuple):
    family: str
    make: Callable[[Array], Any]  # given the training rows
    most: int | None = None  # training examples, drawn at random


def gp(measure: str, **parameters: Any) -> Any:
    from saccade import OneClassGP
    from saccade.kernels import HIK

    settings = {"approximation": "lowrank", "levels": 255, "random_state": 0} | parameters
    return OneClassGP(HIK(), measure=measure, **settings)


def svm(_: Array) -> Any:
    from sklearn.svm import OneClassSVM

    return OneClassSVM(nu=0.1)


def sgd_svm(X: Array) -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDOneClassSVM
    from sklearn.pipeline import make_pipeline

    gamma = 1.0 / (X.shape[1] * X.var())  # as OneClassSVM has it
    return make_pipeline(
        Nystroem(gamma=gamma, n_components=300, random_state=0), SGDOneClassSVM(nu=0.1, random_state=0)
    )


def forest(_: Array) -> Any:
    from sklearn.ensemble import IsolationForest

    return IsolationForest(random_state=0)


def lof(_: Array) -> Any:
    from sklearn.neighbors import LocalOutlierFactor

    return LocalOutlierFactor(novelty=True)


def pyod(name: str) -> Any:
    import importlib

    return getattr(importlib.import_module(f"pyod.models.{name.lower()}"), name)()


class Neighbours:
    """The distance to the fifth neighbour, as PyOD's KNN has it, by FAISS with all distances computed."""

    def fit(self, X: Array) -> "Neighbours":
        import faiss

        self.index = faiss.IndexFlatL2(X.shape[1])
        self.index.add(np.ascontiguousarray(X, dtype=np.float32))
        return self

    def score_samples(self, X: Array) -> Array:
        return -np.asarray(self.index.search(np.ascontiguousarray(X, dtype=np.float32), 5)[0][:, -1])


DETECTORS = {
    OURS: Detector("saccade", lambda _: gp("variance")),
    "GP-HIK, variance, rank 32": Detector("saccade", lambda _: gp("variance", variance_rank=32)),
    "GP-HIK, probability": Detector("saccade", lambda _: gp("probability")),
    "GP-HIK, mean": Detector("saccade", lambda _: gp("mean")),
    "GP-HIK, ratio": Detector("saccade", lambda _: gp("ratio")),
    "OneClassSVM, 5,000 examples": Detector("scikit-learn", svm, 5_000),
    "OneClassSVM, 20,000 examples": Detector("scikit-learn", svm, 20_000),
    "OneClassSVM": Detector("scikit-learn", svm),
    "SGDOneClassSVM, Nystroem 300": Detector("scikit-learn", sgd_svm),
    "IsolationForest": Detector("scikit-learn", forest),
    "LocalOutlierFactor": Detector("scikit-learn", lof),
    "PyOD ECOD": Detector("PyOD", lambda _: pyod("ECOD")),
    "PyOD HBOS": Detector("PyOD", lambda _: pyod("HBOS")),
    "PyOD PCA": Detector("PyOD", lambda _: pyod("PCA")),
    "PyOD KNN": Detector("PyOD", lambda _: pyod("KNN")),
    "FAISS neighbours": Detector("FAISS", lambda _: Neighbours()),
}


def problem(task: str, folder: Path | None) -> tuple[Array, Array, Array]:
    """Training rows, test rows, and which of these are normal."""
    from small_pictures import load

    pictures = load("fashion-mnist", folder)
    train, test = (part.reshape(len(part), -1) / 255.0 for part in (pictures.train, pictures.test))
    if task != "cifar10":
        return train[pictures.y != int(task)], test, pictures.y_test != int(task)
    photographs = load("cifar10", folder).test[:, 2:30, 2:30].mean(axis=3) / 255.0
    normal = np.arange(len(test) + len(photographs)) < len(test)
    return train, np.concatenate([test, photographs.reshape(len(photographs), -1)]), normal


def child(name: str, rows: str, task: str, folder: Path | None, n: int) -> dict[str, Any]:
    """Learn and score once, in this process."""
    import measure
    from sklearn.metrics import roc_auc_score

    detector = DETECTORS[name]
    X, new, normal = problem(task, folder)
    X = X[np.random.default_rng(0).permutation(len(X))[: min(n, detector.most or n)]]
    if rows == "sum 1":
        X, new = (part / np.maximum(part.sum(axis=1, keepdims=True), 1e-12) for part in (X, new))
    for warm in range(2):  # the first time compiles, imports, and fills caches
        some = X if warm else X[:300]
        before = measure.resident_bytes()
        measure.reset_peak()
        model, start = detector.make(some), time.process_time()
        model.fit(some)
        fit = time.process_time() - start
        scores(model, new[:300])
    start = time.process_time()
    found = scores(model, new)
    return {
        "AUC": float(roc_auc_score(normal, found)),
        "training examples": len(X),
        "fit, s": fit,
        "score, µs an example": (time.process_time() - start) / len(new) * 1e6,
        "peak memory, GB beyond the data": (measure.resident_bytes(peak=True) - before) / 1e9,
    }


def scores(model: Any, X: Array) -> Array:
    """Higher is more normal."""
    if hasattr(model, "decision_scores_"):  # PyOD: higher is more abnormal
        return np.asarray(-model.decision_function(X))
    return np.asarray(model.score_samples(X))


def alone(name: str, rows: str, task: str, options: Any) -> dict[str, Any]:
    """`child` in a process of its own."""
    numbers = ("SACCADE", "OPENBLAS", "OMP", "MKL", "NUMBA")
    one = dict.fromkeys((f"{number}_NUM_THREADS" for number in numbers), "1")
    call = [sys.executable, __file__, "--child", name, "--rows", rows, "--held", task]
    call += ["--n", str(options.n), *(["--data", str(options.data)] if options.data else [])]
    try:
        done = subprocess.run(call, env=os.environ | one, capture_output=True, text=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return {"stopped": f"after {options.limit:.0f} s"}
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1:]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def run(name: str, rows: str, options: Any) -> dict[str, dict[str, Any]]:
    """The tasks one after another, as far as the budget goes and none was stopped."""
    found: dict[str, dict[str, Any]] = {}
    start = time.perf_counter()
    for task in options.held:
        if time.perf_counter() - start > options.budget or any("AUC" not in row for row in found.values()):
            break
        found[task] = alone(name, rows, task, options)
        print(f"{name}, {rows}, {task}:", found[task], flush=True)
    return found


def summary(rows: dict[str, dict[str, Any]], ours: dict[str, dict[str, Any]]) -> dict[str, Any]:
    held = [task for task in rows if "AUC" in rows[task] and task != "cifar10"]
    line: dict[str, Any] = {"tasks": len(held)}
    if held:
        keys = [key for key in rows[held[0]] if key != "AUC"]
        line |= {"mean AUC, held-out classes": float(np.mean([rows[task]["AUC"] for task in held]))}
        line |= {f"median {key}": float(np.median([rows[task][key] for task in held])) for key in keys}
        both = [task for task in held if "AUC" in ours.get(task, {})]
        line["ours on the same tasks"] = float(np.mean([ours[task]["AUC"] for task in both])) if both else None
    if "AUC" in rows.get("cifar10", {}):
        line["AUC, photographs"] = rows["cifar10"]["AUC"]
    notes = [row for row in rows.values() if "AUC" not in row]
    return line | (notes[0] if notes else {})


def draw(record: dict[str, Any], out: Path) -> None:
    """The held-out classes that every detector got through; filled: pixels, hollow: rows with sum 1."""
    done = {key: {t for t in rows if "AUC" in rows[t] and t != "cifar10"} for key, rows in record["runs"].items()}
    common = sorted(set.intersection(*(tasks for tasks in done.values() if tasks)))
    lines = {
        key: summary({task: record["runs"][key][task] for task in common}, {}) for key, tasks in done.items() if tasks
    }
    names = [name for name in DETECTORS if any(key.startswith(f"{name}; ") for key in lines)]
    keys = ("mean AUC, held-out classes", "median fit, s", "median score, µs an example")
    keys += ("median peak memory, GB beyond the data",)
    short = ("AUC", "fit, s", "score, µs an example", "peak memory, GB beyond the data")
    figure, panels = plots().subplots(1, 4, figsize=(14, 0.36 * len(names) + 1.6), sharey=True, constrained_layout=True)
    for axes, key, label_of_axis in zip(panels, keys, short, strict=True):
        for label, line in lines.items():
            name, rows = label.split("; ")
            colour = COLOURS[DETECTORS[name].family]
            face = colour if rows == ROWS[0] else "white"
            axes.plot(line[key], names.index(name), "o", color=colour, mfc=face)
        axes.set(xlabel=label_of_axis, xscale="linear" if "AUC" in key else "log")
        axes.grid(True, axis="x", color="0.92")
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    title = f"Fashion-MNIST without class {', '.join(common)}; filled: pixels, hollow: rows of sum 1"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    save_figure(figure, out, "novelty_scale")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=None, help="the folder that has fashion-mnist/ and cifar10/")
    parser.add_argument("--held", nargs="+", default=TASKS, choices=TASKS, help="classes to hold out; cifar10")
    parser.add_argument("--only", nargs="+", default=list(DETECTORS), choices=list(DETECTORS))
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=ROWS)
    parser.add_argument("--n", type=int, default=60_000, help="most training examples")
    parser.add_argument("--limit", type=float, default=660.0, help="seconds for one detector and one task")
    parser.add_argument("--budget", type=float, default=900.0, help="seconds for all tasks of a detector")
    parser.add_argument("--child", help=parser.prog)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child, options.rows[0], options.held[0], options.data, options.n)))
        return
    pairs = [(name, rows) for name in options.only for rows in options.rows]
    filed = options.out / "results" / "novelty_scale.json"
    runs = json.loads(filed.read_text())["runs"] if filed.exists() else {}
    runs |= {f"{name}; {rows}": run(name, rows, options) for name, rows in pairs}
    ours = {rows: runs.get(f"{OURS}; {rows}", {}) for rows in ROWS}
    lines = {key: summary(found, ours[key.split("; ")[1]]) for key, found in runs.items()}
    record = {"n": options.n, "tasks": options.held, "limit, s": options.limit, "detectors": lines, "runs": runs}
    write(options.out, "novelty_scale", record, quiet=True)
    for name, line in lines.items():
        print(f"{name:<42}", {k: round(v, 3) if isinstance(v, float) else v for k, v in line.items()})
    draw(record, options.out)


if __name__ == "__main__":
    main()
