"""A streamed matrix against the same written out, and how much of it is there at a time."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade._core import limits
from saccade._core.errors import InvalidInput
from saccade.inference.approximations.base import RegularizedSystem
from saccade.inference.approximations.diagonal import diagonal
from saccade.kernels import HIK, RBF, Laplacian, Linear
from saccade.kernels.dense_gram import DenseGram, StreamedGram
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


def test_further_rows_parts_and_kernels_are_made_as_many_values_at_a_time() -> None:
    X = np.random.default_rng(0).random((40, 2))
    kernel = Counting()
    gram = StreamedGram(kernel, X, at_once=80)  # type: ignore[arg-type]
    for other, n in ((gram.append(X, None), 80), (gram.subset(np.arange(30)), 30)):
        kernel.asked.clear()
        other.matmul(np.ones((n, 1)))
        assert max(kernel.asked) <= 80


def test_a_held_matrix_keeps_its_limit() -> None:
    X = np.random.default_rng(0).random((4, 2))
    gram = DenseGram(RBF(1.0), X, limit=6)
    with pytest.raises(InvalidInput, match="8 × 8"):
        gram.append(X, None)
    with pytest.raises(InvalidInput, match="8 × 8"):
        gram.subset(np.arange(2)).append(X, None).append(X[:2], None)


def test_few_values_of_a_matrix_that_is_not_there_yet_are_made_alone() -> None:
    X, kernel = np.random.default_rng(0).random((80, 2)), Counting()
    gram, a, b = DenseGram(kernel, X), np.array([3, 1, 70]), np.array([5, 5])  # type: ignore[arg-type]
    found = gram.between(a, b)
    assert sum(kernel.asked) <= 6
    assert_close(found, RBF(1.0)(X)[np.ix_(a, b)])
