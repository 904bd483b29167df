"""The last word on an answer: how often such answers were right, learned from searches of held-out pictures.

Two logistic regressions of two or three numbers, P(there is an object | evidence) and P(the answer is right | evidence,
an object is there). The likelihood of the search has no say in the first: in pictures of other places it is too sure.
Searches are few, so weights are penalised, and never negative: more evidence never makes an answer less probable.
Pictures with and without the object count alike, whatever their numbers; a stated share of pictures without it shifts
the odds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from saccade._core.arrays import Array
from saccade._core.codec import Record
from saccade._core.fields import Numbers, number
from saccade.localize.boxes import pairs_iou
from saccade.localize.search.localizer import Localizer

PENALTY = 0.3  # of squared weights of standardised evidence, beside the sum of losses: of a few searches it is felt
# Share of the way to objects by which the highest score of other places exceeds that of parts beside objects: 0.15 to
# 0.27 on the learning halves of four sets.
HARDER = 0.2
LOST = 0.05  # share of objects that the threshold may lose: of held-out ones, whose judges learned from fewer pictures
DOUBTED = 0.2  # an object less probable than this is not said to be there, even if more are lost so
DENIED = 0.75  # an object is not denied if it is more probable than this: other scenes are harder than held-out parts
FOLDS = 5  # of the calibrator itself, for the figures that are printed
LEAST_SEARCHES = 5  # with, and without the object, below which nothing is learned of its presence
APART = 0.2  # overlap with the answer below which a look is at another place
SURE = 0.0025  # the probability of a search is not to be believed beyond this and its complement


class AnswerEvidence(NamedTuple):
    """What a search knows of its answer, for each question."""

    present: Annotated[Array, "2"]  # highest score, its lead over other places
    right: Annotated[Array, "3"]  # the same, and the log odds by the search


def evidence_of(search: Localizer) -> AnswerEvidence:
    """After at least one look."""
    found, top, (low, _) = search.best(), float(search.told.max()), search.scores or (0.0, 1.0)
    elsewhere = search.told[pairs_iou(search.boxes, found.box[None])[:, 0] < APART]
    lead = top - float(elsewhere.max(initial=low))
    fits = np.clip(found.probability / max(found.present, 1e-12), SURE, 1.0 - SURE)
    return AnswerEvidence(np.array([top, lead]), np.array([top, lead, logit(fits)]))


@dataclass(frozen=True)
class Logistic:
    """P(y = 1 | x) = σ(b + w · (x − m)/s) with weights w ≥ 0."""

    mean: Annotated[Array, "d"]
    spread: Annotated[Array, "d"]
    weights: Annotated[Array, "d"]
    constant: float

    @classmethod
    def learn(cls, X: Annotated[Array, "n, d"], y: Annotated[Array, "n"], counts: Annotated[Array, "n"]) -> Logistic:
        """Minimise Σ counts · loss + penalty · |w|²/2; the constant is free, but for one example of each kind."""
        mean, spread = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-6)
        Z, sign = (X - mean) / spread, np.where(y, 1.0, -1.0)

        def loss(w: Array) -> tuple[float, Array]:
            z = w[0] + Z @ w[1:]
            slope = -sign * counts * expit(-sign * z)
            total = counts @ np.logaddexp(0.0, -sign * z) + 0.5 * PENALTY * float(w[1:] @ w[1:])
            hedge = 0.5 * (np.logaddexp(0.0, w[0]) + np.logaddexp(0.0, -w[0]))
            first = slope.sum() + expit(w[0]) - 0.5
            return float(total + hedge), np.append(first, Z.T @ slope + PENALTY * w[1:])

        bounds = [(None, None)] + [(0.0, None)] * X.shape[1]
        w = minimize(loss, np.zeros(1 + X.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds).x
        return cls(mean, spread, w[1:], float(w[0]))

    def odds(self, X: Annotated[Array, "n, d"]) -> Annotated[Array, "n"]:
        """Log odds."""
        return np.asarray(self.constant + ((X - self.mean) / self.spread) @ self.weights)


@dataclass(frozen=True)
class Trials:
    """Searches of held-out pictures, and what came of them."""

    present: Annotated[Array, "n, 2"]
    right: Annotated[Array, "n, 3"]
    there: Annotated[Array, "n"]  # whether the picture shows the object
    hit: Annotated[Array, "n"]  # whether the answer overlaps it by a half
    part: Annotated[Array, "n"]  # whether it is only the part of a picture beside its objects

    def some(self, rows: Array) -> Trials:
        return Trials(*(getattr(self, each.name)[rows] for each in fields(self)))

    def harder(self) -> Annotated[Array, "n, 2"]:
        """Evidence of presence as if parts were pictures of other places."""
        found = self.present.copy()
        if self.there.any() and self.part.any():
            found[self.part, 0] += HARDER * (found[self.there, 0].mean() - found[self.part, 0].mean())
        return found


@dataclass(frozen=True)
class Calibrator:
    """Probabilities of an answer by its evidence, and the threshold below which the answer is "not found"."""

    present: Logistic
    right: Logistic
    threshold: float  # of P(present) if half of the pictures show the object

    @classmethod
    def learn(cls, trials: Trials) -> Calibrator:
        there = trials.there
        counts = np.where(there, 0.5 / max(there.sum(), 1), 0.5 / max((~there).sum(), 1)) * len(there)
        known = min(there.sum(), (~there).sum()) >= LEAST_SEARCHES
        blank = Logistic(np.zeros(2), np.ones(2), np.zeros(2), 0.0)
        present = Logistic.learn(trials.harder(), there, counts) if known else blank
        with_it = trials.some(there)
        right = Logistic.learn(with_it.right, with_it.hit, np.ones(len(with_it.hit)))
        return cls(present, right, _threshold(expit(present.odds(with_it.present))) if known else 0.0)

    def say(
        self, present: Annotated[Array, "n, 2"], right: Annotated[Array, "n, 3"], absent: float = 0.5
    ) -> tuple[Array, Array, Array]:  # (n,) each
        """P(the answer is right), P(there is an object), and whether the answer stands."""
        there = expit(self.present.odds(present) + logit(1.0 - absent))  # all ones if it is never absent
        return there * expit(self.right.odds(right)), there, there >= self.threshold


def _threshold(chances: Annotated[Array, "n"]) -> float:
    """The k-th smallest of n: of exchangeable new ones a share of k/(n + 1) is below; from `DOUBTED` to `DENIED`."""
    k = int(LOST * (len(chances) + 1))
    lowest = np.sort(chances)
    return float(np.clip(lowest[k - 1] if k else 0.5 * lowest[0], DOUBTED, DENIED))


def left_out(trials: Trials, absent: float = 0.5) -> tuple[Array, Array, Array]:
    """`Calibrator.say` of each trial by a calibrator that has not seen it."""
    n = len(trials.there)
    found = np.zeros(n), np.zeros(n), np.zeros(n, bool)
    for fold in range(FOLDS):
        rows = np.arange(len(trials.there)) % FOLDS == fold
        if not rows.any() or rows.all():
            continue
        held = trials.some(rows)
        said = Calibrator.learn(trials.some(~rows)).say(held.present, held.right, absent)
        for all_rows, part in zip(found, said, strict=True):
            all_rows[rows] = part
    return found


def _logistic(d: int) -> Record:
    places = {"mean": Numbers(d), "spread": Numbers(d, least=1e-12), "weights": Numbers(d, least=0.0)}
    return Record(Logistic, {**places, "constant": number()})


CALIBRATOR = Record(Calibrator, {"present": _logistic(2), "right": _logistic(3), "threshold": number(0.0, 1.0)})
