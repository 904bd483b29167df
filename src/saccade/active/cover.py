"""How near the labels are to the rows that are doubtful, and how much nearer one more would be: greedy k-medoids.

Distances are the kernel's own, centred in feature space so that what all rows share counts for nothing, and relative to
the noise, so that a row which is like no other is not near to itself either:

    c(x, z) = ⟨φ(x) − m, φ(z) − m⟩,  d(x, z) = 2 − 2 c(x, z)/√((c(x, x) + σ²)(c(z, z) + σ²))

with m the mean of the targets. A label at x brings the targets j nearer by Σ_j u_j max(0, d_j − d(x, j)), where d_j is
the distance to the nearest row with a label and u_j the doubt. The targets of a large pool are a sample of it, and the
candidates are the same rows: their distances are found once for a campaign.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade.inference.posterior.pool import PoolPosterior
from saccade.scores.query import nearer

FARTHEST = 2.0  # the distance of rows that have nothing in common


class Cover:
    """Distances from the rows of a pool to the targets.

    Examples
    --------
    >>> from saccade.kernels import HIK
    >>> pool = HIK(scale=1.0).gram(np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0]]))
    >>> cover = Cover(PoolPosterior.unobserved(pool, noise=1e-9))
    >>> cover.distances(np.array([0])).round(3) + 0.0
    array([[0., 0., 4.]], dtype=float32)
    """

    def __init__(
        self,
        field: PoolPosterior,
        targets: Annotated[Array, "t"] | None = None,  # row numbers, ascending; None for the pool
    ) -> None:
        self.gram, self.noise, self.prior = field.gram, field.noise, field.prior
        every = np.arange(field.prior.size) if targets is None else targets
        if every.size > limits.BATCH_CANDIDATES:
            rng = np.random.default_rng(every.size)
            every = np.sort(rng.choice(every, limits.BATCH_CANDIDATES, replace=False))
        self.targets = every

    def distances(self, rows: Annotated[Array, "s"]) -> Annotated[Array, "s, t"]:
        """From each of these rows to each target."""
        shared, among = self._kept
        places = np.minimum(np.searchsorted(self.targets, rows), self.targets.size - 1)
        kept = self.targets[places] == rows
        found = np.asarray(among[places])
        if not kept.all():
            more = rows[~kept]
            found[~kept] = self._apart(self.gram.between(more, self.targets), self.prior[more], shared)
        return found

    def nearest(self, rows: Annotated[Array, "l"]) -> Annotated[Array, "t"]:
        """From the nearest of these rows to each target."""
        return np.asarray(self.distances(rows).min(axis=0, initial=FARTHEST))

    def known(self, candidates: Annotated[Array, "s: ascending"]) -> Array:
        """The candidates that are targets, whose distances need no kernel value."""
        places = np.minimum(np.searchsorted(candidates, self.targets), candidates.size - 1)
        return np.asarray(self.targets[candidates[places] == self.targets])

    @cached_property
    def _kept(self) -> tuple[Annotated[Array, "t"], Annotated[Array, "t, t"]]:
        """Mean kernel values of the targets, and the distances among them."""
        K = self.gram.between(self.targets, self.targets)
        shared = np.asarray(K.mean(axis=0))
        return shared, self._apart(K, self.prior[self.targets], shared)

    def _apart(self, K: Annotated[Array, "s, t"], own: Annotated[Array, "s"], shared: Annotated[Array, "t"]) -> Array:
        """Distances, from kernel values."""
        total, each = shared.mean(), K.mean(axis=1)
        here = np.sqrt(np.maximum(own - 2.0 * each + total, 0.0) + self.noise)
        there = np.sqrt(np.maximum(self.prior[self.targets] - 2.0 * shared + total, 0.0) + self.noise)
        centred = K - each[:, None] - shared + total
        return np.asarray(np.maximum(2.0 - 2.0 * centred / here[:, None] / there, 0.0), np.float32)


@dataclass(eq=False)
class Gains:
    """How much nearer to all doubtful targets each candidate would bring a label; `take` changes it."""

    distances: Annotated[Array, "s, t"]
    nearest: Annotated[Array, "t"]
    doubt: Annotated[Array, "t"]

    def __post_init__(self) -> None:
        self.now = self._of(slice(None), self.nearest)

    def _of(self, some: Array | slice, nearest: Array) -> Annotated[Array, "s"]:
        return nearer(self.distances[:, some], nearest, self.doubt[some])

    def take(self, j: int) -> None:
        """Candidate j joins the batch."""
        closer = np.flatnonzero(self.distances[j] < self.nearest)
        less = self._of(closer, self.nearest[closer]) - self._of(closer, self.distances[j, closer])
        self.now = np.maximum(self.now - less, 0.0)
        self.nearest = np.minimum(self.nearest, self.distances[j])
