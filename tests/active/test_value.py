"""The value of a label: against a model that is fitted again for every answer, with losses and costs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saccade import GPClassifier
from saccade._core.errors import InvalidParameter
from saccade.active import ActiveLearner, query
from saccade.active.losses import loss_matrix
from saccade.kernels import HIK
from saccade.scores.probability import probabilities
from saccade.scores.value import expected_loss
from tests.active.test_learner import DIGITS, TRUTH, assert_same
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
three = TRUTH < 3
X, y = DIGITS[three][:60], TRUTH[three][:60]
NOISE = 0.1
LOSSES = {(0, 1): 5.0, (1, 0): 0.2, (2, 0): 3.0}  # (said, true)
L = np.array([[0.0, 5.0, 1.0], [0.2, 0.0, 1.0], [3.0, 1.0, 0.0]])


def known(count: int = 12) -> Array:
    labels = np.full(y.size, np.nan)
    labels[:count] = y[:count]
    return labels


def means(rows: Array, labels: Array) -> Array:
    """Of all rows, by one solve."""
    K = HIK().resolved(X)(X)
    Y = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    return K[:, rows] @ np.linalg.solve(K[np.ix_(rows, rows)] + NOISE * np.eye(rows.size), Y)


def refitted(losses: Array) -> Array:
    """For each row without a label: the loss of the best decisions at all rows now, less that after its answer."""
    rows = np.arange(12)
    model = GPClassifier(HIK().resolved(X), noise=NOISE).fit(X[rows], y[rows])
    mean, p = means(rows, y[rows]), model.predict_proba(X)

    def loss(mean: Array) -> float:
        q = probabilities(mean.copy(), model.sharpness_)
        return float(sum(min(said @ one for said in losses) for one in q))

    found = []
    for i in range(12, y.size):
        after = [loss(means(np.append(rows, i), np.append(y[rows], answer))) for answer in range(3)]
        found.append(loss(mean) - p[i] @ after)
    return np.array(found)


@pytest.mark.parametrize("losses", [None, LOSSES], ids=["mistakes cost 1", "losses"])
def test_value_is_that_of_fitting_again_for_every_answer(losses: Any) -> None:
    model = GPClassifier(HIK().resolved(X), noise=NOISE)
    rows, scores = query(X, known(), model, strategy="value", return_utilities=True, losses=losses)
    expected = refitted(1.0 - np.eye(3) if losses is None else L)
    assert_close(scores[0, 12:] / expected.max(), expected / expected.max(), np.float32)
    assert rows.tolist() == [12 + expected.argmax()]


def test_a_question_that_is_not_worth_its_cost_is_not_asked() -> None:
    model, expected = GPClassifier(HIK().resolved(X), noise=NOISE), refitted(L)
    costs = np.full(y.size, 0.5 * expected.max())
    dear = 12 + int(expected.argmax())
    costs[dear] = 1.01 * expected.max()
    rows, scores = query(X, known(), model, strategy="value", return_utilities=True, losses=LOSSES, costs=costs)
    worth = expected - costs[12:]
    assert np.isnan(scores[0, 12:][worth < -1e-9]).all()
    assert_close(scores[0, 12:][worth > 1e-9], (worth / costs[12:])[worth > 1e-9], np.float32)
    assert rows[0] != dear
    assert query(X, known(), model, strategy="value", losses=LOSSES, costs=costs * 3, batch_size=4).size == 0


def test_losses_decide_what_is_said() -> None:
    p = np.array([[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]])
    every = p @ L.T
    assert_close(expected_loss(p, L), every.min(axis=1))
    assert every.argmin(axis=1).tolist() == [1, 2]  # the likelier class costs more where it is wrong
    np.testing.assert_array_equal(loss_matrix(LOSSES, np.arange(3)), L)


def test_a_campaign_ends_when_no_question_is_worth_its_cost(tmp_path: Path) -> None:
    learner = ActiveLearner(X, strategy="value", losses=LOSSES, costs=np.full(y.size, 0.4), audit=0.0)
    for _ in range(12):
        rows = learner.ask(5)
        if not rows.size:
            break
        learner.tell(rows, y[rows])
    assert not rows.size
    assert 5 < len(learner.labels) < 50
    assert learner.model.score(X, y) > 0.9
    learner.save(tmp_path / "c.saccade")
    again = ActiveLearner.load(tmp_path / "c.saccade", X)
    assert again.losses == LOSSES
    assert_same(again, learner)


@pytest.mark.parametrize("losses", [L, {0: 1.0}, {(0, 1): -1.0}, {(0, 1): np.inf}, {(0, 1, 2): 1.0}, 5.0])
def test_losses_must_be_costs_of_pairs(losses: Any) -> None:
    with pytest.raises(InvalidParameter, match="`losses` must give a cost from 0 on for pairs"):
        query(X, known(), strategy="value", losses=losses)


def test_losses_are_for_one_strategy() -> None:
    with pytest.raises(InvalidParameter, match='`losses` is for strategy="value"'):
        ActiveLearner(X, losses=LOSSES)
