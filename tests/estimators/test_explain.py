"""Shares of features: each is the function of that feature written out, and all of them sum to the decision."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import saccade
from saccade import GPClassifier, GPRegressor, OneClassGP
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.estimators.explanation import decision_number
from saccade.kernels import HIK, RBF, Power, Weights
from tests.tolerances import assert_close

rng = np.random.default_rng(0)
X = np.round(rng.random((60, 5)) * 6.0 - 1.0) / 5.0  # signed, zeros and ties
X[:, 3] = rng.random(60)
X[7] = 0.0
NEW = np.vstack([X[:9] * 1.5, -X[9:18], np.zeros((1, 5))])
three = (X[:, 0] > X[:, 1]).astype(int) + (X[:, 3] > 0.7)
two = np.where(three > 0, "yes", "no")
numbers = np.column_stack([X[:, 3] + 7.0, 5.0 * X[:, 0]])

MODELS = [
    (GPClassifier(HIK(Power(0.5))), three),
    (GPClassifier(levels=3), two),
    (GPClassifier(inference="laplace"), three),
    (GPClassifier(inference="ep", balanced=True), two),
    (GPRegressor(HIK([Weights([1.0, 2.0, 0.0, 1.0, 3.0])])), numbers),
    (GPRegressor(normalize_y=False), numbers[:, 0]),
    (GPRegressor(mean=3.0), numbers[:, 0]),
    (OneClassGP(measure="mean", scale=None), None),
    (OneClassGP(measure="mean", approximation="parzen", scale=None), None),
]


def decision(model: Any, Z: Any) -> Any:
    found = model.predict(Z) if isinstance(model, GPRegressor) else model.decision_function(Z)
    return found.reshape(Z.shape[0], -1)


@pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda part: repr(part)[:60])
@pytest.mark.parametrize("sparse", [False, True])
def test_shares_sum_to_the_decision(model: Any, y: Any, sparse: bool, tmp_path: Path) -> None:
    kind = sp.csr_matrix if sparse else np.asarray
    model.fit(kind(X), y)
    found = model.explain(kind(NEW))
    expected = decision(model, kind(NEW))
    assert len(found.shares) == expected.shape[1]
    np.testing.assert_allclose(found.decision(), expected, rtol=0, atol=1e-10)
    for part in found.shares:
        assert part.shape == NEW.shape
        assert part.has_canonical_format
        assert (part.toarray()[NEW == 0] == 0).all()
    np.testing.assert_allclose(found.offset, found.decision()[-1], rtol=0, atol=0)  # no feature, no share
    if model.get_params().get("approximation") == "parzen":
        return  # its variance does not fit into a file, and is not asked for
    model.save(tmp_path / "m.saccade")
    loaded = saccade.load(tmp_path / "m.saccade")
    again = loaded.explain(kind(NEW))
    np.testing.assert_allclose(again.decision(), decision(loaded, kind(NEW)), rtol=0, atol=1e-10)


@pytest.mark.parametrize("levels", [None, 3])
def test_each_share_is_the_function_of_its_feature(levels: int | None) -> None:
    model = GPClassifier(HIK(Power(0.5)), levels=levels).fit(X, three)
    G, g = (
        model.kernel_.features(Z).toarray() for Z in (model.gp_.gram.all_rows(), NEW)
    )  # positive, then negative parts
    parts = np.stack([np.minimum(a[:, None], b) @ model.gp_.solution.alpha for a, b in zip(g.T, G.T, strict=True)])
    expected = parts[:5] + parts[5:]  # (d, n, m)
    for j, part in enumerate(model.explain(NEW).shares):
        assert_close(part.toarray(), expected[:, :, j].T)


@given(
    st.lists(st.lists(st.integers(-2, 3), min_size=3, max_size=3), min_size=1, max_size=6),
    st.integers(1, 3),
)
def test_ties_zeros_and_signs(rows: list[list[int]], outputs: int) -> None:
    Z = np.array(rows, float)
    y = rng.normal(size=(len(Z), outputs))
    model = GPRegressor(noise=0.01).fit(Z, y)
    shares = model.explain(Z)
    assert_close(shares.decision(), model.predict(Z))
    for column in range(3):  # a feature alone has its own share
        alone = np.zeros_like(Z)
        alone[:, column] = Z[:, column]
        single = np.stack([part.toarray()[:, column] for part in shares.shares], axis=1)
        np.testing.assert_allclose(single, model.predict(alone) - shares.offset, rtol=1e-9, atol=1e-10)


def test_a_mean_that_is_a_function() -> None:
    model = GPRegressor(mean=lambda Z: 3.0 + Z[:, 0]).fit(X, numbers)
    found = model.explain(NEW)
    np.testing.assert_allclose(found.offset, np.tile(3.0 + NEW[:, :1], 2), rtol=1e-12)
    np.testing.assert_allclose(found.decision(), model.predict(NEW), rtol=0, atol=1e-10)


def test_matrices_stand_on_their_own() -> None:
    rows = sp.csr_matrix(np.abs(X))
    model = GPClassifier().fit(rows, three)
    found = model.explain(rows)
    found.shares[0].data[::2] = 0.0
    found.shares[0].eliminate_zeros()  # in place
    np.testing.assert_array_equal(rows.toarray(), np.abs(X))
    np.testing.assert_array_equal(found.shares[1].toarray(), model.explain(rows).shares[1].toarray())


def test_quantised_tables_sum_in_single_precision() -> None:
    model = GPClassifier().fit(X, three).quantized(64)
    np.testing.assert_allclose(model.explain(NEW).decision(), model.decision_function(NEW), rtol=0, atol=1e-5)


def test_two_classes_share_a_column() -> None:
    model = GPClassifier().fit(X, two)
    found = model.explain(NEW)
    np.testing.assert_array_equal(found.of(3, 1).toarray(), found.shares[0][3].toarray())
    np.testing.assert_array_equal(found.of(3, 0).toarray(), -found.shares[0][3].toarray())
    np.testing.assert_array_equal(found.of(3, 1, against=0).toarray(), 2 * found.shares[0][3].toarray())
    third = GPClassifier().fit(X, three).explain(NEW)
    difference = third.shares[2][3].toarray() - third.shares[0][3].toarray()
    np.testing.assert_array_equal(third.of(3, 2, against=0).toarray(), difference)
    one = GPRegressor().fit(X, numbers[:, 0]).explain(NEW)
    np.testing.assert_array_equal(one.of(3).toarray(), one.shares[0][3].toarray())


def test_the_number_of_a_decision() -> None:
    """Of a class by its label, of a target by its number; None where there is one to ask for."""
    one, several = GPRegressor().fit(X, numbers[:, 0]), GPRegressor().fit(X, numbers)
    assert decision_number(one, None) == decision_number(one, 0) == 0
    assert [decision_number(several, target) for target in (None, 0, 1)] == [0, 0, 1]
    with pytest.raises(InvalidInput, match="a target from 0 to 1, got 2"):
        decision_number(several, 2)
    with pytest.raises(InvalidParameter, match="number of a target"):
        decision_number(several, -1)
    both = GPClassifier().fit(X, two)
    assert [decision_number(both, label) for label in (None, "no", "yes")] == [1, 0, 1]
    assert decision_number(GPClassifier().fit(X, three), 2) == 2
    with pytest.raises(InvalidInput, match="one of the classes"):
        decision_number(GPClassifier().fit(X, three), None)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (GPClassifier(RBF()), "A RBF model is no sum over features"),
        (OneClassGP(), 'measure="mean"'),
        (OneClassGP(measure="variance"), "takes the variance"),
    ],
    ids=repr,
)
def test_what_is_no_sum_has_no_shares(model: Any, words: str) -> None:
    model.fit(X, two)
    with pytest.raises(InvalidInput, match=words):
        model.explain(NEW)


def test_bad_rows() -> None:
    with pytest.raises(NotFittedError):
        GPClassifier().explain(NEW)
    model = GPClassifier().fit(X, two)
    with pytest.raises(ValueError, match="NaN"):
        model.explain(np.full((1, 5), np.nan))
    with pytest.raises(ValueError, match="features"):
        model.explain(np.ones((1, 4)))
