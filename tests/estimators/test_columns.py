"""Tables of columns in different units: scaled inside, saved, trimmed; histograms and pictures stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kstest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import roc_auc_score

from saccade import OneClassGP, load
from saccade._core import model_file
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade.estimators.columns import ColumnScales, have_one_unit
from saccade.kernels import HIK, Centred, GeneralizedRBF, Linear
from saccade.localize import best_window
from saccade.scores.novelty import MEASURES
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
X, y = load_breast_cancer(return_X_y=True)
benign, malignant = X[y == 1], X[y == 0]
train, test = benign[:150], np.vstack([benign[150:], malignant])
label = np.r_[np.zeros(len(benign) - 150), np.ones(len(malignant))]
rng = np.random.default_rng(0)


def test_similarity_is_the_range_less_the_distance() -> None:
    rows = rng.normal(size=(20, 3)) * [1.0, 1e-3, 1e6] + [5.0, 0.0, 1e7]
    K = HIK(scale=1.0)(ColumnScales.of(rows)(rows))
    z = rows / rows.std(axis=0)
    assert_close(K, np.ptp(z, axis=0).sum() - np.abs(z[:, None] - z).sum(axis=2))


def test_columns_of_any_unit_give_the_same_scores() -> None:
    model = OneClassGP().fit(train)
    assert model.columns_ is not None
    unit, shift = 10.0 ** rng.integers(-6, 7, 30), rng.normal(size=30) * X.std(axis=0)
    other = OneClassGP().fit((train + shift) * unit)
    np.testing.assert_allclose(other.score_samples((test + shift) * unit), model.score_samples(test), rtol=1e-6)
    assert roc_auc_score(label, -model.score_samples(test)) > 0.93


@pytest.mark.parametrize("columns", [2, 3, 10, 80])
def test_no_column_hides_the_others(columns: int) -> None:
    rows = rng.random((100, columns))
    rows[:, -1] *= 1e6
    new = rows[:20].copy()
    new[:, 0] += 30.0
    model = OneClassGP().fit(rows)
    assert model.columns_ is not None
    assert (model.novelty(new) > 0.9).all()


def test_histograms_and_pictures_stay_as_they_are() -> None:
    pixels = load_digits().data[:60]
    words = rng.poisson(rng.gamma(0.3, size=300), (40, 300)).astype(float)
    bins = words[:, :20] + 0.1
    histograms = bins / bins.sum(axis=1, keepdims=True)
    for rows in (pixels, words, sp.csr_matrix(words * 1e3 ** rng.random(300)), histograms, sp.csr_matrix(histograms)):
        assert have_one_unit(rows)
        assert OneClassGP().fit(rows).columns_ is None
    assert OneClassGP(HIK()).fit(train).columns_ is None  # a kernel of one's own takes columns as they are
    assert OneClassGP(scale=None).fit(train).columns_ is None
    assert OneClassGP(GeneralizedRBF(HIK(), "auto"), scale="columns").fit(train).columns_ is not None


def test_histograms_are_judged_as_before_columns_could_be_scaled() -> None:
    """The figures of O were made with HIK on all rows as they are."""
    histograms = load_digits().data[:100]
    histograms = histograms / histograms.sum(axis=1, keepdims=True)
    before = OneClassGP(HIK(), scale=None, trim=0.0).fit(histograms[:60])
    model = OneClassGP().fit(histograms[:60])
    np.testing.assert_array_equal(model.score_samples(histograms), before.score_samples(histograms))
    assert model.offset_ == before.offset_


def test_a_few_columns_are_a_table_however_they_are_stored() -> None:
    some = OneClassGP().fit(sp.csr_matrix(train)), OneClassGP().fit(train)
    assert_close(some[0].score_samples(sp.csr_matrix(test)), some[1].score_samples(test))
    wide = rng.random((30, 80))
    assert have_one_unit(wide)
    assert not have_one_unit(wide * 10.0 ** np.linspace(0, 6, 80))


def test_a_centred_linear_kernel_is_a_mahalanobis_distance() -> None:
    """The variance of label regression: σ² (x − x̄)ᵀ (S + σ²I)⁻¹ (x − x̄), S the scatter matrix."""
    rows = (train - train.mean(axis=0)) / train.std(axis=0)
    new = (test - train.mean(axis=0)) / train.std(axis=0)
    model = OneClassGP(Centred(Linear()), measure="variance", noise=2.0).fit(rows)
    inverse = np.linalg.inv(rows.T @ rows + 2.0 * np.eye(30))
    distance = 2.0 * np.einsum("ij,jk,ik->i", new, inverse, new)
    ratio = -model.score_samples(new) / distance
    assert_close(ratio / ratio[0], np.ones_like(ratio))


def test_sparse_columns_are_scaled_when_asked() -> None:
    model, dense = (OneClassGP(scale="columns").fit(rows) for rows in (sp.csr_matrix(train), train))
    assert_close(model.score_samples(sp.csr_matrix(test)), dense.score_samples(test))


@pytest.mark.parametrize("measure", MEASURES)
def test_a_file_scales_too(measure: Any, tmp_path: Path) -> None:
    model = OneClassGP(measure=measure, approximation="lowrank", random_state=0).fit(train)
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    far = np.vstack([test, 10.0 * test[:5], -test[:5]])  # beyond the range of the training examples
    np.testing.assert_array_equal(back.score_samples(far), model.score_samples(far))
    np.testing.assert_array_equal(back.predict(far), model.predict(far))
    back.save(tmp_path / "again")
    np.testing.assert_array_equal(load(tmp_path / "again").novelty(far), back.novelty(far))
    exact = OneClassGP(measure=measure, random_state=0).fit(train[:100])  # few enough for all directions of "lowrank"
    exact.save(tmp_path / "exact")
    loaded = load(tmp_path / "exact")
    assert loaded.n_known_ == exact.n_known_ == 100
    assert loaded.get_params()["scale"] == "columns"  # what a fit with its parameters would do again
    np.testing.assert_allclose(loaded.novelty(far), exact.novelty(far), atol=0.03)


def test_a_file_with_impossible_units_is_refused(tmp_path: Path) -> None:
    OneClassGP(random_state=0).fit(train[:40]).save(tmp_path / "model")
    header, tensors = model_file.read(tmp_path / "model")
    for name, value in (("scores_spread", 0.0), ("scores_low", np.nan)):
        model_file.write(tmp_path / "bad", header, tensors | {name: np.full(30, value)})
        with pytest.raises(ModelFileError):
            load(tmp_path / "bad")
    model_file.write(tmp_path / "bad", header, tensors | {"scores_high": np.ones(29)})
    with pytest.raises(ModelFileError, match="does not describe a model: `high` must be of size 30, got 29"):
        load(tmp_path / "bad")


def test_the_middle_of_two_groups_is_new() -> None:
    groups = rng.normal(size=(200, 2)) * 0.2 + np.sign(rng.random((200, 1)) - 0.5) * 3.0
    model = OneClassGP(scale="columns").fit(groups * [1.0, 1000.0])
    assert model.novelty(np.zeros((1, 2)))[0] > 0.95


def test_trimmed_examples_do_not_train() -> None:
    """Novelties among the training examples: trimming finds others like them."""
    mixed = np.vstack([train, malignant[:15]])
    rest, truth = np.vstack([benign[150:], malignant[15:]]), np.r_[np.zeros(len(benign) - 150), np.ones(197)]
    model, whole = (OneClassGP(trim=trim, contamination=0.1).fit(mixed) for trim in (0.1, 0.0))
    auc = [roc_auc_score(truth, -m.score_samples(rest)) for m in (model, whole)]
    assert auc[0] > auc[1] + 0.002
    assert model.gp_.gram.shape[0] == 165 - 16
    assert model.leave_one_out_scores_.shape == (165,)
    assert (model.leave_one_out_scores_ < model.offset_).sum() == 16
    lowest = np.argsort(whole.leave_one_out_scores_)[:16]
    np.testing.assert_allclose(model.leave_one_out_scores_[lowest], model.score_samples(mixed[lowest]), rtol=1e-8)


@pytest.mark.parametrize("options", [{}, {"trim": 0.1}, {"trim": 0.1, "scale": None}], ids=str)
def test_a_fit_of_the_rows_that_are_kept_gives_the_same_model(options: Any, tmp_path: Path) -> None:
    model = OneClassGP(**options).fit(train)
    np.testing.assert_array_equal(model.training_rows(), train)
    model.save(tmp_path / "model", examples=True)
    again = load(tmp_path / "model")
    assert again.scale == (None if model.columns_ is None else "columns")
    np.testing.assert_array_equal(again.novelty(test), model.novelty(test))
    assert OneClassGP(scale=None).fit(train).rows_ is None  # the posterior has them


def test_false_alarms_of_tables() -> None:
    rows = rng.normal(size=(1500, 6)) * 10.0 ** np.arange(6)
    p = OneClassGP().fit(rows[:500]).predict_proba(rows[500:])[:, 1]
    assert kstest(p, "uniform").statistic < 0.08


def test_what_was_constant_and_is_not() -> None:
    rows = np.column_stack([rng.random(50), 1e6 * rng.random(50), np.full(50, 3.0), np.zeros(50)])
    model = OneClassGP().fit(rows)
    new = rows[:5].copy()
    assert (model.novelty(new) < 1.0).any()
    new[:, 2] = 9.0
    assert (model.novelty(new) > 0.9).all()


def test_equal_rows_and_one_row() -> None:
    rows = np.full((20, 3), 7.0)
    model = OneClassGP().fit(rows)
    assert model.predict(rows[:1]) == [1]
    assert (model.predict(rows[:1] + np.eye(3)) == -1).all()
    with pytest.warns(UserWarning, match="given 1 training example"):
        assert np.isfinite(OneClassGP().fit(rows[:1]).score_samples(rows[:1])).all()


def test_huge_columns() -> None:
    rows = rng.random((40, 3)) * [1.0, 1e200, 1e305]
    assert np.isfinite(OneClassGP().fit(rows).score_samples(rows)).all()
    assert np.isfinite(OneClassGP().fit(1e3 * rows[:, [2]]).score_samples(rows[:, [2]])).all()
    assert not have_one_unit(np.full((3, 3), 1.7e308) * rng.random((3, 1)))
    with pytest.raises(InvalidInput, match="Scale the features"):
        OneClassGP().fit(rows * [1e-300, 1.0, 1.0]).score_samples(np.full((1, 3), 1e308))


def test_shares_are_those_of_columns() -> None:
    model = OneClassGP(measure="mean").fit(train)
    found = model.explain(test)
    assert found.shares[0].shape == test.shape
    np.testing.assert_allclose(found.decision()[:, 0], model.decision_function(test), atol=1e-8)
    assert not hasattr(model, "feature_relevance_")
    with pytest.raises(InvalidInput, match="scale=None"):
        best_window(model, [[1, 1]], [0], (9, 9))


@pytest.mark.parametrize(("options", "message"), [({"scale": "rows"}, "`scale`"), ({"trim": 0.7}, "`trim`")])
def test_bad_parameters(options: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        OneClassGP(**options).fit(train)


def test_a_table_has_fewer_than_fifty_columns() -> None:
    wide = np.random.default_rng(1).random((30, 50))
    assert have_one_unit(wide)
    assert not have_one_unit(wide[:, 1:])
