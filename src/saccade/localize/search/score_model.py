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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
from scipy.linalg import eigh

from saccade._core.arrays import Array
from saccade._core.threads import ranged, share_calls, thread_count
from saccade.inference.solving.conditional import unexplained
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
    """Standard deviations of what overlap and nearness do not explain of a score, in units of `scale`."""

    noise: float = 0.1  # differs at every look, even of one box
    clutter: float = 0.05  # nearly equal for nearly equal boxes
    offset: float = OFFSET  # equal for all boxes
    scale: float = 1.0  # about the score of the object's own box


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
    return kernel(to_coordinates(a, bounds), to_coordinates(b, bounds)) + misfit.offset**2


LEAST_NOISE = 1e-3  # standard deviation: below it, boxes that are nearly the same would make R singular


@dataclass(frozen=True)
class Views:
    """Boxes looked at and their scores; a box that was looked at several times is one, with the mean of its scores."""

    bounds: Annotated[Array, "4"]
    boxes: Annotated[Array, "n, 4"]
    scores: Annotated[Array, "n"]
    counts: Annotated[Array, "n"]
    scatter: float = 0.0  # sum of squared differences of repeated scores from their means: it tells the noise

    @classmethod
    def of(cls, bounds: Array, boxes: Array, scores: Array) -> Views:
        distinct, first, which, counts = np.unique(
            boxes, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        means = np.bincount(which.ravel(), scores, minlength=len(distinct)) / np.maximum(counts, 1)
        scatter = float(np.square(scores - means[which.ravel()]).sum())
        return cls(bounds, distinct[order], means[order], counts[order].astype(np.float64), scatter)

    def some(self, rows: Annotated[Array, "k"]) -> Views:
        return replace(self, boxes=self.boxes[rows], scores=self.scores[rows], counts=self.counts[rows])


class Sums(NamedTuple):
    """G_t and g_t of every misfit and object."""

    G: Annotated[Array, "3, k, h"]  # of overlap², overlap · nearness and nearness²
    g: Annotated[Array, "2, k, h"]  # of overlap · score and nearness · score

    def inverse(self) -> tuple[Array, Array, Array]:  # (3, k, h), (k, h), (2, k, h)
        """The three numbers of M_t⁻¹, log |M_t|, and v."""
        (p, q), (b, c) = BETA, 1.0 / np.square(BETA_SPREAD)
        (overlap, both, nearness), (g0, g1) = self.G, self.g
        determinant = (overlap + b) * (nearness + c) - both * both
        v = np.array([g0 - overlap * p - both * q, g1 - both * p - nearness * q])
        return np.array([nearness + c, -both, overlap + b]) / determinant, np.log(determinant), v

    def beta(self) -> tuple[Array, Array]:  # (2, k, h), (2, 2, k, h)
        """Mean and covariance of the shares of overlap and nearness."""
        numbers, _, v = self.inverse()
        inverse = numbers[np.array([[0, 1], [1, 2]])]
        return BETA[:, None, None] + np.einsum("ijkh,jkh->ikh", inverse, v), inverse


class ScoreModel:
    """The likelihood of looks given a box of the object, and the score of other boxes; for misfits of one clutter.

    R + σ²I = U (S + σ²) Uᵀ with any noise σ², so one product of Uᵀ with H_t serves all noises: G_t and g_t are sums of
    n numbers with weights 1 / (S + σ²). A judge on another scale has y / scale in the place of y.
    """

    def __init__(self, looks: Views, misfits: Sequence[Misfit]) -> None:
        self.looks, self.misfits, n = looks, misfits, len(looks.boxes)
        self.scale = np.array([misfit.scale for misfit in misfits])
        roots = np.sqrt(looks.counts)
        R = clutter_and_offset(looks.boxes, looks.boxes, looks.bounds, misfits[0]) * np.outer(roots, roots)
        noises = np.square([max(misfit.noise, LEAST_NOISE) for misfit in misfits])
        variances, self._which = np.unique(noises, return_inverse=True)
        if variances.size == 1:  # a factor takes a tenth of the time
            factor = factorise(R, np.full(n, variances[0]))
            self._turn = factor.half_solve(np.diag(roots)) if n else R
            self._weights, log_determinants = np.ones((1, n)), np.array([factor.log_determinant()])
        else:
            S, U = eigh(R) if n else (np.zeros(0), R)
            total = np.maximum(S, 0.0) + variances[:, None]
            self._turn, self._weights, log_determinants = U.T * roots, 1.0 / total, np.log(total).sum(axis=1)
        self._z = self._turn @ looks.scores
        squares = (self._weights @ np.square(self._z))[self._which] / np.square(self.scale)
        constant = looks.counts.sum() * (np.log(2.0 * np.pi) + 2.0 * np.log(self.scale))
        repeated = looks.scatter / (noises * self.scale**2) + (looks.counts - 1.0).sum() * np.log(noises)
        self.log_likelihood_of_none = -0.5 * (squares + log_determinants[self._which] + constant + repeated)  # (k,)

    def half(self, k: int, B: Annotated[Array, "n, m"]) -> Annotated[Array, "n, m"]:
        """L⁻¹B, or another root of it, with the noise of one misfit."""
        return np.asarray(np.sqrt(self._weights[self._which[k]])[:, None] * (self._turn @ B))

    def sums(self, H: Annotated[Array, "2, n, h"]) -> Sums:
        """G_t and g_t of objects that have these overlaps and nearnesses."""
        (a, b), z = (self._turn @ part for part in H), self._z[:, None]
        products = np.empty((len(z), 5, a.shape[1]))
        for place, (left, right) in enumerate(((a, a), (a, b), (b, b), (a, z), (b, z))):
            np.multiply(left, right, out=products[:, place])
        h = a.shape[1]
        found = (self._weights @ products.reshape(len(z), 5 * h)).reshape(-1, 5, h).transpose(1, 0, 2)[:, self._which]
        return Sums(found[:3], found[3:] / self.scale[:, None])

    def log_likelihood(self, sums: Sums) -> Annotated[Array, "k, h"]:
        (p, q), B = BETA, np.square(BETA_SPREAD)
        inverse, log_determinant, v = sums.inverse()
        squares = (
            p * p * sums.G[0] + 2.0 * p * q * sums.G[1] + q * q * sums.G[2] - 2.0 * (p * sums.g[0] + q * sums.g[1])
        )
        gained = inverse[0] * v[0] ** 2 + 2.0 * inverse[1] * v[0] * v[1] + inverse[2] * v[1] ** 2
        rest = squares - gained + log_determinant + np.log(B).sum()
        return np.asarray(self.log_likelihood_of_none[:, None] - 0.5 * rest)

    def given(self, sums: Sums, H: Annotated[Array, "2, n, h"]) -> GivenObjects:
        """The scores of other boxes, if each of the objects that have these sums is the one."""
        return GivenObjects(self, H, *sums.beta())


class Smooth(NamedTuple):
    """What clutter and offset say of boxes: functions without edges."""

    known: Annotated[Array, "2, c, h"]  # what the looks say of overlap and nearness with each object already
    base: Annotated[Array, "c"]  # the mean of the score without an object ...
    own: Annotated[Array, "c"]  # ... and its variance


@dataclass(frozen=True)
class GivenObjects:
    """What is known of the scores, given each of several objects: for every misfit, in units of its scale."""

    evidence: ScoreModel
    H: Annotated[Array, "2, n, h"]
    beta: Annotated[Array, "2, k, h"]
    inverse: Annotated[Array, "2, 2, k, h"]  # M⁻¹

    def with_misfit(self, k: int) -> WithMisfit:
        model = self.evidence
        A, z = np.stack([model.half(k, part) for part in self.H]), model.half(k, model.looks.scores[:, None])[:, 0]
        beta, inverse = (np.ascontiguousarray(part[..., k, :]) for part in (self.beta, self.inverse))
        return WithMisfit(model, k, A, z / model.scale[k], beta, inverse)


@dataclass(frozen=True)
class WithMisfit:
    """The Gaussian process of the scores, in units of the misfit's scale, given each of several objects."""

    evidence: ScoreModel
    misfit: int
    A: Annotated[Array, "2, n, h"]
    z: Annotated[Array, "n"]
    beta: Annotated[Array, "2, h"]
    inverse: Annotated[Array, "2, 2, h"]

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

    def smooth(self, boxes: Annotated[Array, "c, 4"]) -> Smooth:
        looks, misfit = self.evidence.looks, self.evidence.misfits[self.misfit]
        W = self.evidence.half(self.misfit, clutter_and_offset(looks.boxes, boxes, looks.bounds, misfit))
        own = unexplained(misfit.clutter**2 + misfit.offset**2, W)
        return Smooth(np.stack([W.T @ part for part in self.A]), W.T @ self.z, own)
