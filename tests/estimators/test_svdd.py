"""SVDD against scikit-learn's OneClassSVM, a generic quadratic program, and scikit-learn's conventions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

from saccade import load
from saccade._core import limits, model_file
from saccade._core.errors import InvalidInput, InvalidParameter, ModelFileError
from saccade.datasets.embedded import digits
from saccade.estimators import svdd
from saccade.estimators.svdd import SVDD, Ball
from saccade.kernels import HIK, RBF, Centred, GeneralizedRBF, Kernel, Laplacian, Linear, Power
from tests.operators.histograms import histograms
from tests.solvers.test_smo import distances, generic
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
NUS = [0.05, 0.1, 0.3, 0.5, 0.75, 0.9]


@pytest.fixture(scope="module")
def zeros() -> Array:
    X, y = digits()
    return np.asarray(X[y == 0])  # (178, 64) pictures of unequal brightness


@parametrize_with_checks([SVDD(), SVDD(RBF(length_scale=3.0), nu=0.1)])
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("kernel", [RBF(2.0), Laplacian(0.1), GeneralizedRBF(HIK(), 0.7)], ids=str)
def test_equals_one_class_svm_where_self_similarity_is_constant(zeros: Array, kernel: Kernel, nu: float) -> None:
    """With k(x, x) = κ and libsvm's α = νn times ours, R² − ‖Φ(x) − c‖² = 2 (Σ α_i k(x_i, x) − ρ) / (νn)."""
    X, Z = zeros[:120], np.vstack([zeros[120:], digits()[0][:50]])
    model = SVDD(kernel, nu=nu, tol=1e-10).fit(X)
    K, k = model.kernel_(X), model.kernel_(Z, X)
    peer = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-10).fit(K)
    share = nu * len(X)
    alpha, theirs = np.zeros(len(X)), np.zeros(len(X))
    alpha[model.support_] = model.dual_coef_ * share
    theirs[peer.support_] = peer.dual_coef_[0]
    single = 2e-7  # libsvm keeps kernel values in float32
    np.testing.assert_allclose(alpha, theirs, atol=1e-4)
    np.testing.assert_array_equal(alpha > 1e-3, theirs > 1e-3)
    expected = 2.0 * peer.decision_function(k) / share
    np.testing.assert_allclose(model.decision_function(Z), expected, atol=single)
    assert (np.diff(expected[np.argsort(model.score_samples(Z))]) > -single).all()  # the same ranking
    decided = abs(expected) > single
    np.testing.assert_array_equal(model.predict(Z)[decided], peer.predict(k)[decided])


