"""`query`: labels in every form, and input that cannot be right."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from saccade import GPClassifier, OneClassGP
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.active import ActiveLearner, query
from saccade.active.pool import known_labels
from tests.active.test_query import X, some_labels, y


@pytest.mark.parametrize("missing", [np.nan, None, -1, "?"])
def test_every_way_to_say_that_there_is_no_label(missing: Any) -> None:
    known = np.full(150, missing, object)
    known[:25] = y[:25].astype(str) if missing == "?" else y[:25]
    expected = query(X, some_labels(), batch_size=4)
    assert query(X, known, batch_size=4, missing_label=missing).tolist() == expected.tolist()
    assert query(X, known.tolist(), batch_size=4, missing_label=missing).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("known", "missing"),
    [
        ([0.0, 1.0, -1.0, -1.0], -1),
        (np.array([0, 1, -1, -1]), np.int64(-1)),
        (np.array([np.str_("a"), np.str_("b"), np.str_("?"), np.str_("?")], object), "?"),
        (["a", "b", "?", "?"], np.str_("?")),
        ([True, False, None, 0], 0),  # False is a label
        (np.array([0.0, 1.0, np.nan, -1.0]), -1),
    ],
)
def test_a_missing_label_of_another_type(known: Any, missing: Any) -> None:
    rows, labels = known_labels(known, 4, missing)
    assert rows.tolist() == [0, 1]
    assert labels.size == 2


def test_missing_values_of_pandas() -> None:
    import pandas

    known = pandas.Series(["a", "b", pandas.NA, None], dtype="string")
    assert known_labels(known, 4)[0].tolist() == [0, 1]
    learner = ActiveLearner(X)
    learner.tell([0, 1], [pandas.NA, "a"])
    assert learner.labels == {0: None, 1: "a"}


def test_numbers_of_numpy_in_a_list() -> None:
    mixed = [*y[:25], *[None] * 125]
    assert query(X, mixed, batch_size=4).tolist() == query(X, some_labels(), batch_size=4).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strategy": "best"}, "strategy"),
        ({"batch_size": 0}, "batch_size"),
        ({"y": y[:10]}, "one entry for each of the 150 rows"),
        ({"y": y}, "All 150 examples are labelled"),
        ({"candidates": []}, "candidates. is empty"),
        ({"candidates": [150]}, "has row 150"),
        ({"candidates": np.ones((2, 3))}, "3 features and X has 64"),
        ({"costs": np.zeros(150)}, "positive numbers"),
        ({"budget": 3.0}, "needs `costs`"),
        ({"targets": [-1]}, "has row -1"),
        ({"targets": []}, "targets. is empty"),
        ({"costs": ["dear"] * 150}, "150 positive numbers"),
        ({"costs": np.append(np.ones(149), np.nan)}, "150 positive numbers"),
        ({"joint": "no"}, "joint"),
        ({"fit_clf": "no"}, "fit_clf"),
        ({"clf": GPClassifier(noise=np.nan)}, "noise. must be positive"),
        ({"clf": GPClassifier(noise=-1)}, "noise. must be positive"),
        ({"clf": GPClassifier(levels=1)}, "levels. must be"),
        ({"clf": LinearSVC()}, "must have predict_proba"),
        ({"clf": OneClassGP(), "strategy": "novel", "y": ["normal", *[None] * 149]}, "1 or true for members"),
        ({"strategy": "novel"}, "do not go together"),
        ({"clf": OneClassGP(), "strategy": "margin"}, "do not go together"),
        ({"clf": LogisticRegression(), "strategy": "uncertainty"}, "needs the mean"),
        ({"strategy": object()}, "must be a name"),
        ({"y": [0, "cat", *[None] * 148]}, "all text or all numbers"),
        ({"y": [0.5, 1.5, *[None] * 148]}, "text or whole numbers"),
        ({"y": np.full(150, "NaT", "datetime64[ns]")}, "all text or all numbers"),
    ],
)
def test_input_that_cannot_be_right(change: dict[str, Any], message: str) -> None:
    arguments = {"X": X, "y": some_labels()} | change
    with pytest.raises((InvalidInput, InvalidParameter), match=message):
        query(**arguments)


BIG = 10**400  # no float has it


@pytest.mark.parametrize("big", [BIG, -BIG])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("batch_size", lambda big: {"batch_size": big}),
        ("random_state", lambda big: {"random_state": big}),
        ("budget", lambda big: {"budget": big, "costs": np.ones(150)}),
        ("costs", lambda big: {"costs": [big] * 150}),
        ("targets", lambda big: {"targets": [big]}),
        ("candidates", lambda big: {"candidates": [big]}),
        ("too large for float64", lambda big: {"candidates": [[big] * 64]}),
        ("too large for float64", lambda big: {"X": [[big], [1]], "y": [None, None]}),
        ("Labels", lambda big: {"y": [big, 1, *[None] * 148]}),
        ("joint", lambda big: {"joint": big}),
        ("strategy", lambda big: {"strategy": big}),
    ],
)
def test_numbers_that_no_float_has(name: str, change: Any, big: int) -> None:
    with pytest.raises((InvalidInput, InvalidParameter), match=name) as error:
        query(**({"X": X, "y": some_labels()} | change(big)))
    assert len(str(error.value)) < 700


@pytest.mark.parametrize("big", [BIG, -BIG])
def test_a_learner_and_numbers_that_no_float_has(big: int) -> None:
    for name, options in {"audit": big, "random_state": big, "costs": [big] * 150, "joint": big}.items():
        with pytest.raises((InvalidInput, InvalidParameter), match=name):
            ActiveLearner(X, **{name: options})
    learner = ActiveLearner(X)
    learner.tell([3], [1])
    for ask, name in (
        (lambda: learner.ask(big), "`k`"),
        (lambda: learner.tell([big], [1]), "`rows`"),
        (lambda: learner.tell([5, big], [1, 2]), "`rows`"),
        (lambda: learner.tell([5], [big]), "Labels"),
        (lambda: learner.should_stop(big), "`target`"),
    ):
        with pytest.raises((InvalidInput, InvalidParameter), match=name):
            ask()
    assert learner.labels == {3: 1}
    assert not learner.is_audit([big]).any()


@pytest.mark.parametrize("odd", [np.random.SeedSequence(1), "one", 1.5, -1, 2**32])
def test_a_random_state_that_is_none(odd: Any) -> None:
    for ask in (lambda: query(X, some_labels(), random_state=odd), lambda: ActiveLearner(X, random_state=odd)):
        with pytest.raises(InvalidParameter, match="`random_state` must be None, a whole number"):
            ask()


@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_a_random_state_moves_on(kind: Any) -> None:
    rng, known = kind(0), some_labels()
    first, second = (query(X, known, strategy="random", batch_size=9, random_state=rng) for _ in range(2))
    assert first.tolist() != second.tolist()
    again = query(X, known, strategy="random", batch_size=9, random_state=kind(0))
    assert again.tolist() == first.tolist()
    one, same, other = (ActiveLearner(X, random_state=seed) for seed in (kind(0), kind(0), rng))
    assert one.audit.rows.tolist() == same.audit.rows.tolist() != other.audit.rows.tolist()


def test_a_bad_number_names_its_row() -> None:
    spoilt = X.copy()
    spoilt[77, 5] = np.inf
    for pool in (spoilt, sp.csr_matrix(spoilt)):
        with pytest.raises(InvalidInput, match="Row 77 of the pool has a value that is inf"):
            query(pool, some_labels())


def test_a_batch_larger_than_the_pool() -> None:
    known = y.astype(float)
    known[[3, 77]] = np.nan
    with pytest.warns(UserWarning, match="there are 2 candidates"):
        assert sorted(query(X, known, batch_size=5)) == [3, 77]
