"""What to learn and by which objective: evidence or leave-one-out, from one parameter to thousands (H Fig. 3, right).

    python experiments/objectives.py [--data scenes15 caltech101 fashion] [--only NAME ...] [--folder FOLDER]

15-Scenes: bags of 1,000 words of pictures at 256 × 256, no positions (H: HIK 70.8, power 72.9, exponential 74.0 %).
Caltech-101: EfficientNet-Lite0, 15 pictures a class. Fashion-MNIST: pixels, 5,000 training examples (see
small_pictures.py for --folder), tuned from products and estimates alone. Everything is learned on the training part.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import small_pictures
from common import Array, all_pictures, arguments, class_rate, plots, save_figure, write
from scenes15 import chain

KERNELS = {
    "hik": "HIK: noise (and scale)",
    "power": "power",
    "exponential": "exponential",
    "weights": "a weight a dimension",
    "shared": "one free transform for all",
    "free": "a free transform a dimension",
}
WORDS, A_CLASS, MANY = 1000, 15, 5_000  # of 15-Scenes; training pictures of Caltech-101, of Fashion-MNIST
COLOURS = {"untuned": "#9a9a9a", "evidence": "#d97706", "loo": "#0b6e4f"}


def kernel(name: str) -> Any:
    from saccade.kernels import HIK, Exponential, Monotone, Power, Weights

    return {
        "hik": HIK(),
        "power": HIK(Power(1.0)),
        "exponential": HIK(Exponential(0.0)),
        "weights": HIK(Weights()),
        "shared": HIK(Monotone(shared=True)),
        "free": HIK(Monotone()),
    }[name]


def load(name: str, options: argparse.Namespace) -> tuple[Any, Array, Any, Array]:
    """Training examples and labels, test examples and labels."""
    from saccade.datasets.on_disk import caltech101, scenes15

    if name == "fashion":
        pictures = small_pictures.load("fashion-mnist", options.folder)
        some = np.sort(np.random.default_rng(0).permutation(len(pictures.y))[:MANY])
        X, X_test = (part.reshape(-1, 784) / 255.0 for part in (pictures.train[some], pictures.test))
        return X, pictures.y[some], X_test, pictures.y_test
    if name == "scenes15":
        (train, y), (test, truth) = scenes15("train"), scenes15("test")
        features = chain(
            "words at 256", WORDS, options.cache, root=True
        )  # RootSIFT, which the committed results were measured with
    else:
        paths, labels = caltech101()
        rng = np.random.default_rng(0)
        chosen = np.concatenate([rng.permutation(np.flatnonzero(labels == c))[:A_CLASS] for c in np.unique(labels)])
        rest = np.setdiff1d(np.arange(labels.size), chosen)
        (train, y), (test, truth) = (([paths[i] for i in part], labels[part]) for part in (chosen, rest))
        features = chain("deep", 0, options.cache)
    X = features.fit_transform(all_pictures(train, options.cache), y)
    return X, y, features.transform(all_pictures(test, options.cache)), truth


def measure(name: str, objective: str, data: tuple[Any, Array, Any, Array]) -> dict[str, Any]:
    from saccade import GPClassifier, Tune
    from saccade.scores.probability import cross_entropy, expected_calibration_error

    X, y, X_test, truth = data
    tune = None if objective == "untuned" else Tune(objective=objective)
    start = time.perf_counter()
    model = GPClassifier(kernel(name), tune=tune, variance=None, random_state=0).fit(X, y)
    seconds = time.perf_counter() - start
    p = model.predict_proba(X_test)
    label = np.searchsorted(model.classes_, truth)
    record = {
        "rate": class_rate(truth, model.classes_[p.argmax(axis=1)]),
        "calibration error": expected_calibration_error(p, label),
        "test loss": float(-np.log(np.maximum(p[np.arange(label.size), label], 1e-300)).mean()),
        "leave-one-out loss": cross_entropy(model.leave_one_out_decision_, model.targets_.label)[0],
        "log evidence an example": model.log_marginal_likelihood().value / len(y),
        "seconds": seconds,
        "noise": model.noise_,
    }
    if tune is not None:
        record |= {
            "evaluations": len(model.tuning_.evaluations),
            "stopped": model.tuning_.stopped,
            "prior": model.tuning_.prior,
        }
        record["eta"] = next((t.eta for t in model.kernel_.transforms() if hasattr(t, "eta")), None)
    print(name, objective, {k: round(v, 4) if isinstance(v, float) else v for k, v in record.items()}, flush=True)
    return record


def draw(results: dict[str, Any], out: Path) -> None:
    figure, panels = plots().subplots(
        1, len(results), figsize=(4.4 * len(results) + 1.5, 3.6), sharey=True, squeeze=False, constrained_layout=True
    )
    names = [name for name in KERNELS if any(name in rows for rows in results.values())]
    for axes, (data, rows) in zip(panels[0], results.items(), strict=True):
        for shift, objective in ((-0.16, "evidence"), (0.16, "loo")):
            at = [k for k, name in enumerate(names) if objective in rows.get(name, {})]
            rates = [100 * rows[names[k]][objective]["rate"] for k in at]
            axes.scatter(rates, np.array(at) + shift, color=COLOURS[objective], label=f"by {objective}")
            for rate, k in zip(rates, at, strict=True):
                axes.annotate(f"{rate:.1f}", (rate, k + shift), (6, -3), textcoords="offset points", fontsize=8)
        axes.axvline(100 * rows["hik"]["untuned"]["rate"], color=COLOURS["untuned"], ls=":", label="HIK, noise 0.1")
        axes.set_title(data, loc="left")
        axes.set_xlabel("mean recognition rate a class, %")
        axes.margins(x=0.25)
    panels[0, 0].set_yticks(range(len(names)), [KERNELS[name] for name in names])
    panels[0, 0].invert_yaxis()
    panels[0, -1].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save_figure(figure, out, "objectives")


def main() -> None:
    parser = arguments(__doc__)
    known = ["scenes15", "caltech101", "fashion"]
    parser.add_argument("--data", nargs="*", default=known, choices=known)
    parser.add_argument("--only", nargs="*", default=list(KERNELS), choices=list(KERNELS))
    parser.add_argument("--folder", type=Path, default=None, help="the folder that has fashion-mnist/")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name in options.data:
        data = load(name, options)
        results[name] = {"hik": {"untuned": measure("hik", "untuned", data)}}
        for kind in options.only:
            for objective in ("evidence", "loo"):
                results[name].setdefault(kind, {})[objective] = measure(kind, objective, data)
                write(options.out, "objectives", {"results": results}, quiet=True)
    draw(results, options.out)


if __name__ == "__main__":
    main()
