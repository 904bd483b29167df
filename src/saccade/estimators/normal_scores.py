"""What a model of one class compares new examples with: the scores of its training examples, each left out."""

import warnings
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from saccade._core.arrays import Array
from saccade._core.fields import Maybe, Numbers, Reading, number, whole
from saccade.estimators.part import Part, part_record
from saccade.inference.posterior.base import Posterior
from saccade.inference.posterior.gp import GP
from saccade.scores.novelty import NOTHING, Measure, lowest_membership, membership, p_values, threshold


@dataclass(frozen=True)
class Scoring:
    """How a mean and a variance become a score; higher is more normal.

    >>> Scoring("variance", sign=False, noise=0.1).scores(None, np.array([0.5, 0.25]))
    array([-0.5 , -0.25])
    """

    measure: Measure  # O Table 1
    sign: bool  # whether a label is the sign of f plus noise, as with "laplace" and "ep"
    noise: float
    contamination: float = 0.05  # share of the training examples to be taken for novelties

    def scores(self, mean: Array | None, variance: Array | None, prior: Array | float = 1.0) -> Annotated[Array, "b"]:
        """From mean and variance (b,) and, for "ratio", k(x, x)."""
        return membership(self.measure, mean, variance, self.noise, sign=self.sign, prior=prior)

    def at(self, gp: Posterior, X: Any) -> Annotated[Array, "b"]:
        """For new rows X (b, d); mean or variance alone where one is enough."""
        if self.measure == "mean":
            return self.scores(gp.mean(X)[:, 0], None)
        if self.measure == "variance":
            return self.scores(None, gp.variance(X)[:, 0])
        mean, variance = gp.mean_and_variance(X)
        return self.scores(mean[:, 0], variance[:, 0], gp.kernel.diag(X) if self.measure == "ratio" else 1.0)


@dataclass(frozen=True, eq=False)
class NormalScores(Part):
    """The threshold, and the scores that p-values are taken against.

    >>> NormalScores(0.5, np.array([0.2, 0.6, 0.9]), 3).p_values(np.array([0.2, 0.7]))
    array([0.5 , 0.75])
    """

    offset: float  # an example that scores less is novel
    normal: Array  # scores of left-out training examples, ascending, less what rounding may do to them
    known: int  # training examples that they stand for
    least_prior: float = -1.0  # k(x, x) up to which a row has nothing to compare; −1 where that is not asked
    middle: float = 0.0  # what such a row scores

    @classmethod
    def of(cls, mean: Array, variance: Array, prior: Array, least_prior: float, scoring: Scoring) -> Self:
        """From examples that were left out or trimmed, ties being ties."""
        told = prior > least_prior
        if not told.any():
            told = np.ones_like(told)
        lowest = lowest_membership(
            scoring.measure, mean[told], variance[told], prior[told], scoring.noise, sign=scoring.sign
        )
        offset = threshold(lowest, scoring.contamination)
        return cls(offset, np.sort(lowest), lowest.size, least_prior, float(np.median(lowest)))

    def p_values(self, scores: Array) -> Annotated[Array, "b"]:
        """How often a normal example would score no higher."""
        return p_values(scores, self.normal, self.known)

    def unless_empty(self, scores: Array, prior: Array) -> Annotated[Array, "b"]:
        """The scores; the middle one of the training examples where a row has next to nothing to compare."""
        return np.where(prior > self.least_prior, scores, self.middle)


