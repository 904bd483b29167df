"""What looks say about where an object is: a mixture of Gaussian processes, one for each place where it may be.

Given the object t, scores y at the boxes looked at are normal with mean H_t β₀ and covariance R + H_t B H_tᵀ, where
H_t are overlap and nearness with t (`response`), R is clutter, offset and noise. With R = L Lᵀ, A_t = L⁻¹H_t,
G_t = A_tᵀA_t, g_t = A_tᵀ L⁻¹y:

    M_t = B⁻¹ + G_t        β_t = β₀ + M_t⁻¹ (g_t − G_t β₀)        the shares of overlap and nearness, given t
    log p(y | t) = −½ |L⁻¹y − A_t β₀|² + ½ vᵀ M_t⁻¹ v − ½ log |M_t| + …,  v = g_t − G_t β₀

So p(t | y) ∝ prior(t) p(y | t): the prior density is a factor that evidence outweighs, look by look. This is the
balance β of prior and evidence that S §12 leaves open, and nothing has to be set. The score of a further box is a
mixture of normals over t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from saccade._core.arrays import Array
from saccade._core.threads import ranged, share_calls, thread_count
from saccade.inference.solving.conditional import ByFactor, unexplained
from saccade.localize.search.response import BETA, BETA_SPREAD, FALL, OFFSET, Misfit, clutter_and_offset, shares
from saccade.solvers.cholesky import factorise

LEAST_NOISE = 1e-3  # standard deviation: below it, boxes that are nearly the same would make R singular


@dataclass(frozen=True)
class Views:
    """Boxes looked at and their scores; a box that was looked at several times is one, with the mean of its scores."""

    bounds: Annotated[Array, "4"]
    boxes: Annotated[Array, "n, 4"]
    scores: Annotated[Array, "n"]
    counts: Annotated[Array, "n"]

    @classmethod
    def of(cls, bounds: Array, boxes: Array, scores: Array) -> Views:
        distinct, first, which, counts = np.unique(
            boxes, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        means = np.bincount(which.ravel(), scores, minlength=len(distinct)) / np.maximum(counts, 1)
        return cls(bounds, distinct[order], means[order], counts[order].astype(np.float64))


class ScoreModel:
    """The log likelihood of looks given a box of the object, and the score of other boxes; for one misfit."""

    def __init__(self, looks: Views, misfit: Misfit) -> None:
        self.looks, self.misfit = looks, misfit
        R = clutter_and_offset(looks.boxes, looks.boxes, looks.bounds, misfit)
        noise = max(misfit.noise, LEAST_NOISE) ** 2 / looks.counts
        self.clutter = ByFactor(factorise(R, noise))
        self.z = self.clutter.half(looks.scores[:, None])[:, 0]

    def whitened(self, H: Annotated[Array, "2, n, h"]) -> Annotated[Array, "2, n, h"]:
        """A_t = L⁻¹ H_t of every object."""
        _, n, h = H.shape
        return np.asarray(self.clutter.half(np.hstack(list(H))).reshape(n, 2, h).transpose(1, 0, 2))

    def given(self, objects: Array) -> GivenObjects:  # (h, 4)
        return GivenObjects.of(self, self.whitened(shares(self.looks.boxes, objects, self.looks.bounds)))

    def log_likelihood(self, objects: Annotated[Array, "h, 4"]) -> Annotated[Array, "h"]:
        return self.given(objects).log_likelihood

    def log_likelihood_of_none(self) -> float:
        """If there is no object."""
        return self.clutter.log_density(self.z[:, None])


class Smooth(NamedTuple):
    """What clutter and offset say of boxes: functions without edges."""

    known: Annotated[Array, "2, c, h"]  # what the looks say of overlap and nearness with each object already
    base: Annotated[Array, "c"]  # the mean of the score without an object ...
    own: Annotated[Array, "c"]  # ... and its variance


@dataclass(frozen=True)
class GivenObjects:
    """The Gaussian process of the scores, given each of several objects."""

    evidence: ScoreModel
    A: Annotated[Array, "2, n, h"]
    inverse: Annotated[Array, "2, 2, h"]  # M⁻¹
    beta: Annotated[Array, "2, h"]
    log_likelihood: Annotated[Array, "h"]

    @classmethod
    def of(cls, evidence: ScoreModel, A: Array) -> GivenObjects:
        z, B = evidence.z, np.square(BETA_SPREAD)
        G = np.einsum("inh,jnh->ijh", A, A)
        g = np.einsum("inh,n->ih", A, z)
        v = g - np.einsum("ijh,j->ih", G, BETA)
        M = G + np.diag(1.0 / B)[:, :, None]
        determinant = M[0, 0] * M[1, 1] - M[0, 1] ** 2
        inverse = np.array([[M[1, 1], -M[0, 1]], [-M[0, 1], M[0, 0]]]) / determinant
        step = np.einsum("ijh,jh->ih", inverse, v)
        squares = np.einsum("i,ijh,j->h", BETA, G, BETA) - 2.0 * (BETA @ g)  # beside those of the looks
        rest = squares - (v * step).sum(axis=0) + np.log(determinant) + np.log(B).sum()
        found = evidence.log_likelihood_of_none() - 0.5 * rest
        return cls(evidence, A, inverse, BETA[:, None] + step, found)

    def of_object(
        self, boxes: Annotated[Array, "c, 4"], objects: Annotated[Array, "h, 4"]
    ) -> tuple[Array, Array]:  # (c, h) each
        """Mean and variance of the part of the score that overlap and nearness have, without clutter and offset."""
        H = shares(boxes, objects, self.evidence.looks.bounds)
        return np.einsum("ich,ih->ch", H, self.beta), np.einsum("ich,ijh,jch->ch", H, self.inverse, H)

    def mixed(
        self,
        boxes: Annotated[Array, "c, 4"],
        objects: Annotated[Array, "h, 4"],
        weights: Annotated[Array, "h"],
        smooth: Smooth,
    ) -> tuple[Array, Array]:  # (c,), (c,)
        """Mean and variance of the score of boxes, without noise, over all objects."""
        from saccade.localize.search import loops as look_loops

        mean, variance = np.empty(len(boxes)), np.empty(len(boxes))
        width, height = self.evidence.looks.bounds[2:] - self.evidence.looks.bounds[:2]
        places = np.ascontiguousarray(boxes), np.ascontiguousarray(objects), weights
        read = *places, self.beta, self.inverse, *smooth, float(width), float(height), FALL
        share_calls(ranged(look_loops.moments, read, (mean, variance)), len(boxes), thread_count())
        return mean, variance

    def moments(self, boxes: Array, objects: Array, weights: Array) -> tuple[Array, Array]:  # (c,), (c,)
        """Mean and variance of the score of boxes over all objects, as `mixed` with the smooth parts of the boxes."""
        return self.mixed(boxes, objects, weights, self.smooth(boxes))

    def smooth(self, boxes: Annotated[Array, "c, 4"]) -> Smooth:
        W, own = self._explained(boxes)
        return Smooth(np.stack([W.T @ part for part in self.A]), W.T @ self.evidence.z, own)

    def _explained(self, boxes: Array) -> tuple[Array, Array]:  # (n, c), (c,)
        """L⁻¹ times the covariance of looks and boxes, and the variance of each box that looks leave it."""
        looks, misfit = self.evidence.looks, self.evidence.misfit
        W = self.evidence.clutter.half(clutter_and_offset(looks.boxes, boxes, looks.bounds, misfit))
        return W, unexplained(misfit.clutter**2 + OFFSET**2, W)
