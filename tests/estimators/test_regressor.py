"""GPRegressor against dense algebra."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from saccade import GPRegressor, load
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels import HIK, RBF
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(scope="module")
def diabetes() -> tuple[Array, Array]:
    X, y = load_diabetes(return_X_y=True)
    return X, y  # signed features: positive and negative parts


def dense(X: Array, y: Array, Z: Array, noise: float) -> tuple[Array, Array]:
    def kernel(A: Array, B: Array) -> Array:
        parts = [np.minimum(np.maximum(s * A, 0)[:, None], np.maximum(s * B, 0)[None]).sum(axis=2) for s in (1, -1)]
        return np.asarray(parts[0] + parts[1])

    scale = 1.0 / np.abs(X).sum(axis=1).mean()
    K = scale * kernel(X, X) + noise * np.eye(len(X))
    k = scale * kernel(Z, X)
    mean = k @ np.linalg.solve(K, (y - y.mean()) / y.std()) * y.std() + y.mean()
    variance = scale * np.abs(Z).sum(axis=1) - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T))
    return mean, np.sqrt(variance) * y.std()


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_mean_and_deviation_are_those_of_dense_algebra(diabetes: Any, solver: str) -> None:
    X, y = diabetes
    model = GPRegressor(noise=0.5, solver=solver, tol=1e-10, variance="exact").fit(X[:300], y[:300])
    mean, std = model.predict(X[300:], return_std=True)
    expected = dense(X[:300], y[:300], X[300:], 0.5)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-7)
    np.testing.assert_allclose(std, expected[1], rtol=1e-6)


def test_many_targets_are_each_alone(diabetes: Any) -> None:
    X, y = diabetes
    Y = np.column_stack([y, -3.0 * y + 7.0, X[:, 2]])
    together = GPRegressor().fit(X, Y).predict(X)
    for k in range(3):
        assert_close(together[:, k], GPRegressor().fit(X, Y[:, k]).predict(X))


def test_partial_fit_is_fit_on_everything(diabetes: Any) -> None:
    X, y = diabetes
    parts = GPRegressor(solver="cg", tol=1e-10, random_state=0).partial_fit(X[:200], y[:200])
    parts.partial_fit(X[200:], y[200:])
    np.testing.assert_allclose(parts.predict(X), GPRegressor().fit(X, y).predict(X), rtol=1e-6)
    with pytest.raises(InvalidInput, match="as in the first call"):
        parts.partial_fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize("kernel", [HIK(), RBF(0.1)], ids=str)
def test_targets_as_they_are(diabetes: Any, kernel: Any) -> None:
    """Without normalize_y nothing is centred or scaled, also in parts and with samples."""
    X, y = diabetes
    model = GPRegressor(kernel, noise=0.5, normalize_y=False, variance="exact").fit(X[:300], y[:300])
    K, k = model.kernel_(X[:300]) + 0.5 * np.eye(300), model.kernel_(X[:300], X[300:])
    mean, std = model.predict(X[300:], return_std=True)
    np.testing.assert_allclose(mean, k.T @ np.linalg.solve(K, y[:300]), rtol=1e-7)
    variance = model.kernel_.diag(X[300:]) - np.einsum("ij,ij->j", k, np.linalg.solve(K, k))
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-6)
    parts = GPRegressor(kernel, noise=0.5, normalize_y=False).partial_fit(X[:200], y[:200])
    parts.partial_fit(X[200:300], y[200:300])
    np.testing.assert_allclose(parts.predict(X[300:]), mean, rtol=1e-6)
    drawn = model.sample_y(X[300:303], 2000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=1), mean[:3], atol=5.0 * std[:3].max() / np.sqrt(2000))
    with pytest.raises(InvalidParameter, match="`normalize_y` must be True or False, got 'no'"):
        GPRegressor(normalize_y="no").fit(X, y)


def test_a_file_keeps_whether_targets_are_normalised(diabetes: Any, tmp_path: Any) -> None:
    X, y = diabetes
    for normalize in (False, True):
        model = GPRegressor(normalize_y=normalize).fit(X, y)
        model.save(tmp_path / "m.saccade")
        again = load(tmp_path / "m.saccade")
        assert again.normalize_y is normalize
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_one_example_and_constant_targets() -> None:
    assert GPRegressor().fit([[1.0, 2.0]], [3.0]).predict([[1.0, 2.0]]) == 3.0
    assert_close(GPRegressor().fit([[1.0], [2.0]], [5.0, 5.0]).predict([[7.0]]), [5.0])


def test_loaded_model_predicts_the_same_and_says_what_it_lacks(diabetes: Any, tmp_path: Any) -> None:
    X, y = diabetes
    model = GPRegressor(HIK(), levels=64).fit(X, y)
    model.save(tmp_path / "m.saccade")
    again = load(tmp_path / "m.saccade")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(InvalidInput, match="no training examples"):
        again.predict(X, return_cov=True)
    with pytest.raises(InvalidInput, match="no training examples"):
        again.sample_y(X)
    with pytest.raises(InvalidInput, match="no training examples"):
        again.partial_fit(X, y)


def test_weights_count_as_copies(diabetes: Any) -> None:
    X, y = diabetes
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weighed = GPRegressor(RBF(0.1)).fit(X, y, sample_weight=weight)
    copied = GPRegressor(RBF(0.1)).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_close(weighed.predict(X), copied.predict(X))


def test_a_loaded_model_can_be_fitted_again_to_other_data(diabetes: Any, tmp_path: Any) -> None:
    X, y = diabetes
    GPRegressor().fit(X, y).save(tmp_path / "m.saccade")
    again = load(tmp_path / "m.saccade").fit(X * 100, y)
    assert_close(again.predict(X * 100), GPRegressor().fit(X * 100, y).predict(X * 100))


def test_latent_variance_and_targets_too_large(diabetes: Any) -> None:
    X, y = diabetes
    model = GPRegressor().fit(X, y)
    mean, std = model.predict(X[:5], return_std=True)
    latent = model.latent_mean_and_variance(X[:5])
    assert_close(latent[0], mean)
    assert_close(latent[1], std**2)
    with pytest.raises(InvalidInput, match="too large"):
        model.fit(X, y * 1e200)


@pytest.mark.parametrize("kernel", [HIK(), RBF(0.1)], ids=str)
@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_covariance_has_the_variance_on_its_diagonal(diabetes: Any, kernel: Any, solver: str) -> None:
    X, y = diabetes
    model = GPRegressor(kernel, solver=solver, tol=1e-9, variance="exact").fit(X[:200], y[:200])
    mean, std = model.predict(X[200:220], return_std=True)
    again, covariance = model.predict(X[200:220], return_cov=True)
    np.testing.assert_array_equal(again, mean)
    np.testing.assert_allclose(covariance.diagonal(), std**2, rtol=1e-6)
    np.testing.assert_array_equal(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance)[0] > -1e-9 * covariance.max()
    many = GPRegressor(kernel, solver=solver, tol=1e-9).fit(X[:200], np.column_stack([y[:200], -3.0 * y[:200]]))
    both = many.predict(X[200:220], return_cov=True)[1]
    assert both.shape == (20, 20, 2)
    np.testing.assert_allclose(both, covariance[:, :, None] * [1.0, 9.0], rtol=1e-6, atol=1e-9 * covariance.max())
    assert many.sample_y(X[:3], 5, random_state=0).shape == (3, 2, 5)


def test_deviation_and_covariance_exclude_each_other(diabetes: Any) -> None:
    X, y = diabetes
    model = GPRegressor().fit(X, y)
    with pytest.raises(InvalidParameter, match="At most one"):
        model.predict(X, return_std=True, return_cov=True)
    with pytest.raises(InvalidParameter, match="`n_samples` must be a whole number from 1 on, got 0"):
        model.sample_y(X, 0)


def test_the_example_of_the_guide_runs() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text("utf-8")
    (code,) = re.findall(r"## Regression\n```python\n(.*?)```", guide, re.S)
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    names: dict[str, Any] = {"X": X, "y": np.exp(-10.0 * (X[:, 0] - 0.4) ** 2) + 0.1 * rng.standard_normal(40)}
    exec(compile(code, "guide.md", "exec"), names)
    assert names["before"].shape == names["after"].shape == (40, 5)
    np.testing.assert_allclose(names["exact"].predict(X[:20]), names["y"][:20], atol=1e-8)
    assert names["each"].kernel_.length_scale.shape == (2,)


def test_defaults() -> None:
    expected = {
        "noise": 0.1,
        "normalize_y": True,
        "tol": 1e-3,
        "max_iter": 1000,
        "inducing": 0.25,
        "variance_rank": 128,
    }
    assert {name: value for name, value in GPRegressor().get_params().items() if name in expected} == expected


@pytest.mark.filterwarnings("ignore:Tuning ended at the bound")
def test_a_noise_that_was_tuned_stays_in_partial_fit() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((70, 2))
    y = np.sin(6.0 * X[:, 0]) + 0.1 * rng.normal(size=70)
    model = GPRegressor(RBF(0.5), noise=5.0, tune="gradient", random_state=0).fit(X[:60], y[:60])
    learned, kernel = model.noise_, model.kernel_
    assert learned < 1.0
    model.partial_fit(X[60:], y[60:])
    assert (model.noise_, model.kernel_.length_scale) == (learned, kernel.length_scale)
    model = GPRegressor(RBF(0.5), noise=5.0).fit(X[:60], y[:60]).set_params(noise=0.5)
    assert model.partial_fit(X[60:], y[60:]).noise_ == 0.5  # a given one may change


def test_the_last_solution_is_no_worse_a_start_than_none_when_the_unit_of_targets_changes() -> None:
    X = np.random.default_rng(0).random((300, 3))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1]
    y[:150] *= 1e-6
    parts, whole = (GPRegressor(RBF(0.5), solver="cg", noise=1e-2, tol=1e-4) for _ in range(2))
    parts.fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    assert parts.n_iter_ <= whole.fit(X, y).n_iter_ + 1
