"""Votes of rows without labels: exact when left out, of use where they help, and of no effect where they do not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from saccade import GPClassifier
from saccade._core import limits
from saccade._core.arrays import Array
from saccade.estimators.calibration import Calibration
from saccade.estimators.neighbours import Neighbours
from saccade.estimators.targets import ClassTargets
from saccade.estimators.votes import VOTERS, WEIGHTS, Votes
from saccade.kernels import HIK, Linear
from saccade.scores.probability import class_means, cross_entropy, expected_calibration_error
from tests.tolerances import assert_close

POOL, LABELS = 700, 40


def digits(seed: int = 0) -> tuple[Array, Array]:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order] / 16.0, y[order]


def fits(seed: int = 0, labels: int = LABELS) -> tuple[GPClassifier, GPClassifier]:
    """Without and with the rows that have no label."""
    X, y = digits(seed)
    told = np.where(np.arange(POOL) < labels, y[:POOL], -1)
    return GPClassifier().fit(X[:labels], y[:labels]), GPClassifier(unlabelled=-1).fit(X[:POOL], told)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("weighed", [False, True])
def test_a_label_left_out_is_as_if_it_had_not_been_there(classes: int, weighed: bool) -> None:
    X, y = digits()
    some = np.flatnonzero(y < classes)[:200]
    X, y, count = X[some], y[some], 24
    weight = np.random.default_rng(0).uniform(0.5, 3.0, count) if weighed else None
    graph = Neighbours.of(HIK(scale=1.0), X[count:])
    reach, targets = graph.reach(X[:count]), ClassTargets(np.arange(classes), y[:count], weight)
    mean = np.random.default_rng(1).normal(
        size=(count, 1 if classes == 2 else classes)
    )  # of a process that knows nothing
    votes, calibration = Votes.of(graph, reach, targets, Calibration(1.0, mean, mean))
    assert votes.weight == max(WEIGHTS)
    assert calibration.decision is not None
    w = np.ones(count) if weight is None else weight
    for j in range(count):
        rest = np.delete(np.arange(count), j)
        found = graph.spread(reach[rest].T @ (w[rest, None] * np.eye(classes)[y[rest]]))
        without = Votes(graph, found, votes.kept, calibration, votes.weight, votes.scales)
        assert_close(without.decision(mean[[j]], reach[[j]])[0], calibration.decision[j], np.float32)


def test_a_row_that_no_label_reaches_has_no_opinion() -> None:
    X, y = digits()
    graph = Neighbours.of(HIK(scale=1.0), X[20:200])
    reach, mean = graph.reach(X[:20]), np.random.default_rng(0).normal(size=(20, 10))
    votes, _ = Votes.of(graph, reach, ClassTargets(np.arange(10), y[:20]), Calibration(1.0, mean, mean))
    assert votes.weight > 0
    own = votes.scales[0] * mean
    assert_close(votes.decision(mean, reach * 0.0), own)
    strong, weak = (np.abs(votes.decision(mean, reach * size) - own).max() for size in (1.0, 1e-6))
    assert weak < 0.01 * strong


def test_much_better_where_classes_lie_together() -> None:
    X, y = digits()
    alone, pooled = fits()
    assert pooled.score(X[POOL:], y[POOL:]) > alone.score(X[POOL:], y[POOL:]) + 0.05
    assert pooled.leave_one_out_accuracy_[0] > alone.leave_one_out_accuracy_[0]


def test_probabilities_are_calibrated_on_left_out_labels() -> None:
    X, y = digits()
    alone, pooled = fits(labels=100)
    found = [model.predict_proba(X[POOL:]) for model in (alone, pooled)]
    losses = [-np.log(p[np.arange(len(p)), y[POOL:]]).mean() for p in found]
    assert losses[1] < losses[0]
    assert expected_calibration_error(found[1], y[POOL:]) < 0.08
    assert_close(class_means(pooled.leave_one_out_decision_).shape, (100, 10))
    best = cross_entropy(pooled.leave_one_out_decision_, y[:100])[0]
    p = pooled.leave_one_out_proba_[np.arange(100), y[:100]]
    assert -np.log(p).mean() < best + 0.1  # `best` has the doubt of n + 2


def test_no_effect_where_neighbours_know_nothing() -> None:
    """Four heaps, and a class that depends on a small step within each of them."""
    rng = np.random.default_rng(0)
    heap = rng.integers(0, 4, 400)
    side = rng.integers(0, 2, 400)
    X = np.hstack([5.0 * np.eye(4)[heap] + 0.5 * rng.random((400, 4)), 0.3 * np.eye(2)[side]])
    told = np.where(np.arange(400) < 60, side, -1)
    noise = 1e-3
    alone = GPClassifier(Linear(), noise=noise).fit(X[:60], side[:60])
    pooled = GPClassifier(Linear(), noise=noise, unlabelled=-1).fit(X, told)
    assert alone.score(X, side) > 0.9
    assert pooled.votes_ is not None
    assert pooled.votes_.weight == 0
    np.testing.assert_array_equal(pooled.predict_proba(X), alone.predict_proba(X))


def test_votes_that_never_arrive_have_no_weight() -> None:
    """Labelled rows whose links lead nowhere: all are tied, and a tie is no success."""
    X, y = digits()
    graph = Neighbours.of(HIK(scale=1.0), X[40:200])
    mean = np.random.default_rng(0).normal(size=(30, 10))
    silent = graph.reach(X[:30]) * 0.0
    votes, calibration = Votes.of(graph, silent, ClassTargets(np.arange(10), y[:30]), Calibration(1.0, mean, mean))
    assert votes.weight == 0
    np.testing.assert_array_equal(calibration.decision, mean)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_class_that_nobody_labelled(seed: int) -> None:
    """Eights and nines are in the pool without a label: novelty stays, and confidence tells them apart no worse."""
    X, y = digits(seed)
    hidden, known = y >= 8, np.flatnonzero(y[:POOL] < 8)[:60]
    told = np.full(POOL, -1)
    told[known] = y[known]
    alone, pooled = GPClassifier().fit(X[known], y[known]), GPClassifier(unlabelled=-1).fit(X[:POOL], told)
    assert pooled.votes_ is not None
    assert pooled.votes_.weight > 0
    new = X[POOL:]
    assert_close(pooled.novelty(new), alone.novelty(new))
    doubt = [1.0 - model.predict_proba(new).max(axis=1) for model in (alone, pooled)]
    ours, theirs = (roc_auc_score(hidden[POOL:], values) for values in doubt[::-1])
    assert ours > theirs
    assert 1.0 - doubt[1][hidden[POOL:]].mean() < (1.0 - doubt[1][~hidden[POOL:]]).mean() - 0.2


def test_the_example_of_the_guide_runs() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text("utf-8")
    code = guide.split("## Few labels, many examples\n")[1].split("```python\n")[1].split("```")[0]
    X, y = digits()
    names: dict[str, Any] = {"X": X, "y": y}
    exec(compile(code, "guide.md", "exec"), names)
    assert names["model"].votes_.weight > 0


def test_fewer_voters_than_four_for_each_label() -> None:
    X, y = digits()
    for voters, votes_are in ((VOTERS * 20 - 1, False), (VOTERS * 20, True)):
        told = np.where(np.arange(20 + voters) < 20, y[: 20 + voters], -1)
        votes = GPClassifier(unlabelled=-1).fit(X[: 20 + voters], told).votes_
        assert (votes is not None) == votes_are


def test_more_labels_than_votes_are_counted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VOTING_LABELS", LABELS - 1)
    alone, pooled = fits()
    assert pooled.votes_ is None
    np.testing.assert_array_equal(pooled.predict_proba(digits()[0]), alone.predict_proba(digits()[0]))


@pytest.mark.parametrize(
    "options", [{"inference": "laplace"}, {"balanced": True}, {"levels": 8}, {"approximation": "sod"}]
)
def test_with_other_settings(options: dict[str, object]) -> None:
    X, y = digits()
    told = np.where(np.arange(POOL) < 60, y[:POOL], -1)
    alone = GPClassifier(**options).fit(X[:60], y[:60])  # type: ignore[arg-type]
    pooled = GPClassifier(**options, unlabelled=-1).fit(X[:POOL], told)  # type: ignore[arg-type]
    assert pooled.score(X[POOL:], y[POOL:]) > alone.score(X[POOL:], y[POOL:])
