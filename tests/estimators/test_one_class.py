"""One-class models against dense algebra, honest refits, and what scikit-learn's users expect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, norm
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from saccade import OneClassGP, load
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade.inference.approximations.by_name import APPROXIMATIONS
from saccade.kernels import HIK, RBF, GeneralizedRBF, Linear
from saccade.operators.tables import GridTables
from saccade.scores.novelty import MEASURES
from tests.operators.histograms import histograms
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
X, y = load_digits(return_X_y=True)
X = X / X.sum(axis=1, keepdims=True)
known, other = X[y == 3], X[y != 3]
train, test = known[:60], np.vstack([known[100:], other[:200]])
label = np.r_[np.ones(len(known) - 100), np.zeros(200)]
KERNELS = [HIK(), GeneralizedRBF(HIK(), "auto"), RBF(0.2)]


def dense(kernel: Any, train: Array, test: Array, noise: float) -> tuple[Array, Array]:
    """μ and σ² by the formulas, O (4) and (5)."""
    kernel = kernel.resolved(train)
    A = np.linalg.inv(kernel(train) + noise * np.eye(len(train)))
    k = kernel(train, test)
    return k.T @ A.sum(axis=1), kernel.diag(test) - np.einsum("ij,ik,kj->j", k, A, k)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_measures_are_the_formulas(kernel: Any) -> None:
    mean, variance = dense(kernel, train, test, 0.1)
    expected = {
        "mean": mean,
        "variance": -variance,
        "ratio": mean / np.sqrt(variance),
        "probability": norm.logpdf(1.0, mean, np.sqrt(variance + 0.1)),
    }
    for measure, scores in expected.items():
        model = OneClassGP(kernel, measure=measure).fit(train)
        np.testing.assert_allclose(model.score_samples(test), scores, rtol=1e-6, atol=1e-8)
        assert roc_auc_score(label, model.score_samples(test)) > 0.9


@pytest.mark.parametrize("inference", ["laplace", "ep"])
@pytest.mark.parametrize("measure", MEASURES)
def test_signs_with_noise_rank_too(inference: str, measure: str) -> None:
    model = OneClassGP(inference=inference, measure=measure).fit(train)
    assert roc_auc_score(label, model.score_samples(test)) > 0.9
    mean, variance = model.latent_mean_and_variance(test)
    if measure == "probability":
        np.testing.assert_allclose(model.score_samples(test), norm.logcdf(mean / np.sqrt(variance + 0.1)))
    assert len(model.changes_) > 2
    assert model.log_marginal_likelihood().value < 0


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("inference", ["regression", "laplace"])
def test_every_approximation_ranks(approximation: str, inference: str) -> None:
    measure = "mean" if approximation == "sor" else "variance"  # the variance of SoR vanishes far from all examples
    options: dict[str, Any] = {"approximation": approximation, "inference": inference, "random_state": 0}
    model = OneClassGP(GeneralizedRBF(HIK(), "auto"), measure=measure, **options).fit(train)
    assert model.variance_method_ == approximation
    if approximation != "optimized-signed":  # A (6) as printed: half of D⁻¹ is negative, and it ranks poorly
        assert roc_auc_score(label, model.score_samples(test)) > 0.85
    assert np.isfinite(model.leave_one_out_scores_).all()
    again = clone(model).fit(train)
    np.testing.assert_array_equal(again.score_samples(test), model.score_samples(test))


@pytest.mark.parametrize("approximation", ["exact", "diagonal", "lowrank"])
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("kernel", KERNELS[1:], ids=lambda k: type(k).__name__)
def test_leave_one_out_is_what_refitting_gives(approximation: str, measure: str, kernel: Any) -> None:
    kernel = kernel.resolved(train[:20])
    options: dict[str, Any] = {"measure": measure, "approximation": approximation, "random_state": 0}
    model = OneClassGP(kernel, **options).fit(train[:20])
    for i in (0, 7, 19):
        without = OneClassGP(kernel, **options).fit(np.delete(train[:20], i, axis=0))
        assert model.leave_one_out_scores_[i] == pytest.approx(without.score_samples(train[[i]])[0], abs=1e-6)


def test_the_threshold_takes_the_share_asked_for() -> None:
    for share in (0.0, 0.1, 0.25, 0.5):
        model = OneClassGP(contamination=share).fit(train)
        assert (model.leave_one_out_scores_ < model.offset_).sum() == int(share * len(train))
        np.testing.assert_allclose(model.decision_function(test), model.score_samples(test) - model.offset_)
        np.testing.assert_array_equal(model.predict(test), np.where(model.decision_function(test) >= 0, 1, -1))
    assert (OneClassGP(contamination=0.0).fit(train).predict(train) == 1).all()


def test_probabilities_are_false_alarm_rates() -> None:
    """Of normal examples a share p scores p or less: the second column is uniform on new normal examples."""
    rng = np.random.default_rng(0)
    normal = rng.gamma(0.5 * np.ones(20), size=(1500, 20))
    normal /= normal.sum(axis=1, keepdims=True)
    p = OneClassGP().fit(normal[:500]).predict_proba(normal[500:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(OneClassGP().fit(normal[:500]).novelty(normal[500:]), p[:, 0])
    assert kstest(p[:, 1], "uniform").statistic < 0.08
    novel = np.eye(20)
    assert OneClassGP().fit(normal[:500]).predict_proba(novel)[:, 1].max() < 0.2


def test_held_out_examples_are_judged_by_the_tables_that_judge_new_ones() -> None:
    """More values in each dimension than the tables have nodes, so there is slack to be counted."""
    rows = np.random.default_rng(0).random((600, 300))
    model = OneClassGP(approximation="lowrank", measure="variance", variance_rank=16).fit(rows)
    held_out = model.gp_.inverse.variance.held_out
    assert held_out.size == model.n_known_ == 150
    scores = model.score_samples(rows[held_out])
    np.testing.assert_allclose(model.leave_one_out_scores_[held_out], scores, rtol=1e-9)
    exact_products = model.kernel_.diag(rows[held_out]) - np.square(model.gp_.inverse.variance.KW[held_out]).sum(axis=1)
    assert (-scores > exact_products + 2e-5).all()
    np.testing.assert_allclose(model.normal_scores_, np.sort(scores), rtol=1e-6)


def test_many_examples_use_tables_and_say_so() -> None:
    rng = np.random.default_rng(0)
    many = sp.random(2500, 300, density=0.1, random_state=0, format="csr", data_rvs=lambda n: rng.gamma(1.0, size=n))
    options: dict[str, Any] = {"measure": "variance", "levels": 100, "random_state": 0}
    model = OneClassGP(variance_rank=32, **options).fit(many)
    assert model.variance_method_ == "lowrank"
    exact = OneClassGP(approximation="exact", solver="cholesky", **options).fit(many)
    assert (model.score_samples(many[:200]) <= exact.score_samples(many[:200]) + 1e-6).all()  # σ̃² ≥ σ²
    assert (model.leave_one_out_scores_ <= exact.leave_one_out_scores_ + 1e-6).all()


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("approximation", ["auto", "lowrank"])
def test_a_file_scores_without_the_examples(measure: str, approximation: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"measure": measure, "approximation": approximation, "contamination": 0.1}
    model = OneClassGP(**options, random_state=0).fit(train)
    model.save(tmp_path / "model.saccade")
    back = load(tmp_path / "model.saccade")
    np.testing.assert_allclose(back.score_samples(test), model.score_samples(test), rtol=1e-4, atol=1e-5)
    assert back.offset_ == pytest.approx(model.offset_, rel=1e-4)  # tables hold float32, and thresholds go with them
    if approximation == "lowrank":
        np.testing.assert_array_equal(back.score_samples(test), model.score_samples(test))
        assert back.offset_ == model.offset_
    np.testing.assert_allclose(back.predict_proba(test), model.predict_proba(test), atol=0.02)
    assert back.contamination == 0.1
    back.save(tmp_path / "again.saccade")
    np.testing.assert_array_equal(load(tmp_path / "again.saccade").predict(test), back.predict(test))


@pytest.mark.parametrize("approximation", [a for a in APPROXIMATIONS if a not in ("exact", "lowrank")])
def test_a_file_never_answers_otherwise_than_the_model(approximation: str, tmp_path: Path) -> None:
    """No tables hold these variances: the file keeps rows, or is refused; the mean, which tables hold, is the same."""
    options: dict[str, Any] = {"approximation": approximation, "random_state": 0}
    judge = OneClassGP(measure="variance", **options).fit(train[:30])
    with pytest.raises(ModelFileError, match=rf'"{approximation}" has no tables, .* approximation="lowrank"'):
        judge.save(tmp_path / "m", examples=False)
    with pytest.raises(ModelFileError, match=rf'"{approximation}" has no tables'):
        judge.quantized(16).save(tmp_path / "m")  # its coarse tables keep values private, and rows would not
    assert not (tmp_path / "m").exists()
    kept = 30 if judge.gp_.support is None else len(judge.gp_.support)
    with pytest.warns(UserWarning, match=rf'keeps {kept} training rows, because .*"{approximation}" has no tables'):
        judge.save(tmp_path / "m")
    assert_close(load(tmp_path / "m").score_samples(test), judge.score_samples(test))
    model = OneClassGP(measure="mean", **options).fit(train[:30])
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    np.testing.assert_array_equal(back.predict(test), model.predict(test))
    np.testing.assert_array_equal(back.score_samples(test), model.score_samples(test))
    mean, variance = back.latent_mean_and_variance(test)  # the variance, which nothing is judged by, is that of tables
    assert back.variance_method_ == "lowrank"
    np.testing.assert_array_equal(mean, model.latent_mean_and_variance(test)[0])
    assert (variance <= model.kernel_.diag(test)).all()


def test_a_file_of_a_quantised_model_is_quantised(tmp_path: Path) -> None:
    """Its tables are what keeps the values of the training examples private."""
    model = OneClassGP(random_state=0).fit(train).quantized(16)
    model.save(tmp_path / "model.saccade")
    back = load(tmp_path / "model.saccade")
    assert isinstance(back.tables_, GridTables)
    assert back.tables_.bins == 16
    np.testing.assert_allclose(back.score_samples(test), model.score_samples(test), atol=0.05)


@pytest.mark.parametrize("inference", ["regression", "laplace", "ep"])
@pytest.mark.parametrize("kernel", [HIK(), RBF(0.2)], ids=lambda k: type(k).__name__)
def test_the_evidence_is_not_that_of_the_approximation(kernel: Any, inference: str) -> None:
    exact = OneClassGP(kernel, inference=inference, approximation="exact").fit(train).log_marginal_likelihood().value
    for approximation in ("diagonal", "fitc", "lowrank", "parzen"):
        model = OneClassGP(kernel, inference=inference, approximation=approximation, random_state=0).fit(train)
        assert model.log_marginal_likelihood().value == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("approximation", ["exact", "diagonal", "lowrank", "fitc"])
def test_single_precision_is_taken_as_double(approximation: str) -> None:
    single = test.astype(np.float32)
    model = OneClassGP(RBF(0.2), approximation=approximation, random_state=0).fit(train)
    np.testing.assert_allclose(model.score_samples(single), model.score_samples(single.astype(np.float64)), rtol=1e-12)


@pytest.mark.parametrize("approximation", ["fitc", "lowrank"])
def test_numbers_beyond_what_floats_can_tell_are_refused(approximation: str) -> None:
    with pytest.raises(InvalidInput, match=r"Raise `noise`|scale the features"):
        OneClassGP(HIK(scale=1.0), approximation=approximation, random_state=0).fit(1e90 * train)


@settings(max_examples=30)
@given(
    rows=histograms(),
    approximation=st.sampled_from(APPROXIMATIONS),
    measure=st.sampled_from(MEASURES),
    inference=st.sampled_from(["regression", "laplace", "ep"]),
)
def test_awkward_histograms(rows: Array, approximation: str, measure: str, inference: str) -> None:
    """One example, equal examples, empty examples: scores stay finite."""
    model = OneClassGP(approximation=approximation, measure=measure, inference=inference, random_state=0).fit(rows)
    assert np.isfinite(model.score_samples(rows)).all()
    assert np.isfinite(model.offset_)
    assert model.predict_proba(rows).min() >= 0.0


def test_one_example_and_equal_examples() -> None:
    one = OneClassGP().fit(train[:1])
    assert one.score_samples(train[:1]) > one.score_samples(other[:1])
    same = OneClassGP().fit(np.repeat(train[:1], 20, axis=0))
    assert same.predict(train[:1]) == [1]
    assert same.predict(other[:1]) == [-1]
    assert (same.leave_one_out_scores_ >= same.offset_).all()


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("kernel", [HIK(), RBF(0.2)], ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("noise", [1e-6, 0.1, 1e3])
def test_equal_examples_are_equal_on_every_processor(approximation: str, kernel: Any, noise: float) -> None:
    """Their left-out scores differ by rounding, and no threshold or p-value may tell them apart."""
    if approximation.startswith("optimized"):
        noise = max(noise, 0.1)  # with less, its optimum is known to a gap and not to rounding
    rows = np.tile(train[:1], (50, 1))
    for measure in MEASURES:
        options: dict[str, Any] = {"noise": noise, "measure": measure, "contamination": 0.05, "random_state": 0}
        model = OneClassGP(kernel, approximation=approximation, **options).fit(rows)
        assert not (model.leave_one_out_scores_ < model.offset_).any()
        assert (model.predict(rows) == 1).all()
        np.testing.assert_allclose(model.predict_proba(rows)[:, 1], 1.0)


@pytest.mark.parametrize("approximation", ["sod", "optimized"])
def test_equal_scores_are_equal_whatever_rounding_says(approximation: str) -> None:
    """Some examples do not count in these: left out or not, their score is the same, also when asked for alone."""
    some = train[:30]
    model = OneClassGP(GeneralizedRBF(HIK(), "auto"), approximation=approximation, random_state=0).fit(some)
    alone = np.vstack([model.predict_proba(row[None]) for row in some])
    np.testing.assert_array_equal(model.predict_proba(some), alone)


def test_training_examples_are_judged_by_the_others() -> None:
    with pytest.raises(AttributeError, match="leave_one_out_scores_ < offset_"):
        OneClassGP().fit_predict(train)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"contamination": 0.6}, "`contamination` must be a number from 0 to 0.5, got 0.6"),
        ({"contamination": -0.1}, "`contamination` must be"),
        ({"contamination": "auto"}, "`contamination` must be"),
        ({"measure": "median"}, "`measure` must be one of"),
        ({"approximation": "vfe"}, "`approximation` must be one of"),
        ({"inference": "mcmc"}, "`inference` must be one of"),
        ({"noise": 0.0}, "`noise` must be positive"),
        ({"approximation": "fitc", "inducing": 0.0}, "`inducing`"),
        ({"approximation": "fitc", "inducing": np.array([0, 99])}, "`inducing`"),
        ({"variance_rank": 0}, "`variance_rank`"),
    ],
)
def test_bad_parameters_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        OneClassGP(**options).fit(train)


def test_a_kernel_that_goes_negative_has_no_diagonal() -> None:
    signed = np.random.default_rng(0).standard_normal((20, 3))
    with pytest.raises(InvalidInput, match="diagonal"):
        OneClassGP(Linear(), approximation="diagonal").fit(signed)
    OneClassGP(Linear(), approximation="lowrank").fit(signed)


def test_a_failed_fit_keeps_the_model() -> None:
    model = OneClassGP().fit(train)
    before = model.score_samples(test)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((3, 64), np.nan))
    np.testing.assert_array_equal(model.score_samples(test), before)


def test_iteration_ends_near_the_exact_answer() -> None:
    rng = np.random.default_rng(0)
    rows, new = rng.random((300, 3)), 1.3 * rng.random((50, 3))
    model, exact = (OneClassGP(RBF(0.5), solver=solver).fit(rows) for solver in ("cg", "cholesky"))
    assert model.n_iter_ > 1
    assert exact.n_iter_ == 1
    scores = exact.score_samples(new)
    assert np.abs(model.score_samples(new) - scores).max() < 0.01 * np.ptp(scores)


def test_novel_is_what_lies_below_the_threshold() -> None:
    rows = np.random.default_rng(0).random((40, 3))
    model = OneClassGP(RBF(0.5)).fit(rows)
    model.offset_ = float(model.score_samples(rows[:1])[0])
    assert model.predict(rows[:1]).tolist() == [1]
    model.offset_ = float(np.nextafter(model.offset_, np.inf))
    assert model.predict(rows[:1]).tolist() == [-1]
