"""Simulated campaigns of experiments/ask_stop.py: the collections, the model, the rounds of questions."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import Array
from scipy.linalg import solve_triangular

from saccade.active.stopping import Audit, reserve

NOISE, BATCH, START = 0.1, 10, 20
MOST = 800  # questions in a campaign
MADE_UP, CLASSES, BINS = 2500, 8, 40
SETTLED = 0.01  # share of guesses that change in a round, the mean of the last three
TARGETS = (0.8, 0.85, 0.9, 0.95)
HONEST = {"one in ten": 0.1, "three in ten": 0.3, "late": 0.3}  # and the share of the pool that is set apart


class Round(NamedTuple):
    """What is known after a round of questions, and the truth."""

    asked: int
    audited: int
    right: int  # of the audited
    own: tuple[int, int]  # right guesses at the rows it was trained on, each left out once; how many there are
    truth: float
    look: tuple[float, float] | None  # interval, if there was a look in this round
    all_labels: (
        float | None
    )  # true accuracy if it were trained on the audited rows too, where a target is first reached


class Posterior:
    """Label regression that grows by rows: V = L⁻¹K(labelled, all), so a new row costs a product with V."""

    def __init__(self, K: Array, Y: Array) -> None:
        self.K, self.Y, self.mean = K, Y, np.zeros_like(Y)
        self.variance, self.rows = K.diagonal().copy(), np.zeros(0, np.int64)
        self.space = np.empty((min(MOST, len(K)), len(K)), K.dtype)  # V is its beginning

    def told(self, rows: Array) -> tuple[Array, Array]:
        """The means after these labels as well, and the new rows of V."""
        V = self.space[: len(self.rows)]
        W = self.K[rows] - V[:, rows].T @ V
        L = np.linalg.cholesky(W[:, rows] + NOISE * np.eye(len(rows), dtype=W.dtype))
        W = solve_triangular(L, W, lower=True)
        z = solve_triangular(L, self.Y[rows] - self.mean[rows], lower=True)
        return self.mean + W.T @ z, W

    def tell(self, rows: Array) -> None:
        self.mean, W = self.told(rows)
        self.space[len(self.rows) : len(self.rows) + len(rows)] = W
        self.rows = np.concatenate([self.rows, rows])
        self.variance = self.variance - np.square(W).sum(axis=0)

    def left_out(self) -> Array:
        """Guesses at the labelled rows, each left out once: y − (y − μ) / (1 − σ²/noise) is the mean without it."""
        Y, kept = self.Y[self.rows], 1.0 - self.variance[self.rows] / NOISE
        return np.asarray((Y - (Y - self.mean[self.rows]) / kept[:, None]).argmax(axis=1))


def campaign(K: Array, y: Array, pool: int, way: str, rng: np.random.Generator) -> Iterator[Round]:
    """Rounds of questions about the first `pool` rows; the others tell the truth."""
    posterior = Posterior(K, np.where(y[:, None] == np.unique(y), 1, -1).astype(K.dtype))
    rate = {"none": 0.0, "leftover": 0.3, "late": 0.5}.get(way, HONEST.get(way, 0.0))
    apart = np.zeros(0, np.int64) if way in ("none", "leftover") else reserve(np.arange(pool), HONEST[way], rng)
    audit = Audit(np.arange(round(rate * pool)) if way == "leftover" else apart, rate)
    free = np.ones(pool, bool)
    free[apart] = False
    asked, first_audit, audited = 0, MOST if way == "late" else 0, np.zeros(0, np.int64)
    guesses, changes, reached = np.zeros(len(y), np.int64), [1.0], 0
    while asked < MOST and free.sum() >= BATCH:
        batch = START if asked == 0 else BATCH
        due = audit.due(asked - first_audit, batch, len(audited)) if asked >= first_audit else 0
        if way == "leftover":
            new = rng.choice(np.flatnonzero(free), due, replace=False)
            free[new] = False
        else:
            new = audit.next_rows(due, audited)
        two = np.partition(posterior.mean[:pool], -2, axis=1)[:, -2:]
        doubt = np.where(free, two[:, 0] - two[:, 1], -np.inf) + 1e-6 * rng.random(pool)
        chosen = np.argsort(-doubt)[: batch - len(new)]
        free[chosen] = False
        posterior.tell(chosen)
        asked, audited = asked + batch, np.concatenate([audited, new])
        before, guesses = guesses, posterior.mean.argmax(axis=1)
        changes.append(float((before[:pool] != guesses[:pool])[free].mean()) if free.any() else 0.0)
        if first_audit == MOST and len(changes) > 3 and np.mean(changes[-3:]) <= SETTLED:
            first_audit = asked  # decided by guesses alone, never by an answer to an audit
        right, own = guesses[audited] == y[audited], posterior.left_out() == y[posterior.rows]
        looked, every = audit.looked(right, asked - len(audited)), None
        look = None if looked is audit else (looked.looks[-1].low, looked.looks[-1].high)
        passed = [target for target in TARGETS if look is not None and look[0] >= target]
        if len(passed) > reached:
            reached = len(passed)
            every = float((posterior.told(audited)[0][pool:].argmax(axis=1) == y[pool:]).mean())
        audit, truth = looked, float((guesses[pool:] == y[pool:]).mean())
        yield Round(asked, len(audited), int(right.sum()), (int(own.sum()), len(own)), truth, look, every)


def scaled(X: Array) -> Array:
    """Columns to 0…1, beside 1 − x: an example is as similar to itself as any other, k(x, x) = 1."""
    X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-12)
    return np.hstack([X, 1.0 - X]) / X.shape[1]


def collections(cache: Path | None) -> dict[str, Callable[[], tuple[Array, Array, int]]]:
    """Features, classes, rows of the pool."""
    from sklearn.datasets import load_breast_cancer, load_digits

    def scenes() -> tuple[Array, Array, int]:
        from common import all_pictures

        from saccade.datasets.on_disk import scenes15
        from saccade.features import DeepFeatures

        (train, y), (test, z) = scenes15("train"), scenes15("test")
        X = DeepFeatures(cache=cache).fit_transform(all_pictures([*train, *test], cache))
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        return X / X.sum(axis=1, keepdims=True), np.unique([*y, *z], return_inverse=True)[1], 1500

    def made_up() -> tuple[Array, Array, int]:
        rng = np.random.default_rng(12)
        y = rng.integers(CLASSES, size=MADE_UP)
        centres = rng.dirichlet(np.ones(BINS), size=CLASSES)
        return np.array([rng.dirichlet(15 * centres[c] + 0.1) for c in y]), y, 1500

    def digits() -> tuple[Array, Array, int]:
        X, y = load_digits(return_X_y=True)
        return scaled(X), y, 898

    def cancer() -> tuple[Array, Array, int]:
        X, y = load_breast_cancer(return_X_y=True)
        return scaled(X), y, 284

    return {"digits": digits, "breast cancer": cancer, "15-Scenes, deep": scenes, "made up": made_up}
