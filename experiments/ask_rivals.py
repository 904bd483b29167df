"""Other ways of asking, beside `saccade.active`: random, margin, and five strategies of the package scikit-activeml.

TypiClust, MaxHerding, CoreSet and DropQuery are classes of scikit-activeml. The first three look at rows of length 1:
on the development half of 15-Scenes CoreSet knows 54 instead of 43 % after 25 labels; for TypiClust, over four
development halves, it makes no difference beyond chance.
BADGE in the package takes seconds per batch, as it forms a matrix of classes × columns; `badge` below draws the same
rows from inner products (tests/experiments/test_asking.py compares its choices with the package's).
"""

from typing import Any

import numpy as np
from ask_campaign import DenseGP, first_batch, learned, logistic
from ask_tasks import Task
from common import Array

NORMALISED = True  # rows of length 1 for TypiClust and CoreSet


def random(task: Task, labelled: Array, batch: int, seed: int) -> Array:
    if not len(labelled):
        return first_batch(task, batch, seed)
    rng = np.random.default_rng([seed, len(labelled)])
    return rng.choice(left(task, labelled), batch, replace=False)


def margin(task: Task, labelled: Array, batch: int, seed: int) -> Array:
    """The smallest distance between the two largest class probabilities, without regard to the batch."""
    if not len(labelled):
        return first_batch(task, batch, seed)
    rest = left(task, labelled)
    p = np.sort(learned(task, labelled).probabilities(task.K[np.ix_(rest, labelled)]), axis=1)
    if p.shape[1] == 1:
        return random(task, labelled, batch, seed)
    return np.asarray(rest[np.argsort(p[:, -1] - p[:, -2], kind="stable")[:batch]])


def badge(task: Task, labelled: Array, batch: int, seed: int) -> Array:
    """BADGE (Ash et al. 2020) with the probabilities of our model."""
    if not len(labelled):
        return first_batch(task, batch, seed)
    rest = left(task, labelled)
    model: DenseGP = learned(task, labelled)
    p = np.zeros((len(rest), int(task.y.max()) + 1))
    p[:, model.classes] = model.probabilities(task.K[np.ix_(rest, labelled)])
    return np.asarray(rest[gradient_seeds(p, task.X[rest], batch, np.random.RandomState(seed))])


def gradient_seeds(
    p: Array,  # (n, M)
    X: Array,  # (n, d)
    batch: int,
    rng: np.random.RandomState,
) -> list[int]:
    """k-means++ seeds among the gradients g_i = (p_i − e_i) ⊗ x_i, as the package draws them.

    ⟨g_i, g_j⟩ = ⟨p_i − e_i, p_j − e_j⟩ ⟨x_i, x_j⟩, so the gradients need not be formed.
    """
    A, X = p - np.eye(p.shape[1])[p.argmax(axis=1)], X.astype(float)
    norms = (A**2).sum(axis=1) * (X**2).sum(axis=1)
    chosen, nearest = [int(norms.argmax())], norms
    while len(chosen) < batch:
        j = chosen[-1]
        nearest = np.minimum(nearest, np.maximum(norms + norms[j] - 2.0 * (A @ A[j]) * (X @ X[j]), 0.0))
        nearest[chosen] = 0.0
        weights = nearest if nearest.sum() > 0 else np.isin(np.arange(len(X)), chosen, invert=True).astype(float)
        chosen.append(int(rng.choice(len(X), 1, replace=False, p=weights / weights.sum())[0]))
    return chosen


def badge_logistic(task: Task, labelled: Array, batch: int, seed: int) -> Array:
    """BADGE with logistic regression, which is nearer to its authors' network."""
    if not len(labelled) or len(np.unique(task.y[labelled])) == 1:
        return random(task, labelled, batch, seed)
    rest, model = left(task, labelled), logistic().fit(task.X[labelled], task.y[labelled])
    p = np.zeros((len(rest), int(task.y.max()) + 1))
    p[:, model.classes_] = model.predict_proba(task.X[rest])
    return np.asarray(rest[gradient_seeds(p, task.X[rest], batch, np.random.RandomState(seed))])


def typiclust(task: Task, labelled: Array, batch: int, seed: int) -> Array:
    """TypiClust (Hacohen et al. 2022): the most typical row of each large cluster without a label."""
    from skactiveml.pool import TypiClust

    return np.asarray(TypiClust(random_state=seed).query(rows(task), answers(task, labelled), batch_size=batch))


def maxherding(task: Task, labelled: Array, batch: int, seed: int) -> Array:
    """MaxHerding (Bae et al. 2024): greedy coverage by a Gaussian kernel."""
    from skactiveml.pool import MaxHerding

    return np.asarray(
        MaxHerding(metric_dict={"gamma": 1.0}, random_state=seed).query(
            rows(task), answers(task, labelled), batch_size=batch
        )
    )


def coreset(task: Task, labelled: Array, batch: int, seed: int) -> Array:
    """CoreSet (Sener and Savarese 2018): the row furthest from all labelled ones, again and again."""
    from skactiveml.pool import CoreSet

    return np.asarray(CoreSet(random_state=seed).query(rows(task), answers(task, labelled), batch_size=batch))


def dropquery(task: Task, labelled: Array, batch: int, seed: int) -> Array:
    """DropQuery (Gupte et al. 2024) with our classifier: rows whose class changes when columns are dropped."""
    from saccade import GPClassifier

    return _dropquery(task, labelled, batch, seed, GPClassifier(variance=None, random_state=0))


def dropquery_logistic(task: Task, labelled: Array, batch: int, seed: int) -> Array:
    return _dropquery(task, labelled, batch, seed, logistic())


def _dropquery(task: Task, labelled: Array, batch: int, seed: int, model: Any) -> Array:
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import DropQuery

    if not len(labelled) or len(np.unique(task.y[labelled])) == 1:
        return random(task, labelled, batch, seed)
    clf = SklearnClassifier(model, classes=np.unique(task.y), missing_label=np.nan)
    strategy = DropQuery(random_state=seed, cluster_algo_dict={"random_state": seed})
    return np.asarray(strategy.query(task.X, answers(task, labelled), clf=clf, batch_size=batch))


def rows(task: Task) -> Array:
    if not NORMALISED:
        return task.X
    return np.asarray(task.X / np.maximum(np.linalg.norm(task.X, axis=1, keepdims=True), 1e-12))


def answers(task: Task, labelled: Array) -> Array:
    """The labels so far, NaN for the others."""
    y = np.full(len(task.y), np.nan)
    y[labelled] = task.y[labelled]
    return y


def left(task: Task, labelled: Array) -> Array:
    return np.setdiff1d(np.arange(len(task.y)), labelled)
