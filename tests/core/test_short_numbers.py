"""Numbers of at most two bytes, such as pixels, become float32, which holds them as they are."""

import numpy as np
import pytest
import scipy.sparse as sp

from saccade import GPClassifier
from saccade._core.checks import check_rows
from saccade.kernels import HIK, RBF

PIXELS = np.random.default_rng(0).integers(0, 256, (60, 12)).astype(np.uint8)
LABELS = np.arange(60) % 3


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.uint8, np.float32),
        (np.int16, np.float32),
        (np.uint16, np.float32),
        (np.float16, np.float32),
        (bool, np.float32),
        (np.int32, np.float64),
        (np.float32, np.float32),
        (np.float64, np.float64),
    ],
)
def test_short_numbers_take_half_the_room(dtype: type, expected: type) -> None:
    X = PIXELS.astype(dtype)
    found = check_rows(GPClassifier(), X, reset=True)
    assert found.dtype == expected
    np.testing.assert_array_equal(found, X.astype(np.float64))
    if dtype is not np.float16:  # scipy.sparse has none
        sparse = check_rows(GPClassifier(), sp.csr_array(X), reset=True)
        assert sparse.dtype == expected
        np.testing.assert_array_equal(sparse.toarray(), X.astype(np.float64))


@pytest.mark.parametrize("kernel", [HIK(), RBF(300.0)], ids=["HIK", "RBF"])
@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_the_same_model_from_pixels_and_from_floats(kernel: object, solver: str) -> None:
    model = GPClassifier(kernel=kernel, solver=solver, tol=1e-9, random_state=0)
    short, long = (model.fit(X, LABELS).predict_proba(X) for X in (PIXELS, PIXELS.astype(np.float64)))
    np.testing.assert_allclose(short, long, atol=1e-6)
