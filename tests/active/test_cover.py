"""Greedy k-medoids weighted by doubt: against nine lines of dense algebra, and on a sample of a large pool."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from saccade import GPClassifier
from saccade._core import limits
from saccade.active import ActiveLearner, query
from saccade.active.cover import Cover, Gains
from saccade.inference.posterior.pool import PoolPosterior
from saccade.kernels import HIK, RBF, Kernel
from saccade.kernels.gram import Gram
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
DIGITS, TRUTH = load_digits(return_X_y=True)
X, y = DIGITS[:150], TRUTH[:150]
NOISE = 0.1


def dense_distances(K: Array, targets: Array) -> Array:
    """(n, t): centred at the mean of the targets, with the noise beside the diagonal."""
    shared, total = K[:, targets].mean(axis=1), K[np.ix_(targets, targets)].mean()
    centred = K - shared[:, None] - shared + total
    root = np.sqrt(centred.diagonal() + NOISE)
    return (2.0 - 2.0 * centred / np.outer(root, root))[:, targets]


def dense_choice(D: Array, labelled: list[int], candidates: Array, doubt: Array, count: int) -> list[int]:
    nearest = D[labelled].min(axis=0, initial=2.0)
    chosen: list[int] = []
    for _ in range(count):
        gain = np.maximum(nearest - D, 0.0) @ doubt
        gain[np.setdiff1d(np.arange(len(D)), candidates)] = gain[chosen] = -1.0
        chosen.append(int(gain.argmax()))
        nearest = np.minimum(nearest, D[chosen[-1]])
    return chosen


def doubt_of(kernel: Kernel, labelled: list[int]) -> Array:
    if len(set(y[labelled])) < 2:
        return np.ones(150)
    p = np.sort(GPClassifier(kernel, noise=NOISE).fit(X[labelled], y[labelled]).predict_proba(X), axis=1)
    return 1.0 - (p[:, -1] - p[:, -2])


def partly(labelled: Any) -> Array:
    known = np.full(150, np.nan)
    known[labelled] = y[labelled]
    return known


@pytest.mark.parametrize("kernel", [HIK(), RBF(30.0)])
@pytest.mark.parametrize("held", [True, False], ids=["matrix held", "by products"])
def test_a_campaign_asks_what_dense_algebra_asks(kernel: Kernel, held: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """From no label over one class to many, new classes among them; the learner and `query` alike."""
    if not held:
        monkeypatch.setattr(limits, "POOL_DENSE_UP_TO", 10)
    kernel = kernel.resolved(X)
    D, every, labelled = dense_distances(kernel(X), np.arange(150)), np.arange(150), list[int]()
    learner = ActiveLearner(X, GPClassifier(kernel, noise=NOISE), strategy="medoids", audit=0.0)
    for size in (1, 1, 8, 8):
        expected = dense_choice(D, labelled, np.setdiff1d(every, labelled), doubt_of(kernel, labelled), size)
        assert learner.ask(size).tolist() == expected
        model = GPClassifier(kernel, noise=NOISE)
        assert query(X, partly(labelled), model, strategy="medoids", batch_size=size).tolist() == expected
        learner.tell(expected, y[expected])
        labelled += expected


def test_targets_and_candidates() -> None:
    K, targets, candidates = HIK().resolved(X)(X), np.arange(100, 150), np.arange(30, 120)
    labelled = [3, 7, 11, 105]
    D = dense_distances(K, targets)
    doubt = doubt_of(HIK().resolved(X), labelled)[targets]
    expected = dense_choice(D, labelled, np.setdiff1d(candidates, labelled), doubt, 5)
    open_ = np.setdiff1d(candidates, labelled)
    found = query(X, partly(labelled), strategy="medoids", candidates=open_, targets=targets, batch_size=5)
    assert found.tolist() == expected


def test_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = np.where(np.arange(150) % 2, 1.0, 1e6)
    rows = query(X, partly([0, 1, 2]), strategy="medoids", batch_size=5, costs=costs)
    assert (rows % 2 == 1).all()
    monkeypatch.setattr(limits, "BATCH_CANDIDATES", 10)  # a row that can be paid is looked at, if it is in no sample
    some = np.where(np.arange(150) % 30 == 7, 1.0, 1e6)  # cheap ones are drawn first
    assert (query(X, partly([0, 1, 2]), strategy="medoids", batch_size=2, costs=some) % 30 == 7).all()
    only = np.where(np.arange(150) == 77, 1.0, 1e6)
    assert query(X, partly([0, 1, 2]), strategy="medoids", batch_size=5, costs=only, budget=2.0).tolist() == [77]


def test_of_a_large_pool_a_sample_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows all the time: kernel values among them are found once. Where they are used up, others are drawn."""
    monkeypatch.setattr(limits, "BATCH_CANDIDATES", 40)
    between, sizes = Gram.between, list[int]()

    def counted(self: Gram, a: Array, b: Array) -> Array:
        sizes.append(a.size * b.size)
        return between(self, a, b)

    learner = ActiveLearner(X, GPClassifier(HIK(), noise=NOISE), strategy="medoids", audit=0.0)
    targets = learner.pool_model.cover.targets
    assert targets.size == np.unique(targets).size == 40
    monkeypatch.setattr(type(learner.field.gram), "between", counted)
    D, labelled = dense_distances(HIK().resolved(X)(X), targets), list[int]()
    for _ in range(5):
        doubt = doubt_of(HIK().resolved(X), labelled)[targets]
        expected = dense_choice(D, labelled, np.setdiff1d(targets, labelled), doubt, 5)
        assert learner.ask(5).tolist() == expected
        learner.tell(expected, y[expected])
        labelled += expected
    assert sizes == [40 * 40]
    assert np.unique(learner.ask(15)).size == 15  # three times as many as are left of the sample would be too few
    found = learner.ask(100)
    assert np.unique(found).size == 100
    assert not np.isin(found, labelled).any()


def test_distances_of_rows_that_are_no_targets() -> None:
    field = PoolPosterior.unobserved(HIK().resolved(X).gram(X), NOISE)
    targets = np.arange(0, 150, 3)
    found = Cover(field, targets).distances(np.arange(150))
    assert_close(found, dense_distances(HIK().resolved(X)(X), targets), np.float32)


def test_gains_after_each_choice_are_those_from_the_start() -> None:
    rng = np.random.default_rng(0)
    D, nearest, doubt = (rng.random(shape).astype(np.float32) for shape in ((30, 50), 50, 50))
    gains = Gains(2.0 * D, 2.0 * nearest, doubt)
    for j in (3, 29, 3, 0):
        gains.take(j)
        assert_close(gains.now, Gains(2.0 * D, gains.nearest, doubt).now, np.float32)
    assert gains.now[3] == pytest.approx(0.0, abs=1e-5)
    assert (gains.now >= 0.0).all()
