"""GPClassifier against dense algebra, and what each kind of bad input gets."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from saccade import GPClassifier
from saccade._core import limits
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels import HIK, RBF, Laplacian, Linear, Power, Weights
from saccade.scores.probability import class_means, expected_calibration_error
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
NOISE = 0.1


@pytest.fixture(scope="module")
def digits() -> tuple[Array, Array, Array, Array]:
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, train_size=400, random_state=0, stratify=y)


def dense_means(X: Array, Y: Array, Z: Array, noise: Any = NOISE, transform: Any = lambda x: x) -> Array:
    """k*ᵀ(K + N)⁻¹Y for the automatic scale, written out."""
    A, B = transform(X), transform(Z)
    scale = 1.0 / A.sum(axis=1).mean()
    K = scale * np.minimum(A[:, None], A[None]).sum(axis=2)
    k = scale * np.minimum(B[:, None], A[None]).sum(axis=2)
    if np.ndim(noise) < 2:
        return k @ np.linalg.solve(K + np.diag(np.broadcast_to(noise, len(X))), Y)
    solved = [np.linalg.solve(K + np.diag(n), y) for n, y in zip(noise.T, Y.T, strict=True)]
    return k @ np.column_stack(solved)


def targets(y: Array) -> Array:
    return np.where(y[:, None] == np.unique(y), 1.0, -1.0)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csr_array, np.asfortranarray])
def test_means_are_those_of_dense_algebra(digits: Any, solver: str, container: Any) -> None:
    X, Z, y, _ = digits
    model = GPClassifier(noise=NOISE, solver=solver, tol=1e-10, random_state=0).fit(container(X), y)
    np.testing.assert_allclose(model.decision_function(container(Z)), dense_means(X, targets(y), Z), atol=1e-8)
    assert model.converged_
    assert model.residual_ <= 1e-10


def test_transform_and_weights_reach_the_kernel(digits: Any) -> None:
    X, Z, y, _ = digits
    w = np.linspace(0.0, 2.0, X.shape[1])
    model = GPClassifier(HIK([Power(0.5), Weights(w)]), noise=NOISE).fit(X, y)
    expected = dense_means(X, targets(y), Z, transform=lambda x: np.sqrt(x) * w)
    np.testing.assert_allclose(model.decision_function(Z), expected, atol=1e-8)


def test_balanced_noise(digits: Any) -> None:
    X, Z, y, _ = digits
    Y = targets(y)
    share = np.where(Y > 0, (Y > 0).mean(axis=0), (Y < 0).mean(axis=0))
    expected = dense_means(X, Y, Z, noise=2.0 * NOISE * share)
    for solver in ("cholesky", "cg"):
        model = GPClassifier(noise=NOISE, balanced=True, solver=solver, tol=1e-9, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.decision_function(Z), expected, atol=1e-6)


def test_sample_weight_is_noise(digits: Any) -> None:
    X, Z, y, _ = digits
    weight = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    model = GPClassifier(HIK(scale=1.0 / 300), noise=NOISE).fit(X, y, sample_weight=weight)
    K = np.minimum(X[:, None], X[None]).sum(axis=2) / 300
    k = np.minimum(Z[:, None], X[None]).sum(axis=2) / 300
    expected = k @ np.linalg.solve(K + np.diag(NOISE / weight), targets(y))
    np.testing.assert_allclose(model.decision_function(Z), expected, atol=1e-8)


def test_leave_one_out_is_what_leaving_out_gives(digits: Any) -> None:
    X, _, y, _ = digits
    model = GPClassifier(HIK(scale=0.003), noise=NOISE).fit(X, y)
    for i in (0, 17, 399):
        rest = np.delete(np.arange(len(y)), i)
        alone = GPClassifier(HIK(scale=0.003), noise=NOISE).fit(X[rest], y[rest]).decision_function(X[i : i + 1])
        assert_close(model.leave_one_out_decision_[i], alone[0])


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_probabilities_are_calibrated(solver: str) -> None:
    X, y = load_digits(return_X_y=True)
    X, Z, y, truth = train_test_split(X, y, test_size=0.5, random_state=1, stratify=y)
    model = GPClassifier(solver=solver, random_state=0).fit(X, y)
    P = model.predict_proba(Z)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert expected_calibration_error(P, truth) <= 0.03
    assert model.score(Z, truth) >= 0.94
    assert log_loss(truth, P) <= 0.2


def test_latent_variance_is_that_of_dense_algebra(digits: Any) -> None:
    X, Z, y, _ = digits
    K, k = (np.minimum(A[:, None], X[None]).sum(axis=2) * 0.003 for A in (X, Z[:70]))
    expected = Z[:70].sum(axis=1) * 0.003 - np.einsum("ij,ji->i", k, np.linalg.solve(K + NOISE * np.eye(len(X)), k.T))
    for solver in ("cholesky", "cg"):
        model = GPClassifier(HIK(scale=0.003), noise=NOISE, solver=solver, tol=1e-9, variance="exact").fit(X, y)
        mean, variance = model.latent_mean_and_variance(Z[:70])
        np.testing.assert_allclose(variance, expected, rtol=1e-6)
        np.testing.assert_array_equal(mean, model.decision_function(Z[:70]))


def test_partial_fit_is_fit_on_everything(digits: Any) -> None:
    X, Z, y, _ = digits
    whole = GPClassifier(noise=NOISE, random_state=0, solver="cg", tol=1e-9).fit(X, y)
    parts = GPClassifier(noise=NOISE, random_state=0, solver="cg", tol=1e-9)
    for rows in np.array_split(np.arange(len(y)), 3):
        parts.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(parts.decision_function(Z), whole.decision_function(Z), atol=1e-7)
    assert_close(parts.kernel_.scale, whole.kernel_.scale)


def test_partial_fit_takes_new_classes_and_negative_values(digits: Any) -> None:
    X, Z, y, _ = digits
    for low in (2, 5):  # from two classes (one column) and from five
        old = y < low
        model = GPClassifier(solver="cg", tol=1e-9, random_state=0).fit(X[old], y[old])
        model.partial_fit(X[~old], y[~old])
        np.testing.assert_allclose(model.decision_function(Z), dense_means(X, targets(y), Z), atol=1e-6)
    signed = X - 8.0
    model = GPClassifier(tol=1e-9).fit(X, y).partial_fit(signed, y)
    both = GPClassifier(tol=1e-9).fit(np.vstack([X, signed]), np.append(y, y))
    np.testing.assert_allclose(model.decision_function(Z), both.decision_function(Z), atol=1e-8)


def test_partial_fit_with_classes_to_come(digits: Any) -> None:
    X, Z, y, truth = digits
    model = GPClassifier().partial_fit(X[y == 3], y[y == 3], classes=np.arange(10))
    assert model.predict_proba(Z).shape == (len(Z), 10)
    model.partial_fit(X[y != 3], y[y != 3])
    assert model.score(Z, truth) > 0.9
    with pytest.raises(InvalidInput, match="'x'"):
        GPClassifier().partial_fit(X[:2], ["x", "y"], classes=["a", "y"])


def test_partial_fit_with_levels_keeps_them(digits: Any) -> None:
    X, Z, y, truth = digits
    model = GPClassifier(levels=8).fit(X[:200], y[:200])
    before = model.tables_.levels / model.kernel_.scale
    model.partial_fit(X[200:], y[200:])
    assert_close(model.tables_.levels / model.kernel_.scale, before)
    assert model.score(Z, truth) > 0.9


@pytest.mark.parametrize("binning", ["quantile", "width"])
def test_levels_come_close_to_exact(binning: str) -> None:
    X, y = make_classification(1200, 20, n_informative=8, random_state=0)
    exact = GPClassifier().fit(X[:800], y[:800])
    binned = GPClassifier(levels=255, binning=binning).fit(X[:800], y[:800])
    assert np.abs(exact.decision_function(X) - binned.decision_function(X)).max() < 0.2
    assert binned.score(X[800:], y[800:]) == pytest.approx(exact.score(X[800:], y[800:]), abs=0.02)


def test_quantized_model_is_close_and_smaller(digits: Any) -> None:
    X, Z, y, _ = digits
    rng = np.random.default_rng(0)
    X, Z = X + rng.random(X.shape), Z + rng.random(Z.shape)
    model = GPClassifier().fit(X, y)
    fast = model.quantized(64)
    assert np.abs(model.decision_function(Z) - fast.decision_function(Z)).max() < 0.1
    assert fast.tables_.T.nbytes < model.tables_.T.nbytes
    assert (fast.predict(Z) == model.predict(Z)).mean() > 0.98
    with pytest.raises(InvalidParameter, match="bins"):
        model.quantized(1)
    with pytest.raises(InvalidInput, match="not quantised yet"):
        fast.quantized()


def test_other_kernels(digits: Any) -> None:
    X, Z, y, truth = digits
    for kernel in (RBF(20.0), Laplacian(0.01), HIK() + RBF(20.0)):
        model = GPClassifier(kernel).fit(X, y)
        assert model.score(Z, truth) > 0.93
        assert (model.latent_mean_and_variance(Z)[1] >= 0).all()


def test_fits_into_pipelines_frames_and_searches(digits: Any) -> None:
    X, _, y, _ = digits
    frame = pd.DataFrame(X, columns=[f"pixel {k}" for k in range(X.shape[1])])
    model = GPClassifier().fit(frame, y)
    assert list(model.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame.copy()))
    signed = make_pipeline(StandardScaler(), GPClassifier()).fit(X, y)
    assert signed.score(X, y) > 0.97
    search = GridSearchCV(GPClassifier(HIK(Power(1.0))), {"kernel__transform__eta": [0.3, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_["kernel__transform__eta"] in (0.3, 1.0)


def test_two_threads_counts_give_one_answer(digits: Any, monkeypatch: Any) -> None:
    X, Z, y, _ = digits
    answers = []
    for threads in ("1", "3"):
        monkeypatch.setenv("SACCADE_NUM_THREADS", threads)
        answers.append(GPClassifier(solver="cg", tol=1e-9, random_state=0).fit(X, y).decision_function(Z))
    np.testing.assert_allclose(*answers, atol=1e-7)


@pytest.mark.parametrize("kernel", [HIK(), RBF(20.0)])
def test_an_interrupted_fit_changes_nothing(digits: Any, monkeypatch: Any, kernel: Any) -> None:
    X, Z, y, _ = digits
    model = GPClassifier(kernel).fit(X, y)
    before = model.predict_proba(Z)

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("saccade.inference.posterior.gp.solve", interrupt)
        patch.setattr("saccade.inference.posterior.gp.grown", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, np.full(len(y), 77))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[:50], y[:50])
    np.testing.assert_array_equal(model.predict_proba(Z), before)
    model.partial_fit(X, y)  # and it goes on
    assert model.classes_.size == 10


def test_the_callers_array_may_change_after_fit(digits: Any) -> None:
    X, Z, y, _ = digits
    mine = X.copy()
    model = GPClassifier(RBF(20.0)).fit(mine, y)
    before = model.predict_proba(Z)
    mine[:] = 0.0
    np.testing.assert_array_equal(model.predict_proba(Z), before)


@pytest.mark.parametrize("noise", [1e-1, 1e-2, 1e-3])
def test_estimated_calibration_at_any_noise(noise: float) -> None:
    """Slow convergence must not end the probes early: probabilities stay near those of the exact formula."""
    X, y = load_digits(return_X_y=True)
    exact = GPClassifier(noise=noise).fit(X[:1400], y[:1400])
    estimated = GPClassifier(noise=noise, solver="cg", tol=1e-2, max_iter=3000, random_state=0).fit(X[:1400], y[:1400])
    assert estimated.sharpness_ == pytest.approx(exact.sharpness_, rel=0.25)


@pytest.mark.parametrize("levels", [None, 8])
def test_a_dimension_of_subnormal_values(levels: int | None) -> None:
    X = np.random.default_rng(0).random((400, 3))
    X[:, 2] *= 1e-310
    y = (X[:, 0] > 0.5).astype(int)
    model = GPClassifier(levels=levels).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.score(X, y) > 0.9
    assert model.quantized().score(X, y) > 0.9


def test_one_outlier_among_the_values() -> None:
    X = np.random.default_rng(0).random((500, 2))
    X[0] = 1e9
    y = (X[:, 0] > 0.5).astype(int)
    model = GPClassifier(HIK(scale=1.0), noise=0.01).fit(X, y)
    k = np.minimum(X[:, None], X[None]).sum(axis=2)
    np.testing.assert_allclose(model.decision_function(X), (k @ model.gp_.solution.alpha)[:, 0], rtol=1e-6, atol=1e-6)


def test_labels_of_partial_fit_keep_their_length_and_kind(digits: Any) -> None:
    X, _, y, _ = digits
    words = np.where(y < 5, "cat", "dog")
    model = GPClassifier().fit(X, words)
    model.partial_fit(X[y < 5], words[y < 5], classes=["cat", "giraffe"])
    assert model.classes_.tolist() == ["cat", "dog", "giraffe"]
    with pytest.raises(InvalidInput, match="one kind"):
        model.partial_fit(X, y)


def test_parameters_that_must_not_change_between_calls(digits: Any) -> None:
    X, _, y, _ = digits
    X = X + np.random.default_rng(0).random(X.shape)  # more than 255 values: the exact layout
    with pytest.raises(InvalidParameter, match="levels"):
        GPClassifier().fit(X, y).set_params(levels=255).partial_fit(X, y)
    with pytest.raises(InvalidParameter, match="one kind"):
        GPClassifier(RBF(20.0)).fit(X, y).set_params(kernel=HIK()).partial_fit(X, y)
    with pytest.raises(InvalidParameter, match="per dimension, got 2 for 5"):
        HIK(Weights([1.0, 2.0]), scale=1.0)(np.ones((2, 5)))


def test_pickled_and_float32_models_predict_the_same(digits: Any) -> None:
    X, Z, y, _ = digits
    for kernel in (HIK(), RBF(20.0), Linear()):
        model = GPClassifier(kernel).fit(X, y)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(Z), model.predict_proba(Z))
        single = GPClassifier(kernel).fit(X.astype(np.float32), y)
        np.testing.assert_allclose(
            single.decision_function(Z.astype(np.float32)), model.decision_function(Z), atol=1e-6
        )


# Bad and unusual input: the right answer, or one clear error.

X4 = np.array([[0.0, 1.0], [1.0, 0.0], [0.2, 0.9], [0.8, 0.1]])
Y4 = np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"noise": 0.0}, "`noise` must be positive, got 0.0. For noise-free data pass noise=1e-10"),
        ({"noise": -1}, "got -1"),
        ({"noise": np.nan}, "got nan"),
        ({"noise": "much"}, "got 'much'"),
        ({"levels": 256}, "from 2 to 255, got 256"),
        ({"levels": 2.5}, "got 2.5"),
        ({"binning": "even"}, "'quantile', 'width', got 'even'"),
        ({"solver": "magic"}, "got 'magic'"),
        ({"tol": 0}, "`tol` must be positive"),
        ({"max_iter": 0}, "`max_iter` must be positive"),
        ({"variance": "good"}, "'fine', got 'good'"),
        ({"variance_rank": 0}, "`variance_rank` must be a whole number from 1 on, got 0"),
        ({"variance_rank": True}, "got True"),
        ({"variance_rank": 2.5}, "got 2.5"),
        ({"kernel": "rbf"}, "HIK\\(\\), got 'rbf'"),
        ({"kernel": HIK("power")}, "a transform or a list"),
        ({"kernel": HIK(Weights([1.0]))}, "per dimension, got 1 for 2"),
        ({"kernel": HIK(scale=0.0)}, "`scale` must be positive"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        GPClassifier(**parameters).fit(X4, Y4)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[np.nan, 1.0], [1.0, 2.0]], [0, 1], "NaN"),
        ([[np.inf, 1.0], [1.0, 2.0]], [0, 1], "inf"),
        (np.empty((0, 2)), [], "0 sample"),
        (np.empty((2, 0)), [0, 1], "0 feature"),
        ([[1.0, 2.0]], [0], "1 class"),
        (X4, [1, 1, 1, 1], "1 class"),
        (X4, [0, 1], "inconsistent"),
        ([["a", "b"], ["c", "d"]], [0, 1], "could not convert string"),
        (X4, [0.5, 0.1, 0.2, 0.3], "continuous"),
        (X4, [0, np.nan, 0, 1], "NaN"),
    ],
)
def test_bad_data(X: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GPClassifier().fit(X, y)


def test_wrong_width_at_predict_and_unfitted() -> None:
    with pytest.raises(NotFittedError):
        GPClassifier().predict(X4)
    with pytest.raises(ValueError, match="3 features, but GPClassifier is expecting 2"):
        GPClassifier().fit(X4, Y4).predict(np.ones((1, 3)))


@pytest.mark.parametrize("weight", [[-1.0, 1, 1, 1], [0.0, 0, 0, 0]])
def test_bad_weights(weight: Any) -> None:
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        GPClassifier().fit(X4, Y4, sample_weight=weight)


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.astype(np.float16),
        lambda X: X.astype(np.float32),
        lambda X: (X * 10).astype(np.int8),
        lambda X: X.astype(object),
        lambda X: np.asfortranarray(X),
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: X.tolist(),
        lambda X: sp.coo_matrix(X),
        lambda X: sp.csc_array(X),
        lambda X: _unsorted(X),
        lambda X: _duplicated(X),
        lambda X: _wide_indices(X),
        lambda X: X * 1e9,
        lambda X: X * 1e-9,
        lambda X: -X,
    ],
)
def test_unusual_arrays(convert: Any) -> None:
    X = convert(X4)
    before = X.copy() if hasattr(X, "copy") else X
    model = GPClassifier().fit(X, Y4)
    assert (model.predict(X) == Y4).all()
    assert np.isfinite(model.predict_proba(X)).all()
    if sp.issparse(X):
        assert (before != X).nnz == 0
        np.testing.assert_array_equal(getattr(X, "indices", 0), getattr(before, "indices", 0))
    else:
        np.testing.assert_array_equal(np.asarray(X), np.asarray(before))


def _unsorted(X: Array) -> Any:
    A = sp.csr_matrix(X)
    for a, b in zip(A.indptr[:-1], A.indptr[1:], strict=True):
        A.indices[a:b], A.data[a:b] = A.indices[a:b][::-1].copy(), A.data[a:b][::-1].copy()
    A.has_sorted_indices = False
    return A


def _duplicated(X: Array) -> Any:
    A = sp.csr_matrix(X)
    twice = (np.repeat(A.data, 2) / 2, np.repeat(A.indices, 2), 2 * A.indptr)
    return sp.csr_matrix(twice, shape=X.shape)


def _wide_indices(X: Array) -> Any:
    A = sp.csr_array(X)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


def test_read_only_arrays() -> None:
    X, y = X4.copy(), Y4.copy()
    X.setflags(write=False)
    y.setflags(write=False)
    assert (GPClassifier(solver="cg").fit(X, y).predict(X) == y).all()


@pytest.mark.parametrize(
    "labels",
    [["cat", "dog"], [True, False], [7, -3], [1.0, 2.0], np.array(["a", "b"], object), [b"x".decode(), "ü"]],
)
def test_labels_of_any_type(labels: Any) -> None:
    y = np.asarray(labels)[Y4]
    model = GPClassifier().fit(X4, y)
    assert (model.predict(X4) == y).all()
    assert model.classes_.dtype.kind == y.dtype.kind


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize("scale", ["auto", 1.0])
def test_degenerate_rows(solver: str, scale: Any) -> None:
    for X in (np.zeros((4, 2)), np.ones((4, 3)), np.vstack([X4[:2], X4[:2]])):
        y = [0, 1, 1, 0]  # zero rows, equal rows, repeated rows with opposite labels
        model = GPClassifier(HIK(scale=scale), solver=solver, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), 0.5, atol=1e-3)
        assert np.isfinite(model.decision_function(X)).all()


def test_huge_values_without_scaling() -> None:
    model = GPClassifier(HIK(scale=1.0)).fit(X4 * 1e9, Y4)
    assert (model.predict(X4 * 1e9) == Y4).all()
    tiny = GPClassifier(HIK(scale=1.0), noise=1e-10)
    with pytest.raises(InvalidInput, match="Raise `noise`"):
        tiny.fit(np.vstack([X4, X4]) * 1e12, np.append(Y4, Y4))


def test_too_few_iterations_warn_with_the_remedy(digits: Any) -> None:
    X, _, y, _ = digits
    with pytest.warns(ConvergenceWarning, match="Raise `max_iter` \\(now 2\\)"):
        model = GPClassifier(solver="cg", max_iter=2, random_state=0).fit(X, y)
    assert not model.converged_
    assert model.residual_ > model.tol


def test_negative_values_never_seen_add_nothing() -> None:
    model = GPClassifier().fit(X4, Y4)
    assert_close(model.decision_function([[0.5, -3.0]]), model.decision_function([[0.5, 0.0]]))


def test_dense_kernels_refuse_what_cannot_fit(monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "DENSE_UP_TO", 3)
    with pytest.raises(InvalidInput, match="4 × 4 kernel matrix"):
        GPClassifier(RBF()).fit(X4, Y4)


def test_class_means_of_two_classes() -> None:
    assert_close(class_means(np.array([[0.3]])), [[-0.3, 0.3]])


def test_unsound_sparse_indices_are_refused() -> None:
    """Compiled loops take indices at their word."""
    bad = sp.csr_matrix((np.ones(4), [0, 1, 2, 10**6], [0, 1, 2, 3, 4]), shape=(4, 3))
    with pytest.raises(InvalidInput, match="not sound"):
        GPClassifier().fit(bad, [0, 0, 1, 1])
    model = GPClassifier().fit(np.eye(4)[:, :3], [0, 0, 1, 1])
    with pytest.raises(InvalidInput, match="not sound"):
        model.predict(bad)


@pytest.mark.parametrize("parameter", ["noise", "kernel"])
def test_an_array_as_parameter_is_named(parameter: str) -> None:
    with pytest.raises(InvalidParameter, match=f"`{parameter}`"):
        GPClassifier(**{parameter: np.ones(3)}).fit(np.eye(4), [0, 0, 1, 1])
