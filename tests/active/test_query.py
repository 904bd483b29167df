"""`query`: its shape, its strategies against dense algebra, joint batches, costs. Bad input: test_query_input.py."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from saccade import GPClassifier, OneClassGP
from saccade._core import limits
from saccade.active import choosing, query
from saccade.active.batch import best_places, greedy
from saccade.active.choosing import QueryRequest, beliefs_of_field, choose_rows
from saccade.active.cover import Cover
from saccade.active.models import Prior, field_of
from saccade.active.strategies import STRATEGIES
from saccade.kernels import HIK, RBF
from saccade.scores import query as scores
from saccade.scores.value import Stakes, value
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
DIGITS, TRUTH = load_digits(return_X_y=True)
X, y = DIGITS[:150], TRUTH[:150]
NOISE = 0.1
FOR_CLASSES = [name for name, way in STRATEGIES.items() if not way.one_class]
every = pytest.mark.parametrize("strategy", FOR_CLASSES)


def some_labels(count: int = 25) -> Array:
    known = np.full(150, np.nan)
    known[:count] = y[:count]
    return known


def posterior(labelled: Array) -> tuple[Array, Array, Array]:
    """Mean of each class, covariance and calibrated probabilities, by the model and one inverse."""
    K, rows = HIK().resolved(X)(X), np.flatnonzero(~np.isnan(labelled))
    inverse = np.linalg.inv(K[np.ix_(rows, rows)] + NOISE * np.eye(rows.size))
    model = GPClassifier(HIK().resolved(X)).fit(X[rows], labelled[rows])
    return model.decision_function(X), K - K[:, rows] @ inverse @ K[rows], model.predict_proba(X)


def nearer(p: Array) -> Array:
    """By how much a label brings doubtful rows nearer to one: the formula; tests/active/test_cover.py has the twin."""
    field = field_of(Prior(HIK().resolved(X), NOISE), X, np.arange(25), y[:25])
    D = Cover(field).distances(np.arange(150))
    return scores.nearer(D, D[:25].min(axis=0), scores.least_margin(p))


def dense_scores(strategy: str, labelled: Array) -> Array:
    mean, C, p = posterior(labelled)
    v = C.diagonal()
    found: dict[str, Array] = {
        "margin": scores.margin(mean),
        "variance": v,
        "uncertainty": scores.uncertainty(mean, v, NOISE),
        "one-a-class": scores.class_uncertainty(mean, v, NOISE)[:, 0],
        "entropy": scores.entropy(p),
        "least-margin": scores.least_margin(p),
        "typical": scores.sigma_optimality(C.sum(axis=1), v, NOISE),
        "sigma": scores.sigma_optimality(C.sum(axis=1), v, NOISE),
        "variance-reduction": scores.variance_reduction(np.square(C).sum(axis=1), v, NOISE),
        "information-gain": scores.information_gain(C, v, v, NOISE),
        "output-change": scores.output_change(C, v, NOISE, mean, p),
    }
    sharpness = GPClassifier(HIK().resolved(X)).fit(X[:25], y[:25]).sharpness_
    found["value"] = value(C, v, NOISE, mean, p, Stakes(mean, sharpness, 1.0 - np.eye(p.shape[1])))
    found["medoids"] = nearer(p) if strategy == "medoids" else v
    found["auto"] = found["variance-reduction"] * found["least-margin"] ** 2
    return found[strategy]


@pytest.mark.parametrize("strategy", [name for name in FOR_CLASSES if name != "random"])
@pytest.mark.parametrize("held", [True, False], ids=["matrix held", "by products"])
def test_scores_are_those_of_dense_algebra(strategy: str, held: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not held:
        monkeypatch.setattr(limits, "POOL_DENSE_UP_TO", 10)
    monkeypatch.setattr(limits, "MEDOIDS_PER_CLASS", 1)
    known = some_labels()
    rows, utilities = query(X, known, strategy=strategy, return_utilities=True)
    open_ = np.arange(25, 150)
    expected = dense_scores(strategy, known)[open_]
    assert utilities.shape == (1, 150)
    assert np.isnan(utilities[0, :25]).all()
    assert_close(utilities[0, open_] / expected.max(), expected / expected.max(), np.float32)
    assert rows.tolist() == [25 + expected.argmax()]


def test_auto_asks_for_medoids_up_to_eight_labels_per_class(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(known: Array, strategy: str = "auto") -> Array:
        found: Array = query(X, known, strategy=strategy, return_utilities=True)[1][0]
        return found

    for labels in (0, 79):  # of ten classes
        np.testing.assert_array_equal(asked(some_labels(labels)), asked(some_labels(labels), "medoids"))
    known = some_labels(80)
    late, found = dense_scores("auto", known)[80:], asked(known)[80:]
    assert_close(found / late.max(), late / late.max(), np.float32)
    one = np.where(known == 3, 3.0, np.nan)  # labels of one class tell nothing of the borders
    monkeypatch.setattr(limits, "MEDOIDS_PER_CLASS", 1)
    np.testing.assert_array_equal(asked(one), asked(one, "medoids"))
    monkeypatch.setattr(limits, "MEDOIDS_MOST", 5)
    np.testing.assert_array_equal(asked(one), asked(one, "variance-reduction"))


@every
@pytest.mark.parametrize("size", [1, 3])
def test_what_reads_the_mean_says_so(strategy: str, size: int) -> None:
    """A classifier without a mean is refused by what `needs_mean`, and by nothing else."""
    rows, read = np.arange(25), []
    field = field_of(Prior(HIK().resolved(X), NOISE), X, rows, y[:25])
    beliefs = beliefs_of_field(field, y[:25])
    heard = replace(beliefs, mean=lambda some: read.append(some) or beliefs.mean(some))
    choose_rows(field, heard, np.arange(25, 150), strategy, QueryRequest(size))
    assert bool(read) == STRATEGIES[strategy].needs_mean


@every
def test_a_joint_batch_conditions_on_itself(strategy: str) -> None:
    """Each score of a batch is that of the posterior in which the batch so far was observed."""
    known = some_labels()
    rows, utilities = query(X, known, strategy=strategy, batch_size=6, return_utilities=True, random_state=0)
    assert np.unique(rows).size == 6
    assert (rows >= 25).all()
    for k in range(6):
        best = np.nanmax(utilities[k])
        assert utilities[k, rows[k]] >= best - 1e-9 * abs(best)
        assert np.isnan(utilities[k, rows[:k]]).all()
        assert np.isfinite(utilities[k]).sum() == 125 - k  # so few candidates are all looked at
    if strategy in ("variance", "sigma", "variance-reduction", "information-gain", "output-change"):
        mean, C, p = posterior(known)
        for k in range(6):
            v = C.diagonal()
            expected = {
                "variance": v,
                "sigma": C.sum(axis=1) ** 2 / (v + NOISE),
                "variance-reduction": (C**2).sum(axis=1) / (v + NOISE),
                "information-gain": scores.information_gain(C, v, v, NOISE),
                "output-change": scores.output_change(C, v, NOISE, mean, p),
            }[strategy]
            left = ~np.isnan(utilities[k])
            assert_close(utilities[k, left], expected[left], np.float32)
            C = C - np.outer(C[:, rows[k]], C[rows[k]]) / (v[rows[k]] + NOISE)


def test_a_long_batch_conditions_on_all_of_itself() -> None:
    """Room for the batch is made in steps of sixteen: none of them is forgotten."""
    rows, found = query(X, some_labels(), strategy="variance", batch_size=40, return_utilities=True)
    known = some_labels()
    known[rows[:39]] = y[rows[:39]]
    expected = posterior(known)[1].diagonal()
    left = np.isfinite(found[39])
    assert left.sum() == 86
    assert_close(found[39, left], expected[left], np.float32)


def test_two_classes_are_enough() -> None:
    """Two labels of each: strategies that need classes, classifiers of others, and tuning."""
    from saccade.active.models import kernel_and_noise

    two = np.flatnonzero(y < 2)
    pool, truth, known = X[two], y[two], np.full(two.size, np.nan)
    known[:12] = truth[:12]
    rows = query(pool, known, strategy="margin", return_utilities=True)[1][0]
    mean = GPClassifier(HIK().resolved(pool), noise=NOISE).fit(pool[:12], truth[:12]).decision_function(pool[12:])
    assert_close(rows[12:], 1.0 / (1.0 + np.abs(mean)), np.float32)
    other = LogisticRegression(max_iter=2000)
    _, found = query(pool, known, other, strategy="entropy", return_utilities=True)
    p = other.fit(pool[:12], truth[:12]).predict_proba(pool[12:])
    assert_close(found[0, 12:], scores.entropy(p), np.float32)
    tuned = GPClassifier(noise=5.0, tune="loo")
    prior = kernel_and_noise(tuned, pool, np.arange(12), truth[:12], fit=True)
    assert prior.noise == tuned.fit(pool[:12], truth[:12]).noise_ != 5.0


@pytest.mark.filterwarnings("ignore:Tuning ended at the bound")
def test_a_balanced_model_has_the_noise_that_was_learned() -> None:
    clf = GPClassifier(noise=5.0, tune="loo", balanced=True)
    _, found = query(X, some_labels(), clf, strategy="entropy", return_utilities=True)
    tuned = GPClassifier(noise=5.0, tune="loo", balanced=True).fit(X[:25], y[:25])
    model = GPClassifier(tuned.kernel_, noise=tuned.noise_, balanced=True).fit(X[:25], y[:25])
    assert_close(found[0, 25:], scores.entropy(model.predict_proba(X[25:])), np.float32)


def test_costs_of_candidates_that_are_not_in_the_pool() -> None:
    known, more = some_labels(), DIGITS[150:170]
    costs = np.where(np.arange(20) == 13, 1.0, 1e6)
    assert query(X, known, candidates=more, costs=costs, budget=1.0).tolist() == [13]


def test_costs_of_the_few_that_are_looked_at_jointly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BATCH_CANDIDATES", 8)
    costs = np.where(np.arange(150) % 2, 1.0, 1e6)
    rows = query(X, some_labels(), strategy="variance-reduction", batch_size=5, costs=costs)
    assert (rows % 2 == 1).all()
    rows, found = query(X, some_labels(), strategy="variance", batch_size=5, costs=costs, return_utilities=True)
    assert_close(found[0, rows[0]], posterior(some_labels())[1][rows[0], rows[0]], np.float32)


@every
def test_naive_batches_are_the_first_k(strategy: str) -> None:
    known = some_labels()
    rows = query(X, known, strategy=strategy, batch_size=6, joint=False, random_state=0)
    first, utilities = query(X, known, strategy=strategy, return_utilities=True, joint=False, random_state=0)
    if strategy != "one-a-class":
        assert rows.tolist() == np.argsort(-np.nan_to_num(utilities[0], nan=-1.0), kind="stable")[:6].tolist()
    assert rows[0] == first[0]


def test_one_a_class_takes_turns() -> None:
    known = some_labels()
    rows = query(X, known, strategy="one-a-class", batch_size=10, joint=False)
    mean, C, _ = posterior(known)
    each = scores.class_uncertainty(mean, C.diagonal(), NOISE)
    left = np.arange(25, 150)
    for c, row in enumerate(rows):
        assert each[row, c] == pytest.approx(each[left, c].max(), rel=1e-9)
        left = left[left != row]


@every
def test_no_label_and_one_class(strategy: str) -> None:
    nothing = np.full(150, None)
    first = query(X, nothing, strategy=strategy, batch_size=5)
    assert first.size == np.unique(first).size == 5
    one = nothing.copy()
    one[:3] = 0
    found = query(X, one, strategy=strategy, batch_size=5)
    assert found.size == 5
    assert found.min() >= 3


def test_sparse_rows_and_candidates() -> None:
    known, expected = some_labels(), query(X, some_labels(), batch_size=4)
    assert query(sp.csr_matrix(X), known, batch_size=4).tolist() == expected.tolist()
    among = query(X, known, candidates=np.arange(100, 150), batch_size=4)
    assert among.min() >= 100
    new, utilities = query(X[:60], known[:60], candidates=DIGITS[200:260], batch_size=4, return_utilities=True)
    assert utilities.shape == (4, 60)
    assert 0 <= new.min() <= new.max() < 60
    new_only = query(X[:60], known[:60], candidates=sp.csr_matrix(DIGITS[200:260]), batch_size=4)
    assert new_only.tolist() == new.tolist()


def test_costs_and_budget() -> None:
    known, costs = some_labels(), np.ones(150)
    _, utilities = query(X, known, strategy="variance", return_utilities=True)
    costs[query(X, known, strategy="variance")[0]] = 100.0
    row, per_cost = query(X, known, strategy="variance", costs=costs, return_utilities=True)
    assert_close(per_cost[0, 25:], utilities[0, 25:] / costs[25:])
    assert costs[row[0]] == 1.0
    costs = np.random.default_rng(0).uniform(0.5, 3.0, 150)
    rows = query(X, known, batch_size=50, costs=costs, budget=10.0)
    assert 10.0 - 0.6 <= costs[rows].sum() <= 10.0
    assert query(X, known, costs=costs, budget=0.1).size == 0


def test_targets() -> None:
    known, targets = some_labels(), np.arange(100, 120)
    _, found = query(X, known, strategy="sigma", targets=targets, return_utilities=True)
    _, C, _ = posterior(known)
    expected = C[:, targets].sum(axis=1) ** 2 / (C.diagonal() + NOISE)
    assert_close(found[0, 25:], expected[25:])


def test_duplicates_are_not_asked_twice_in_a_batch() -> None:
    twice = np.vstack([X[:40], X[:40]])
    rows = query(twice, np.full(80, np.nan), batch_size=10)
    assert np.unique(rows % 40).size == 10


@pytest.mark.parametrize(
    ("strategy", "costs"),
    [(name, None) for name in FOR_CLASSES]
    + [(name, np.ones(150)) for name in FOR_CLASSES if name != "value"],  # which leaves out what is not worth its cost
)
def test_a_large_batch_is_joint_at_first_and_then_by_scores_alone(
    strategy: str, costs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, options = some_labels(), {"strategy": strategy, "random_state": 0, "costs": costs}
    few = query(X, known, batch_size=4, **options)
    monkeypatch.setattr(limits, "BATCH_JOINT", 4)
    rows, utilities = query(X, known, batch_size=12, return_utilities=True, **options)
    assert rows[:4].tolist() == few.tolist()
    assert np.unique(rows).size == 12
    assert utilities.shape == (12, 150)
    for k, row in enumerate(rows):
        assert utilities[k, row] >= np.nanmax(utilities[k]) * (1 - 1e-9)
    if costs is not None:
        assert query(X, known, batch_size=12, budget=7.0, **options).tolist() == rows[:7].tolist()
    assert np.unique(query(X, known, batch_size=125, **options)).size == 125


def test_scores_are_held_only_where_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of 1,000 from a million would be 8 GB of them."""
    kept = []

    def spy(*arguments: Any) -> Any:
        found = greedy(*arguments)
        kept.append(len(found[1]))
        return found

    monkeypatch.setattr(choosing, "greedy", spy)
    query(X, some_labels(), batch_size=5)
    query(X, some_labels(), batch_size=5, joint=False)
    query(X, some_labels(), batch_size=5, return_utilities=True)
    assert kept == [0, 0, 5]


