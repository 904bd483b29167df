"""Far from the origin, and with next to no noise: answers are right, or a warning names the remedy."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import LinAlgWarning

from saccade import GPRegressor
from saccade._core.errors import InvalidInput
from saccade.kernels import HIK, RBF, Centred, GeneralizedRBF, Laplacian, Linear
from saccade.kernels.generalized import typical_beta
from tests.tolerances import assert_close

rng = np.random.default_rng(0)
X, new = rng.random((40, 3)), rng.random((10, 3))
y = np.sin(5.0 * X[:, 0]) + X[:, 1]


@pytest.fixture(autouse=True)
def silence_is_asked_for() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize(
    "kernel",
    [
        GeneralizedRBF(Linear(), 1.0),
        GeneralizedRBF(Linear()),
        GeneralizedRBF(2.0 * Linear() + Linear(), 0.5),
        GeneralizedRBF(Centred(Linear()), 1.0),
        GeneralizedRBF(RBF(0.5), "auto"),
        GeneralizedRBF(HIK(scale=1.0), 1.0),
        RBF(1.0),
        Laplacian(1.0),
    ],
    ids=repr,
)
def test_an_offset_changes_nothing_for_kernels_of_differences(kernel: Any) -> None:
    """On values that float64 holds exactly after the move: all that is left is what the kernel itself rounds."""
    near, there = np.round(X * 2**20) / 2**20, np.round(new * 2**20) / 2**20
    expected = GPRegressor(kernel).fit(near, y).predict(there, return_std=True)
    offset = 1e7
    found = GPRegressor(kernel).fit(near + offset, y).predict(there + offset, return_std=True)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_distances_that_cancel_are_named() -> None:
    far = sp.csr_matrix(X + 1e7)  # moved to its mean, a sparse matrix would fill up
    with pytest.warns(LinAlgWarning, match="Subtract the mean of each column"):
        GeneralizedRBF(Linear(), 1.0)(far)
    with pytest.warns(LinAlgWarning, match="adapt `beta`"):
        GeneralizedRBF(HIK(scale=1.0), 1.0)(1e13 * X)
    GeneralizedRBF(HIK(scale=1.0), 1e-13)(1e13 * X)


def test_equal_examples_have_no_typical_distance() -> None:
    for base in (Linear(), HIK(scale=1.0), Centred(Linear()), RBF(1.0)):
        for place in (0.3, 1e7 + 0.3):
            assert typical_beta(base, np.full((9, 4), place)) == 1.0
    assert typical_beta(Linear(), X + 1e7) == pytest.approx(typical_beta(Linear(), X), rel=1e-6)


def test_large_values_with_little_noise() -> None:
    """Noise 1e-6 beside 1e12 is no noise: K alone is solved, as the same problem near 1 has it."""
    large = GPRegressor(HIK(scale=1.0), noise=1e-6).fit(1e12 * X, y).predict(1e12 * new)
    np.testing.assert_allclose(large, GPRegressor(HIK(scale=1.0), noise=1e-18).fit(X, y).predict(new), rtol=1e-7)


def test_an_ill_conditioned_matrix_is_named_and_the_remedy_helps() -> None:
    twice = np.vstack([X, np.nextafter(X[:5], 2.0)])  # equal rows would be joined to one
    targets = np.append(y, y[:5] + 0.1)
    model = GPRegressor(HIK(scale=1.0), noise=1e-6)
    with pytest.raises((LinAlgWarning, InvalidInput)) as caught:  # which of them, the rounding of the processor decides
        model.fit(1e12 * twice, targets)
    remedy = re.search(r"Raise `noise` to ([\d.e+-]+) or more", str(caught.value))
    assert remedy is not None
    GPRegressor(HIK(scale=1.0), noise=10.0 * float(remedy[1])).fit(1e12 * twice, targets)


def test_two_examples_a_rounding_apart_next_to_no_noise() -> None:
    rows = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    with pytest.warns(LinAlgWarning, match=r"ill-conditioned \(reciprocal condition number .*Raise `noise` to 4e-14"):
        GPRegressor(HIK(scale=1.0), noise=1e-15).fit(rows, [0.0, 1.0])
    GPRegressor(HIK(scale=1.0), noise=1e-13).fit(rows, [0.0, 1.0])
    equal = GPRegressor(HIK(scale=1.0), noise=1e-15).fit(np.ones((2, 1)), [0.0, 1.0])  # joined to one
    assert_close(equal.predict([[1.0]]), [0.5])
