"""Noise and kernel by leave-one-out, as far as the examples can tell: few examples leave the defaults as they are.

All training examples are predicted by all others, in closed form from a factor per noise. With the noise the gain
rises and then falls, so that four of seven noises are enough to find the largest (docs/decisions/040).

A candidate takes the place of the default where it costs less by more than chance explains: the gain of each example is
known, so the mean gain has a standard error, and the candidate with the largest lower bound of it is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.inference.solving.closed_form import leave_one_out
from saccade.kernels import Kernel
from saccade.solvers.cholesky import factorise

NOISE = 0.1  # where nothing is learned
NOISES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # among which leave-one-out chooses
ERRORS = 0.5  # standard errors by which a gain must differ from 0
HOLD = 1.0  # of the prior that holds log noise and log β: nats, all examples together, for a factor of e


class Candidate(NamedTuple):
    """A kernel and its matrix; the first candidate is the default."""

    kernel: Kernel
    K: Annotated[Array, "n, n"]
    away: float = 0.0  # the logarithm of its distance from a typical kernel of its kind


class Chosen(NamedTuple):
    """What was chosen, and by how much less it costs than the default: the lower bound, in nats per example."""

    kernel: Kernel
    noise: float
    gain: float


@dataclass(frozen=True)
class JudgedOn:
    """What candidates are judged on."""

    Y: Annotated[Array, "n, m"]
    weight: Annotated[Array, "n"] | None  # copies of each example
    costs: Callable[[Array], Array]  # leave-one-out means (n, m) -> (n,)

    @property
    def share(self) -> Annotated[Array, "n"]:  # sums to 1
        n = len(self.Y)
        return np.full(n, 1.0 / n) if self.weight is None else np.asarray(self.weight / self.weight.sum())

    @property
    def count(self) -> float:
        return float(len(self.Y) if self.weight is None else self.weight.sum())


def best_candidate(
    candidates: Iterable[Candidate], examples: JudgedOn, noises: Sequence[float], noise: float
) -> Chosen:
    """The kernel and the noise with the largest lower bound of the gain over the first candidate with `noise`."""
    best, default = None, None
    every = sorted({noise, *noises})
    for kernel, K, away in candidates:
        first = _costs(K, examples, noise)
        default = first if default is None else default

        def gain(tried: float, cost: Array, away: float = away, default: Array = default) -> float:
            penalty = HOLD * (np.log(tried / noise) ** 2 + away**2) / examples.count
            return float(lower_bound(default - cost, examples) - penalty)

        def tried(other: float, K: Array = K, gain: Callable[[float, Array], float] = gain) -> float:
            return gain(other, _costs(K, examples, other))

        found, most = _largest(tried, every, noise, gain(noise, first))
        if best is None or most > best.gain + 1e-9:  # rounding moves nothing
            best = Chosen(kernel, found, most)
    assert best is not None
    return best


def _largest(
    gain: Callable[[float], float],
    noises: Sequence[float],  # ascending
    first: float,  # the one to begin with
    most: float,  # its gain
) -> tuple[float, float]:
    """The noise of the largest gain, and that: the larger side of the best so far is halved until none is left."""
    low, middle, high = -1, noises.index(first), len(noises)
    while high - low > 2:
        above = high - middle > middle - low
        other = middle + (high - middle) // 2 if above else middle - (middle - low) // 2
        found = gain(noises[other])
        if found > most + 1e-9:  # rounding moves nothing
            low, middle, high = (middle, other, high) if above else (low, other, middle)
            most = found
        else:
            low, high = (low, other) if above else (other, high)
    return float(noises[middle]), most


def lower_bound(gain: Array, examples: JudgedOn) -> float:
    """Mean less `ERRORS` standard errors."""
    share = examples.share
    mean = share @ gain
    return float(mean - ERRORS * np.sqrt(share @ (gain - mean) ** 2 / examples.count))


def _costs(K: Array, examples: JudgedOn, noise: float) -> Annotated[Array, "n"]:
    """What each example costs when all others predict it; the noise of an example with w copies is noise/w."""
    Y, weight = examples.Y, examples.weight
    own = np.full((len(Y), 1), noise) if weight is None else noise / weight[:, None]
    try:
        factor = factorise(K, own[:, 0])
    except InvalidInput:  # too little noise for float64: nothing is known
        return examples.costs(np.zeros_like(Y))
    mean, _ = leave_one_out(Y, factor.solve(Y), factor.inverse_diagonal()[:, None], own, weight)
    return examples.costs(mean)
