"""One answer in ten is wrong: who finds it, and what is checking the first suspects worth?

    python experiments/ask_wrong_labels.py --data FOLDER --cache FOLDER [--runs 50] [--only NAME ...]

`saccade.active.label_issues` on a fitted GP (nothing is retrained) beside cleanlab on 5-fold logistic regression, on
the same features. 1,000 examples (404 of breast cancer, 142 faces); a tenth of the labels is replaced by another class,
drawn uniformly ("uniform"), or by the class of the nearest example of another class ("confused"). Then a person checks
as many suspects as a tenth of the examples, and corrects the wrong ones; accuracy is that of a GP with the default
noise of 0.1 on new examples, before and after. Suspects come from a GP with noise 1, from one with noise
0.1, and from one that learns its noise, as the default does.

Score and noise of ours were chosen on digits, breast cancer, wine and training pictures of Fashion-MNIST. C of the
logistic regression, and whether features are scaled, are the best for each set, chosen with sight of the truth on a few
other draws. Fashion-MNIST (its 10,000 test pictures here) is read as experiments/small_pictures.py says; 15-Scenes
needs the pictures in SACCADE_DATA.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, all_pictures, arguments, gp_answers, kernel_matrices, plots, save_figure, show_progress, write

WRONG = 0.1  # share of the labels, and share of the examples that are checked
SIZE, TEST = 1000, 1000
NOISE, DEFAULT_NOISE, FOLDS = 1.0, 0.1, 5
KINDS = ("uniform", "confused")
OURS, FIRST_NOISE, LEARNED_NOISE = "saccade", "saccade, noise 0.1", 'saccade, noise "auto"'
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


def faces(data: Path | None, cache: Path | None) -> tuple[Array, Array]:
    from saccade.datasets.embedded import faces

    return faces()


def fashion(data: Path | None, cache: Path | None) -> tuple[Array, Array]:
    """Test pictures at half their size: means of 2 × 2 pixels."""
    from small_pictures import load

    found = load("fashion-mnist", data)
    halves = found.test.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
    return halves.reshape(len(halves), -1) / 255.0, found.y_test.astype(np.int64)


def scenes(data: Path | None, cache: Path | None) -> tuple[Array, Array]:
    from saccade.datasets.on_disk import scenes15
    from saccade.features import DeepFeatures

    parts = [scenes15(part) for part in ("train", "test")]
    pictures = all_pictures([path for paths, _ in parts for path in paths], cache)
    X = DeepFeatures(cache=cache).fit_transform(pictures).toarray().astype(np.float64)
    return X, np.unique(np.concatenate([y for _, y in parts]), return_inverse=True)[1]


Source = Callable[[Path | None, Path | None], tuple[Array, Array]]
SETS: dict[str, tuple[Source, bool, float]] = {  # features, whether logistic regression scales them, and its C
    "digits": (digits, False, 1.0),
    "breast cancer": (breast_cancer, True, 0.1),
    "faces": (faces, False, 0.3),
    "Fashion-MNIST, 14 × 14": (fashion, False, 0.1),
    "15-Scenes, deep": (scenes, False, 0.01),
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


def our_scores(X: Array, given: Array, noise: Any = NOISE) -> tuple[Array, Array, Any]:
    """Label qualities and suspects by `label_issues`, and the model."""
    from saccade import GPClassifier
    from saccade.active import label_issues

    model = GPClassifier(noise=noise, variance=None, random_state=0).fit(X, given)
    found, score, named = label_issues(model, everything=True), np.empty(len(given)), np.zeros(len(given), bool)
    score[found.index] = found.score
    named[label_issues(model).index] = True
    return score, named, model


def dense_scores(K: Array, labels: Array, given: Array, noise: float) -> tuple[Array, float]:
    """Scores of the given labels by leave-one-out means of a model of `labels`, and its sharpness; dense algebra.

    With the true labels as `labels`, no example pulls its neighbours away.
    """
    from saccade.scores.probability import fit_sharpness
    from saccade.solvers.cholesky import factorise

    rows, factor = np.arange(len(given)), factorise(K, np.full(len(given), noise))
    Y = np.where(labels[:, None] == np.arange(labels.max() + 1), 1.0, -1.0)
    mean = Y - factor.solve(Y) / factor.inverse_diagonal()[:, None]
    others = mean.copy()
    others[rows, given] = -np.inf
    return mean[rows, given] - others.max(axis=1), fit_sharpness(mean, labels)


def one_run(X: Array, y: Array, scaled: bool, C: float, seed: int) -> dict[str, dict[str, float]]:
    """Both kinds of wrong answers on one split."""
    rng = np.random.default_rng(seed)
    size = min(SIZE, int(0.71 * len(y)))
    order = rng.permutation(len(y))[: size + TEST]
    train, test = order[:size], order[size:]
    K, K_test = kernel_matrices(X[train], X[test])

    def accuracy(labels: Array, noise: float = DEFAULT_NOISE) -> float:
        return float((gp_answers(K, K_test, labels, noise) == y[test]).mean())

    all_right, found = accuracy(y[train]), {}
    for kind in KINDS:
        given = wrong_answers(X[train], y[train], kind, rng)
        found[kind] = judge(X[train], y[train], given, cleanlab_scores(X[train], given, scaled, C, seed), K)
        scores = found[kind].pop("scores")
        scores["random"] = rng.random(size)
        found[kind]["accuracy, unchecked"] = accuracy(given)
        found[kind]["accuracy, unchecked, noise 1"] = accuracy(given, NOISE)
        for name, score in scores.items():
            checked = given.copy()
            first = np.argsort(score, kind="stable")[: round(WRONG * size)]
            checked[first] = y[train][first]
            found[kind][f"found, {name}"] = float((given != y[train])[first].mean())
            found[kind][f"accuracy, {name}"] = accuracy(checked)
        found[kind]["accuracy, all right"] = all_right
    return found


def judge(X: Array, y: Array, given: Array, rival: tuple[dict[str, Array], Array], K: Array) -> dict[str, Any]:
    """Average precision of every ranking, precision and recall of the named suspects, calibration."""
    from sklearn.metrics import average_precision_score

    from saccade.scores.probability import expected_calibration_error

    bad = given != y
    score, named, model = our_scores(X, given)
    oracle, sharpness = dense_scores(K, y, given, NOISE)
    scores = {OURS: score, FIRST_NOISE: dense_scores(K, given, given, DEFAULT_NOISE)[0], ORACLE: oracle, **rival[0]}
    scores[LEARNED_NOISE] = our_scores(X, given, "auto")[0]
    found: dict[str, Any] = {f"AP, {name}": average_precision_score(bad, -s) for name, s in scores.items()}
    for name, some in ((OURS, named), ("cleanlab", rival[1])):
        found |= {f"named, {name}": some.sum() / bad.sum(), f"recall, {name}": (some & bad).sum() / bad.sum()}
        found[f"precision, {name}"] = (some & bad).sum() / max(some.sum(), 1)
    proposed = model.leave_one_out_decision_.reshape(len(y), -1)
    proposed = (proposed > 0).astype(int)[:, 0] if proposed.shape[1] == 1 else proposed.argmax(axis=1)
    found["proposed label is right, of wrong ones named"] = float((proposed == y)[named & bad].mean())
    found["sharpness, wrong : right labels"] = model.sharpness_ / sharpness
    for name, labels in (("given", given), ("true", y)):
        found[f"calibration error, {name} labels"] = expected_calibration_error(model.leave_one_out_proba_, labels)
    return found | {"scores": {OURS: score, **rival[0]}}


def summary(runs: list[dict[str, float]]) -> dict[str, Any]:
    """Means; average precision and accuracy of ours less those of each ranking of cleanlab, run by run."""
    from scipy.stats import wilcoxon

    found: dict[str, Any] = {"mean": {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}}
    for what, name in product(("AP", "accuracy"), RIVALS):
        gain = np.array([run[f"{what}, {OURS}"] - run[f"{what}, {name}"] for run in runs])
        found[f"{what} beyond {name}"] = {
            "mean": float(gain.mean()),
            "standard error": float(gain.std(ddof=1) / np.sqrt(len(gain))),
            "runs won, lost": [int((gain > 0).sum()), int((gain < 0).sum())],
            "Wilcoxon p": float(wilcoxon(gain).pvalue) if gain.any() else 1.0,
        }
    return found


def draw(record: dict[str, Any], out: Path) -> None:
    """Average precision above; below, what wrong labels cost in accuracy. One column per kind."""
    names = list(record["sets"])
    figure, axes = plots().subplots(2, 2, figsize=(12, 6.4), layout="constrained", sharey="row")
    lost = {"unchecked": ("nothing checked", "#9ca3af"), "random": ("a tenth checked, at random", "#60a5fa")}
    lost |= {name: (f"a tenth checked, {name}", COLOURS[name]) for name in (OURS, *RIVALS)}
    rows = {"AP": {name: (name, colour) for name, colour in COLOURS.items()}, "accuracy": lost}
    for row, (what, bars) in enumerate(rows.items()):
        for place, kind in zip(axes[row], KINDS, strict=True):
            means = [record["sets"][name][kind]["mean"] for name in names]
            for k, (key, (label, colour)) in enumerate(bars.items()):
                values = np.array([mean[f"{what}, {key}"] for mean in means])
                if what == "accuracy":
                    values = 100.0 * (np.array([mean["accuracy, all right"] for mean in means]) - values)
                x = np.arange(len(names)) + (k - (len(bars) - 1) / 2) * 0.8 / len(bars)
                place.bar(x, values, 0.8 / len(bars), label=label, color=colour)
            place.set_xticks(np.arange(len(names)), [name.replace(", ", "\n") for name in names], fontsize=8)
            place.set_title(f"wrong answers: {kind}" if row == 0 else "", fontsize=10)
        axes[row][1].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    axes[0][0].set_ylabel("average precision")
    axes[1][0].set_ylabel("points of accuracy lost to wrong labels")
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
        for kind, found in of_kind.items():
            print(name, kind, {key: round(value, 3) for key, value in found["mean"].items()}, flush=True)
        write(options.out, "ask_wrong_labels", record, quiet=True)
        draw(record, options.out)


if __name__ == "__main__":
    main()
