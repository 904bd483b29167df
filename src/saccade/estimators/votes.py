"""What rows without labels say of classes: labels spread along a graph of them, and count as leave-one-out decides.

    v(x) = φ(x) (I − αS)⁻¹ Φᵀ Z        φ: the links of x into the graph, Φ those of the labelled rows, Z their classes

A label that is left out takes its own column along and nothing else, so votes without it are exact and cheap. The
decision is a weighted sum of that of the process and of the shares of v. Weight 0 is among the choices, and another one
must cost less on left-out labels by more than chance explains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from saccade._core.arrays import Array
from saccade.estimators.calibration import Calibration
from saccade.estimators.neighbours import Neighbours
from saccade.estimators.targets import ClassTargets
from saccade.inference.tuning.choice import JudgedOn, lower_bound
from saccade.scores.probability import class_means, fit_sharpness

WEIGHTS = (0.25, 0.5, 0.75, 0.9)  # of the votes, beside 0; below 1, so that the process speaks where no vote arrives
KEPT = 0.1  # of the votes that a labelled row gets from the others: a row with far less has no opinion
VOTERS = 4  # rows without a label for each label, at least: fewer know little that the labels do not
SMALLEST = 1e-6  # difference between the classes of a row that counts as one
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes of the graph, and how much they count beside the process.

    Parameters
    ----------
    neighbours : Neighbours
        The graph.
    spread : array of shape (n, M)
        What each row of it has of each class.
    kept : float
        Added to the sum of votes before they are divided by it.
    own : Calibration
        That of the process alone, which novelty goes by.
    weight : float
        From 0, where votes do not count, to 0.9.
    scales : tuple of float
        What decisions of the process, and shares of votes, are multiplied with.
    """

    neighbours: Neighbours
    spread: Array
    kept: float
    own: Calibration
    weight: float = 0.0
    scales: tuple[float, float] = (1.0, 0.0)

    @classmethod
    def of(
        cls,
        neighbours: Neighbours,
        reach: Annotated[Any, "l, n"],  # the links of the labelled rows into the graph
        targets: ClassTargets,
        own: Calibration,
    ) -> tuple[Self, Calibration]:
        """The votes of labelled rows, and the calibration of the decisions with them."""
        columns = neighbours.spread(reach.T.toarray())
        labels = np.eye(targets.classes.size)[targets.label]
        labels = labels if targets.weight is None else labels * targets.weight[:, None]
        among = np.asarray(reach @ columns)
        left = np.maximum(among @ labels - among.diagonal()[:, None] * labels, 0.0)
        kept = max(KEPT * float(np.median(left.sum(axis=1))), TINY)
        votes = cls(neighbours, columns @ labels, kept, own)
        return votes._weighed(votes._shares(left), targets)

    def _weighed(self, shares: Annotated[Array, "l, M"], targets: ClassTargets) -> tuple[Self, Calibration]:
        """With the weight that costs least on left-out labels."""
        assert self.own.decision is not None
        means = class_means(self.own.decision)
        rows = np.flatnonzero(np.isfinite(means).all(axis=1))  # an approximate mean cannot leave all of them out
        losses = targets.losses().subset(rows)
        examples = JudgedOn(means[rows], losses.weight, losses.costs)
        sizes, default = (_size(means[rows]), _size(shares[rows])), losses.costs(means[rows])
        found, most = self, 0.0
        for weight in WEIGHTS:
            tried = replace(self, weight=weight, scales=((1.0 - weight) / sizes[0], weight / sizes[1]))
            gain = lower_bound(default - losses.costs(tried._joined(means[rows], shares[rows])), examples)
            if gain > most + 1e-9:  # rounding moves nothing
                found, most = tried, gain
        if not found.weight:
            return found, self.own
        decision = found._narrow(found._joined(means, shares))
        sharpness = fit_sharpness(decision[rows], losses.label, losses.weight)
        return found, replace(self.own, sharpness=sharpness, decision=decision)

    def decision(
        self,
        own: Annotated[Array, "b, 1 | b, M"],  # the decisions of the process about further rows
        reach: Annotated[Any, "b, n"],  # their links into the graph
    ) -> Annotated[Array, "b, 1 | b, M"]:
        """The decisions with the votes."""
        return self._narrow(self._joined(class_means(own), self._shares(reach @ self.spread)))

    def _shares(self, votes: Annotated[Array, "b, M"]) -> Annotated[Array, "b, M"]:
        return np.asarray(votes / (votes.sum(axis=1, keepdims=True) + self.kept))

    def _joined(self, means: Annotated[Array, "b, M"], shares: Annotated[Array, "b, M"]) -> Annotated[Array, "b, M"]:
        return np.asarray(self.scales[0] * means + self.scales[1] * shares)

    def _narrow(self, joined: Annotated[Array, "b, M"]) -> Annotated[Array, "b, 1 | b, M"]:
        """One column for two classes; `class_means` gives both back, but for what they share."""
        return 0.5 * (joined[:, 1:] - joined[:, :1]) if joined.shape[1] == 2 else joined


def _size(values: Annotated[Array, "l, M"]) -> float:
    """How far apart the classes of a row are, typically."""
    return max(float(np.sqrt(np.mean((values - values.mean(axis=1, keepdims=True)) ** 2))), SMALLEST)
