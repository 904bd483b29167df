"""Every way of choosing what to ask: a name, its formula (scores/query.py) and what it needs to know."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from saccade._core.arrays import Array
from saccade.active.outlook import CandidateState
from saccade.scores import query as scores
from saccade.scores.value import value

Strategy = Literal[
    "auto",
    "random",
    "margin",
    "variance",
    "uncertainty",
    "one-a-class",
    "entropy",
    "least-margin",
    "typical",
    "medoids",
    "sigma",
    "variance-reduction",
    "information-gain",
    "output-change",
    "value",
    "novel",
    "doubtful",
]


@dataclass(frozen=True)
class StrategySpec:
    """How a strategy scores candidates."""

    score: Callable[[CandidateState], Array]
    needs_classes: bool = False  # two of them at least; before, "auto" asks for typical examples
    needs_mean: bool = False  # of a Gaussian process: a classifier without one is refused
    needs_covariance: bool = False  # with targets one by one
    needs_distances: bool = False  # from the targets to candidates and labels
    one_class: bool = False


def _apart(score: Callable[[CandidateState], Array]) -> Callable[[CandidateState], Array]:
    """A score that ignores the variance, times the share of variance that is left: a batch does not repeat itself."""
    return lambda o: score(o) * (o.left if o.among is not None else 1.0)


def _auto(o: CandidateState) -> Array:
    """The reduction of variance times squared doubt: "auto" once it has `limits.MEDOIDS_PER_CLASS` labels per class.

    Doubt is 1 minus the lead of the likeliest class over the second, in calibrated probability. Before, "auto" is
    "medoids". What was compared, and on which data: docs/decisions/021 and 054.
    """
    doubt = scores.least_margin(o.probability)
    return np.asarray(_variance_reduction(o) * np.square(doubt))


def _one_a_class(o: CandidateState) -> Array:
    """K §7: in each round, every class in turn asks for the row that it is least sure of against the rest."""
    each = scores.class_uncertainty(o.mean, o.variance, o.noise)
    return np.asarray(each[:, len(o.chosen) % each.shape[1]])


def _information_gain(o: CandidateState) -> Array:
    assert o.covariance is not None
    assert o.target_variance is not None
    return scores.information_gain(o.covariance, o.variance, o.target_variance, o.noise)


def _medoids(o: CandidateState) -> Array:
    assert o.gains is not None
    return o.gains.now


def _output_change(o: CandidateState) -> Array:
    assert o.covariance is not None
    return scores.output_change(o.covariance, o.variance, o.noise, o.mean, o.probability)


def _value(o: CandidateState) -> Array:
    """Net of what the label costs; with costs, a question that is not worth its own is not asked."""
    assert o.covariance is not None
    assert o.stakes is not None
    found = value(o.covariance, o.variance, o.noise, o.mean, o.probability, o.stakes)
    left = np.maximum(o.left, scores.TINY) if o.among is not None else 1.0  # as `_apart`; a value may be negative
    found = np.where(found > 0.0, found * left, found / np.sqrt(left))
    return found if o.stakes.cost is None else np.where(found > 0.0, found, -np.inf)


def _given(o: CandidateState) -> Array:
    assert o.given is not None
    return o.given


def _sigma(o: CandidateState) -> Array:
    return scores.sigma_optimality(o.sums, o.variance, o.noise)


def _variance_reduction(o: CandidateState) -> Array:
    return scores.variance_reduction(o.squares, o.variance, o.noise)


STRATEGIES: dict[str, StrategySpec] = {
    "auto": StrategySpec(_auto),
    "random": StrategySpec(_given),
    "margin": StrategySpec(_apart(lambda o: scores.margin(o.mean)), needs_classes=True, needs_mean=True),
    "variance": StrategySpec(lambda o: o.variance),
    "uncertainty": StrategySpec(
        _apart(lambda o: scores.uncertainty(o.mean, o.variance, o.noise)), needs_classes=True, needs_mean=True
    ),
    "one-a-class": StrategySpec(_apart(_one_a_class), needs_classes=True, needs_mean=True),
    "entropy": StrategySpec(_apart(lambda o: scores.entropy(o.probability)), needs_classes=True),
    "least-margin": StrategySpec(_apart(lambda o: scores.least_margin(o.probability)), needs_classes=True),
    "typical": StrategySpec(_sigma),
    "medoids": StrategySpec(_medoids, needs_distances=True),
    "sigma": StrategySpec(_sigma),
    "variance-reduction": StrategySpec(_variance_reduction),
    "information-gain": StrategySpec(_information_gain, needs_covariance=True),
    "output-change": StrategySpec(_output_change, needs_classes=True, needs_mean=True, needs_covariance=True),
    "value": StrategySpec(_value, needs_classes=True, needs_mean=True, needs_covariance=True),
    "novel": StrategySpec(_apart(_given), one_class=True),
    "doubtful": StrategySpec(_apart(_given), one_class=True),
}