@dataclass(frozen=True, eq=False)
class LeftOutExamples:
    """Training examples of one class, each as if it had not been there."""

    mean: Annotated[Array, "n − t"]  # leave-one-out means of those that trained the posterior
    aside: Annotated[Any, "t, d"]  # those that were trimmed

    @classmethod
    def judged(cls, gp: GP, X: Any, trained: Array, scoring: Scoring) -> tuple[Self, NormalScores, Array]:
        """Of all examples X (n, d), some of which trained gp: what to compare with, and the score of each (n,)."""
        n, prior = X.shape[0], gp.kernel.diag(X)
        apart = np.setdiff1d(np.arange(n), trained)
        least_prior = -1.0 if scoring.measure == "mean" else float(NOTHING * prior.mean())
        warn_of_training(prior, least_prior)
        mean, variance = (found[:, 0] for found in gp.left_out(np.arange(trained.size), X[trained]))
        examples, rows = cls(mean, X[apart]), gp.comparable()
        normal = examples.compared(gp, rows, variance[rows], prior[trained[rows]], least_prior, scoring)
        scores = np.empty(n)
        scores[trained] = scoring.scores(mean, variance, prior[trained] if scoring.measure == "ratio" else 1.0)
        if apart.size:
            scores[apart] = scoring.at(gp, examples.aside)
        return examples, normal, normal.unless_empty(scores, prior)

    def compared(
        self, gp: GP, rows: Array, variance: Array, prior: Array, least_prior: float, scoring: Scoring
    ) -> NormalScores:
        """Scores and threshold of some examples; trimmed ones are among them, as many of them as of the others."""
        mean = self.mean[rows]
        some = self.aside[:: max(1, gp.gram.shape[0] // max(1, mean.size))]
        if some.shape[0]:
            found = gp.mean_and_variance(some)
            mean, variance = (np.append(a, b[:, 0]) for a, b in zip((mean, variance), found, strict=True))
            prior = np.append(prior, gp.kernel.diag(some))
        return NormalScores.of(mean, variance, prior, least_prior, scoring)

    def compared_anew(self, gp: GP, least_prior: float, scoring: Scoring) -> NormalScores:
        """For a posterior that judges otherwise, by the examples that it has."""
        rows = gp.comparable()
        X = gp.gram.as_given(rows)
        return self.compared(gp, rows, gp.left_out(rows, X)[1][:, 0], gp.kernel.diag(X), least_prior, scoring)

    def moved(self, gp: GP, other: GP) -> Self:
        """For a posterior `other` of the same examples whose mean differs, such as a quantised one."""
        X = gp.gram.all_rows()
        return replace(self, mean=self.mean + (other.mean(X) - gp.mean(X))[:, 0])


def warn_of_training(
    prior: Annotated[Array, "n"],  # k(x, x) of the training examples
    least: float,  # up to which one has nothing to compare
) -> None:
    """At the caller of `fit`."""
    if not prior.any():
        text = "All training examples are 0, so nothing is known of what is normal. Check how the features were made."
    elif prior.size == 1:
        text = (
            "OneClassGP was given 1 training example: how much normal examples differ, which thresholds and "
            "probabilities come from, is not known. Give at least 2; 20 or more are better."
        )
    elif empty := int((prior <= least).sum()):
        text = _empty_rows(empty, prior.size, "training examples")
    else:
        return
    warnings.warn(text, stacklevel=4)


def warn_of_new(
    prior: Annotated[Array, "b"],  # k(x, x) of new examples
    least: float,
) -> None:
    """At the caller of `score_samples`."""
    if empty := int((prior <= least).sum()):
        warnings.warn(_empty_rows(empty, prior.size, "examples"), stacklevel=3)


def _empty_rows(empty: int, n: int, what: str) -> str:
    return (
        f"{empty} of {n} {what} have nothing to compare: all their features are near 0, in comparison with the other "
        'examples. They count as neither normal nor novel. If 0 is just a low value here, use scale="columns"; else '
        "leave such rows out."
    )


class Ascending(Numbers):
    """Scores in order, at least one."""

    def read(self, written: Any, r: Reading) -> Array:
        r.need(r.tensors is None or r.at in r.tensors, "among the tensors")
        found = np.asarray(written if r.tensors is None else r.tensors[r.at])
        good = found.ndim == 1 and found.size and found.dtype == np.float64 and bool((np.diff(found) >= 0).all())
        r.need(bool(good), "scores of known examples in order")
        return found


ASCENDING = Ascending("k")
NormalScores.record = part_record(
    NormalScores,
    {
        "offset": number(),
        "normal": ASCENDING,
        "known": whole(1),
        "least_prior": Maybe(number(), -1.0),  # not in files of earlier versions, nor
        "middle": Maybe(number(), 0.0),
    },
)
