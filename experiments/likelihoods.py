"""What a label's likelihood is worth: regression on ±1, or Laplace and EP for the sign of f plus noise; one-vs-rest.

    python experiments/likelihoods.py --data FOLDER --cache FOLDER [--splits 3]

Digits (500 to train on) come with scikit-learn; Fashion-MNIST (1,500 and 20,000, bags of 1,000 words) is read as
experiments/small_pictures.py says. Beside them, on the digits, scikit-learn's GaussianProcessClassifier: Laplace with a
logistic likelihood and an RBF kernel whose length scale it learns. Two scales of the kernel; the noise is 0.1.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, arguments, show_progress, write

NOISE, SCALES = 0.1, (1.0, 10.0)
INFERENCES = ("regression", "laplace", "ep")
TEST = 1200
SIZES = (500, 1500, 20_000)  # training examples of each collection
MOST_EP = 2048  # examples: beyond, EP takes a factor per class and step for long, or estimates that do not agree


def collections(data: Path | None, cache: Path | None) -> dict[str, tuple[Any, Array, int]]:
    """Features, classes and training examples."""
    from sklearn.datasets import load_digits
    from small_pictures import histograms

    words = histograms("fashion-mnist", data, cache)
    return {
        "digits": (*load_digits(return_X_y=True), SIZES[0]),
        "Fashion-MNIST, words": (words.train, words.y, SIZES[1]),
        "Fashion-MNIST, words, many": (words.train, words.y, SIZES[2]),
    }


def judge(model: Any, train: tuple[Any, Array], test: tuple[Any, Array]) -> dict[str, float]:
    """Accuracy, cross-entropy and calibration of the answers, and how long they took."""
    from saccade.scores.probability import expected_calibration_error

    start = time.perf_counter()
    model.fit(*train)
    fitted = time.perf_counter()
    p = model.predict_proba(test[0])
    done = time.perf_counter()
    right = p[np.arange(len(p)), test[1]]
    return {
        "accuracy": float((p.argmax(axis=1) == test[1]).mean()),
        "nats": float(-np.log(np.maximum(right, 1e-300)).mean()),
        "calibration error": expected_calibration_error(p, test[1]),
        "fit, s": fitted - start,
        "predict, µs": 1e6 * (done - fitted) / len(p),
    }


def contenders(name: str, X: Any) -> dict[str, Any]:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    from saccade import GPClassifier
    from saccade.kernels import HIK

    mean = float(np.asarray(X.sum(axis=1)).mean())
    found: dict[str, Any] = {
        f"{inference}, scale {scale:g}": GPClassifier(
            HIK(scale=scale / mean), inference=inference, noise=NOISE, random_state=0
        )
        for inference in INFERENCES
        for scale in SCALES
        if inference != "ep" or X.shape[0] <= MOST_EP
    }
    if name == "digits":
        found["scikit-learn, RBF"] = GaussianProcessClassifier(RBF(30.0), random_state=0)
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=None, help="where the small pictures are")
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    record: dict[str, Any] = {"noise": NOISE, "splits": options.splits}
    with show_progress():
        for name, (X, y, n) in collections(options.data, options.cache).items():
            found: dict[str, list[dict[str, float]]] = {}
            for seed in range(options.splits):
                order = np.random.default_rng(seed).permutation(len(y))[: n + TEST]
                train, test = ((X[some], y[some]) for some in (order[:n], order[n:]))
                for title, model in contenders(name, X[order[:n]]).items():
                    found.setdefault(title, []).append(judge(model, train, test))
            means = {t: {k: float(np.mean([f[k] for f in runs])) for k in runs[0]} for t, runs in found.items()}
            record[name] = {"train": n, "mean": means}
            for title, mean in means.items():
                print(name, title, {k: round(v, 3) for k, v in mean.items()}, flush=True)
    write(options.out, "likelihoods", record, quiet=True)


if __name__ == "__main__":
    main()
