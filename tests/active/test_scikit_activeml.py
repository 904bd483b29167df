"""Our estimators in scikit-activeml's strategies and pool loop, and its strategies through `query`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from saccade import GPClassifier, GPRegressor, OneClassGP
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.active import query
from saccade.kernels import HIK, Power

MISSING = "scikit-activeml is missing: it needs newer versions than the floors of `make portable`"
pool = pytest.importorskip("skactiveml.pool", reason=MISSING)
classifiers = pytest.importorskip("skactiveml.classifier", reason=MISSING)
regressors = pytest.importorskip("skactiveml.regressor", reason=MISSING)
MixtureModelClassifier, SklearnClassifier = classifiers.MixtureModelClassifier, classifiers.SklearnClassifier
SklearnNormalRegressor, SklearnRegressor = regressors.SklearnNormalRegressor, regressors.SklearnRegressor

pytestmark = [
    pytest.mark.filterwarnings("ignore:The 'base_estimator' could not be fitted"),  # no label, or one class so far
    pytest.mark.filterwarnings("ignore:Since the 'base_estimator' could not be fitted"),
    pytest.mark.filterwarnings("ignore:The 'estimator' could not be fitted"),
    pytest.mark.filterwarnings("ignore:Since the 'estimator' could not be fitted"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # between scikit-activeml and scikit-learn
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

X, LABEL = load_digits(return_X_y=True)
X, LABEL = X[:200], LABEL[:200]
TEXT = np.array([f"digit {v}" for v in LABEL])
CLASSES = np.arange(10)


def wrapped(kernel: Any = None) -> Any:
    return SklearnClassifier(GPClassifier(kernel), classes=CLASSES, random_state=0)


def committee() -> list[Any]:
    return [wrapped(kernel) for kernel in (HIK(), HIK(Power(2.0)), HIK(Power(0.25)))]


def uncertainty(method: str) -> Any:
    return pool.UncertaintySampling(method=method, random_state=0)


# ---- ours in theirs

LOOPS: dict[str, tuple[Any, str, Callable[[], Any]]] = {
    "least confident": (uncertainty("least_confident"), "clf", wrapped),
    "margin": (uncertainty("margin_sampling"), "clf", wrapped),
    "entropy": (uncertainty("entropy"), "clf", wrapped),
    "badge": (pool.Badge(random_state=0), "clf", wrapped),
    "dropout": (pool.DropQuery(random_state=0), "clf", wrapped),
    "falcun": (pool.Falcun(random_state=0), "clf", wrapped),
    "probabilistic": (pool.ProbabilisticAL(metric="rbf", random_state=0), "clf", wrapped),
    "clue": (pool.Clue(random_state=0), "estimator", wrapped),
    "discriminative": (pool.DiscriminativeAL(random_state=0), "discriminator", wrapped),
    "committee": (pool.QueryByCommittee(random_state=0), "ensemble", committee),
    "votes": (pool.QueryByCommittee(method="vote_entropy", random_state=0), "ensemble", committee),
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_pool_loop(name: str) -> None:
    """From no label over one class to fifty labels; the usual lines of scikit-activeml's own tutorial."""
    strategy, argument, model = LOOPS[name]
    y = np.full(len(LABEL), np.nan)
    for size in (1, 1, 12, 12, 12, 12):
        found = strategy.query(X, y, batch_size=size, **{argument: model()})
        assert np.isnan(y[found]).all()
        y[found] = LABEL[found]
    assert np.isfinite(y).sum() == 50
    clf = wrapped().fit(X, y)
    assert clf.score(X, LABEL) > 0.8
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("known", [0, 1, 3])
def test_one_method_is_slow_and_runs(known: int) -> None:
    """Expected average precision, on few rows: it takes minutes on hundreds."""
    some, y = X[:20], np.full(20, np.nan)
    y[:known] = LABEL[:known] % 2
    clf = SklearnClassifier(GPClassifier(), classes=[0, 1], random_state=0)
    found = uncertainty("expected_average_precision").query(some, y, clf, batch_size=2)
    assert np.isnan(y[found]).all()


def test_probabilities_of_classes_not_seen_yet_are_zero() -> None:
    y = np.full(len(LABEL), np.nan)
    y[:3] = [4.0, 7.0, 4.0]
    p = wrapped().fit(X, y).predict_proba(X)
    plain = GPClassifier().fit(X[:3], y[:3]).predict_proba(X)
    np.testing.assert_allclose(p[:, [4, 7]], plain)
    assert not np.delete(p, [4, 7], axis=1).any()


REGRESSION: dict[str, tuple[Any, Any, int]] = {
    "greedy": (pool.GreedySamplingTarget(random_state=0), SklearnRegressor, 4),
    "model change": (pool.ExpectedModelChangeMaximization(random_state=0), SklearnRegressor, 4),
    "variance reduction": (pool.ExpectedModelVarianceReduction(random_state=0), SklearnNormalRegressor, 1),
}


