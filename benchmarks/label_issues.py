"""Suspects among 1,000, 10,000 and 60,000 labels of Fashion-MNIST, a tenth of them wrong: ours and cleanlab.

`python benchmarks/label_issues.py FOLDER` with the four files of the data set (Debian: dataset-fashion-mnist) writes
benchmarks/results/label_issues.json.

Features are raw pixels. Ours takes no time but that of `label_issues` once the classifier is fitted; the fit is in a
column of its own. cleanlab needs probabilities from cross-validation, here five logistic regressions (pixels from 0 to
1, C = 0.1: the best of six settings at 1,000 examples). Wrong labels are drawn uniformly among the other classes.
Beyond 2,048 examples ours come from estimates of the leave-one-out decisions; up to EXACT examples, a row shows what
exact ones (Cholesky) find.
"""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import numpy as np
from fashion import read
from harness import arguments
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score

from saccade import GPClassifier
from saccade._core.arrays import Array
from saccade.active import LabelIssues, label_issues

SIZES = (1000, 4000, 10_000, 60_000)
EXACT = 4000  # the most examples that a factor is made for
WRONG, NOISE = 0.1, 1.0
FOLDS, C, STEPS = 5, 0.1, 200


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What comes of it, with seconds on the clock and of the CPU: other users of the machine lengthen the first."""
    start, cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, {"s": time.perf_counter() - start, "CPU s": time.process_time() - cpu}


def wrong_answers(y: Array, classes: int, seed: int) -> Array:
    rng, given = np.random.default_rng(seed), y.astype(np.int64)
    who = rng.choice(len(y), round(WRONG * len(y)), replace=False)
    given[who] = (given[who] + rng.integers(1, classes, who.size)) % classes
    return given


def precision(found: LabelIssues, bad: Array) -> dict[str, float]:
    """Average precision of the ranking; precision and recall of the suspects, whose score is negative."""
    score, named = np.empty(len(bad)), found.index[found.score < 0]
    score[found.index] = found.score
    right = bad[named].sum()
    return {
        "average precision": float(average_precision_score(bad, -score)),
        "precision": right / max(len(named), 1),
        "recall": right / bad.sum(),
    }


def ours(X: Array, given: Array, bad: Array, solver: str) -> dict[str, Any]:
    model = GPClassifier(noise=NOISE, solver=solver, variance=None, random_state=0)
    _, fit = timed(lambda: model.fit(X, given))
    label_issues(model)  # warm up
    times = [timed(lambda: label_issues(model))[1] for _ in range(5)]
    after = {key: float(np.median([each[key] for each in times])) for key in times[0]}
    error = {"leave-one-out error": model.leave_one_out_error_}
    return {"fit": fit, "after fit": after} | error | precision(label_issues(model, everything=True), bad)


def cleanlab(X: Array, given: Array, bad: Array) -> dict[str, Any]:
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    model, folds = LogisticRegression(C=C, max_iter=STEPS), StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    p, fits = timed(lambda: cross_val_predict(model, X, given, cv=folds, method="predict_proba"))
    score, after = timed(lambda: get_label_quality_scores(given, p))
    named = find_label_issues(given, p, n_jobs=1)
    found = {"average precision": float(average_precision_score(bad, -score))}
    found |= {"precision": bad[named].mean(), "recall": bad[named].sum() / bad.sum()}
    return {"fit": fits, "after fit": after} | found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("folder", type=Path, help="with the four files of Fashion-MNIST")
    options = parser.parse_args()
    pixels, labels = read(options.folder, "train")
    order = np.random.default_rng(0).permutation(len(labels))
    small = pixels[order[:300]], labels[order[:300]].astype(np.int64)
    label_issues(GPClassifier(solver="cg").fit(*small))  # compile
    rows = []
    for n in (n for n in SIZES if n <= len(labels)):
        X, y = pixels[order[:n]], labels[order[:n]].astype(np.int64)
        given = wrong_answers(y, int(labels.max()) + 1, seed=0)
        bad, scaled = given != y, X / 255.0
        found = {"saccade": ours(X, given, bad, "auto")}
        if n <= EXACT:
            found["saccade, exact"] = ours(X, given, bad, "cholesky")
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            found["cleanlab"] = cleanlab(scaled, given, bad)
        found["cleanlab"]["fits that reached their limit of steps"] = sum(
            issubclass(each.category, ConvergenceWarning) for each in warned
        )
        for name, row in found.items():
            rows.append({"n": n, "method": name} | row)
            print(rows[-1], flush=True)
        measure.write_json(options.out / "label_issues.json", {"wrong": WRONG, "noise": NOISE, "seed": 0, "rows": rows})


if __name__ == "__main__":
    main()
