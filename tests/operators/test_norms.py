"""Norms from tables of few nodes: never above those from all training values, and the same when none is left out."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.kernels import HIK
from saccade.operators.nodes import kept_nodes
from saccade.operators.norms import ROUNDING, all_norm_tables, norm_tables
from tests.operators.histograms import LAYOUTS, columns, encoded, histograms, intersections, sparse_rows

plain = HIK(scale=1.0)


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), nodes=st.integers(2, 8), r=st.sampled_from([1, 4, 20]), size=st.sampled_from([1e-9, 1.0, 1e9]))
def test_from_below(layout: str, data: st.DataObject, nodes: int, r: int, size: float) -> None:
    X, new = size * data.draw(histograms(dims=3)), size * data.draw(histograms(dims=3, top=1.5))
    W = columns(len(X), r)
    found = norm_tables(plain.operator(encoded(X, layout)), W, nodes).squared_norms(plain.features(new))
    wanted = np.square(intersections(new, X) @ W).sum(axis=1)
    assert (found <= wanted * (1 + 1e-9)).all()


@pytest.mark.parametrize("r", [1, 16, 40, 70])
def test_with_all_nodes_only_rounding_is_lost(r: int) -> None:
    X, new, W = sparse_rows(60, 5), sparse_rows(30, 5, seed=3), columns(60, r)
    W[:, 0] = np.abs(W[:, 0])  # as the leading direction is
    tables = norm_tables(plain.operator(encoded(X, "sorted")), W, 100)
    wanted = np.square(intersections(new, X) @ W).sum(axis=1)
    np.testing.assert_allclose(tables.squared_norms(plain.features(new)), wanted, rtol=1e-4)
    few = norm_tables(plain.operator(encoded(X, "sorted")), W, 12)
    assert len(few.T) <= 5 * 12 < len(tables.T)
    assert few.squared_norms(plain.features(new)).sum() > 0.8 * wanted.sum()


def test_the_slack_is_the_largest_distance_from_the_line_but_for_the_first_column() -> None:
    """One dimension, values 0, 1, 2, 4 and one column: T = 0, 3, 5, 7. Without the two in the middle it is a line."""
    X, W = np.array([[1.0], [2.0], [4.0]]), np.ones((3, 1))
    tables = norm_tables(plain.operator(encoded(X, "sorted")), W, 2)
    assert tables.levels.tolist() == [0.0, 4.0]
    assert tables.T.ravel().tolist() == [0.0, 7.0]
    np.testing.assert_allclose(tables.slack, 0.0, atol=1e-4)  # too small already: 3.5 against 5 in the middle
    for second in (-1.0, 1.0):
        both = norm_tables(plain.operator(encoded(X, "sorted")), np.hstack([W, second * W]), 2)
        np.testing.assert_allclose(both.slack, [[0.0, 1.5], [0.0, 0.0]], atol=1e-4)


def test_nodes_are_few_and_lie_where_values_do() -> None:
    crowd = np.sort(np.append(np.linspace(0.0, 1.0, 900), np.linspace(1.0, 10.0, 100)))
    levels, starts = np.concatenate([crowd, [0.0], [0.0, 0.5, 0.6]]), np.array([0, 1000, 1001, 1004])
    kept, at = kept_nodes(levels, starts, 20)
    assert (np.diff(at) <= 20).all()
    assert set(starts[:-1]) | set(starts[1:] - 1) <= set(kept)
    assert {1000, 1001, 1002, 1003} <= set(kept)  # few enough to stay as they are
    first = levels[kept[: at[1]]]
    assert 6 <= (first <= 1.0).sum() <= 14  # neither all where most values are nor a tenth of them


def test_nobody_and_nothing() -> None:
    X, W = sparse_rows(10, 4), columns(10, 3)
    tables = norm_tables(plain.operator(encoded(X, "sorted")), W)
    assert tables.squared_norms(plain.features(np.zeros((0, 4)))).shape == (0,)
    assert not tables.squared_norms(plain.features(np.zeros((2, 4)))).any()
    wider = np.hstack([X, 5.0 * X])  # dimensions never seen
    np.testing.assert_array_equal(tables.squared_norms(plain.features(wider)), tables.squared_norms(plain.features(X)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tables_and_slack_are_those_of_exact_tables_written_out(layout: str) -> None:
    """Two W side by side, each against `tables` at every level and the lines between the nodes."""
    X, Ws = sparse_rows(90, 5), [columns(90, 20), -columns(90, 3, seed=2)]
    K = plain.operator(encoded(X, layout))
    for W, found in zip(Ws, all_norm_tables(K, Ws, 6), strict=True):
        W = W if W[:, 0].sum() >= 0 else -W
        exact = K.tables(W)
        kept, starts = kept_nodes(exact.levels, exact.level_starts, 6)
        assert found.level_starts.tolist() == starts.tolist()
        np.testing.assert_array_equal(found.levels, exact.levels[kept])
        np.testing.assert_allclose(found.T, exact.T[kept], rtol=1e-6, atol=1e-6)
        for a, b in pairwise(kept):
            x, width = exact.levels[a : b + 1, None], exact.levels[b] - exact.levels[a]
            if width <= 0:  # the next dimension, or equal levels
                continue
            off = exact.T[a : b + 1] - exact.T[a] - (x - x[0]) / width * (exact.T[b] - exact.T[a])
            slack = (-off[:, 0]).max(), np.sqrt(np.square(off[:, 1:]).sum(axis=1).max())
            size = np.abs(exact.T[[a, b], 0]).max(), np.sqrt(np.square(exact.T[[a, b], 1:]).sum(axis=1).max())
            wanted = np.array(slack) + ROUNDING * np.array(size)
            np.testing.assert_allclose(found.slack[np.searchsorted(kept, a)], wanted, rtol=1e-5, atol=1e-12)