def test_equal_candidates_beyond_those_that_are_looked_at_jointly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of them are looked at, whatever the order of a partial sort is on this processor."""
    monkeypatch.setattr(limits, "BATCH_CANDIDATES", 8)
    same = np.repeat(X[:1], 500, axis=0) * (1.0 + 1e-13 * np.random.default_rng(0).random((500, 1)))
    assert query(same, [None] * 500, strategy="variance-reduction", batch_size=2)[0] == 0
    rough = np.random.default_rng(1).permutation(np.r_[np.ones(3), 0.5 + 1e-13 * np.arange(97)])
    best = best_places(rough, 20)
    assert best.size == 20
    assert best.tolist() == np.sort(np.r_[np.flatnonzero(rough == 1), np.flatnonzero(rough < 1)[:17]]).tolist()


def test_equal_scores_take_the_first_row() -> None:
    same = np.tile(X[0], (9, 1))
    for strategy in FOR_CLASSES:
        if strategy != "random":
            assert query(same, [0, 1, *[None] * 7], strategy=strategy)[0] == 2


@pytest.mark.parametrize(
    "clf",
    [
        GPClassifier(inference="laplace"),
        GPClassifier(balanced=True),
        GPClassifier(RBF(20.0)),
        GPClassifier(levels=8),
        GPClassifier(approximation="lowrank"),
        LogisticRegression(max_iter=2000),
        GaussianNB(),  # without decision_function
    ],
)
def test_other_models(clf: Any) -> None:
    known, before = some_labels(), repr(clf)
    rows = query(X, known, clf, batch_size=5)
    assert rows.size == 5
    assert rows.min() >= 25
    assert repr(clf) == before
    _, p = query(X, known, clf, strategy="entropy", return_utilities=True)
    assert np.isfinite(p[0, 25:]).all()


def test_a_fitted_model_is_taken_as_it_is() -> None:
    known = some_labels()
    clf = GPClassifier(noise=0.5).fit(X[:25], y[:25])
    _, found = query(X, known, clf, strategy="variance", fit_clf=False, return_utilities=True)
    assert_close(found[0, 25:], clf.latent_mean_and_variance(X[25:])[1])


def test_one_class_questions() -> None:
    members = np.flatnonzero(TRUTH == 3)[:60]
    pool = np.vstack([DIGITS[members], DIGITS[TRUTH == 7][:40]])
    known = np.full(100, np.nan)
    known[:10] = 1
    known[99] = -1
    clf = OneClassGP()
    fitted = OneClassGP().fit(pool[:10])
    normal = fitted.score_samples(pool)
    open_ = np.arange(10, 99)
    assert query(pool, known, clf, strategy="novel")[0] == open_[normal[open_].argmin()]
    assert query(pool, known, clf, strategy="doubtful")[0] == open_[np.abs(normal[open_] - fitted.offset_).argmin()]
    assert query(pool, known, clf, strategy="novel", batch_size=5).size == 5
    for strategy in ("novel", "doubtful", "random", "typical", "variance"):
        assert query(pool, np.full(100, np.nan), clf, strategy=strategy, batch_size=3).size == 3


@every
def test_many_candidates_and_few_that_are_looked_at_jointly(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BATCH_CANDIDATES", 30)
    monkeypatch.setattr(limits, "COVARIANCE_CANDIDATES", 60)
    monkeypatch.setattr(limits, "TARGETS", 20)
    rows = query(X, some_labels(), strategy=strategy, batch_size=5)
    assert np.unique(rows).size == 5
    assert rows.min() >= 25


def test_a_batch_is_chosen_among_four_times_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or among `BATCH_CANDIDATES`, where these are more: the best of them alone."""
    alone = query(X, some_labels(), batch_size=125, joint=False, strategy="variance")
    for most, size, seen in ((30, 5, 30), (8, 5, 20)):
        monkeypatch.setattr(limits, "BATCH_CANDIDATES", most)
        rows, scores = query(X, some_labels(), batch_size=size, strategy="variance", return_utilities=True)
        assert np.flatnonzero(np.isfinite(scores[0])).tolist() == np.sort(alone[:seen]).tolist()
        assert rows[0] == alone[0]


