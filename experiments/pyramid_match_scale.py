"""The pyramid match at scale: a GP on all 9,144 pictures of Caltech-101, by the fast product and by the dense matrix.

    python experiments/pyramid_match_scale.py [--cache FOLDER]

Needs the pictures in SACCADE_DATA; RootSIFT, which the committed results were measured with. Every pyramid match is an
intersection of two vectors, so that K·v costs one pass over the vectors' non-zeros. All ways train 102 one-vs-all
classifiers on the same vectors with noise 0.1, and score the training pictures. Time and memory are those beyond the
vectors. Fast: conjugate gradients to a residual of 1e-4, scores by one more product. Dense: the matrix entry by entry,
Cholesky, solve. And a whole GPClassifier with 64 levels, its calibration and its tables included, which are what
predicts new pictures.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import NOISE, Array, all_pictures, arguments, plots, save_figure, show_progress, write

TOL = 1e-4


def vectors(cache: Any) -> tuple[Any, Array]:
    from sklearn.pipeline import make_pipeline

    from saccade.datasets.on_disk import caltech101
    from saccade.features import DenseSIFT, DescriptorPCA, PyramidHistogram

    paths, y = caltech101(background=True)
    pictures = all_pictures(paths, cache)
    chain = make_pipeline(
        DenseSIFT(root=True), DescriptorPCA(10, positions=True, cache=cache), PyramidHistogram(cache=cache)
    ).fit(pictures[::10])
    return chain.transform(pictures), y


def watched(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """The result, with the seconds and the gigabytes that it took at most."""
    import measure

    before = measure.resident_bytes()
    measure.reset_peak()
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    return result, {"seconds": seconds, "GB": (measure.resident_bytes(peak=True) - before) / 1e9}


def fast(X: Any, y: Array) -> tuple[Array, int]:
    """Scores of the training pictures, and the iterations they took."""
    from saccade.inference.solving.regression import precondition
    from saccade.kernels import HIK
    from saccade.solvers.cg import solve_cg

    K = HIK().gram(X)
    noise, Y = np.full((len(y), 1), NOISE), np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    M = precondition(K, noise[:, 0], Y.shape[1], np.random.default_rng(0))
    found = solve_cg(K, noise, Y, tol=TOL, precondition=M)
    return K.matmul(found.x), found.iterations


def dense(X: Any, y: Array) -> tuple[Array, Array]:
    """Scores of the training pictures, and left out one at a time: μ_i = y_i − α_i / [K̃⁻¹]_ii."""
    from saccade.kernels import HIK
    from saccade.solvers.cholesky import factorise

    classes = np.unique(y)
    Y = np.where(y[:, None] == classes, 1.0, -1.0)
    K = HIK().resolved(X)(X)
    factor = factorise(K, np.full(len(y), NOISE))
    alpha = factor.solve(Y)
    return K @ alpha, Y - alpha / factor.inverse_diagonal()[:, None]


def draw(record: dict[str, Any], out: Path) -> None:
    figure, panels = plots().subplots(1, 2, figsize=(7.5, 2.2), constrained_layout=True)
    for axes, key, unit in zip(panels, ("seconds", "GB"), ("seconds to train", "GB beyond the vectors"), strict=True):
        values = [record["fast"][key], record["dense"][key]]
        bars = axes.barh(["fast product", "dense matrix"], values, color=["#0b6e4f", "#d97706"])
        axes.bar_label(bars, [f"{value:.3g}" for value in values], padding=3)
        axes.set(xlabel=unit, xlim=(0, 1.2 * max(values)))
        axes.invert_yaxis()
    figure.suptitle(f"GP on the pyramid match: {record['data']}", fontsize=10)
    save_figure(figure, out, "pyramid_match_scale")


def main() -> None:
    options = arguments(__doc__).parse_args()
    from saccade import GPClassifier

    with show_progress():
        X, y = vectors(options.cache)
        for levels in (None, 64):  # compile
            GPClassifier(noise=NOISE, levels=levels, solver="cg", random_state=0).fit(X[::40], y[::40]).predict(X[:9])
        (scores, iterations), quick = watched(lambda: fast(X, y))
        model, whole = watched(lambda: GPClassifier(noise=NOISE, levels=64, random_state=0).fit(X, y))
        answer, walk = watched(lambda: model.predict(X))
        (truth, left_out), slow = watched(lambda: dense(X, y))
    classes = np.unique(y)
    record = {
        "data": f"Caltech-101 with background, {X.shape[0]:,} pictures, {len(classes)} classes",
        "vectors": {"dimensions": X.shape[1], "non-zeros a picture": X.nnz / X.shape[0]},
        "fast": {**quick, "iterations": iterations},
        "dense": slow,
        "ratio": {key: slow[key] / quick[key] if quick[key] else None for key in quick},
        "GPClassifier, 64 levels": {
            **whole,
            "µs to predict a picture": walk["seconds"] / len(y) * 1e6,
            "same answers": float((answer == classes[truth.argmax(axis=1)]).mean()),
        },
        "largest difference of scores": float(np.abs(scores - truth).max()),
        "largest score": float(np.abs(truth).max()),
        "same answers": float((scores.argmax(axis=1) == truth.argmax(axis=1)).mean()),
        "leave-one-out rate": {
            "GPClassifier, 64 levels": float((classes[model.leave_one_out_decision_.argmax(axis=1)] == y).mean()),
            "dense": float((classes[left_out.argmax(axis=1)] == y).mean()),
        },
    }
    write(options.out, "pyramid_match_scale", record)
    draw(record, options.out)


if __name__ == "__main__":
    main()
