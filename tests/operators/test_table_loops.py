"""Tables at few nodes and their distances from lines: compiled loops against exact tables written out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.operators import table_loops
from saccade.operators.nodes import choose_nodes
from saccade.operators.tables import stacked
from tests.operators import reference
from tests.operators.histograms import columns, histograms
from tests.operators.test_loops import NO_NUMBER, blocks, cuts, few, in_two, sorted_steps
from tests.tolerances import assert_close

LANES = (0,) * 4


@few
@given(data=st.data(), cut=cuts, count=st.integers(2, 5), m=st.sampled_from([3, 4, 6]))
def test_sorted_lines(data: st.DataObject, cut: float, count: int, m: int) -> None:
    X = data.draw(histograms())
    (n, D), (starts, rows, steps) = X.shape, sorted_steps(X, np.float64)
    levels = [np.append(0.0, np.cumsum(steps[a:b])) for a, b in pairwise(starts)]
    chosen = choose_nodes(np.concatenate(levels), starts + np.arange(D + 1), count)
    read, N = (starts, rows, steps, chosen.starts, chosen.places), chosen.levels.size
    W = columns(n, m)
    V = stacked(W, 4)
    C, off, outputs = np.full((n, 4), NO_NUMBER), np.full(n, NO_NUMBER), []
    for module, scratch in ((table_loops, (C, off, LANES)), (reference, ())):
        T, size, lost, first, above = (np.zeros((3, N, 3)), *np.full((4, N), NO_NUMBER))
        wide, narrow = (V, m + 1, T, size, lost, *scratch), (W[:, 0].copy(), first, above, *scratch[1:2])
        in_two(lambda a, b, f=module.sorted_lines, w=wide: f(*read, a, b, *w), D, cut)
        in_two(lambda a, b, f=module.sorted_line_below, w=narrow: f(*read, a, b, *w), D, cut)
        outputs.append((T, size, lost, first, above))
    for fast, slow in zip(*outputs, strict=True):
        assert_close(fast, slow)


@pytest.mark.parametrize("layout", ["dense blocks", "sparse blocks"])
@few
@given(data=st.data(), cut=cuts, count=st.integers(2, 5))
def test_binned_lines(layout: str, data: st.DataObject, cut: float, count: int) -> None:
    X = data.draw(histograms())
    c, D = blocks(X, layout), X.shape[1]
    chosen, L, starts = choose_nodes(c.values, c.level_starts, count), c.values.size, c.level_starts
    steps = np.diff(c.values, prepend=0.0)
    steps[starts[:-1]] = 0.0
    read, N, outputs = (starts, steps, chosen.starts, chosen.places), chosen.levels.size, []
    H = columns(2 * L, 4).reshape(2, L, 4)
    H[:, :, 3] = 0.0  # a lane without a column
    for module, scratch in ((table_loops, (LANES,)), (reference, ())):
        T, size, off = np.zeros((2, N, 3)), np.arange(1.0 * N), np.arange(1.0 * L)
        lost, first, above = np.full((3, N), NO_NUMBER)
        wide = H.copy(), 2, 5, T, size, off, *scratch
        narrow = H[:, :, :1].copy(), first, above, *(lanes[:1] for lanes in scratch)
        in_two(lambda a, b, f=module.binned_lines, w=wide: f(*read, a, b, *w), D, cut)
        in_two(lambda a, b, f=module.binned_line_below, w=narrow: f(*read, a, b, *w), D, cut)
        in_two(
            lambda a, b, f=module.binned_largest, w=(off, lost): f(starts, *read[2:], a, b, *w),
            D,
            cut,
        )
        outputs.append((T, size, off, lost, first, above))
    for fast, slow in zip(*outputs, strict=True):
        assert_close(fast, slow)


@few
@given(data=st.data(), cut=cuts, nodes=st.integers(2, 9))
def test_mark_nodes(data: st.DataObject, cut: float, nodes: int) -> None:
    counts = data.draw(st.lists(st.integers(0, 40), max_size=4))
    starts = np.append(0, np.cumsum(counts)).astype(np.int64)
    rng, outputs = np.random.default_rng(sum(counts)), []
    levels = np.concatenate(
        [np.zeros(0), *(np.sort(rng.choice([0.0, 1.0, 1.5, 9.0, *rng.random(9)], k)) for k in counts)]
    )
    for module, scratch in ((table_loops, (np.full(40, NO_NUMBER),)), (reference, ())):
        stays = np.zeros(levels.size, bool)
        in_two(
            lambda a, b, f=module.mark_nodes, w=(stays, *scratch): f(levels, starts, nodes, a, b, *w), len(counts), cut
        )
        outputs.append(stays)
    np.testing.assert_array_equal(*outputs)
