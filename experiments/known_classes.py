"""One GP, two jobs: which score of a fitted classifier tells examples of none of its classes?

    python experiments/known_classes.py --data FOLDER --cache FOLDER [--splits 5]

Digits come with scikit-learn; Fashion-MNIST and CIFAR-10 (bags of 1,000 words) as experiments/small_pictures.py says,
Caltech-101 (deep features) from SACCADE_DATA. In each split four classes of ten (forty of a hundred and one) are
unknown. 1,500 examples of the others train a GPClassifier (600 digits); AUC of unknown against known new examples.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Array, all_pictures, arguments, plots, save_figure, show_progress, write
from sklearn.metrics import roc_auc_score

TRAIN, TEST = 1500, 1000
UNKNOWN = 0.4  # of the classes
MOST_CLASSES = 10  # for Laplace's approximation, which factorises a matrix a class and step
SCORES = {
    "novelty": "novelty(X): both, joined",
    "variance": "variance σ²",
    "share": "share σ²/k(x, x)",
    "confidence": "1 − largest probability",
    "mean": "− largest mean",
}


def collections(data: Path | None, cache: Path | None) -> Iterator[tuple[str, Any, Array, int]]:
    """Name, features, classes and training examples of each collection."""
    from sklearn.datasets import load_digits

    yield "digits", *load_digits(return_X_y=True), 600
    from small_pictures import PICTURES, histograms

    for name, title in PICTURES.items():
        found = histograms(name, data, cache)
        yield f"{title}, words", found.train[:12_000], found.y[:12_000], TRAIN
    from saccade.datasets.on_disk import caltech101
    from saccade.features import DeepFeatures

    paths, y = caltech101()
    yield "Caltech-101, deep", DeepFeatures(cache=cache).fit_transform(all_pictures(paths, cache)), y, TRAIN


def split(y: Array, train: int, seed: int) -> tuple[Array, Array, Array]:
    """Example numbers: to train on, known ones and unknown ones to test with."""
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.unique(y))
    unknown = np.isin(y, classes[: round(UNKNOWN * classes.size)])
    known, new = (rng.permutation(np.flatnonzero(some)) for some in (~unknown, unknown))
    return known[:train], known[train : train + TEST], new[:TEST]


def measure(X: Any, y: Array, train: int, seed: int, inference: str) -> dict[str, float]:
    from saccade import GPClassifier
    from saccade.scores.novelty import unexplained

    fitted, known, new = split(y, train, seed)
    model = GPClassifier(inference=inference, random_state=0).fit(X[fitted], y[fitted])
    test, truth = X[np.append(known, new)], np.repeat([0, 1], [known.size, new.size])
    mean, variance = model.latent_mean_and_variance(test)
    variance = variance.reshape(truth.size, -1).mean(axis=1)
    novelty = model.novelty(test)
    scores = {
        "novelty": novelty,
        "variance": variance,
        "share": unexplained(variance, model.kernel_.diag(test)),
        "confidence": -model.predict_proba(test).max(axis=1),
        "mean": -mean.max(axis=1),
    }
    found = {name: float(roc_auc_score(truth, score)) for name, score in scores.items()}
    return found | {"false alarms at 0.95": float((novelty[truth == 0] > 0.95).mean())}


def draw(record: dict[str, Any], out: Path) -> None:
    figure, axes = plots().subplots(figsize=(8, 4.5), constrained_layout=True)
    names = list(record["auc"])
    for place, (score, title) in enumerate(SCORES.items()):
        for inference, mark in (("regression", "o"), ("laplace", "^")):
            some = [k for k, name in enumerate(names) if inference in record["auc"][name]]
            values = [np.mean(record["auc"][names[k]][inference][score]) for k in some]
            label = title if inference == "regression" else None
            axes.plot(np.array(some) + 0.12 * (place - 2), values, mark, color=f"C{place}", label=label)
    axes.plot([], [], "^", color="grey", label="the same by Laplace")
    axes.set_xticks(range(len(names)), names)
    axes.set(ylabel="AUC, unknown against known classes", title=f"mean of {record['splits']} splits, HIK")
    axes.grid(alpha=0.3, axis="y")
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    save_figure(figure, out, "known_classes")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=None, help="where the small pictures are")
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    auc: dict[str, dict[str, dict[str, list[float]]]] = {}
    with show_progress():
        for name, X, y, train in collections(options.data, options.cache):
            X = sp.csr_matrix(X) if sp.issparse(X) else X
            auc[name] = {"regression": {}}
            if np.unique(y).size <= MOST_CLASSES:
                auc[name]["laplace"] = {}
            for inference, found in auc[name].items():
                for seed in range(options.splits):
                    for score, value in measure(X, y, train, seed, inference).items():
                        found.setdefault(score, []).append(value)
                print(name, inference, {k: round(float(np.mean(v)), 3) for k, v in found.items()}, flush=True)
    record = {"splits": options.splits, "train": TRAIN, "test": TEST, "unknown": UNKNOWN, "auc": auc}
    write(options.out, "known_classes", record, quiet=True)
    draw(record, options.out)


if __name__ == "__main__":
    main()
