"""A campaign of questions: ask, get labels, learn, judge; and the model by dense algebra, which makes it quick.

The model is GPClassifier as it comes, without its variance: HIK with scale "auto", noise 0.1. `DenseGP` is the same
model from kernel values that were computed once (tests/experiments/test_asking.py compares the two).
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from ask_tasks import Task
from common import NOISE, Array

Asker = Callable[[Task, Array, int, int], Any]  # (task, labelled rows, batch, seed) to the rows to ask about
Judge = Callable[[Task, Array], float]  # (task, labelled rows) to the rate on the test part


class DenseGP:
    """GPClassifier(variance=None) on some rows of a task; with one class so far, the answer is that class."""

    def __init__(
        self,
        K: Array,  # (n, n), scale 1
        y: Array,  # (n,)
    ) -> None:
        self.classes, self.label = np.unique(y, return_inverse=True)
        self.scale = 1.0 / float(np.mean(np.diagonal(K)))
        if len(self.classes) == 1:
            return
        Y = np.where(self.label[:, None] == np.arange(len(self.classes)), 1.0, -1.0)
        Y = Y[:, 1:] if len(self.classes) == 2 else Y
        inverse = np.linalg.inv(self.scale * K + NOISE * np.eye(len(y)))
        self.alpha = inverse @ Y
        self.left_out = Y - self.alpha / np.diagonal(inverse)[:, None]

    @cached_property
    def sharpness(self) -> float:
        from saccade.scores.probability import fit_sharpness

        return fit_sharpness(self.left_out, self.label)

    def probabilities(
        self,
        k_star: Array,  # (t, n), scale 1
    ) -> Array:  # (t, M)
        from saccade.scores.probability import probabilities

        if len(self.classes) == 1:
            return np.ones((len(k_star), 1))
        return probabilities(self.scale * k_star @ self.alpha, self.sharpness)

    def predict(self, k_star: Array) -> Array:
        from saccade.scores.probability import class_means

        if len(self.classes) == 1:
            return np.full(len(k_star), self.classes[0])
        return np.asarray(self.classes[class_means(k_star @ self.alpha).argmax(axis=1)])


def learned(task: Task, labelled: Array) -> DenseGP:
    return DenseGP(task.K[np.ix_(labelled, labelled)], task.y[labelled])


def judge(task: Task, labelled: Array) -> float:
    """The rate on the test part of the model that knows the labels of these rows."""
    return task.rate(task.y_test, learned(task, labelled).predict(task.K_test[:, labelled]))


def judge_logistic(task: Task, labelled: Array) -> float:
    """The same for logistic regression."""
    if len(np.unique(task.y[labelled])) == 1:
        return task.rate(task.y_test, np.full(len(task.y_test), task.y[labelled][0]))
    return task.rate(task.y_test, logistic().fit(task.X[labelled], task.y[labelled]).predict(task.X_test))


def logistic() -> Any:
    """Rows of length 1 and C = 100: on the development halves good on all collections; plain rows fail on words."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    return make_pipeline(Normalizer(), LogisticRegression(C=100.0, max_iter=1000))


def campaign(task: Task, ask: Asker, budget: int, batch: int, seed: int) -> Array:  # rows in the order of asking
    """Whole batches of questions from no label on, until the budget is spent or the pool is."""
    labelled = np.zeros(0, int)
    for _ in range(min(budget, len(task.y)) // batch):
        asked = np.asarray(ask(task, labelled, batch, seed), int)
        fresh = np.setdiff1d(asked, labelled)
        if len(asked) != batch or len(fresh) != batch:
            raise RuntimeError(f"Asked for {batch} new rows, got {len(asked)}, of which {len(fresh)} are new.")
        labelled = np.concatenate([labelled, asked])
    return labelled


def curve(task: Task, order: Array, batch: int, judge: Judge) -> list[float]:
    """The rate after each batch."""
    return [judge(task, order[:end]) for end in range(batch, len(order) + 1, batch)]


def first_batch(task: Task, batch: int, seed: int) -> Array:
    """What strategies that need a model begin with: the same random rows for all of them."""
    return np.random.default_rng([7, seed]).choice(len(task.y), batch, replace=False)


def labels_to(
    rates: Array,  # (rounds,) after each batch
    batch: int,
    goal: float,
) -> float:
    """Labels until the goal is reached, between two rounds by a straight line; infinite if it is not reached."""
    reached = np.flatnonzero(np.asarray(rates) >= goal)
    if not len(reached):
        return float("inf")
    k = int(reached[0])
    if k == 0:
        return float(batch)
    share = (goal - rates[k - 1]) / (rates[k] - rates[k - 1])
    return float(batch * (k + share))
