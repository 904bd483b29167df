"""One answer in ten is wrong: who finds it, and what is checking the first suspects worth?

    python experiments/ask_wrong_labels.py --data FOLDER --cache FOLDER [--runs 50] [--only NAME ...]

`saccade.active.label_issues` on a fitted GP (nothing is retrained) beside cleanlab on 5-fold logistic regression, on
the same features. 1,000 examples (404 of breast cancer); a tenth of the labels is replaced by another class, drawn
uniformly ("uniform"), or by the class of the nearest example of another class ("confused"). Then a person checks as
many suspects as a tenth of the examples, and corrects the wrong ones.

Score and noise of ours were chosen on digits, breast cancer, wine and training pictures of Fashion-MNIST. C of the
logistic regression, and whether features are scaled, are the best for each set, chosen with sight of the truth on two
to five other draws. Fashion-MNIST (its 10,000 test pictures here) is read as experiments/small_pictures.py says; deep
features of 15-Scenes and of 25 classes of Caltech-101 need the pictures in SACCADE_DATA.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, all_pictures, arguments, gp_answers, kernel_matrices, plots, save_figure, show_progress, write

WRONG = 0.1  # share of the labels, and share of the examples that are checked
SIZE, TEST = 1000, 1000
CLASSES, A_CLASS = 25, 80  # of Caltech-101: the largest classes, and the most pictures of each
NOISE, FOLDS = 1.0, 5
KINDS = ("uniform", "confused")
OURS, FIRST_NOISE = "saccade", "saccade, noise 0.1"
RIVALS = {  # method of cleanlab.rank, and whether it adjusts probabilities by the mean confidence of each class
    "cleanlab, self-confidence": ("self_confidence", False),
    "cleanlab, margin": ("normalized_margin", False),
    "cleanlab, adjusted margin": ("normalized_margin", True),
}
ORACLE = "saccade, if all other labels were right"
COLOURS = {
    OURS: "#0b6e4f",
    FIRST_NOISE: "#8fc9b0",
    **dict(zip(RIVALS, ("#d97706", "#e5c07b", "#9a3412"), strict=True)),
}


def digits(data: Path | None, cache: Path | None) -> tuple[Array, Array]:
    from saccade.datasets.embedded import digits

    return digits()


def breast_cancer(data: Path | None, cache: Path | None) -> tuple[Array, Array]:
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import minmax_scale

    X, y = load_breast_cancer(return_X_y=True)
    return minmax_scale(X), y


def fashion(data: Path | None, cache: Path | None) -> tuple[Array, Array]:
    from small_pictures import load

    found = load("fashion-mnist", data)
    return found.test.reshape(len(found.test), -1) / 255.0, found.y_test.astype(np.int64)


def deep(paths: list[Path], y: Array, cache: Path | None) -> tuple[Array, Array]:
    from saccade.features import DeepFeatures

    X = DeepFeatures(cache=cache).fit_transform(all_pictures(paths, cache))
    return X.toarray().astype(np.float64), np.unique(y, return_inverse=True)[1]


def scenes(data: Path | None, cache: Path | None) -> tuple[Array, Array]:
    from saccade.datasets.on_disk import scenes15

    parts = [scenes15(part) for part in ("train", "test")]
    return deep([path for paths, _ in parts for path in paths], np.concatenate([y for _, y in parts]), cache)


def caltech(data: Path | None, cache: Path | None) -> tuple[Array, Array]:
    from saccade.datasets.on_disk import caltech101

    paths, y = caltech101()
    names, counts = np.unique(y, return_counts=True)
    largest = names[np.argsort(-counts, kind="stable")[:CLASSES]]
    kept = np.sort(np.concatenate([np.flatnonzero(y == name)[:A_CLASS] for name in largest]))
    return deep([paths[i] for i in kept], y[kept], cache)


Source = Callable[[Path | None, Path | None], tuple[Array, Array]]
SETS: dict[str, tuple[Source, bool, float]] = {  # features, whether logistic regression scales them, and its C
    "digits": (digits, False, 1.0),
    "breast cancer": (breast_cancer, True, 0.1),
    "Fashion-MNIST, pixels": (fashion, False, 0.1),
    "15-Scenes, deep": (scenes, False, 0.01),
    "Caltech-101, deep": (caltech, False, 0.01),
}


def wrong_answers(X: Array, y: Array, kind: str, rng: np.random.Generator) -> Array:
    """The labels with a tenth of them wrong."""
    from sklearn.metrics import pairwise_distances

    given, M = y.copy(), int(y.max()) + 1
    who = rng.choice(len(y), round(WRONG * len(y)), replace=False)
    if kind == "uniform":
        given[who] = (y[who] + rng.integers(1, M, who.size)) % M
    else:
        distance = pairwise_distances(X[who], X)
        distance[y[who][:, None] == y] = np.inf
        given[who] = y[distance.argmin(axis=1)]
    return given


def cleanlab_scores(X: Array, given: Array, scaled: bool, C: float, seed: int) -> tuple[dict[str, Array], Array]:
    """Label qualities from cross-validated logistic regression, and which examples `find_label_issues` names."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = LogisticRegression(C=C, max_iter=2000)
    model = make_pipeline(StandardScaler(), model) if scaled else model
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    p = cross_val_predict(model, X, given, cv=folds, method="predict_proba")
    scores = {
        name: get_label_quality_scores(given, p, method=method, adjust_pred_probs=adjusted)
        for name, (method, adjusted) in RIVALS.items()
    }
    return scores, find_label_issues(given, p, n_jobs=1)


