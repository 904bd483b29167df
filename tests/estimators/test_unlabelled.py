"""`GPClassifier(unlabelled=…)`: what stands for no label, what is refused, and what a file keeps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import saccade
from saccade import GPClassifier
from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade.estimators.neighbours import drawn

N, LABELS = 90, 12


def heaps() -> tuple[Array, Array]:
    """Three long heaps; the first rows are of all three."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 3
    return 3.0 * np.eye(3)[y] + 2.0 * rng.random((N, 1)) * np.roll(np.eye(3), 1, axis=1)[y] + rng.random((N, 3)), y


X, Y = heaps()
TOLD = np.where(np.arange(N) < LABELS, Y, -1)


def same(a: GPClassifier, b: GPClassifier) -> None:
    assert a.votes_ is not None
    assert b.votes_ is not None
    assert a.votes_.weight == b.votes_.weight
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@pytest.mark.parametrize(
    ("unlabelled", "y"),
    [
        (-1.0, TOLD),
        (-1, TOLD.tolist()),
        (np.nan, np.where(TOLD < 0, np.nan, TOLD)),
        (np.nan, [None if label < 0 else int(label) for label in TOLD]),
        ("?", [("a", "b", "c", "?")[label] for label in TOLD]),
        ("", np.array(["a", "b", "c", ""])[TOLD]),
        (-1, [-1 if label < 0 else "abc"[label] for label in TOLD]),
        (np.nan, np.array([None if label < 0 else "abc"[label] for label in TOLD], object)),
    ],
)
def test_what_stands_for_no_label(unlabelled: Any, y: Any) -> None:
    wanted = GPClassifier(unlabelled=-1).fit(X, TOLD)
    found = clone(GPClassifier(unlabelled=unlabelled)).fit(X, y)
    assert found.classes_.size == 3
    same(found, wanted)


def test_nothing_stands_for_it_unless_said() -> None:
    """−1 is a class like any other, and a gap is an error."""
    assert GPClassifier().fit(X, TOLD).classes_.tolist() == [-1, 0, 1, 2]
    assert GPClassifier(unlabelled=1).fit(X, Y).classes_.tolist() == [0, 2]
    with pytest.raises(InvalidInput, match="must be finite"):
        GPClassifier().fit(X, np.where(TOLD < 0, np.nan, TOLD))


def test_all_labelled_is_the_plain_model() -> None:
    plain, found = GPClassifier().fit(X, Y), GPClassifier(unlabelled=-1).fit(X, Y)
    assert found.votes_ is None
    np.testing.assert_array_equal(found.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize(
    ("unlabelled", "y", "message"),
    [
        (-1, np.full(N, -1), "has no label: all 90 entries are -1"),
        (-1, Y[:-1], "for each of the 90 rows of X, got 89"),
        (-1, np.where(TOLD < 0, np.nan, TOLD), "78 entries that are None or NaN, and `unlabelled` is -1"),
        (-1, np.where(TOLD < 0, -1, 0.5 + TOLD), "Unknown label type"),
    ],
)
def test_labels_that_cannot_be(unlabelled: Any, y: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        GPClassifier(unlabelled=unlabelled).fit(X, y)


@pytest.mark.parametrize("unlabelled", [[-1], True, np.zeros(2)])
def test_what_cannot_stand_in_y(unlabelled: Any) -> None:
    with pytest.raises(InvalidParameter, match="what stands in y for no label"):
        GPClassifier(unlabelled=unlabelled).fit(X, TOLD)


def test_weights_and_sparse_rows() -> None:
    """A row of weight 0 has no vote; sparse rows are the same rows."""
    weight = np.ones(N)
    weight[60:] = 0.0
    weighed = GPClassifier(unlabelled=-1).fit(X, TOLD, sample_weight=weight)
    same(weighed, GPClassifier(unlabelled=-1).fit(X[:60], TOLD[:60]))
    dense, sparse = (GPClassifier(unlabelled=-1).fit(kind(X), TOLD) for kind in (np.asarray, sp.csr_matrix))
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_matrix(X)), dense.predict_proba(X), atol=1e-6)


def test_more_rows_than_are_used() -> None:
    some = drawn(np.arange(5, N), 3, most=20)
    assert some.size == 20
    assert np.isin(some, np.arange(5, N)).all()
    assert drawn(some, 3, most=20) is some


def test_labels_that_come_later_are_voted_on() -> None:
    model = GPClassifier(unlabelled=-1).fit(X, TOLD)
    with pytest.raises(InvalidInput, match="78 rows without a label"):
        model.partial_fit(X, TOLD)
    graph = model.votes_.neighbours if model.votes_ is not None else None
    model.partial_fit(X[LABELS : LABELS + 3], Y[LABELS : LABELS + 3])
    assert model.votes_ is not None
    assert model.votes_.neighbours is graph
    assert model.leave_one_out_decision_.shape == (LABELS + 3, 3)


def pooled() -> GPClassifier:
    """A model in which the votes count."""
    model = GPClassifier(noise=10.0, unlabelled=-1).fit(X, TOLD)
    assert model.votes_ is not None
    assert model.votes_.weight > 0
    return model


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.filterwarnings("ignore:.*keeps 90 training rows")
def test_a_file_keeps_all_rows(kind: Any, tmp_path: Path) -> None:
    model = GPClassifier(noise=10.0, unlabelled=np.nan).fit(kind(X), np.where(TOLD < 0, np.nan, TOLD))
    model.save(tmp_path / "m.saccade")
    same(saccade.load(tmp_path / "m.saccade"), model)


def test_a_file_says_that_it_keeps_rows_or_is_not_written(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="keeps 90 training rows, because rows without labels vote"):
        pooled().save(tmp_path / "m.saccade")
    with pytest.raises(InvalidParameter, match="its file must keep rows"):
        pooled().save(tmp_path / "n.saccade", examples=False)


def test_a_forged_file_makes_no_large_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pooled().save(tmp_path / "m.saccade", examples=True)
    monkeypatch.setattr(limits, "NEIGHBOURS", N - LABELS - 1)
    with pytest.raises(ModelFileError, match="78 rows without a label"):
        saccade.load(tmp_path / "m.saccade")


def test_votes_have_no_shares_of_features() -> None:
    with pytest.raises(InvalidParameter, match="fit it on the labelled rows alone"):
        pooled().explain(X)
