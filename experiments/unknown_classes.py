"""Unknown classes: are the two signs of `GPClassifier.novelty` together ever below one of them alone?

    python experiments/unknown_classes.py [--cache FOLDER] [--splits 5]

Digits come with scikit-learn; other collections are those that experiments/ask_data.py left in the cache folder.
"copies" has a class per picture (60 pictures of clothes, or digits without a cache), each 30 times: moved by a pixel,
brighter or darker, with noise on a fifth of the pixels. Four classes of ten are unknown; AUC of unknown against known
new examples.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, arguments, plots, save_figure, show_progress, write
from sklearn.metrics import roc_auc_score

SIZES = (8, 15)  # training examples of each class
TEST = 600
UNKNOWN = 0.4
CACHED = ("15-scenes", "caltech-101", "fashion-mnist", "fashion-mnist-pixels", "cifar-10")
PIXELS = "fashion-mnist-pixels"
TITLES = {
    "novelty": "novelty(X)",
    "even": "both count the same",
    "share": "share σ²/k(x, x) alone",
    "confidence": "confidence alone",
}


def collections(cache: Path | None) -> Iterator[tuple[str, Array, Array]]:
    from ask_data import collection

    digits = collection("digits")
    yield "digits", np.asarray(digits.X, float), digits.y
    found = [name for name in CACHED if cache is not None and (cache / f"ask_{name}.npz").is_file()]
    for name in found:
        some = collection(name, cache=cache)
        yield name, np.asarray(some.X, float), some.y
    pixels = collection(PIXELS, cache=cache).X if PIXELS in found else digits.X
    yield "copies", *copies(np.asarray(pixels, float))


def copies(
    X: Array,  # (n, d): square pictures
    pictures: int = 60,
    each: int = 30,
) -> tuple[Array, Array]:  # (pictures · each, d), (pictures · each,)
    rng = np.random.default_rng(1)
    side = round(np.sqrt(X.shape[1]))
    rows = []
    for picture in X[rng.permutation(len(X))[:pictures]].reshape(-1, side, side):
        for _ in range(each):
            moved = np.roll(picture, rng.integers(-1, 2, 2), (0, 1)) * rng.uniform(0.8, 1.2)
            noise = rng.uniform(0.0, 0.3 * picture.max(), picture.shape) * (rng.random(picture.shape) < 0.2)
            rows.append((moved + noise).ravel())
    return np.array(rows), np.repeat(np.arange(pictures), each)


def measure(X: Array, y: Array, size: int, seed: int) -> dict[str, float]:
    from saccade import GPClassifier
    from saccade.scores.novelty import fisher_product, p_values, unexplained

    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.unique(y))
    some = round(UNKNOWN * classes.size)
    rows = [rng.permutation(np.flatnonzero(y == c)) for c in classes]
    train = np.concatenate([own[:size] for own in rows[some:]])
    known = rng.permutation(np.concatenate([own[size:] for own in rows[some:]]))[:TEST]
    new = rng.permutation(np.concatenate(rows[:some]))[:TEST]
    model = GPClassifier(random_state=0).fit(X[train], y[train])
    test, truth = X[np.append(known, new)], np.repeat([0, 1], [known.size, new.size])
    share = unexplained(model.latent_mean_and_variance(test)[1], model.kernel_.diag(test))
    confidence = model.predict_proba(test).max(axis=1)
    scores = {"novelty": model.novelty(test), "share": share, "confidence": -confidence}
    known = model.novelty_reference_
    signs = p_values(-share, known.explained, known.known), p_values(confidence, known.confidence, known.known)
    scores["even"] = -fisher_product(*signs)
    found = {name: float(roc_auc_score(truth, score)) for name, score in scores.items()}
    alarms = float((scores["novelty"][truth == 0] > 0.95).mean())
    return found | {"weight of the confidence": known.confidence_weight, "false alarms at 0.95": alarms}


def draw(auc: dict[str, Any], splits: int, out: Path) -> None:
    figure, axes = plots().subplots(figsize=(9, 4.5), constrained_layout=True)
    for place, (score, title) in enumerate(TITLES.items()):
        values = [np.mean(found[score]) for found in auc.values()]
        axes.plot(np.arange(len(auc)) + 0.1 * (place - 1.5), values, "o", label=title)
    axes.set_xticks(range(len(auc)), list(auc), rotation=30, ha="right")
    axes.set(ylabel="AUC, unknown against known classes", title=f"mean of {splits} splits")
    axes.grid(alpha=0.3, axis="y")
    axes.legend(frameon=False)
    save_figure(figure, out, "unknown_classes")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    auc: dict[str, dict[str, list[float]]] = {}
    with show_progress():
        for name, X, y in collections(options.cache):
            for size in SIZES:
                found = auc.setdefault(f"{name}, {size} a class", {})
                for seed in range(options.splits):
                    for score, value in measure(X, y, size, seed).items():
                        found.setdefault(score, []).append(value)
                print(name, size, {k: round(float(np.mean(v)), 3) for k, v in found.items()}, flush=True)
    record = {"splits": options.splits, "sizes": SIZES, "test": TEST, "unknown": UNKNOWN, "auc": auc}
    write(options.out, "unknown_classes", record, quiet=True)
    draw(auc, options.splits, options.out)


if __name__ == "__main__":
    main()
