"""A streamed matrix against the same written out, and how much of it is there at a time."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade._core import limits
from saccade.inference.approximations.base import RegularizedSystem
from saccade.inference.approximations.diagonal import diagonal
from saccade.kernels import HIK, RBF, Laplacian, Linear
from saccade.kernels.dense_gram import StreamedGram
from tests.operators.histograms import Array, columns, histograms
from tests.tolerances import assert_close


class Counting:
    """An RBF kernel that remembers how many values it was asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, X: Any, Z: Any) -> Array:
        self.asked.append(X.shape[0] * Z.shape[0])
        return RBF(1.0)(X, Z)

    def diag(self, X: Any) -> Array:
        return np.ones(X.shape[0])


@pytest.mark.parametrize("kernel", [HIK(scale=1.0), Laplacian(2.0), Linear()], ids=str)
@settings(max_examples=25)
@given(data=st.data(), sparse=st.booleans(), at_once=st.integers(1, 60))
def test_products_are_those_of_the_matrix(kernel: Any, data: st.DataObject, sparse: bool, at_once: int) -> None:
    X = data.draw(histograms())
    K, V = kernel(X), columns(len(X), 3)
    operator = StreamedGram(kernel, sp.csr_matrix(X) if sparse else X, at_once)
    assert operator.shape == K.shape
    assert_close(operator.matmul(V), K @ V)
    assert_close(operator.diag(), K.diagonal())
    sums, smallest = operator.row_sums()
    assert_close(sums, K.sum(axis=1))
    assert_close(smallest, min(K.min(), 0.0))
    some = np.array([0, len(X) - 1])
    assert_close(operator.columns(some), K[:, some])
    single = operator.matmul(V.astype(np.float32))
    assert single.dtype == np.float32
    assert_close(single, K @ V, np.float32)


def test_the_diagonal_approximation_asks_for_every_value_once_and_never_for_many() -> None:
    """O(n) memory: no block is larger than it may be, and one pass both sums and checks the sign."""
    X, kernel = np.random.default_rng(0).random((3000, 2)), Counting()
    found = diagonal(RegularizedSystem(StreamedGram(kernel, X), np.full((3000, 1), 0.1), (), 1e-3, 100))
    assert sum(kernel.asked) == 3000**2
    assert max(kernel.asked) <= limits.KERNEL_VALUES_AT_ONCE < 3000**2
    np.testing.assert_allclose(found.inverse[:, 0], 1.0 / (RBF(1.0)(X).sum(axis=1) + 0.1), rtol=1e-12)
