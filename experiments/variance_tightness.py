"""A Fig. 1 with every approximation of the variance: the exact one in ascending order, and the bounds over it.

    python experiments/variance_tightness.py [--cache FOLDER] [--fashion FOLDER] [--only NAME ...]

15-Scenes (bags of 1,000 words, 100 training pictures a class) and Caltech-101 (EfficientNet-Lite0, 15 a class) from
SACCADE_DATA, Fashion-MNIST (pixels of 3,000 pictures) from --fashion (Debian: dataset-fashion-mnist). HIK with its
automatic scale, noise 0.1. Every approximation is an upper bound of the exact variance of the latent function; a good
one is close, or at least rises with it. Times are for one new example, all threads, tables made before.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import HERE, NOISE, Array, all_pictures, arguments, plots, save_figure, show_progress, write

METHODS: dict[str, tuple[str, int]] = {
    "exact": ("exact", 1),
    "fine, 128": ("fine", 128),
    "fine, 30": ("fine", 30),
    "low rank, 128": ("lowrank", 128),
    "low rank, 30": ("lowrank", 30),
    "diagonal (FA)": ("diagonal", 1),
    "rough": ("rough", 1),
}
COLOURS = dict(zip(METHODS, ["black", "#0b6e4f", "#74b89d", "#1d4ed8", "#93b4f5", "#d97706", "#b91c1c"], strict=True))
NEW = 1000  # new examples
A_CLASS = 15
WORDS = 1000


def scenes(options: Any) -> tuple[Any, Array, Any]:
    from scenes15 import chain

    from saccade.datasets.on_disk import scenes15

    (train, y), (test, _) = scenes15("train"), scenes15("test")
    features = chain(
        "words", WORDS, options.cache, root=True
    )  # RootSIFT, which the committed results were measured with
    X = features.fit_transform(all_pictures(train, options.cache), y)
    some = np.random.default_rng(0).permutation(len(test))[:NEW]
    return X, y, features.transform(all_pictures([test[k] for k in np.sort(some)], options.cache))


def caltech(options: Any) -> tuple[Any, Array, Any]:
    from saccade.datasets.on_disk import caltech101
    from saccade.features import DeepFeatures

    paths, y = caltech101()
    rng = np.random.default_rng(0)
    orders = [rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]
    train = np.concatenate([order[:A_CLASS] for order in orders])
    new = np.concatenate([order[A_CLASS : A_CLASS + NEW // len(orders) + 1] for order in orders])
    features = DeepFeatures(cache=options.cache)
    X, Z = (features.fit_transform(all_pictures([paths[k] for k in some], options.cache)) for some in (train, new))
    return X, y[train], Z


def fashion(options: Any) -> tuple[Any, Array, Any]:
    sys.path.insert(0, str(HERE.parent / "benchmarks"))
    from fashion import read

    (X, y), (Z, _) = read(options.fashion, "train"), read(options.fashion, "t10k")
    return X[:3000].astype(np.float64), y[:3000], Z[:NEW].astype(np.float64)


DATA: dict[str, Callable[[Any], tuple[Any, Array, Any]]] = {
    "15-Scenes, words": scenes,
    "Caltech-101, deep features": caltech,
    "Fashion-MNIST, pixels": fashion,
}


def measure(X: Any, y: Array, new: Any) -> dict[str, dict[str, Any]]:
    from rough_bound import rough_tables

    from saccade import GPClassifier
    from saccade._core.checks import canonical

    new, rows = canonical(new), {}
    exact = np.zeros(0)
    for name, (method, rank) in METHODS.items():
        own = None if method == "rough" else method
        model = GPClassifier(noise=NOISE, solver="cholesky", variance=own, variance_rank=rank, random_state=0)
        gp = model.fit(X, y).gp_
        start = time.perf_counter()
        variance = (
            gp.variance
            if own
            else _rough(rough_tables(gp.kernel.operator(gp.gram.codes), gp.sites.noise), gp.gram.features)
        )
        found = variance(new)[:, 0]
        first = time.perf_counter() - start
        start = time.perf_counter()
        variance(new)
        taken = time.perf_counter() - start
        exact = found if method == "exact" else exact
        rows[name] = {
            "variance": found,
            "rank correlation": float(_ranks(found, exact)),
            "mean": float(found.mean()),
            "mean excess": float((found - exact).mean()),
            "least excess": float((found - exact).min()),
            "µs an example": taken / len(found) * 1e6,
            "seconds to make ready": max(first - taken, 0.0),
        }
        print(name, {k: round(v, 5) for k, v in rows[name].items() if k != "variance"}, flush=True)
    return rows


def _rough(tables: Any, features: Callable[[Any], Any]) -> Callable[[Any], Array]:
    """What the rough bound leaves of the variance."""

    def variance(X: Any) -> Array:
        rows = features(X)
        return np.asarray(rows.sum(axis=1)) - tables.explained(rows)[:, None]

    return variance


def _ranks(a: Array, b: Array) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(a, b)[0])


def draw(results: dict[str, dict[str, dict[str, Any]]], out: Path) -> None:
    figure, all_axes = plots().subplots(
        1, len(results), figsize=(4.6 * len(results), 4.2), constrained_layout=True, squeeze=False
    )
    for axes, (title, rows) in zip(all_axes[0], results.items(), strict=True):
        order = np.argsort(rows["exact"]["variance"])
        places = np.arange(len(order))
        for name, row in reversed(rows.items()):
            label = name if name == "exact" else f"{name}: {row['rank correlation']:.3f}"
            axes.plot(
                places, row["variance"][order], color=COLOURS[name], lw=2 if name == "exact" else 0.7, label=label
            )
        axes.set(xlabel="new examples, by exact variance", ylim=(0, None), xlim=(0, len(order)))
        axes.set_title(title, loc="left")
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles[::-1], labels[::-1], frameon=False, fontsize=7, loc="upper left", ncols=2)
        axes.set_ylim(0, 1.45 * max(row["variance"].max() for row in rows.values()))
    all_axes[0, 0].set_ylabel("variance of the latent function")
    save_figure(figure, out, "variance_tightness")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--fashion", type=Path, default=None, help="folder of Fashion-MNIST; left out without it")
    parser.add_argument("--only", nargs="*", default=list(DATA), choices=list(DATA))
    options = parser.parse_args()
    names = [name for name in options.only if options.fashion is not None or DATA[name] is not fashion]
    results, record = {}, {}
    with show_progress():
        for name in names:
            X, y, new = DATA[name](options)
            print(name, X.shape, new.shape, flush=True)
            results[name] = measure(X, y, new)
            shown = {m: {k: v for k, v in row.items() if k != "variance"} for m, row in results[name].items()}
            record[name] = {"n": X.shape[0], "dimensions": X.shape[1], "new": new.shape[0], "methods": shown}
    write(options.out, "variance_tightness", {"noise": NOISE, "data": record})
    draw(results, options.out)


if __name__ == "__main__":
    main()
