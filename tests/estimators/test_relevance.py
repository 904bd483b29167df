"""Relevance is the spread of each feature's function over the training examples: what moves the answer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.inspection import permutation_importance

from saccade import GPClassifier, GPRegressor, OneClassGP, Tune
from saccade.kernels import HIK, RBF, Power, Weights

rng = np.random.default_rng(0)
X = np.round(rng.random((60, 4)) * 6.0 - 1.0) / 5.0  # signed, zeros and ties
X[:, 3] = rng.random(60)
y = (X[:, 0] > X[:, 1]).astype(int) + (X[:, 3] > 0.7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        GPClassifier(HIK(Power(0.5))),
        GPClassifier(levels=3),
        GPRegressor(HIK([Weights([1.0, 2.0, 0.0, 1.0])])),
        GPClassifier(inference="laplace"),
    ],
    ids=repr,
)
def test_the_spread_of_the_functions_written_out(model: Any, weighted: bool) -> None:
    weight = rng.integers(1, 4, 60).astype(float) if weighted else np.ones(60)
    model.fit(X, y, sample_weight=weight if weighted else None)
    G = model.kernel_.features(model.gp_.gram.all_rows()).toarray()  # positive parts, then negative ones
    parts = np.stack([np.minimum(g[:, None], g) @ model.gp_.solution.alpha for g in G.T])  # (2d, n, m)
    functions = parts[:4] + parts[4:]
    mean = np.average(functions, axis=1, weights=weight)
    squares = np.average(np.square(functions - mean[:, None]), axis=1, weights=weight)
    expected = np.sqrt(squares.sum(axis=1))
    np.testing.assert_allclose(model.feature_relevance_, expected / expected.sum(), rtol=1e-9, atol=1e-12)


def test_one_class_and_many_distinct_values() -> None:
    Z = rng.random((400, 3)) * [1.0, 0.1, 0.0]
    model = OneClassGP(scale=None).fit(Z)
    functions = np.stack([np.minimum(z[:, None], z) @ model.gp_.solution.alpha[:, 0] for z in Z.T])
    expected = functions.std(axis=1) / functions.std(axis=1).sum()
    np.testing.assert_allclose(model.feature_relevance_, expected, rtol=1e-9, atol=1e-12)
    assert model.feature_relevance_[2] == 0.0
    np.testing.assert_array_equal(model.quantized().feature_relevance_, model.feature_relevance_)


def test_rounding_of_a_constant_feature_is_no_relevance() -> None:
    """All features are the same for all examples: no share is made of what rounding leaves."""
    Z = np.tile(rng.random(12), (40, 1))
    np.testing.assert_array_equal(GPRegressor(noise=0.01).fit(Z, rng.random(40)).feature_relevance_, np.zeros(12))
    Z[:, 3] = rng.random(40)
    np.testing.assert_array_equal(GPRegressor().fit(Z, rng.random(40)).feature_relevance_, np.eye(12)[3])


@pytest.mark.parametrize("tune", [None, Tune(objective="evidence", max_evaluations=10)], ids=repr)
def test_a_large_column_that_says_nothing_is_last(tune: Any) -> None:
    """Most of the kernel is this column, and none of the answer."""
    Z = rng.random((120, 4)) + np.array([0.0, 0.0, 0.0, 100.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GPClassifier(HIK(Weights()), tune=tune).fit(Z, Z[:, 0] > Z[:, 1])
    assert set(np.argsort(model.feature_relevance_)[:2]) == {2, 3}
    assert model.feature_relevance_[[0, 1]].sum() > 0.9


def test_iris_as_permuting_its_features_has_it() -> None:
    """Permuted, petals take accuracy away and sepals none."""
    Z, species = load_iris(return_X_y=True)
    model = GPClassifier(HIK(Weights()), tune=Tune(objective="loo", max_evaluations=10)).fit(Z, species)
    permuted = permutation_importance(model, Z, species, n_repeats=5, random_state=0).importances_mean
    assert permuted[:2].max() < 0.02
    assert list(np.argsort(-model.feature_relevance_)[:2]) == list(np.argsort(-permuted)[:2]) == [2, 3]
    assert model.feature_relevance_[:2].max() < 0.5 * model.feature_relevance_[2:].min()


def test_constant_answers_and_kernels_that_are_no_sums() -> None:
    assert GPRegressor().fit(X, np.ones(60)).feature_relevance_.sum() == 0.0
    with pytest.raises(AttributeError, match="permutation_importance"):
        _ = GPClassifier(RBF(1.0)).fit(X, y).feature_relevance_
