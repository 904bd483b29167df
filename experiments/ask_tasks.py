"""The tasks of the experiments on asking: a pool to ask about and a separate test part, drawn anew for every seed.

All rows come from the reporting half of a collection (ask_data.py). A draw depends on the task and the seed alone, so
that every strategy sees the same pools. Kernel values k(x, z) = Σ_d min(x_d, z_d) are computed once per collection.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ask_data import Collection, reporting
from common import Array, class_rate

MOST_OF_A_CLASS = 80  # pictures of a class of Caltech-101, as in the sketch of the issue
POOL, TEST = 1000, 1000


class Spec(NamedTuple):
    """How the rows of a task are drawn."""

    source: str  # a collection of ask_data.py
    classes: int | None = None  # that many classes at random for each seed; None: all
    binary: str | None = None  # this class against the others, or "A/B": one class against another
    pool: float = POOL  # rows; below 1: that share of what there is
    test: int = TEST  # at most
    batch: int = 25
    budget: int = 300  # labels
    by_class: bool = False  # judged by the mean rate of the classes, not by the share of all rows


class Task(NamedTuple):
    """A pool without labels, what an expert would say, and where the model is judged."""

    X: Array  # (n, d)
    y: Array  # (n,) class numbers
    K: Array  # (n, n), scale 1
    X_test: Array  # (t, d)
    K_test: Array  # (t, n)
    y_test: Array  # (t,)
    rate: Callable[[Array, Array], float]  # of (truth, answers)


SPECS = {
    "Caltech-101, 25 classes": Spec("caltech-101", classes=25, pool=0.6),
    "15-Scenes": Spec("15-scenes"),
    "Fashion-MNIST": Spec("fashion-mnist"),
    "CIFAR-10": Spec("cifar-10"),
    "Caltech-101, all": Spec("caltech-101", pool=2000, test=2000),
    "digits": Spec("digits", pool=600, budget=200),
    "Fashion-MNIST, pixels": Spec("fashion-mnist-pixels"),
    "wine": Spec("wine", pool=0.66, batch=5, budget=40),
    "breast cancer": Spec("breast-cancer", pool=0.66, batch=10, budget=100),
    "CIFAR-10, cat or dog": Spec("cifar-10", binary="cat/dog", pool=600, test=400, batch=10, budget=200),
    "CIFAR-10, 2,200": Spec("cifar-10-few", pool=0.6),
    "penbased": Spec("keel-penbased"),
    "satimage": Spec("keel-satimage"),
    "texture": Spec("keel-texture"),
    "vehicle": Spec("keel-vehicle", pool=0.6, budget=200),
    "15-Scenes, one of 15 (unbalanced)": Spec("15-scenes", binary="*", batch=10, budget=200, by_class=True),
}


def accuracy(truth: Array, answer: Array) -> float:
    return float((truth == answer).mean())


class Source:
    """A reporting half with its kernel matrix, from which tasks are drawn."""

    def __init__(self, name: str, data: Path | None, cache: Path | None) -> None:
        self.rows: Collection = reporting(name, data, cache)
        self.K = similarities(self.rows.X, None if cache is None else cache / f"ask_{name}_kernel.npy")

    def draw(self, spec: Spec, seed: int) -> Task:
        """The task of a seed."""
        rng = np.random.default_rng([12, seed])
        rows, y = _chosen(self.rows, spec, seed, rng)
        size = int(spec.pool if spec.pool >= 1 else spec.pool * len(rows))
        order = rng.permutation(len(rows))
        pool, test = (rows[some] for some in (order[:size], order[size : size + spec.test]))
        labels = [y[some] for some in (order[:size], order[size : size + spec.test])]
        blocks = [self.K[np.ix_(some, pool)] for some in (pool, test)]
        rate = class_rate if spec.by_class else accuracy
        return Task(self.rows.X[pool], labels[0], blocks[0], self.rows.X[test], blocks[1], labels[1], rate)


def _chosen(found: Collection, spec: Spec, seed: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Row numbers and labels of the classes of a task."""
    y = found.y
    if spec.binary == "*":  # each class in turn against all others
        return np.arange(len(y)), (y == seed % len(found.names)).astype(int)
    if spec.binary is not None:
        one, other = (found.names.index(name) for name in spec.binary.split("/"))
        rows = np.flatnonzero((y == one) | (y == other))
        return rows, (y[rows] == one).astype(int)
    if spec.classes is None:
        return np.arange(len(y)), y
    chosen = rng.choice(len(found.names), min(spec.classes, len(found.names)), replace=False)
    members = [rng.permutation(np.flatnonzero(y == label))[:MOST_OF_A_CLASS] for label in chosen]
    rows = np.concatenate(members)
    return rows, np.repeat(np.arange(len(chosen)), [len(some) for some in members])


def similarities(
    X: Any,  # (n, d)
    kept: Path | None,
) -> Array:  # (n, n)
    """Σ_d min(x_d, z_d) for all pairs; kept as a file, as a minute of work for 5,000 rows."""
    from saccade.kernels import HIK

    if kept is not None and kept.is_file():
        return np.asarray(np.load(kept, mmap_mode="r"))
    K = HIK(scale=1.0)(X)
    if kept is not None:
        np.save(kept, K)
    return K