@pytest.mark.parametrize("nu", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("kernel", [HIK(), HIK(Power(0.5), scale=1.0), Linear()], ids=str)
def test_equals_a_generic_quadratic_program_where_it_is_not(zeros: Array, kernel: Kernel, nu: float) -> None:
    X, Z = zeros[:30], np.vstack([zeros[30:], digits()[0][:50]])
    model = SVDD(kernel, nu=nu, tol=1e-9).fit(X)
    K, k, own = model.kernel_(X), model.kernel_(Z, X), model.kernel_.diag(Z)
    alpha = generic(K, nu)
    distance, bound = distances(K, alpha), 1.0 / (nu * len(X))
    expected = own - 2.0 * k @ alpha + alpha @ K @ alpha
    np.testing.assert_allclose(-model.score_samples(Z), expected, rtol=1e-5)
    slack = 1e-5 * distance.max()
    assert distance[alpha < 1e-5 * bound].max(initial=0.0) <= model.radius_**2 + slack
    assert distance[alpha > (1 - 1e-5) * bound].min(initial=np.inf) >= model.radius_**2 - slack


@settings(max_examples=60)
@given(X=histograms(), nu=st.sampled_from([0.05, 0.2, 0.34, 0.5, 0.8, 1.0]), signed=st.booleans())
def test_nu_bounds_outliers_and_support(X: Array, nu: float, signed: bool) -> None:
    """O §4: at most a share ν outside, at least a share ν with weight; and the formula of the distance."""
    X = X - 0.25 * (X > 0) if signed else X
    for kernel in (HIK(), RBF(0.5)):
        model = SVDD(kernel, nu=nu).fit(X)
        assert (model.predict(X) == -1).sum() <= nu * len(X) + 1e-9
        assert model.support_.size >= nu * len(X) - 1e-9
        alpha = np.zeros(len(X))
        alpha[model.support_] = model.dual_coef_
        assert_close(alpha.sum(), 1.0)
        scale = 1.0 + model.kernel_.diag(X).max()
        expected = distances(model.kernel_(X), alpha)
        np.testing.assert_allclose(-model.score_samples(X), expected, atol=1e-12 * scale)
        assert_close(model.decision_function(X), model.score_samples(X) - model.offset_)
        known_to = model.residual_ + 2 * svdd.ROUNDING * scale  # an example on the surface counts as inside
        np.testing.assert_allclose(model.offset_, -(model.radius_**2), atol=known_to)


def test_notices_other_digits(zeros: Array) -> None:
    X, y = digits()
    model = SVDD(nu=0.1).fit(zeros[:100])
    Z = np.vstack([zeros[100:], X[y != 0]])
    truth = np.arange(len(Z)) < len(zeros) - 100
    assert roc_auc_score(truth, model.score_samples(Z)) > 0.98


def test_sparse_input_and_names_of_features(zeros: Array) -> None:
    plain = SVDD(nu=0.2).fit(zeros)
    for kernel in (None, RBF(2.0)):
        dense = SVDD(kernel, nu=0.2, tol=1e-9).fit(zeros)
        sparse = SVDD(kernel, nu=0.2, tol=1e-9).fit(sp.csr_array(zeros))
        np.testing.assert_allclose(sparse.score_samples(sp.csr_array(zeros)), dense.score_samples(zeros), rtol=1e-7)
    frame = pd.DataFrame(zeros, columns=[f"pixel {k}" for k in range(64)])
    named = SVDD(nu=0.2).fit(frame)
    assert named.feature_names_in_[3] == "pixel 3"
    np.testing.assert_array_equal(named.score_samples(frame), plain.score_samples(zeros))
    with pytest.raises(ValueError, match="feature names"):
        named.predict(frame[frame.columns[::-1]])


def test_levels_are_close_to_exact(zeros: Array) -> None:
    X = zeros + 0.01 * np.random.default_rng(0).random(zeros.shape)
    exact, binned = SVDD().fit(X), SVDD(levels=32).fit(X)
    assert binned.tables_.levels.size < exact.tables_.levels.size / 2
    np.testing.assert_allclose(binned.score_samples(X), exact.score_samples(X), atol=0.01)


@pytest.mark.parametrize("nu", [0.05, 0.5])
def test_many_examples_are_never_written_out(zeros: Array, nu: float, monkeypatch: Any) -> None:
    """Working sets, and for other kernels than HIK blocks of columns, find the same ball."""
    makers = (SVDD(), SVDD(levels=6), SVDD(Laplacian(0.1)))
    whole = [clone(maker).set_params(nu=nu, tol=1e-9).fit(zeros) for maker in makers]
    monkeypatch.setattr(limits, "WORKING_SET", 20)
    monkeypatch.setattr(limits, "SVDD_DENSE_UP_TO", 10)
    monkeypatch.setattr(limits, "KERNEL_VALUES_AT_ONCE", 100)
    for maker, before in zip(makers, whole, strict=True):
        model = clone(maker).set_params(nu=nu, tol=1e-9).fit(zeros)
        np.testing.assert_allclose(model.radius_, before.radius_, rtol=1e-7)
        np.testing.assert_allclose(model.score_samples(zeros), before.score_samples(zeros), rtol=1e-6)


def test_centring_the_kernel_moves_the_ball_with_it(zeros: Array) -> None:
    """Distances do not know where the origin is."""
    plain, centred = (SVDD(k, nu=0.3, tol=1e-9).fit(zeros[:100]) for k in (HIK(), Centred(HIK())))
    np.testing.assert_allclose(centred.score_samples(zeros), plain.score_samples(zeros), rtol=1e-6)
    np.testing.assert_allclose(centred.radius_, plain.radius_, rtol=1e-6)


@pytest.mark.parametrize("kernel", [HIK(), RBF()], ids=str)
@pytest.mark.parametrize("nu", [0.2, 1.0])
def test_one_example_copies_and_empty_rows(kernel: Kernel, nu: float) -> None:
    """A ball of no size holds the example itself and nothing else."""
    for X in ([[1.0, 2.0]], [[1.0, 2.0]] * 6, [[0.0, 0.0]] * 4):
        model = SVDD(kernel, nu=nu).fit(X)
        assert model.radius_ < 1e-6
        assert (model.predict(X) == 1).all()
        assert model.predict([[3.0, 0.5]]) == -1
        assert model.converged_
    mixed = SVDD(kernel, nu=0.5).fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert np.isfinite(mixed.score_samples([[0.0, 0.0], [5.0, 5.0]])).all()


@pytest.mark.parametrize("nu", [0, -1.0, 1.5, np.nan, "0.5", None, True])
def test_nu_out_of_range(nu: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"`nu` must be above 0 and at most 1, got .* try 0\.1"):
        SVDD(nu=nu).fit([[1.0], [2.0]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rbf"}, "`kernel` must be a kernel such as HIK"),
        ({"tol": 0.0}, "`tol` must be positive, got 0.0"),
        ({"max_iter": 0}, "`max_iter` must be a whole number from 1 on, got 0"),
        ({"levels": 1}, "`levels` must be None"),
        ({"kernel": RBF(-1.0)}, "`length_scale` must be positive"),
    ],
)
def test_bad_parameters_are_named_and_leave_the_model_as_it_was(parameters: dict[str, Any], message: str) -> None:
    X = [[1.0, 0.0], [0.5, 1.0], [0.2, 0.3]]
    model = SVDD(nu=0.5).fit(X)
    before = model.score_samples(X)
    model.set_params(**parameters)
    with pytest.raises(InvalidParameter, match=message):
        model.fit([[3.0, 3.0], [4.0, 4.0]])
    np.testing.assert_array_equal(model.score_samples(X), before)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="NaN"):
        SVDD().fit([[np.nan], [1.0]])
    with pytest.raises(ValueError, match="0 sample"):
        SVDD().fit(np.zeros((0, 3)))
    with pytest.raises(NotFittedError):
        SVDD().predict([[1.0]])
    with pytest.raises(InvalidInput, match="cannot invert"):
        SVDD().fit(np.full((3, 2), 1e-320))


