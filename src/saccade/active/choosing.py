"""From the posterior of a pool to the next questions: for `query`, which asks once, and `ActiveLearner`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade.active.batch import best_places, greedy
from saccade.active.cover import Cover, Gains
from saccade.active.losses import Losses, loss_matrix
from saccade.active.outlook import TIE, TIE_SINGLE, CandidateCovariance, CandidateState
from saccade.active.strategies import STRATEGIES, StrategySpec
from saccade.inference.posterior.pool import PoolPosterior
from saccade.inference.posterior.sketch import Sketch
from saccade.scores.probability import fit_sharpness, probabilities
from saccade.scores.query import least_margin
from saccade.scores.value import Stakes

Lines = list[tuple[Array, Array]]  # for each question: candidates, and the scores by which it was chosen among them


@dataclass(frozen=True)
class Beliefs:
    """What the model believes of the classes, for any rows of the pool."""

    classes: int
    mean: Callable[[Array], Array]  # rows -> (s, m)
    probability: Callable[[Array], Array]  # rows -> (s, m), calibrated
    variance: Callable[[Array], Array]  # rows -> (s,)
    scores: Callable[[Array], Array] | None = None  # rows -> (s,): of a one-class model, positive and higher asks first
    sharpness: float = 1.0  # that makes probabilities of means
    names: Annotated[Array, "m"] | None = None  # of the classes


@dataclass(frozen=True)
class QueryRequest:
    """What is asked for, beside the strategy."""

    size: int
    joint: bool = True
    cost: Annotated[Array, "n"] | None = None  # of each row of the pool
    budget: float = np.inf
    targets: Array | None = None  # row numbers; None for the whole pool
    seed: int = 0
    losses: Losses | None = None  # of mistakes
    keep: bool = False  # whether the scores are wanted too: as many as candidates for each question

    def cost_of(self, rows: Array) -> Array | None:
        """The costs of some rows of the pool, where there are costs."""
        return None if self.cost is None else self.cost[rows]

    def per_cost(self, scores: Array, rows: Array) -> Array:
        """The scores of these rows, over their costs where there are costs."""
        return scores if self.cost is None else scores / self.cost[rows]


def beliefs_of_field(
    field: PoolPosterior,
    labels: Annotated[Array, "l"],  # class numbers of the observed rows
    names: Annotated[Array, "m"] | None = None,  # of the classes
) -> Beliefs:
    """The beliefs of label regression, calibrated by leave-one-out as in `GPClassifier`."""
    m = field.mean.shape[1]
    some = slice(None, None, -(-labels.size // limits.SHARPNESS_EXAMPLES) or 1)
    sharpness = fit_sharpness(field.leave_one_out()[some], labels[some]) if m >= 2 else 1.0
    return Beliefs(
        m,
        lambda rows: field.mean[rows],
        lambda rows: probabilities(field.mean[rows], sharpness) if m >= 2 else np.ones((rows.size, 1)),
        lambda rows: field.variance[rows],
        sharpness=sharpness,
        names=names,
    )


def choose_rows(
    field: PoolPosterior,
    beliefs: Beliefs,
    candidates: Annotated[Array, "s"],  # rows of the pool, ascending
    strategy: str,
    wanted: QueryRequest,
    cover: Cover | None = None,  # of the field, to keep the distances that were found
) -> tuple[Array, Lines]:
    """The next questions by one strategy.

    A batch is chosen jointly among the candidates that score best alone, `limits.BATCH_CANDIDATES` of them or four
    times the batch, because a candidate further down would have to overtake all these. Beyond `limits.BATCH_JOINT`, the
    rest of the batch is chosen by scores alone: the covariance among candidates would not fit into memory.
    """
    size, joint = min(wanted.size, candidates.size), wanted.joint and strategy != "random"
    if joint and size > limits.BATCH_JOINT:
        return _in_two(field, beliefs, candidates, strategy, wanted, cover)
    way = _way(strategy, beliefs, field.rows.size)
    if way.needs_distances:
        return _by_distances(field, beliefs, candidates, way, replace(wanted, size=size), cover)
    rng = np.random.default_rng(wanted.seed)
    if way.needs_covariance:
        candidates = _at_most(_most_candidates(strategy), candidates, rng)
        size = min(size, candidates.size)
    totals = field.sketch if wanted.targets is None else field.sketched(wanted.targets)
    outlook = _outlook(field, beliefs, candidates, way, wanted, totals, rng)
    if not joint or size == 1:
        return _first(outlook, way, size, wanted)
    if candidates.size > (most := max(limits.BATCH_CANDIDATES, 4 * size)):
        kept = best_places(wanted.per_cost(way.score(outlook), candidates), most, outlook.tie)
        outlook = _outlook(field, beliefs, candidates[kept], way, wanted, totals, rng)
    outlook.among = CandidateCovariance(field, outlook.rows, totals.rows(outlook.rows))
    places, used = greedy(outlook, way.score, size, wanted.cost_of(outlook.rows), wanted.budget, wanted.keep)
    return outlook.rows[places], [(outlook.rows, score) for score in used]


def _way(strategy: str, beliefs: Beliefs, labels: int) -> StrategySpec:
    """What is asked by now: "auto" begins with medoids, what needs classes with typical examples."""
    two = beliefs.classes >= 2
    few = not two or labels < limits.MEDOIDS_PER_CLASS * beliefs.classes
    if strategy == "auto" and few and labels < limits.MEDOIDS_MOST:
        return STRATEGIES["medoids"]
    return STRATEGIES["typical" if STRATEGIES[strategy].needs_classes and not two else strategy]


def _by_distances(
    field: PoolPosterior, beliefs: Beliefs, rows: Array, way: StrategySpec, wanted: QueryRequest, cover: Cover | None
) -> tuple[Array, Lines]:
    """By distances from targets to candidates; of a large pool both are a sample."""
    cover = cover or Cover(field, wanted.targets)  # a learner has one for all its questions, and no targets
    rng, size = np.random.default_rng(wanted.seed), wanted.size
    if rows.size > (most := max(limits.BATCH_CANDIDATES, 4 * size)):
        known = rows[:0] if wanted.cost is not None else cover.known(rows)
        rows = known if known.size >= 4 * size else _at_most(most, rows, rng, wanted.cost_of(rows))
    outlook = _outlook(field, beliefs, rows, way, wanted, field.sketch, rng)
    doubt = least_margin(beliefs.probability(cover.targets)).astype(np.float32)
    outlook.gains, outlook.tie = Gains(cover.distances(rows), cover.nearest(field.rows), doubt), TIE_SINGLE
    if not wanted.joint:
        return _first(outlook, way, size, wanted)
    places, used = greedy(outlook, way.score, size, wanted.cost_of(rows), wanted.budget, wanted.keep)
    return rows[places], [(rows, score) for score in used]


def _in_two(
    field: PoolPosterior,
    beliefs: Beliefs,
    candidates: Array,
    strategy: str,
    wanted: QueryRequest,
    cover: Cover | None,
) -> tuple[Array, Lines]:
    """A large batch: its first part jointly, the rest as if each were asked alone."""
    first, lines = choose_rows(field, beliefs, candidates, strategy, replace(wanted, size=limits.BATCH_JOINT), cover)
    rest, left = np.setdiff1d(candidates, first), wanted.budget
    if wanted.cost is not None:
        left -= float(wanted.cost[first].sum())
    if first.size < limits.BATCH_JOINT or left <= 0.0:
        return first, lines
    alone = replace(wanted, size=wanted.size - first.size, joint=False, budget=left)
    more, further = choose_rows(field, beliefs, rest, strategy, alone, cover)
    return np.append(first, more), [*lines, *further]


def _first(outlook: CandidateState, way: StrategySpec, size: int, wanted: QueryRequest) -> tuple[Array, Lines]:
    """The best candidates one by one, each scored as if it were asked alone."""
    alone = way.score(outlook)
    turns = way is STRATEGIES["one-a-class"]  # every class has scores of its own
    score = way.score if turns else lambda _: alone
    places, used = greedy(replace(outlook), score, size, wanted.cost_of(outlook.rows), wanted.budget, wanted.keep)
    return outlook.rows[places], [(outlook.rows, scores) for scores in used]


def _outlook(
    field: PoolPosterior,
    beliefs: Beliefs,
    rows: Array,
    way: StrategySpec,
    wanted: QueryRequest,
    totals: Sketch,
    rng: np.random.Generator,
) -> CandidateState:
    outlook = CandidateState(
        rows=rows,
        noise=field.noise,
        prior=field.prior[rows],
        variance=beliefs.variance(rows),
        means=lambda: beliefs.mean(rows),
        calibrated=lambda: beliefs.probability(rows),
        sums=totals.sums[rows],
        squares=totals.squares[rows],
        tie=TIE if totals.base.dtype == np.float64 else TIE_SINGLE,
        given=rng.random(rows.size) if beliefs.scores is None else beliefs.scores(rows),
    )
    if way.needs_covariance:
        targets = np.arange(field.variance.size) if wanted.targets is None else wanted.targets
        targets = _at_most(limits.TARGETS, targets, rng)
        outlook.covariance = field.covariance(rows, targets)
        outlook.target_variance = field.variance[targets]
        every = field.variance.size if wanted.targets is None else wanted.targets.size
        losses = loss_matrix(wanted.losses, np.arange(beliefs.classes) if beliefs.names is None else beliefs.names)
        mean, cost = field.mean[targets], wanted.cost_of(rows)
        outlook.stakes = Stakes(mean, beliefs.sharpness, losses, every / targets.size, cost)
    return outlook


def _most_candidates(strategy: str) -> int:
    """How many candidates a strategy that needs covariances looks at."""
    return limits.VALUE_CANDIDATES if strategy == "value" else limits.COVARIANCE_CANDIDATES


def _at_most(count: int, rows: Array, rng: np.random.Generator, cost: Array | None = None) -> Array:
    """Rows, ascending; a random sample of them where they are more than `count`, cheap ones more often."""
    if rows.size <= count:
        return rows
    chance = None if cost is None else (1.0 / cost) / (1.0 / cost).sum()
    return np.sort(rng.choice(rows, count, replace=False, p=chance))
