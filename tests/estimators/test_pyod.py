"""The adapter behaves as PyOD's own detectors do, in PyOD's own tools."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from pyod.models.knn import KNN
from pyod.models.lscp import LSCP
from pyod.utils.data import evaluate_print, generate_data
from pyod.utils.utility import precision_n_scores
from sklearn.base import BaseEstimator, clone, is_outlier_detector
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from saccade._core.errors import InvalidParameter
from saccade.estimators.one_class import OneClassGP
from saccade.estimators.pyod import PyODDetector
from saccade.estimators.svdd import SVDD
from saccade.kernels import RBF
from saccade.scores.novelty import ROUNDING

Array = np.ndarray[Any, np.dtype[Any]]
DETECTORS = {
    "SVDD": SVDD(RBF(4.0), nu=0.2),  # 0.1 is PyOD's share here: its threshold would lie among the ties on the ball
    "OneClassGP": OneClassGP(RBF(4.0)),
    "scikit-learn's": IsolationForest(random_state=0),
}
every_detector = pytest.mark.parametrize("detector", DETECTORS.values(), ids=DETECTORS.keys())


@pytest.fixture(scope="module")
def data() -> tuple[Array, Array, Array, Array]:
    """Training and test rows with their labels, a tenth of them outliers (1)."""
    X, Z, y, truth = generate_data(200, 100, n_features=5, contamination=0.1, random_state=0)
    return X, Z, y, truth


@every_detector
def test_what_every_pyod_detector_has(detector: Any, data: Any, capsys: Any) -> None:
    X, Z, y, truth = data
    model = PyODDetector(detector, contamination=0.1)
    assert model.fit(X) is model
    assert model.decision_scores_.shape == (200,)
    assert set(model.labels_) == {0, 1}
    assert model.labels_.sum() == 20
    np.testing.assert_array_equal(model.labels_, model.decision_scores_ > model.threshold_)
    scores = model.decision_function(Z)
    np.testing.assert_array_equal(model.predict(Z), scores > model.threshold_)
    np.testing.assert_array_equal(-scores, model.detector_.score_samples(Z))
    assert roc_auc_score(truth, scores) > 0.95
    assert roc_auc_score(y, model.decision_scores_) > 0.95
    assert precision_n_scores(truth, scores) > 0.7
    evaluate_print("saccade", truth, scores)
    assert "ROC" in capsys.readouterr().out


@every_detector
def test_probabilities_and_confidence(detector: Any, data: Any) -> None:
    X, Z, _, truth = data
    model = PyODDetector(detector).fit(X)
    for method in ("linear", "unify"):
        P = model.predict_proba(Z, method=method)
        assert P.shape == (100, 2)
        np.testing.assert_allclose(P.sum(axis=1), 1.0)
        assert P[truth == 1, 1].mean() > P[truth == 0, 1].mean() + 0.3
    labels, confidence = model.predict(Z, return_confidence=True)
    np.testing.assert_array_equal(labels, model.predict(Z))
    assert ((confidence >= 0) & (confidence <= 1)).all()


def test_scores_of_training_examples_are_left_out_where_they_can_be(data: Any) -> None:
    X = data[0]
    gp, ball = PyODDetector(OneClassGP(RBF(4.0))).fit(X), PyODDetector(SVDD()).fit(X)
    np.testing.assert_array_equal(gp.decision_scores_, -gp.detector_.leave_one_out_scores_)
    assert (gp.decision_scores_ > gp.decision_function(X)).any()
    np.testing.assert_array_equal(ball.decision_scores_, ball.decision_function(X))


def test_clone_and_parameters(data: Any) -> None:
    detector = SVDD(RBF(1.0), nu=0.3)
    model = PyODDetector(detector, contamination=0.2)
    assert {"detector", "contamination", "detector__nu", "detector__kernel__length_scale"} <= set(model.get_params())
    twin = clone(model).set_params(detector__nu=0.7, detector__kernel__length_scale=4.0)
    assert (twin.detector.nu, twin.contamination, detector.nu) == (0.7, 0.2, 0.3)
    twin.fit(data[0])
    assert twin.detector_.nu == 0.7
    assert twin.detector_ is not twin.detector
    assert not hasattr(twin.detector, "support_")  # what the user handed over stays as it was
    assert is_outlier_detector(twin)
    assert "PyODDetector" in repr(model)


def test_default_detector_and_sparse_rows(data: Any) -> None:
    X = np.abs(data[0])
    model = PyODDetector().fit(sp.csr_matrix(X))
    assert isinstance(model.detector_, OneClassGP)
    np.testing.assert_allclose(model.decision_function(sp.csr_matrix(X)), model.decision_function(X), rtol=1e-9)


def test_works_inside_an_ensemble_of_pyods(data: Any) -> None:
    X, Z, _, truth = data
    group = LSCP([PyODDetector(SVDD(RBF(4.0), nu=0.1)), KNN()], n_bins=2, random_state=0).fit(X)
    assert roc_auc_score(truth, group.decision_function(Z)) > 0.95


@pytest.mark.parametrize("share", [0.0, -0.1, 0.51, 2])
def test_contamination_out_of_range(share: Any, data: Any) -> None:
    with pytest.raises(ValueError, match=r"contamination must be in \(0, 0.5\]"):
        PyODDetector(contamination=share)
    model = PyODDetector(SVDD()).set_params(contamination=share)
    with pytest.raises(InvalidParameter, match=r"`contamination` must be above 0 and at most 0\.5, got "):
        model.fit(data[0])


def test_not_fitted_and_the_limit(data: Any) -> None:
    with pytest.raises(NotFittedError):
        PyODDetector(SVDD()).decision_function(data[0])
    assert PyODDetector(SVDD(), contamination=0.5).fit(data[0]).labels_.sum() == 100
    for bad in (True, "auto", None):
        with pytest.raises(InvalidParameter, match="`contamination`"):
            PyODDetector(SVDD()).set_params(contamination=bad).fit(data[0])


def test_missing_pyod_is_named(monkeypatch: Any) -> None:
    monkeypatch.delitem(sys.modules, "saccade.estimators.pyod")
    monkeypatch.setitem(sys.modules, "pyod.models.base", None)
    with pytest.raises(ModuleNotFoundError, match="PyODDetector needs PyOD: pip install pyod"):
        __import__("saccade.estimators.pyod")


def test_examples_that_score_alike_are_no_outliers() -> None:
    rows = np.tile(np.random.default_rng(0).random((1, 4)), (40, 1))
    model = PyODDetector(SVDD(RBF(4.0)), contamination=0.1).fit(rows)
    assert not model.labels_.any()
    assert not model.predict(rows[:3]).any()
    assert model.predict(rows[:1] + 9.0) == [1]


class TwiceTheMedian:
    """A threshold of one's own, with what PyOD asks of PyThresh."""

    def fit(self, scores: Array) -> None:
        self.thresh_ = 2.0 * float(np.median(scores))
        self.labels_ = self.predict(scores)

    def predict(self, scores: Array) -> Array:
        return (scores > self.thresh_).astype(int)

    def eval(self, scores: Array) -> Array:  # what older versions of PyOD call
        self.fit(scores)
        return self.labels_