def our_scores(X: Array, given: Array, noise: float) -> tuple[Array, Array, Any]:
    """The same two of ours, and the model."""
    from saccade import GPClassifier
    from saccade.active import label_issues

    model = GPClassifier(noise=noise, variance=None, random_state=0).fit(X, given)
    found, score, named = label_issues(model, everything=True), np.empty(len(given)), np.zeros(len(given), bool)
    score[found.index] = found.score
    named[label_issues(model).index] = True
    return score, named, model


def oracle_scores(decision: Array, given: Array) -> Array:
    """Scores from leave-one-out decisions of a model with right labels: no example pulls its neighbours away."""
    from saccade.scores.probability import class_means

    mean, rows = class_means(decision.reshape(len(given), -1)), np.arange(len(given))
    others = mean.copy()
    others[rows, given] = -np.inf
    return np.asarray(mean[rows, given] - others.max(axis=1))


def one_run(X: Array, y: Array, scaled: bool, C: float, seed: int) -> dict[str, dict[str, float]]:
    """Both kinds of wrong answers on one split."""
    rng = np.random.default_rng(seed)
    size = min(SIZE, int(0.71 * len(y)))
    order = rng.permutation(len(y))[: size + TEST]
    train, test = order[:size], order[size:]
    K, K_test = kernel_matrices(X[train], X[test])

    def accuracy(labels: Array) -> float:
        return float((gp_answers(K, K_test, labels, NOISE) == y[test]).mean())

    right = our_scores(X[train], y[train], NOISE)[2]
    found = {}
    for kind in KINDS:
        given = wrong_answers(X[train], y[train], kind, rng)
        found[kind] = judge(X[train], y[train], given, cleanlab_scores(X[train], given, scaled, C, seed), right)
        scores = found[kind].pop("scores")
        scores["random"] = rng.random(size)
        found[kind]["accuracy, unchecked"] = accuracy(given)
        for name, score in scores.items():
            checked = given.copy()
            first = np.argsort(score, kind="stable")[: round(WRONG * size)]
            checked[first] = y[train][first]
            found[kind][f"accuracy, {name}"] = accuracy(checked)
        found[kind]["accuracy, all right"] = accuracy(y[train])
    return found


def judge(X: Array, y: Array, given: Array, rival: tuple[dict[str, Array], Array], right: Any) -> dict[str, Any]:
    """Average precision of every ranking, precision and recall of the named suspects, calibration."""
    from sklearn.metrics import average_precision_score

    from saccade.scores.probability import expected_calibration_error

    bad = given != y
    score, named, model = our_scores(X, given, NOISE)
    scores = {OURS: score, FIRST_NOISE: our_scores(X, given, 0.1)[0], **rival[0]}
    found: dict[str, Any] = {f"AP, {name}": average_precision_score(bad, -s) for name, s in scores.items()}
    found[f"AP, {ORACLE}"] = average_precision_score(bad, -oracle_scores(right.leave_one_out_decision_, given))
    for name, some in ((OURS, named), ("cleanlab", rival[1])):
        found |= {f"named, {name}": some.sum() / bad.sum(), f"recall, {name}": (some & bad).sum() / bad.sum()}
        found[f"precision, {name}"] = (some & bad).sum() / max(some.sum(), 1)
    proposed = model.leave_one_out_decision_.reshape(len(y), -1)
    proposed = (proposed > 0).astype(int)[:, 0] if proposed.shape[1] == 1 else proposed.argmax(axis=1)
    found["proposed label is right, of wrong ones named"] = float((proposed == y)[named & bad].mean())
    found["sharpness, wrong : right labels"] = model.sharpness_ / right.sharpness_
    for name, labels in (("given", given), ("true", y)):
        found[f"calibration error, {name} labels"] = expected_calibration_error(model.leave_one_out_proba_, labels)
    return found | {"scores": {OURS: score, **rival[0]}}


