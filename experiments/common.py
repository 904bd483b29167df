"""What the experiments on pictures share: two classifiers on one kernel matrix, the rate they are judged by, files."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
NOISE = 0.1  # of the GP; the mean self-similarity of the training pictures is 1
C = 10.0  # of the SVM, on the same scale
Array = np.ndarray[Any, np.dtype[Any]]


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

    kernel = HIK().fit(train)
    return kernel(train), kernel(test, train)


def gp_answers(K: Array, K_test: Array, y: Array) -> Array:
    """One-vs-all label regression with dense algebra: the class with the largest mean."""
    from saccade.solvers.cholesky import factorise

    classes = np.unique(y)
    Y = np.where(y[:, None] == classes, 1.0, -1.0)
    alpha = factorise(K, np.full(len(y), NOISE)).solve(Y)
    return np.asarray(classes[(K_test @ alpha).argmax(axis=1)])


def svm_answers(K: Array, K_test: Array, y: Array) -> Array:
    """libsvm (one-vs-one) on the same matrix."""
    from sklearn.svm import SVC

    return np.asarray(SVC(C=C, kernel="precomputed").fit(K, y).predict(K_test))


def write(out: Path, name: str, record: dict[str, Any], quiet: bool = False) -> None:
    """The record, with the machine it was made on, to results/, and to the screen unless `quiet`."""
    from saccade.cli.measure import write_json

    write_json(out / "results" / f"{name}.json", record)
    if not quiet:
        print(json.dumps({k: v for k, v in record.items() if k != "machine"}, indent=1, default=float))


def save_figure(figure: Any, out: Path, name: str) -> None:
    """To figures/, without the frame that plots have above and to the right."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "figures" / f"{name}.png", dpi=150)


def plots() -> Any:
    """pyplot, drawing to files."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def show_progress() -> Any:
    """Bars for whoever waits at a terminal."""
    from saccade.cli import say

    return say.progress()