def test_a_threshold_of_ones_own(data: Any) -> None:
    X, Z, _, truth = data
    model = PyODDetector(SVDD(RBF(4.0), nu=0.2), contamination=TwiceTheMedian()).fit(X)
    scores = model.decision_function(Z)
    np.testing.assert_array_equal(model.predict(Z), scores > 2.0 * np.median(model.decision_scores_))
    assert model.predict(Z)[truth == 1].mean() > 0.8


class Given(BaseEstimator):
    """A detector that scores a row by its first column."""

    def fit(self, X: Array) -> Given:
        return self

    def score_samples(self, X: Array) -> Array:
        return -X[:, 0]


def test_rounding_is_relative_to_large_scores_and_the_threshold_itself_is_normal() -> None:
    low = [1.0, 2.0, 3.0]
    large = PyODDetector(Given(), contamination=0.25).fit(np.array([*low, 1e6, 1e6 * (1.0 + 1e-13)])[:, None])
    assert not large.labels_.any()
    far = PyODDetector(Given(), contamination=0.25).fit(np.array([*low, 1e6, 1e6 * (1.0 + 1e-11)])[:, None])
    assert far.labels_.tolist() == [0, 0, 0, 0, 1]
    small = PyODDetector(Given(), contamination=0.25).fit(np.array([0.0, 0.0, 0.0, 0.0, ROUNDING])[:, None])
    assert small.threshold_ == ROUNDING
    assert not small.labels_.any()
    assert not small.predict(np.full((1, 1), ROUNDING)).any()
