"""Noise, clutter and the scale of the judge are not known: the score model, summed over all of them.

One point of each would be too sure of itself: after few looks the likeliest noise is far too small, and the likeliest
clutter explains away what else the judge takes for the object. So a likelihood is the mean of that of many misfits k:

    p(y | t) = Σ_k share_k p(y | t, k)        p(k | t, y) ∝ share_k p(y | t, k)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from saccade._core.arrays import Array
from saccade.localize.priors.densities import log_sum
from saccade.localize.search.score_model import GivenObjects, Misfit, ScoreModel, Sums, Views, WithMisfit, shares

NOISES = np.geomspace(1e-3, 1.0, 13)  # standard deviations, as shares of the object's score ...
NOISE_SHARES = np.exp(-0.5 * np.square(np.log(NOISES / 0.1) / 1.3))  # ... a tenth, or four times less or more
CLUTTERS = np.array([0.02, 0.1, 0.35])  # the last is that of pictures with other things in them
CLUTTER_SHARES = np.array([0.6, 0.3, 0.1])
SCALES = np.geomspace(0.8, 25.6, 6)  # of the object's score, in the largest difference that was seen so far
FREE_OFFSET = 0.5  # standard deviation of the offset of a judge on an unknown scale
LEAST_SHARE = 0.01  # of a misfit, for predictions of scores


@dataclass(frozen=True)
class Misfits:
    """Misfits with the share that each has before any look."""

    each: tuple[Misfit, ...]
    shares: Annotated[Array, "k"]  # which sum to 1

    @classmethod
    def of(cls, noise: float | None, scale_known: bool = True) -> Misfits:
        """All clutters; all noises or one standard deviation; all scales or 1."""
        scales = np.ones(1) if scale_known else SCALES
        offset = {} if scale_known else {"offset": FREE_OFFSET}
        some = slice(None, None, 1 if scale_known else 3)  # fewer noises where there are many scales
        noises = NOISE_SHARES[some] if noise is None else np.ones(1)
        each = [
            Misfit(float(sigma), float(clutter), scale=float(scale), **offset)
            for clutter in CLUTTERS
            for scale in scales
            for sigma in (NOISES[some] if noise is None else [noise / scale])
        ]
        found = np.einsum("c,s,n->csn", CLUTTER_SHARES, np.ones(scales.size), noises).ravel()
        return cls(tuple(each), found / found.sum())

    def likeliest(self, each: Annotated[Array, "k"]) -> Misfits:
        """The one with the largest of these numbers, alone."""
        return Misfits((self.each[int(np.argmax(each))],), np.ones(1))


class Mixture:
    """The log likelihood of looks given a box of the object, and the score of other boxes; over many misfits."""

    def __init__(self, looks: Views, misfits: Misfits) -> None:
        self.looks, self.misfits = looks, misfits
        self.scale = np.array([misfit.scale for misfit in misfits.each])
        kinds = [misfit.clutter for misfit in misfits.each]
        rows = [np.flatnonzero(np.array(kinds) == clutter) for clutter in dict.fromkeys(kinds)]
        self.models = [(some, ScoreModel(looks, [misfits.each[k] for k in some])) for some in rows]

    def log_likelihood(self, objects: Annotated[Array, "h, 4"]) -> Annotated[Array, "h"]:
        H = shares(self.looks.boxes, objects, self.looks.bounds)
        return np.asarray(log_sum(self.log_each([model.sums(H) for _, model in self.models])))

    def log_each(self, sums: list[Sums]) -> Annotated[Array, "k, h"]:
        """log share · likelihood of every misfit, of the sums of each model."""
        found = np.empty((self.scale.size, sums[0].g.shape[2]))
        for (rows, model), part in zip(self.models, sums, strict=True):
            found[rows] = model.log_likelihood(part)
        return found + np.log(self.misfits.shares)[:, None]

    def log_likelihood_of_none(self) -> float:
        """If there is no object."""
        parts = [model.log_likelihood_of_none + np.log(self.misfits.shares[rows]) for rows, model in self.models]
        return float(log_sum(np.concatenate(parts)))

    def given(self, objects: Annotated[Array, "h, 4"]) -> GivenMixture:
        return GivenMixture.of(self, objects)


@dataclass(frozen=True)
class GivenMixture:
    """The mixture of Gaussian processes of the scores, given each of several objects."""

    evidence: Mixture
    given: list[GivenObjects]  # by each model
    each: Annotated[Array, "k, h"]  # probability of every misfit, if each object is the one
    beta: Annotated[Array, "2, h"]  # mean of the shares of overlap and nearness ...
    covariance: Annotated[Array, "2, 2, h"]  # ... and their covariance

    @classmethod
    def of(cls, evidence: Mixture, objects: Array) -> GivenMixture:
        H = shares(evidence.looks.boxes, objects, evidence.looks.bounds)
        sums = [model.sums(H) for _, model in evidence.models]
        logs = evidence.log_each(sums)
        each = np.exp(logs - log_sum(logs))
        given = [model.given(part, H) for (_, model), part in zip(evidence.models, sums, strict=True)]
        mean, square = np.zeros((2, len(objects))), np.zeros((2, 2, len(objects)))
        for (rows, model), part in zip(evidence.models, given, strict=True):
            mean += np.einsum("kh,ikh,k->ih", each[rows], part.beta, model.scale)
            second = part.inverse + part.beta[:, None] * part.beta
            square += np.einsum("kh,ijkh,k->ijh", each[rows], second, model.scale**2)
        return cls(evidence, given, each, mean, square - mean[:, None] * mean)

    @property
    def noise(self) -> float:
        """Variance of a look at one box, on average."""
        variances = [(misfit.noise * misfit.scale) ** 2 for misfit in self.evidence.misfits.each]
        return float(self.each.mean(axis=1) @ variances)

    def of_object(self, boxes: Annotated[Array, "c, 4"], objects: Array) -> tuple[Array, Array]:  # (c, h) each
        """Mean and variance of the part of the score that overlap and nearness have, without clutter and offset."""
        H = shares(boxes, objects, self.evidence.looks.bounds)
        return np.einsum("ich,ih->ch", H, self.beta), np.einsum("ich,ijh,jch->ch", H, self.covariance, H)

    def parts(self, weights: Annotated[Array, "h"]) -> list[MisfitPart]:
        """The misfits that matter."""
        joint = self.each * weights
        total = joint.sum(axis=1)
        return [
            MisfitPart(float(total[k]), float(self.evidence.scale[k]), joint[k] / total[k], given.with_misfit(place))
            for (rows, _), given in zip(self.evidence.models, self.given, strict=True)
            for place, k in enumerate(rows)
            if total[k] >= min(LEAST_SHARE, total.max())
        ]

    def moments(self, boxes: Annotated[Array, "c, 4"], objects: Array, weights: Array) -> tuple[Array, Array]:
        """Mean and variance of the score of boxes over all objects and misfits, without noise."""
        return together(
            self.parts(weights),
            lambda part: part.given.mixed(boxes, objects, part.weights, part.given.smooth(boxes)),
        )


class MisfitPart(NamedTuple):
    """One misfit of a mixture."""

    share: float
    scale: float
    weights: Annotated[Array, "h"]  # of the objects, if this is the misfit
    given: WithMisfit


def together(
    parts: list[MisfitPart], moments: Callable[[MisfitPart], tuple[Array, Array]]
) -> tuple[Array, Array]:  # (c,), (c,)
    """Mean and variance of scores over parts whose own are in units of their scales."""
    found = [moments(part) for part in parts]
    weights, scales = np.array([part.share for part in parts]), np.array([[part.scale] for part in parts])
    means, variances = (np.array(each) for each in zip(*found, strict=True))
    weights, means = weights / weights.sum(), scales * means
    middle = weights @ means
    return middle, weights @ (scales**2 * variances + np.square(means - middle))