@pytest.mark.parametrize("name", REGRESSION)
def test_regression_strategies(name: str) -> None:
    strategy, wrapper, size = REGRESSION[name]
    rng = np.random.default_rng(0)
    places = rng.random((25, 2))
    truth = np.sin(5.0 * places[:, 0]) + places[:, 1]
    y = np.full(25, np.nan)
    for _ in range(4):
        found = strategy.query(places, y, batch_size=size, reg=wrapper(GPRegressor(noise=0.01)))
        assert np.isnan(y[found]).all()
        y[found] = truth[found]
    model = wrapper(GPRegressor(noise=0.01)).fit(places, y)
    assert model.score(places, truth) > (0.9 if size > 1 else 0.6)


# ---- theirs through ours

THEIRS: dict[str, Any] = {
    "TypiClust": lambda: pool.TypiClust(random_state=0),
    "CoreSet": lambda: pool.CoreSet(random_state=0),
    "Badge": lambda: pool.Badge(random_state=0),
    "DropQuery": lambda: pool.DropQuery(random_state=0),
    "UncertaintySampling": lambda: pool.UncertaintySampling(random_state=0),
    "RandomSampling": lambda: pool.RandomSampling(random_state=0),
    "Clue": lambda: pool.Clue(random_state=0),
    "DiscriminativeAL": lambda: pool.DiscriminativeAL(random_state=0),
    "a part": lambda: pool.SubSamplingWrapper(uncertainty("entropy"), max_candidates=50, random_state=0),
}


def some_labels(count: int) -> Array:
    y = np.full(len(TEXT), None, object)
    y[:count] = TEXT[:count]
    return y


@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize("count", [0, 1, 40])
def test_their_strategies(name: str, count: int) -> None:
    """Labels as text or none, sparse X, candidates by number, utilities."""
    y, matrix = some_labels(count), sp.csr_matrix(X)
    found, utilities = query(matrix, y, strategy=THEIRS[name](), batch_size=5, return_utilities=True)
    assert found.dtype == np.int64
    assert len(set(found.tolist())) == 5
    assert min(found) >= count
    assert utilities.shape == (5, 200)
    assert np.isnan(utilities[:, :count]).all()
    allowed = np.arange(100, 130)
    few = query(matrix, y, strategy=THEIRS[name](), batch_size=5, candidates=allowed)
    assert set(few.tolist()) <= set(allowed.tolist())  # type: ignore[union-attr]


def test_the_answer_is_theirs() -> None:
    """The same as with scikit-activeml's own lines, our classifier wrapped by hand."""
    y, numbers = some_labels(40), np.full(200, np.nan)
    numbers[:40] = LABEL[:40]
    for strategy in (uncertainty("entropy"), pool.CoreSet(random_state=0)):
        extra = {"clf": wrapped()} if isinstance(strategy, pool.UncertaintySampling) else {}
        expected, scores = strategy.query(X, numbers, batch_size=6, return_utilities=True, **extra)
        found, utilities = query(X, y, strategy=strategy, batch_size=6, return_utilities=True)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(utilities, scores)


def test_another_classifier_in_theirs() -> None:
    y, numbers = some_labels(40), np.full(200, np.nan)
    numbers[:40] = LABEL[:40]
    other = SklearnClassifier(LogisticRegression(), classes=CLASSES, random_state=0)
    expected = uncertainty("margin_sampling").query(X, numbers, other, batch_size=6)
    np.testing.assert_array_equal(
        query(X, y, LogisticRegression(), strategy=uncertainty("margin_sampling"), batch_size=6), expected
    )
    mixture = MixtureModelClassifier(random_state=0)
    assert len(query(X, y, mixture, strategy=pool.FourDs(random_state=0), batch_size=3)) == 3  # one of their own
    assert mixture.classes is None


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_new_rows_as_candidates(kind: Callable[[Array], Any]) -> None:
    known, new = X[:150], kind(X[150:])
    found, utilities = query(
        known, some_labels(40)[:150], None, new, uncertainty("entropy"), batch_size=3, return_utilities=True
    )
    assert utilities.shape == (3, 50)
    assert max(found) < 50
    with pytest.raises(InvalidInput, match="`candidates` has 3 features"):
        query(known, some_labels(40)[:150], None, new[:, :3], uncertainty("entropy"))


def test_a_mask_of_candidates() -> None:
    allowed = np.arange(200) % 7 == 3
    found = query(X, some_labels(40), None, allowed, pool.CoreSet(random_state=0), batch_size=4)
    assert allowed[found].all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": pool.QueryByCommittee()}, "QueryByCommittee also needs ensemble"),
        ({"strategy": pool.CoreSet(missing_label=None)}, "missing_label=None"),
        ({"strategy": pool.CoreSet(missing_label=-1)}, "missing_label=-1"),
        ({"strategy": 3}, "must be a name or a query strategy"),
        ({"strategy": pool.CoreSet(), "costs": np.ones(200)}, "`costs` is for strategies by name"),
        ({"strategy": pool.CoreSet(), "targets": np.arange(3)}, "`targets` is for strategies by name"),
        ({"strategy": pool.Badge(), "fit_clf": False}, "`fit_clf` is for strategies by name"),
        ({"strategy": pool.Badge(), "clf": OneClassGP()}, "OneClassGP"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_go_together(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        query(X, some_labels(40), **options)


def test_every_row_labelled() -> None:
    with pytest.raises(InvalidInput, match="All 200 examples are labelled"):
        query(X, TEXT, strategy=pool.CoreSet())
