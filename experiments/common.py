"""What the experiments on pictures share: two classifiers on one kernel matrix, the rate they are judged by, files."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from saccade._core.arrays import Array

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parent / "benchmarks")]  # for examples.demo and measure
NOISE = 0.1  # of the GP; the mean self-similarity of the training pictures is 1
C = 10.0  # of the SVM, on the same scale
NOISES = tuple(float(noise) for noise in np.geomspace(1e-3, 3.0, 15))  # among which leave-one-out chooses
COSTS = (1.0, 10.0, 100.0)  # values of C among which cross-validation chooses
FOLDS = 3


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """--cache and --out, as every experiment has them."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=None, help="a folder to keep features in between runs")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for results/ and figures/")
    return parser


def all_pictures(paths: list[Path], cache: Any) -> Any:
    """Every one of them: a picture that cannot be read would shift the labels."""
    from saccade.features import read_pictures

    pictures = read_pictures(paths, cache=cache)
    if pictures.skipped:
        raise SystemExit(f"{len(pictures.skipped)} pictures cannot be read, such as {pictures.skipped[0]}.")
    return pictures


def class_rate(
    truth: Array,  # (n,)
    answer: Array,  # (n,)
) -> float:
    """The mean over the classes of the share that is right: a large class counts no more than a small one."""
    return float(np.mean([(answer[truth == c] == c).mean() for c in np.unique(truth)]))


def kernel_matrices(
    train: Any,  # (n, d)
    test: Any,  # (t, d)
) -> tuple[Array, Array]:  # (n, n), (t, n)
    """HIK with scale="auto", settled on the training part."""
    from saccade.kernels import HIK

    kernel = HIK().resolved(train)
    return kernel(train), kernel(test, train)


def gp_answers(K: Array, K_test: Array, y: Array, noise: float = NOISE) -> Array:
    """One-against-rest label regression with dense algebra: the class with the largest mean."""
    from saccade.solvers.cholesky import factorise

    classes = np.unique(y)
    Y = np.where(y[:, None] == classes, 1.0, -1.0)
    alpha = factorise(K, np.full(len(y), noise)).solve(Y)
    return np.asarray(classes[(K_test @ alpha).argmax(axis=1)])


def learned_noise(
    K: Array,  # (n, n)
    y: Array,  # (n,)
) -> float:
    """The noise of NOISES with the best leave-one-out rate on the training pictures: of equals, the middle one.

    One eigendecomposition K = U diag(λ) Uᵀ serves all: α = K̃⁻¹Y, and y_i − α_i / (K̃⁻¹)_ii is the mean without i.
    """
    classes = np.unique(y)
    Y = np.where(y[:, None] == classes, 1.0, -1.0)
    eigenvalues, U = np.linalg.eigh(K)
    squares, projected = U**2, U.T @ Y
    rates = []
    for noise in NOISES:
        inverse = 1.0 / (np.maximum(eigenvalues, 0.0) + noise)
        left_out = Y - U @ (inverse[:, None] * projected) / (squares @ inverse)[:, None]
        rates.append(class_rate(y, classes[left_out.argmax(axis=1)]))
    best = np.flatnonzero(np.isclose(rates, max(rates), rtol=0, atol=1e-12))
    return NOISES[best[len(best) // 2]]


def svm_answers(K: Array, K_test: Array, y: Array) -> Array:
    """libsvm as it comes (one against one, by votes) with C = 10, on the same matrix."""
    from sklearn.svm import SVC

    return np.asarray(SVC(C=C, kernel="precomputed").fit(K, y).predict(K_test))


def svm_rest_answers(K: Array, K_test: Array, y: Array, cost: float) -> Array:
    """One SVM of libsvm for each class against the rest; the class with the largest decision value."""
    from sklearn.svm import SVC

    classes, K, K_test = np.unique(y), np.ascontiguousarray(K), np.ascontiguousarray(K_test)  # copied once, not by SVC
    values = [SVC(C=cost, kernel="precomputed").fit(K, y == c).decision_function(K_test) for c in classes]
    return np.asarray(classes[np.argmax(values, axis=0)])


def learned_cost(K: Array, y: Array) -> float:
    """C of COSTS with the best rate by stratified cross-validation on the training pictures: of equals, the least."""
    from sklearn.model_selection import StratifiedKFold

    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(K, y))

    def rate(cost: float) -> float:
        found = [svm_rest_answers(K[np.ix_(a, a)], K[np.ix_(b, a)], y[a], cost) for a, b in folds]
        return float(np.mean([class_rate(y[b], answer) for (_, b), answer in zip(folds, found, strict=True)]))

    return max(COSTS, key=rate)


def write(out: Path, name: str, record: dict[str, Any], quiet: bool = False) -> None:
    """The record, with the machine it was made on, to results/, and to the screen unless `quiet`."""
    from measure import write_json

    write_json(out / "results" / f"{name}.json", record)
    if not quiet:
        print(json.dumps({k: v for k, v in record.items() if k != "machine"}, indent=1, default=float))


def save_figure(figure: Any, out: Path, name: str, frame: bool = False) -> None:
    """To figures/, without the frame that plots have above and to the right unless it is wanted."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(frame)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "figures" / f"{name}.png", dpi=150)
    plots().close(figure)


def plots() -> Any:
    """pyplot, drawing to files."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def show_progress() -> Any:
    """Bars for whoever waits at a terminal."""
    from saccade.cli import console

    return console.progress()
