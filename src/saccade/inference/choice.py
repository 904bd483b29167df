"""Noise and kernel by leave-one-out, as far as the examples can tell: few examples leave the defaults as they are.

All training examples are predicted by all others, in closed form from one eigendecomposition for all noises. A
candidate takes the place of the default where it costs less by more than chance explains: the gain of each example is
known, so the mean gain has a standard error, and the candidate with the largest lower bound of it is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from saccade._core.arrays import Array
from saccade.inference.leave_one_out import leave_one_out
from saccade.kernels import Kernel

NOISE = 0.1  # where nothing is learned
NOISES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # among which leave-one-out chooses
ERRORS = 0.5  # standard errors by which a gain must differ from 0
HOLD = 1.0  # of the prior that holds log noise and log β: nats, all examples together, for a factor of e


class Candidate(NamedTuple):
    """A kernel and its matrix; the first candidate is the default."""

    kernel: Kernel
    K: Array  # (n, n)
    away: float = 0.0  # the logarithm of its distance from a typical kernel of its kind


class Chosen(NamedTuple):
    """What was chosen, and by how much less it costs than the default: the lower bound, in nats per example."""

    kernel: Kernel
    noise: float
    gain: float


@dataclass(frozen=True)
class JudgedOn:
    """What candidates are judged on."""

    Y: Array  # (n, m)
    weight: Array | None  # (n,): copies of each example
    costs: Callable[[Array], Array]  # leave-one-out means (n, m) -> (n,)

    @property
    def share(self) -> Array:  # (n,), sums to 1
        n = len(self.Y)
        return np.full(n, 1.0 / n) if self.weight is None else np.asarray(self.weight / self.weight.sum())

    @property
    def count(self) -> float:
        return float(len(self.Y) if self.weight is None else self.weight.sum())


def choose(candidates: Iterable[Candidate], examples: JudgedOn, noises: Sequence[float], noise: float) -> Chosen:
    """The kernel and the noise with the largest lower bound of the gain over the first candidate with `noise`."""
    best, default = None, None
    every = (noise, *(other for other in noises if other != noise))
    for kernel, K, away in candidates:
        for tried, cost in zip(every, _costs(K, examples, every), strict=True):
            if default is None or best is None:
                default, best = cost, Chosen(kernel, noise, 0.0)
                continue
            penalty = HOLD * (np.log(tried / noise) ** 2 + away**2) / examples.count
            gain = _lower_bound(default - cost, examples) - penalty
            if gain > best.gain + 1e-9:  # rounding moves nothing
                best = Chosen(kernel, float(tried), gain)
    assert best is not None
    return best


def _lower_bound(gain: Array, examples: JudgedOn) -> float:
    """Mean less `ERRORS` standard errors."""
    share = examples.share
    mean = share @ gain
    return float(mean - ERRORS * np.sqrt(share @ (gain - mean) ** 2 / examples.count))


def _costs(K: Array, examples: JudgedOn, noises: Sequence[float]) -> list[Array]:  # each (n,)
    """What each example costs when all others predict it, for every noise.

    The noise of an example with w copies is σ²/w. With V = √w, V K V + σ² has the same eigenvectors for all σ².
    """
    Y, weight = examples.Y, examples.weight
    root = np.ones((len(Y), 1)) if weight is None else np.sqrt(weight)[:, None]
    values, U = eigh(root * K * root.T, overwrite_a=True, check_finite=False)
    projected, squares = U.T @ (root * Y), np.square(U)
    found = []
    for noise in noises:
        inverse = 1.0 / (np.maximum(values, 0.0) + noise)
        alpha = root * (U @ (inverse[:, None] * projected))
        diagonal = np.square(root) * (squares @ inverse)[:, None]
        mean, _ = leave_one_out(Y, alpha, diagonal, noise / np.square(root), weight)
        found.append(examples.costs(mean))
    return found
