"""What mistakes cost, and by how much a label is expected to lower that: pure functions.

Losses are (M, M): entry i, j is the cost of saying class i where it is class j.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from saccade._core.arrays import Array, PerRow
from saccade.scores.probability import probabilities

LABELS = 10  # of the likeliest ones of a question; a rarer answer hardly counts


@dataclass(frozen=True)
class Stakes:
    """What depends on the labels: the rows whose classes will be told by the model."""

    mean: Annotated[Array, "t, m"]  # their latent means
    sharpness: float  # that makes probabilities of means
    losses: Annotated[Array, "m, m"]
    each: float = 1.0  # rows that each of the t stands for
    cost: Annotated[Array, "s"] | None = None  # of the label of each candidate, in the units of the losses


def expected_loss(probability: Annotated[Array, "n, M"], losses: Annotated[Array, "M, M"]) -> PerRow:
    """The expected loss of the best decision, min_i Σ_j L_ij p_j.

    >>> expected_loss(np.array([[0.8, 0.2], [0.5, 0.5]]), np.array([[0.0, 10.0], [1.0, 0.0]]))
    array([0.8, 0.5])
    """
    return np.asarray((probability @ losses.T).min(axis=1))


def value(
    covariance: Annotated[Array, "s, t"],
    variance: PerRow,
    noise: float,
    mean: Annotated[Array, "s, m"],
    probability: Annotated[Array, "s, m"],
    stakes: Stakes,
) -> Annotated[Array, "s"]:
    """Value of information: by how much a label at each candidate is expected to lower the loss at the targets.

    Kapoor, Horvitz and Basu: selective supervision (2007), announced in K §9. A label y, ±1 for each class, moves the
    mean of class k at a target by c (y_k − μ_k)/(σ² + noise), so that nothing is fitted again; the expectation is over
    the labels of the candidate, and its cost is subtracted. It may be negative.
    """
    before = float(expected_loss(probabilities(stakes.mean, stakes.sharpness), stakes.losses).sum())
    after, m = np.empty(len(mean)), mean.shape[1]
    gain = covariance / (variance + noise)[:, None]
    for i, p in enumerate(probability):
        likely = np.argsort(-p, kind="stable")[:LABELS]
        answers = np.where(np.arange(m) == likely[:, None], 1.0, -1.0)  # (l, m)
        moved = stakes.mean + gain[i][:, None] * (answers - mean[i])[:, None, :]  # (l, t, m)
        loss = expected_loss(probabilities(moved.reshape(-1, m), stakes.sharpness), stakes.losses)
        after[i] = np.average(loss.reshape(likely.size, -1).sum(axis=1), weights=p[likely])
    found = stakes.each * (before - after)
    return np.asarray(found if stakes.cost is None else found - stakes.cost)
