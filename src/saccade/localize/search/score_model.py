"""What looks say about where an object is: a mixture of Gaussian processes, one for each place where it may be.

Scores are in units in which a box far from any object has about 0 and the object's own box about 1:

    score of box b, if the object is t  =  offset + β₁ overlap(b, t) + β₂ nearness(b, t) + clutter(b) + noise

overlap is the intersection over union; nearness = exp(−3 ‖difference of the centres‖), in shares of the picture, is
how S §12 lets a judge sense an object from a distance. β₁, β₂ and the offset are normal with broad priors and never
set to a value. Clutter is a smooth function, a Gaussian process over place, size and shape: what the judge takes for an
object, what it misses, and what this form gets wrong.

Given the object t, scores y at the boxes looked at are normal with mean H_t β₀ and covariance R + H_t B H_tᵀ, where
H_t are overlap and nearness with t, R is clutter, offset and noise. With R = L Lᵀ, A_t = L⁻¹H_t,
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
from saccade.kernels import RBF
from saccade.localize.boxes import to_coordinates
from saccade.solvers.cholesky import factorise

FALL = 3.0  # γ of S §12
OFFSET = 0.1  # standard deviation of the score far from the object
BETA = np.array([0.8, 0.1])  # mean of the shares that overlap and nearness have in the score ...
BETA_SPREAD = np.array([0.25, 0.1])  # ... and their standard deviations
# The distance over which clutter changes: centre in shares of the picture, log size, log shape.
CLUTTER_SCALES = np.array([0.1, 0.1, 0.5, 0.5])


@dataclass(frozen=True)
class Misfit:
    """Standard deviations of what overlap and nearness do not explain of a score."""

    noise: float = 0.1  # differs at every look, even of one box
    clutter: float = 0.05  # nearly equal for nearly equal boxes


def shares(
    boxes: Annotated[Array, "n, 4"], objects: Annotated[Array, "h, 4"], bounds: Annotated[Array, "4"]
) -> Annotated[Array, "2, n, h"]:
    """Overlap and nearness of every box with every object."""
    from saccade.localize.search import loops as look_loops

    found = np.empty((2, len(boxes), len(objects)))
    width, height = bounds[2:] - bounds[:2]
    read = np.ascontiguousarray(boxes), np.ascontiguousarray(objects), float(width), float(height), FALL
    share_calls(ranged(look_loops.shares, read, (found,)), len(boxes), thread_count())
    return found


def clutter_and_offset(
    a: Annotated[Array, "n, 4"], b: Annotated[Array, "m, 4"], bounds: Annotated[Array, "4"], misfit: Misfit
) -> Annotated[Array, "n, m"]:
    """The covariance, between boxes a and b, of the score that no object explains."""
    if not len(a) or not len(b):
        return np.zeros((len(a), len(b)))
    kernel = RBF(length_scale=CLUTTER_SCALES, amplitude=max(misfit.clutter**2, 1e-300))
    return kernel(to_coordinates(a, bounds), to_coordinates(b, bounds)) + OFFSET**2


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
