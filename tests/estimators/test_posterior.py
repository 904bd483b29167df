"""The variance of fitted models: a bound whatever the method, made when asked for, and kept in the file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.datasets import load_digits

from saccade import GPClassifier, GPRegressor, load
from saccade._core import model_file
from saccade._core.errors import InvalidInput
from saccade.inference.approximations.by_name import VARIANCES
from saccade.kernels import HIK, RBF, Power
from tests.operators.histograms import histograms

Array = np.ndarray[Any, np.dtype[Any]]
BOUNDS = ["lowrank", "fine", "diagonal", "sod"]


@pytest.fixture(scope="module")
def digits() -> tuple[Array, Array, Array]:
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400], X[400:500]


@pytest.mark.parametrize("method", BOUNDS)
@pytest.mark.parametrize("kernel", [HIK(), HIK(Power(0.5)), RBF(1.0)], ids=str)
@settings(max_examples=15, deadline=None)
@given(data=st.data(), balanced=st.booleans(), noise=st.sampled_from([1e-3, 0.1, 10.0]))
def test_between_the_exact_variance_and_the_prior(
    method: str, kernel: Any, data: st.DataObject, balanced: bool, noise: float
) -> None:
    X, new = data.draw(histograms(dims=4)), data.draw(histograms(dims=4, top=1.5))
    X = np.vstack([X, X[:1]])  # two examples at least, and a repeated one
    y = np.arange(len(X)) % 3
    models = [
        GPClassifier(kernel, noise=noise, balanced=balanced, variance=v, variance_rank=4, random_state=0).fit(X, y)
        for v in ("exact", method)
    ]
    exact, found = (model.latent_mean_and_variance(sp.csr_matrix(new))[1] for model in models)
    prior = models[0].kernel_.diag(new)
    tolerance = 1e-9 * (1.0 + prior.max(initial=0.0))
    if exact.ndim > found.ndim:
        found = found[:, None]
    assert (exact >= 0).all()
    assert (found >= exact - tolerance).all()
    assert (prior + tolerance >= found.T).all()


def test_methods_in_the_order_of_their_cost(digits: Any) -> None:
    X, y, new = digits
    found = {
        method: GPClassifier(variance=method, random_state=0).fit(X, y).latent_mean_and_variance(new)[1]
        for method in ("exact", *BOUNDS)
    }
    excess = {method: (value - found["exact"]).mean() for method, value in found.items()}
    assert excess["exact"] < excess["fine"] < excess["lowrank"] < excess["diagonal"]
    assert spearmanr(found["fine"], found["exact"])[0] > 0.98
    assert spearmanr(found["lowrank"], found["exact"])[0] > 0.95


def test_a_noise_for_each_class(digits: Any) -> None:
    X, y, new = digits
    shapes = {
        method: GPClassifier(balanced=True, variance=method).fit(X, y).latent_mean_and_variance(new)[1].shape
        for method in ("exact", *BOUNDS)
    }
    assert shapes["exact"] == shapes["diagonal"] == shapes["sod"] == (100, 10)
    assert shapes["lowrank"] == shapes["fine"] == (100,)


def test_auto_says_what_it_picked(digits: Any) -> None:
    X, y, _ = digits
    assert GPClassifier().fit(X, y).variance_method_ == "exact"
    assert GPClassifier(solver="cg").fit(X, y).variance_method_ == "lowrank"
    assert GPClassifier(RBF(20.0), solver="cg").fit(X, y).variance_method_ == "exact"
    assert GPRegressor(variance="fine").fit(X, y).variance_method_ == "fine"
    assert GPRegressor(variance=None).fit(X, y).variance_method_ is None


def test_made_at_the_first_use_and_forgotten_by_a_new_fit(digits: Any) -> None:
    X, y, new = digits
    model = GPClassifier(variance="lowrank", random_state=0).fit(X, y)
    assert "norms" not in vars(model.gp_.inverse)
    first = model.latent_mean_and_variance(new)[1]
    tables = model.gp_.inverse.norms
    np.testing.assert_array_equal(model.latent_mean_and_variance(new)[1], first)
    assert model.gp_.inverse.norms is tables
    again = GPClassifier(variance="lowrank", random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.latent_mean_and_variance(new)[1], first)
    model.partial_fit(new, np.zeros(100, int))
    assert "norms" not in vars(model.gp_.inverse)
    assert model.latent_mean_and_variance(new)[1].mean() < 0.9 * first.mean()  # these it has seen now
    fine = GPClassifier(variance="fine", random_state=0).fit(X, y)
    fine.latent_mean_and_variance(new)
    assert "variance" not in vars(fine.fit(X[:50], y[:50]).gp_.inverse)


@pytest.mark.parametrize("method", VARIANCES)
@pytest.mark.parametrize("bins", [None, 32])
def test_a_file_keeps_it(digits: Any, tmp_path: Path, method: str, bins: int | None) -> None:
    X, y, new = digits
    model = GPClassifier(HIK(Power(0.5)), variance=method, variance_rank=20, random_state=0).fit(X, y)
    model = model if bins is None else model.quantized(bins)
    model.save(tmp_path / "m")
    written = GPClassifier(HIK(Power(0.5)), variance="lowrank", variance_rank=20, random_state=0).fit(X, y)
    copy = load(tmp_path / "m")
    assert (copy.variance, copy.variance_rank, copy.variance_method_) == (method, 20, "lowrank")
    np.testing.assert_array_equal(copy.latent_mean_and_variance(new)[1], written.latent_mean_and_variance(new)[1])
    exact = GPClassifier(HIK(Power(0.5)), variance="exact").fit(X, y).latent_mean_and_variance(new)[1]
    assert (copy.latent_mean_and_variance(new)[1] >= exact).all()
    copy.save(tmp_path / "again")
    (header, tensors), (header_again, tensors_again) = (model_file.read(tmp_path / name) for name in ("m", "again"))
    assert header_again == header
    assert all(np.array_equal(tensors_again[name], tensors[name]) for name in tensors)


def test_a_regressor_keeps_it_too(digits: Any, tmp_path: Path) -> None:
    X, y, new = digits
    model = GPRegressor(variance="lowrank", random_state=0).fit(X, np.column_stack([y, -2.0 * y]))
    model.save(tmp_path / "m")
    found = load(tmp_path / "m").predict(new, return_std=True)[1]
    np.testing.assert_array_equal(found, model.predict(new, return_std=True)[1])
    np.testing.assert_allclose(found[:, 1], 2.0 * found[:, 0])


def test_none_is_none(digits: Any, tmp_path: Path) -> None:
    X, y, new = digits
    model = GPClassifier(variance=None).fit(X, y)
    GPClassifier(random_state=0).fit(X, y).save(tmp_path / "with")
    model.save(tmp_path / "without")
    assert (tmp_path / "without").stat().st_size < 0.5 * (tmp_path / "with").stat().st_size
    for one in (model, load(tmp_path / "without")):
        with pytest.raises(InvalidInput, match="fitted with variance=None"):
            one.latent_mean_and_variance(new)
    with pytest.raises(InvalidInput, match="fitted with variance=None"):
        GPRegressor(variance=None).fit(X, y).predict(new, return_std=True)


def test_a_large_exact_model_has_small_tables() -> None:
    """A node for each of 3,000 values would make 3,000 rows per dimension."""
    rng = np.random.default_rng(0)
    X = rng.random((3000, 300))
    model = GPRegressor(noise=0.01, variance="lowrank", variance_rank=32, random_state=0).fit(X, X.sum(axis=1))
    exact = GPRegressor(noise=0.01, variance="exact", tol=1e-6, random_state=0).fit(X, X.sum(axis=1))
    new = rng.random((20, 300)) * 1.2
    found, wanted = (m.predict(new, return_std=True)[1] for m in (model, exact))
    assert len(model.gp_.inverse.norms[0].T) <= 300 * 128
    assert (found >= wanted - 1e-9).all()


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_directions_of_its_own_for_each_class(digits: Any, inference: Any, tmp_path: Path) -> None:
    """Most examples say nothing about most classes: directions for all classes together explain next to nothing."""
    X, y, new = digits
    options: dict[str, Any] = {"inference": inference, "random_state": 0}
    exact, found = (
        GPClassifier(variance=method, **options).fit(X, y).latent_mean_and_variance(new)[1]
        for method in ("exact", "lowrank")
    )
    assert found.shape == exact.shape == (100, 10)
    assert (found >= exact - 1e-9).all()
    assert found.mean() < 1.4 * exact.mean()
    assert np.mean([spearmanr(found[:, j], exact[:, j])[0] for j in range(10)]) > 0.97
    model = GPClassifier(variance="lowrank", **options).fit(X, y)
    model.save(tmp_path / "m")
    copy = load(tmp_path / "m")
    np.testing.assert_array_equal(copy.latent_mean_and_variance(new)[1], found)
    np.testing.assert_array_equal(copy.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(copy.novelty(new), model.novelty(new))