def summary(runs: list[dict[str, float]]) -> dict[str, Any]:
    """Means, and ours less the better ranking of cleanlab, run by run."""
    from scipy.stats import wilcoxon

    means = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    best = max(RIVALS, key=lambda name: means[f"AP, {name}"])
    gain = np.array([run[f"AP, {OURS}"] - run[f"AP, {best}"] for run in runs])
    paired = {"rival": best, "mean": float(gain.mean()), "standard error": float(gain.std(ddof=1) / np.sqrt(len(gain)))}
    p = float(wilcoxon(gain).pvalue) if gain.any() else 1.0
    return {"mean": means, "AP gain": paired | {"runs won": int((gain > 0).sum()), "Wilcoxon p": p}}


def draw(record: dict[str, Any], out: Path) -> None:
    """Average precision above, held-out accuracy below; one column per kind."""
    names = list(record["sets"])
    figure, axes = plots().subplots(2, 2, figsize=(11, 7.4), layout="constrained", sharey="row")
    rows = {
        "average precision of the suspects": {f"AP, {name}": (name, c) for name, c in COLOURS.items()},
        "wrong on held-out data, %": {
            "accuracy, unchecked": ("nothing checked", "#9ca3af"),
            "accuracy, random": ("a tenth checked, at random", "#60a5fa"),
            "accuracy, cleanlab, margin": ("a tenth checked, cleanlab, margin", COLOURS["cleanlab, margin"]),
            f"accuracy, {OURS}": ("a tenth checked, saccade", COLOURS[OURS]),
            "accuracy, all right": ("all labels right", "#111827"),
        },
    }
    for row, (title, bars) in enumerate(rows.items()):
        for place, kind in zip(axes[row], KINDS, strict=True):
            for k, (key, (label, colour)) in enumerate(bars.items()):
                values = np.array([record["sets"][name][kind]["mean"][key] for name in names])
                height = values if row == 0 else 100.0 * (1.0 - values)
                x = np.arange(len(names)) + (k - (len(bars) - 1) / 2) * 0.8 / len(bars)
                place.bar(x, height, 0.8 / len(bars), label=label, color=colour)
            place.set_xticks(np.arange(len(names)), [name.replace(", ", "\n") for name in names], fontsize=8)
            place.set_title(f"wrong answers: {kind}" if row == 0 else "", fontsize=10)
        axes[row][0].set_ylabel(title)
        axes[row][1].legend(fontsize=8, loc="lower right" if row == 0 else "upper right")
    save_figure(figure, out, "ask_wrong_labels")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=None, help="the folder that has fashion-mnist/")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--only", nargs="*", default=list(SETS), help=f"some of {list(SETS)}")
    options = parser.parse_args()
    record: dict[str, Any] = {"runs": options.runs, "seeds": f"0 to {options.runs - 1}", "noise": NOISE, "sets": {}}
    for name in options.only:
        source, scaled, C = SETS[name]
        X, y = source(options.data, options.cache)
        with show_progress():
            runs = [one_run(X, y, scaled, C, seed) for seed in range(options.runs)]
        of_kind = {kind: summary([run[kind] for run in runs]) for kind in KINDS}
        size = min(SIZE, int(0.71 * len(y)))
        how = {"n": size, "classes": int(y.max()) + 1, "logistic regression": {"C": C, "scaled": scaled}}
        record["sets"][name] = how | of_kind
        print(name, {kind: found["AP gain"] for kind, found in of_kind.items()}, flush=True)
        write(options.out, "ask_wrong_labels", record, quiet=True)
        draw(record, options.out)


if __name__ == "__main__":
    main()
