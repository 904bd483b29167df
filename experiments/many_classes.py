"""Leave-one-out accuracy and probabilities with 2 to 1,000 classes, by Cholesky and by conjugate gradients.

    python experiments/many_classes.py [--rows 2500 5000] [--others 3200]

Beyond Cholesky, leave-one-out rests on an estimate of diag((K + N)⁻¹). Drawn data of three kinds: classes that overlap
much, classes far apart, and classes of very different size. Both solvers see the same examples; noise 0.1. `--others`
draws sets of another kind instead, on which no threshold was chosen: overlapping classes of other shapes and seeds.
"""

import time
from itertools import product
from typing import Any

import numpy as np
from common import NOISE, Array, arguments, write

KINDS = ("overlapping", "apart", "skewed")
CLASSES = (2, 10, 100, 300, 1000)
DIMENSIONS, TEST = 60, 4000
OTHERS = ((0.7, 0.5, 0.6), (0.4, 0.8, 0.6), (1.5, 0.3, 1.0))  # gamma shapes of examples and centres, and floor


def draw(kind: str, classes: int, rows: int, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """Training examples and labels, test examples and labels."""
    shape, floor, few = {"overlapping": (0.7, 0.6, 0.5), "apart": (3.0, 0.05, 0.2), "skewed": (1.5, 0.4, 0.5)}[kind]
    centres = rng.gamma(few, 1.0, (classes, DIMENSIONS))
    chance = 1.0 / np.arange(1, classes + 1) if kind == "skewed" else np.ones(classes)

    def some(count: int, first: Array) -> tuple[Array, Array]:
        y = np.concatenate([first, rng.choice(classes, count - first.size, p=chance / chance.sum())])
        return rng.gamma(shape, 1.0, (count, DIMENSIONS)) * (centres[y] + floor), y

    return *some(rows, np.arange(classes)), *some(TEST, np.zeros(0, np.int64))


def draw_other(shapes: tuple[float, float, float], classes: int, rows: int, seed: int) -> tuple[Array, Array]:
    """Training examples and labels of overlapping classes of about equal size."""
    (shape, few, floor), rng = shapes, np.random.default_rng(seed)
    centres = rng.gamma(few, 1.0, (classes, DIMENSIONS))
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, rows - classes)])
    return rng.gamma(shape, 1.0, (rows, DIMENSIONS)) * (centres[y] + floor), y


def measure(solver: str, X: Array, y: Array, Z: Array, truth: Array) -> dict[str, Any]:
    from saccade import GPClassifier
    from saccade.scores.probability import expected_calibration_error

    start = time.process_time()
    model = GPClassifier(noise=NOISE, solver=solver, variance=None, random_state=0).fit(X, y)
    seconds = time.process_time() - start
    p = model.predict_proba(Z)
    share, error = model.leave_one_out_accuracy_
    return {
        "leave-one-out accuracy": share,
        "its error": error,
        "test accuracy": float((p.argmax(axis=1) == truth).mean()),
        "confidence": float(p.max(axis=1).mean()),
        "calibration error": expected_calibration_error(p, truth),
        "log loss": float(-np.log(np.maximum(p[np.arange(truth.size), truth], 1e-300)).mean()),
        "error of d": model.leave_one_out_error_,
        "seconds": seconds,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", nargs="*", type=int, default=[2500, 5000])
    parser.add_argument("--others", nargs="*", type=int, default=[])
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    for rows, classes, shapes, seed in product(options.others, (20, 80, 150), OTHERS, (11, 12)):
        X, y = draw_other(shapes, classes, rows, seed)
        for solver in ("cholesky", "cg"):
            found = measure(solver, X, y, X[:100], y[:100])
            results.append(
                {"shapes": shapes, "seed": seed, "rows": rows, "classes": classes, "solver": solver, **found}
            )
            print(shapes, seed, rows, classes, solver, {k: round(v, 4) for k, v in found.items()}, flush=True)
    for rows in [] if options.others else options.rows:
        for kind in KINDS:
            for classes in CLASSES:
                data = draw(kind, classes, rows, np.random.default_rng(0))
                for solver in ("cholesky", "cg"):
                    found = measure(solver, *data)
                    results.append({"kind": kind, "rows": rows, "classes": classes, "solver": solver, **found})
                    print(kind, rows, classes, solver, {k: round(v, 4) for k, v in found.items()}, flush=True)
    write(options.out, "many_classes", {"noise": NOISE, "fits": results}, quiet=True)


if __name__ == "__main__":
    main()
