"""Where hits are among tiles: a Gaussian process over position and features, averaged over settings.

A tile has a hit with probability Φ(f). The prior of f is a normal with the mean that `prior` says and the covariance

    k = 1 + amplitude · ((1 − share) Matérn₃⁄₂(position; length) + share · RBF(features)),

where the 1 lets the looks correct the overall rate. Each setting (length in tiles, amplitude, share) has a posterior by
expectation propagation (likelihoods/ep.py) and an evidence; probabilities are averages weighted by it. Laplace's
approximation would not do: where hits are rare it states three times too many (docs/decisions/028).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from saccade._core.arrays import Array
from saccade.inference.likelihoods.infer import infer
from saccade.inference.solving.closed_form import leave_one_out
from saccade.inference.solving.conditional import ByFactor, unexplained
from saccade.inference.solving.regression import Solving
from saccade.kernels import RBF, Kernel, Matern
from saccade.operators.base import Dense
from saccade.solvers.cholesky import Factor

RATE = 1.0  # prior variance of the overall rate, in units of the noise of a label
LENGTHS = (2.0, 5.0)  # tiles
AMPLITUDES = (1.0, 4.0)
SHARES = (0.0, 0.5, 1.0)  # of features, where there are some
COMPARED, TIMES = 8, 1.6  # looks at which settings are compared, and again when there are so many times more
FEATURE_LENGTH = 0.5  # of standardised features, divided by the root of their number
WEIGHT = 0.02  # a setting with less weight is left out ...
MOST = 3  # ... and so are all but the likeliest


class Setting(NamedTuple):
    """Length scale in tiles, amplitude, share of the features."""

    length: float
    amplitude: float
    share: float


def settings(features: bool) -> list[Setting]:
    """All that are compared."""
    shares = SHARES if features else (0.0,)
    return [Setting(n, a, s) for s in shares for n in (LENGTHS if s < 1.0 else LENGTHS[:1]) for a in AMPLITUDES]


@dataclass(frozen=True, eq=False)
class TileSpace:
    """What is known of tiles before any look: where they are, what they look like from afar, how likely a hit is.

    Examples, which are hits from elsewhere, have the numbers after those of the tiles. They look like some tiles, and
    say nothing about places and the overall rate.
    """

    places: Annotated[Array, "n + examples, 2"]  # row, column; anything for examples
    features: Annotated[Array, "n + examples, d"] | None
    prior: Annotated[Array, "n"]  # probability of a hit

    @property
    def examples(self) -> Annotated[Array, "examples"]:
        """Their numbers."""
        return np.arange(self.prior.size, len(self.places))

    def kernel(self, setting: Setting, a: Array, b: Array | None = None) -> Annotated[Array, "p, q"]:
        """Between tiles a and b by number."""

        def part(share: float, kernel: Kernel, X: Array | None) -> Array | float:
            if share == 0.0 or X is None or not K.size:
                return 0.0
            return setting.amplitude * share * kernel(X[a], None if b is None else X[b])

        K, n, other = np.full((a.size, a.size if b is None else b.size), RATE), self.prior.size, a if b is None else b
        K += part(1.0 - setting.share, Matern(setting.length, nu=1.5), self.places)
        if self.examples.size:
            K *= ((a < n)[:, None] & (other < n)) | (a[:, None] == other)
        return np.asarray(K + part(setting.share, RBF(FEATURE_LENGTH), self.features))

    def offset(self, setting: Setting) -> Annotated[Array, "n + examples"]:
        """The prior mean of f, with which Φ averages to `prior`."""
        prior = np.append(self.prior, np.full(self.examples.size, self.prior.mean()))
        return np.asarray(ndtri(prior) * np.sqrt(1.0 + RATE + setting.amplitude))


@dataclass(frozen=True, eq=False)
class TilePosterior:
    """Of f at all tiles, under one setting."""

    space: TileSpace
    setting: Setting
    rows: Annotated[Array, "l"]  # looked at
    log_evidence: float
    alpha: Annotated[Array, "l"]
    given: ByFactor  # the process given these tiles
    left_out: Annotated[Array, "l"]  # probability of a hit in each of them by the others

    def pool(self) -> Pool:
        """Mean and variance everywhere."""
        every = np.arange(self.space.prior.size)
        K = self.space.kernel(self.setting, self.rows, every)
        mean, half = self.space.offset(self.setting)[every] + self.alpha @ K, self.given.half(K)
        variance = unexplained(RATE + self.setting.amplitude, half)
        return Pool(self.space, self.setting, mean, variance, half, self.left_out)


@dataclass(frozen=True, eq=False)
class Pool:
    """Mean and variance of f at all tiles, and what covariances need."""

    space: TileSpace
    setting: Setting
    mean: Annotated[Array, "n"]
    variance: Annotated[Array, "n"]
    half: Annotated[Array, "l, n"]  # L⁻¹k(rows, ·)
    left_out: Annotated[Array, "l"]

    def covariance(self, a: Array, b: Array) -> Annotated[Array, "p, q"]:
        return np.asarray(self.space.kernel(self.setting, a, b) - self.half[:, a].T @ self.half[:, b])

    @property
    def probability(self) -> Annotated[Array, "n"]:
        return np.asarray(ndtr(self.mean / np.sqrt(1.0 + self.variance)))


def learn(space: TileSpace, setting: Setting, rows: Array, hits: Array) -> TilePosterior:
    """The posterior from tiles with and without a hit."""
    if not rows.size:
        return TilePosterior(space, setting, rows, 0.0, np.zeros(0), ByFactor(Factor(np.zeros((0, 0)))), np.zeros(0))
    K, mean = Dense(space.kernel(setting, rows)), space.offset(setting)[rows][:, None]
    Y, noise = np.where(hits, 1.0, -1.0)[:, None], np.ones((rows.size, 1))
    sites, solution = infer(K, Y, noise, None, "ep", Solving(solver="cholesky"), mean)
    given = ByFactor(solution.factors[0])
    evidence = sites.log_norm + given.log_density(given.half(sites.targets))
    f, variance = leave_one_out(sites.targets, solution.alpha, given.inverse_diagonal()[:, None], sites.noise)
    left_out = ndtr((f + mean) / np.sqrt(1.0 + variance))[:, 0]
    return TilePosterior(space, setting, rows, evidence, solution.alpha[:, 0], given, left_out)


class TileBelief(NamedTuple):
    """Pools of the likeliest settings and their weights, which sum to 1."""

    weights: Annotated[Array, "s"]
    pools: list[Pool]

    @property
    def probability(self) -> Annotated[Array, "n"]:
        return np.asarray(self.weights @ np.array([pool.probability for pool in self.pools]))

    @property
    def left_out(self) -> Annotated[Array, "l"]:
        """Probability of a hit in each tile with an answer, in their order, by the other answers."""
        every = self.weights @ np.array([pool.left_out for pool in self.pools])
        return np.asarray(every[self.pools[0].space.examples.size :])


def likely_settings(space: TileSpace, rows: Array, hits: Array) -> list[Setting]:
    """Those with most evidence, up to `MOST`; with few looks all are much alike."""
    every = settings(space.features is not None)
    evidence = np.array([learn(space, setting, rows, hits).log_evidence for setting in every])
    weights = np.exp(evidence - evidence.max())
    order = np.argsort(-weights, kind="stable")[:MOST]
    return [every[k] for k in order if weights[k] >= WEIGHT * weights.sum()]


def comparison(looks: int) -> int:
    """How many of the looks settings are compared by: the largest of 8, 13, 21, 34, … that is reached; before, all."""
    number = COMPARED
    while round(TIMES * number) <= looks:
        number = round(TIMES * number)
    return min(number, looks)


def believe(space: TileSpace, some: list[Setting], rows: Array, hits: Array) -> TileBelief:
    """What these looks say under some settings, weighed by evidence."""
    found = [learn(space, setting, rows, hits) for setting in some]
    evidence = np.array([each.log_evidence for each in found])
    weights = np.exp(evidence - evidence.max())
    return TileBelief(weights / weights.sum(), [each.pool() for each in found])
