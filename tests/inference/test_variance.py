"""The variance from tables is a bound: never below the exact one, and close to it when the rank is high."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from saccade import GPClassifier, GPRegressor, load
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.inference.variance import low_rank_basis
from saccade.kernels import HIK, RBF
from saccade.operators.codes import encode
from saccade.operators.intersection import intersection
from tests.operators.histograms import histograms


@settings(max_examples=40, deadline=None)
@given(X=histograms(), rank=st.integers(1, 9), noise=st.floats(1e-3, 10.0), columns=st.integers(1, 3))
def test_explains_no_more_than_everything_does(X: np.ndarray, rank: int, noise: float, columns: int) -> None:
    """Also with ties, empty rows, more columns than examples, and a noise for each output."""
    rng = np.random.default_rng(0)
    K = HIK(scale=1.0)(X)
    N = noise * rng.uniform(0.5, 2.0, (len(X), columns))
    W = low_rank_basis(intersection(encode(X), HIK(scale=1.0).levels), N, rank, rng)
    for k in range(columns):
        exact = np.einsum("ij,ij->j", K, np.linalg.solve(K + np.diag(N[:, k]), K))
        assert (np.square(K @ W).sum(axis=1) <= exact + 1e-9 * (1 + K.max())).all()


def test_approaches_the_exact_variance_and_survives_the_file(tmp_path) -> None:
    X, y = load_digits(return_X_y=True)
    model = GPClassifier(random_state=0).fit(X[:600], y[:600])
    exact = model.latent_mean_and_variance(X[600:800])[1]
    far, near = (model.with_variance(rank).latent_mean_and_variance(X[600:800])[1] for rank in (8, 200))
    assert (far >= near - 1e-9).all()
    assert (near >= exact - 1e-9).all()
    assert np.corrcoef(near, exact)[0, 1] > 0.99
    for kept in (model.with_variance(32), model.with_variance(32).quantized()):
        kept.save(tmp_path / "m.saccade")
        loaded = load(tmp_path / "m.saccade")
        for found, wanted in zip(
            loaded.latent_mean_and_variance(X[:9]), kept.latent_mean_and_variance(X[:9]), strict=True
        ):
            np.testing.assert_array_equal(found, wanted)


def test_a_new_fit_forgets_old_tables() -> None:
    X, y = load_digits(return_X_y=True)
    model = GPClassifier().fit(X[:100], y[:100]).with_variance(4)
    assert not hasattr(model.fit(X[:150], y[:150]), "variance_tables_")


def test_bad_requests_are_explained() -> None:
    X, y = load_digits(return_X_y=True)
    model = GPRegressor().fit(X[:50], y[:50])
    with pytest.raises(InvalidParameter, match="rank"):
        model.with_variance(0)
    with pytest.raises(InvalidInput, match="HIK"):
        GPRegressor(RBF()).fit(X[:50], y[:50]).with_variance()
    with pytest.raises(InvalidInput, match="quantised"):
        model.quantized().with_variance()
