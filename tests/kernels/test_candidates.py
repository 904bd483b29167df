"""The kernels of `kernel="auto"`: the matrices are theirs, and units of columns do not matter to half of them."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from saccade.kernels.candidates import candidates, deviations
from tests.tolerances import assert_close


def rows(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return np.where(rng.random((15, 4)) < 0.3, 0.0, rng.normal(0.0, [1.0, 2.0, 0.5, 3.0], (15, 4)))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_matrices_are_those_of_the_kernels(form: Any) -> None:
    X = form(rows())
    found = list(candidates(X))
    assert len(found) == 18
    for kernel, K, _ in found:
        assert_close(K, kernel.resolved(X)(X))


def test_columns_over_their_deviations_have_no_units() -> None:
    X = rows()
    moved = X * [1.0, 1e6, 1e-3, 7.0] + [0.0, 1e6, -4.0, 100.0]
    first, second = ([K for _, K, _ in candidates(data)] for data in (X, moved))
    for k in (*range(4), *range(8, 12)):  # L1 and L2
        np.testing.assert_allclose(first[k], second[k], atol=1e-6)
    assert not np.allclose(first[4], second[4], atol=0.1)


def test_weights_are_copies() -> None:
    X, copies = rows(), np.random.default_rng(1).integers(1, 4, 15)
    every = np.repeat(np.arange(15), copies)
    for (_, K, _), (_, repeated, _) in zip(candidates(X, copies.astype(float)), candidates(X[every]), strict=True):
        assert_close(K[np.ix_(every, every)], repeated)


def test_a_column_without_deviation_keeps_its_size() -> None:
    X = np.column_stack([np.full(5, 1e6), np.zeros(5), np.full(5, 0.1) + 1e-18 * np.arange(5), np.arange(5.0)])
    for form in (np.asarray, sp.csr_matrix):
        assert_close(deviations(form(X)), np.array([1e6, 1.0, 0.1, np.sqrt(2.0)]))
    for _, K, _ in candidates(np.zeros((3, 2))):
        assert np.isfinite(K).all()