def test_duplicates_are_not_asked_twice_by_any_strategy() -> None:
    twice, known = np.vstack([X[:60], X[:60]]), np.full(120, np.nan)
    known[:20] = y[:20]
    known[60:80] = y[:20]
    for strategy in FOR_CLASSES:
        if strategy != "random":
            rows = query(twice, known, strategy=strategy, batch_size=8)
            assert np.unique(rows % 60).size == 8, strategy


def test_equal_rows_of_a_large_pool_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums in float32 differ more between processors: the first of equal rows is asked all the same."""
    monkeypatch.setattr(limits, "SKETCH_FLOAT64_NUMBERS", 0)
    twice = np.vstack([X, X])
    assert query(twice, np.full(300, np.nan), batch_size=20).max() < 150


def test_only_label_regression_with_one_noise_is_answered_by_the_posterior_of_the_pool() -> None:
    """Every other model is fitted, and its own probabilities are asked about."""
    kernel, known = HIK().resolved(X), some_labels()
    plain = query(X, known, GPClassifier(kernel), strategy="entropy", return_utilities=True)[1][0, 25:]
    for options in ({"inference": "laplace"}, {"balanced": True}, {"approximation": "lowrank"}):
        clf = GPClassifier(kernel, **options)
        found = query(X, known, clf, strategy="entropy", return_utilities=True)[1][0, 25:]
        own = clf.set_params(noise=NOISE).fit(X[:25], y[:25])
        assert_close(found, scores.entropy(own.predict_proba(X[25:])), np.float32)
        if "approximation" not in options:  # which approximates the variance, and the mean stays
            assert np.abs(found - plain).max() > 1e-3


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_scores_of_any_size_have_the_same_best_places(size: float) -> None:
    """What counts as equal is relative to the scores."""
    rough = np.random.default_rng(2).permutation(np.r_[3.0, 2.0, 1.5, 1.0 + 1e-13 * np.arange(7), 0.5])
    assert best_places(size * rough, 5).tolist() == best_places(rough, 5).tolist()


@pytest.mark.parametrize("labels", [0, 1])
@pytest.mark.parametrize(
    "strategy", ["margin", "uncertainty", "one-a-class", "entropy", "least-margin", "output-change"]
)
def test_strategies_that_compare_classes_ask_for_typical_examples_until_there_are_two(
    strategy: str, labels: int
) -> None:
    known = np.full(150, np.nan)
    known[:labels] = 3
    found = query(X, known, strategy=strategy, batch_size=4)
    np.testing.assert_array_equal(found, query(X, known, strategy="typical", batch_size=4))


def test_a_sample_of_many_candidates_has_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COVARIANCE_CANDIDATES", 100)
    found = query(X, some_labels(), strategy="information-gain", return_utilities=True)[1][0]
    assert np.isfinite(found).sum() == 100
