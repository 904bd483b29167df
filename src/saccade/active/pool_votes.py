"""What the rows without a label say in a campaign: their graph, made once, and the votes of the labels so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade.active.choosing import Beliefs, beliefs_of_field
from saccade.estimators.calibration import Calibration
from saccade.estimators.neighbours import Neighbours
from saccade.estimators.targets import ClassTargets
from saccade.estimators.unlabelled import FEWEST
from saccade.estimators.votes import Votes
from saccade.inference.posterior.pool import PoolPosterior
from saccade.kernels.gram import Gram


@dataclass(frozen=True, eq=False)
class PoolVotes:
    """The graph of a pool, or of a sample of it."""

    neighbours: Neighbours
    reach: Annotated[Any, "p, n"] | None  # the links of all rows; None for a large pool, whose questions do without

    @classmethod
    def of(cls, gram: Gram, X: Annotated[Any, "all, d"], rows: Annotated[Array, "p"], seed: int) -> PoolVotes | None:
        """From the kernel matrix of some rows of X; None for a pool too small for a graph."""
        p = rows.size
        if p < FEWEST:
            return None
        some = np.sort(np.random.default_rng(seed).permutation(p)[: limits.NEIGHBOURS])
        neighbours = Neighbours.of(gram.kernel, X[rows[some]], gram.between(some, some))
        if p > limits.POOL_DENSE_UP_TO:
            return cls(neighbours, None)
        return cls(neighbours, neighbours.reach_by(gram.between(np.arange(p), some), gram.diag()))

    def beliefs(self, field: PoolPosterior, label: Annotated[Array, "l"]) -> Beliefs:
        """Those of the field, with the probabilities that the votes make of them."""
        own, left = beliefs_of_field(field, label), field.leave_one_out()
        if self.reach is None or own.classes < 2 or label.size > limits.VOTING_LABELS:
            return own
        targets, alone = ClassTargets(np.arange(own.classes), label), Calibration(1.0, left, left)
        votes, calibration = Votes.of(self.neighbours, self.reach[field.rows], targets, alone)
        if not votes.weight:
            return own
        reach = self.reach

        def probability(rows: Array) -> Array:
            return calibration.probabilities(votes.decision(field.mean[rows], reach[rows]))

        return replace(own, probability=probability)