def test_stopping_early_warns_with_what_to_change(zeros: Array) -> None:
    with pytest.warns(ConvergenceWarning, match=r"after 2 moves.*Raise `max_iter` \(now 2\) or `tol`"):
        model = SVDD(nu=0.1, max_iter=2).fit(zeros)
    assert not model.converged_
    assert model.n_iter_ == 2
    assert np.isfinite(model.score_samples(zeros)).all()


def test_parameters_round_trip(zeros: Array) -> None:
    model = SVDD(RBF(2.0), nu=0.2, tol=1e-4)
    twin = clone(model).set_params(kernel__length_scale=3.0)
    assert (model.kernel.length_scale, twin.kernel.length_scale, twin.nu, twin.tol) == (2.0, 3.0, 0.2, 1e-4)
    assert SVDD().get_params() == {"kernel": None, "nu": 0.5, "levels": None, "tol": 1e-6, "max_iter": 10_000_000}


def test_a_file_has_all_the_ball_needs_and_no_example(zeros: Array, tmp_path: Any) -> None:
    model = SVDD(nu=0.2).fit(zeros)
    model.save(tmp_path / "m.saccade")
    header, tensors = model_file.read(tmp_path / "m.saccade")
    assert header["estimator"] == "SVDD"
    assert sum(array.size for name, array in tensors.items() if name != "tops") < zeros.size
    again = load(tmp_path / "m.saccade")
    assert (again.radius_, again.nu) == (model.radius_, 0.2)
    np.testing.assert_array_equal(again.decision_function(zeros), model.decision_function(zeros))
    for name, bad in (("radius", -1.0), ("offset", "x"), ("centre_norm2", np.inf), ("offset", 1.0)):
        with pytest.raises(ModelFileError, match=f"`{name}` must be a number"):
            Ball.from_state(header["extra"] | {name: bad})
    without_tables = SVDD(RBF()).fit(zeros)
    with pytest.warns(UserWarning, match=f"keeps {len(without_tables.support_)} training rows"):
        without_tables.save(tmp_path / "n.saccade")
