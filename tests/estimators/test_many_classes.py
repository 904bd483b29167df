"""Leave-one-out and probabilities are alike on both sides of the switch to conjugate gradients: 2 to 60 classes."""

from typing import Any

import numpy as np
import pytest

from saccade import GPClassifier
from saccade.scores.accuracy import left_out_accuracy
from saccade.scores.probability import expected_calibration_error

Array = np.ndarray[Any, np.dtype[Any]]
KINDS = {"overlapping": (0.7, 0.6, 0.5), "apart": (3.0, 0.05, 0.2), "skewed": (1.5, 0.4, 0.5)}


def draw(kind: str, classes: int, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    shape, floor, few = KINDS[kind]
    centres, chance = rng.gamma(few, 1.0, (classes, 60)), np.arange(1, classes + 1) ** -float(kind == "skewed")
    y = np.append(np.arange(classes), rng.choice(classes, n - classes, p=chance / chance.sum()))
    return rng.gamma(shape, 1.0, (n, 60)) * (centres[y] + floor), y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 10, 60])
def test_both_solvers_leave_out_alike(kind: str, classes: int) -> None:
    X, y = draw(kind, classes, 1800)
    X, y, Z, truth = X[:900], y[:900], X[900:], y[900:]
    exact, found = (GPClassifier(noise=0.1, solver=solver, variance=None).fit(X, y) for solver in ("cholesky", "cg"))
    (share, _), (said, error) = exact.leave_one_out_accuracy_, found.leave_one_out_accuracy_
    assert abs(said - share) <= error
    assert abs(said - (found.predict(Z) == truth).mean()) < 0.06
    p, q = exact.predict_proba(Z), found.predict_proba(Z)
    assert abs(q.max(axis=1).mean() - p.max(axis=1).mean()) < 0.01
    assert abs(expected_calibration_error(q, truth) - expected_calibration_error(p, truth)) < 0.01
    loss = [-np.log(r[np.arange(truth.size), truth]).mean() for r in (p, q)]
    assert abs(loss[1] - loss[0]) < 0.01


def test_the_accuracy_says_what_the_decisions_leave_open() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=4000)
    sure = np.where(y[:, None] == np.arange(5), 0.9, -0.9)
    assert left_out_accuracy(sure, y, 0.1) == (1.0, pytest.approx(1.0 / 4000, rel=0.01))
    true = np.where(y[:, None] == np.arange(5), -0.7, -0.75) + 0.1 * rng.standard_normal((4000, 5))
    labels = np.where(y[:, None] == np.arange(5), 1.0, -1.0)
    noisy = labels - (labels - true) * (1.0 + 0.05 * rng.standard_normal((4000, 1)))
    (share, alone), (said, error) = left_out_accuracy(true, y, 0.0), left_out_accuracy(noisy, y, 0.05)
    assert alone == pytest.approx(np.sqrt(share * (1.0 - share) / 4000), rel=0.01)
    assert error > 1.5 * alone
    assert 2.0 * alone < abs(said - share) < 2.0 * error
    half = np.where(np.arange(4000)[:, None] % 2, np.nan, true)
    assert left_out_accuracy(half, y, 0.0)[0] == left_out_accuracy(true[::2], y[::2], 0.0)[0]
