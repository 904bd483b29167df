"""Derivatives with respect to levels: the loops against their twins, the operator against differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.kernels import HIK
from saccade.operators import codes, gradient_loops
from saccade.operators.intersection_base import Intersection
from tests.operators import reference
from tests.operators.histograms import LAYOUTS, Array, columns, encoded, histograms, sparse_rows
from tests.tolerances import assert_close

few = settings(max_examples=25)


@pytest.mark.parametrize("same", [False, True])
@few
@given(X=histograms(), cut=st.floats(0.0, 1.0))
def test_sorted_moments(same: bool, X: Array, cut: float) -> None:
    c = codes._sorted(codes._columns(X))
    n, D = X.shape
    left = columns(n, 4)
    right = left[:0] if same else columns(n, 4, seed=1)
    G = columns(c.values.size, 1, seed=2)[:, 0]
    expected = G.copy()
    A, B = np.full((2, n, 4), np.nan)
    B = A if same else B
    for a, b in ((0, round(cut * D)), (round(cut * D), D)):
        gradient_loops.sorted_moments(c.starts, c.rows, a, b, left, right, A, B, G, (0,) * 4)
    reference.sorted_moments(c.starts, c.rows, 0, D, left, right, expected)
    assert_close(G, expected)


@few
@given(X=histograms())
def test_sorted_matrix_moments(X: Array) -> None:
    c = codes._sorted(codes._columns(X))
    A = columns(len(X), len(X))
    A = A + A.T
    G, expected = np.full((2, c.values.size), np.nan)
    gradient_loops.sorted_matrix_moments(c.starts, c.rows, 0, X.shape[1], A, G)
    reference.sorted_matrix_moments(c.starts, c.rows, 0, X.shape[1], A, expected)
    assert_close(G, expected)


def test_falls() -> None:
    starts = np.array([0, 4, 4, 5, 9])  # the second dimension has no entry, the third one alone
    G = columns(9, 1)[:, 0]
    expected = G.copy()
    reference.falls(starts, 0, 4, expected)
    for first, last in ((0, 2), (2, 4)):
        gradient_loops.falls(starts, first, last, G)
    assert_close(G, expected)


@pytest.mark.parametrize("same", [False, True])
def test_binned_moments(same: bool) -> None:
    starts = np.array([0, 4, 5, 9])  # the middle dimension has level zero alone
    A = columns(9, 2)
    B = A if same else columns(9, 2, seed=1)
    G, expected = np.zeros((2, 9))
    reference.binned_moments(starts, 0, 3, A, B, same, expected)
    gradient_loops.binned_moments(starts, 0, 2, A, B, same, G, (0, 0))
    gradient_loops.binned_moments(starts, 2, 3, A, B, same, G, (0, 0))
    assert_close(G, expected)


def with_levels(operator: Intersection, levels: Array) -> Intersection:
    return operator.with_levels(levels)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("count", [1, 3, 11])
def test_level_gradient_is_the_derivative(layout: str, count: int) -> None:
    X = sparse_rows(30, 5)
    operator = HIK(scale=1.0).operator(encoded(X, layout))
    left, right = columns(30, count), columns(30, count, seed=1)
    v = columns(30, 1, seed=2)[:, 0]
    zero = operator.levels == 0.0

    def difference(k: int, f) -> float:  # K is linear in the levels while they keep their order
        nudge = np.zeros(operator.levels.size)
        nudge[k] = 1e-7
        return (f(with_levels(operator, operator.levels + nudge)) - f(operator)) / 1e-7

    found = operator.level_gradient(left, right)
    squares, sums = operator.level_gradient(left), operator.level_sums(v)
    matrix = operator.matrix_gradient(left @ left.T)
    for k in np.flatnonzero(~zero)[::3]:
        assert found[k] == pytest.approx(difference(k, lambda K: (left * K.matmul(right)).sum()), abs=1e-5)
        assert squares[k] == pytest.approx(difference(k, lambda K: (left * K.matmul(left)).sum()), abs=1e-5)
        assert sums[k] == pytest.approx(difference(k, lambda K: v @ K.diag()), abs=1e-5)
    assert_close(matrix, squares)
