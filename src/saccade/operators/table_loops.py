"""The compiled loops behind tables of few nodes: plain arrays in and out, no checks.

`tests/operators/reference.py` has the slow twin of each.

Exact tables have a row for every training value, far more than stay. So they are never written out: of each dimension
they pass through the cache, and only the rows at the nodes and the distances from the lines between nodes are kept.

C_p is the sum of V over the entries from p up, and the table rises by step_p C_p at entry p. Between two nodes the line
rises evenly, by `slope` a unit, so that the table is off it by e_p = e_{p-1} + step_p (C_p - slope). Node j of a
dimension is its zero (j = 0), or the level of entry places[j] - 1.
"""

import numpy as np

from saccade._core.compiled import Unsigned, compiled
from saccade.operators.simd import add_squares_off, add_up, fma_row, sum_steps

U = Unsigned
ONE = U(1)


@compiled()
def sorted_lines(starts, rows, steps, node_starts, places, first, last, V, columns, T, size, lost, C, off, lanes):
    """T at the nodes, its squared norm, and the largest squared distance from the line that begins there.

    Dimensions first..last of sorted columns; V is (blocks, n, lanes), its first column is number 1 of `columns` in T,
    which is (blocks, nodes, lanes) with lanes of its own. C and off are scratch of a column's length.
    """
    for d in range(first, last):
        column, up = rows[starts[d] : starts[d + 1]], steps[starts[d] : starts[d + 1]]
        a, b = node_starts[d], node_starts[d + 1]
        own = off[: column.size]
        own[:] = 0
        size[a:b] = 0
        for block in range(V.shape[0]):
            add_up(C, V[block], column, lanes)
            start = 1 + block * len(lanes)
            _lines(up, C, places[a:b], start, columns, T[:, a:b], size[a:b], own, lanes)
        _largest(places[a:b], own, lost[a:b])


@compiled()
def sorted_line_below(starts, rows, steps, node_starts, places, first, last, v, T, above, C):
    """T at the nodes for one column, and how far each line between two of them is above the table, at most."""
    for d in range(first, last):
        column, up = rows[starts[d] : starts[d + 1]], steps[starts[d] : starts[d + 1]]
        a, b = node_starts[d], node_starts[d + 1]
        total, length = 0.0, U(column.size)
        for p in range(length):
            total += v[column[length - p - ONE]]
            C[length - p - ONE] = total
        _line_below(up, C[: column.size], places[a:b], T[a:b], above[a:b])


@compiled()
def binned_lines(level_starts, steps, node_starts, places, first, last, H, start, end, T, size, off, lanes):
    """Lines of the tables from histograms of columns start..end, one per thread; `off` is added to, for every level.

    Their sum becomes C in H[0].
    """
    C = _falling(level_starts, first, last, H, lanes)
    for d in range(first, last):
        levels, a, b = slice(level_starts[d] + 1, level_starts[d + 1]), node_starts[d], node_starts[d + 1]
        _lines(steps[levels], C[levels], places[a:b], start, end, T[:, a:b], size[a:b], off[levels], lanes)


@compiled()
def binned_line_below(level_starts, steps, node_starts, places, first, last, H, T, above, lanes):
    """`sorted_line_below` from histograms of one column."""
    C = _falling(level_starts, first, last, H, lanes)
    for d in range(first, last):
        levels, a, b = slice(level_starts[d] + 1, level_starts[d + 1]), node_starts[d], node_starts[d + 1]
        _line_below(steps[levels], C[levels, 0], places[a:b], T[a:b], above[a:b])


@compiled()
def binned_largest(level_starts, node_starts, places, first, last, off, lost):
    """The largest of `off` between two nodes."""
    for d in range(first, last):
        a, b = node_starts[d], node_starts[d + 1]
        _largest(places[a:b], off[level_starts[d] + 1 : level_starts[d + 1]], lost[a:b])


@compiled()
def mark_nodes(levels, starts, nodes, first, last, stays, total):
    """Mark at most `nodes` levels of each dimension first..last: see `kept_nodes`. `total` is scratch."""
    for d in range(first, last):
        own, marks = levels[starts[d] : starts[d + 1]], stays[starts[d] : starts[d + 1]]
        if own.size <= nodes:
            marks[:] = True
            continue
        total[0] = 0.0
        for k in range(1, own.size):
            total[k] = total[k - 1] + max(own[k] - own[k - 1], 0.0) ** 0.4
        whole = max(total[own.size - 1], 1e-300)
        before = 0.0
        marks[0] = True
        for k in range(1, own.size):
            piece = np.floor(total[k] / whole * (nodes - 1) * (1.0 - 1e-12))
            marks[k - 1] = piece != before or k == 1
            before = piece
        marks[own.size - 1] = True


@compiled()
def _falling(level_starts, first, last, H, lanes):
    """H[0] becomes the sum of all H over the levels from each one up."""
    C = H[0]
    one = C.dtype.type(1)
    for d in range(first, last):
        for part in range(1, H.shape[0]):
            for b in range(level_starts[d], level_starts[d + 1]):
                fma_row(C, b, C, b, one, H[part], b, lanes)
        for b in range(level_starts[d + 1] - 2, level_starts[d], -1):
            fma_row(C, b, C, b, one, C, b + 1, lanes)
    return C


@compiled()
def _lines(up, C, places, start, end, T, size, off, lanes):
    """For one dimension and the columns from start: T at the nodes, size += squared norms, off += squared distances.

    The first node has T = 0, which T holds already; lanes from column `end` on are none.
    """
    width, wide = min(len(lanes), end - start), U(T.shape[2])
    total, rise = np.zeros((1, len(lanes))), np.empty((1, len(lanes)))
    for j in range(places.size - 1):
        a, b = places[j], places[j + 1]
        gap = 0.0
        for p in range(U(a), U(b)):
            gap += up[p]
        sum_steps(rise, up[a:b], C[a:b], lanes)
        fma_row(total, 0, total, 0, 1.0, rise, 0, lanes)
        for lane in range(width):
            at = U(start + lane)
            T[at // wide, j + 1, at % wide] = total[0, lane]
            size[j + 1] += total[0, lane] ** 2
        for lane in range(len(lanes)):
            rise[0, lane] = rise[0, lane] / gap if gap > 0 else 0.0  # now the slope
        add_squares_off(off[a:b], up[a:b], C[a:b], rise, lanes)


@compiled()
def _line_below(up, C, places, T, above):
    """For one dimension and column: T at the nodes, and how far the line is above the table, at most."""
    total = 0.0
    T[0], above[places.size - 1] = 0, 0
    for j in range(places.size - 1):
        a, b = U(places[j]), U(places[j + 1])
        gap = rise = off = most = 0.0
        for p in range(a, b):
            gap += up[p]
            rise += up[p] * C[p]
        slope = rise / gap if gap > 0 else 0.0
        for p in range(a, b):
            off += up[p] * (slope - C[p])
            most = max(most, off)
        total += rise
        T[j + 1], above[j] = total, most


@compiled()
def _largest(places, off, lost):
    """lost_j = the largest of off between nodes j and j + 1; 0 after the last."""
    for j in range(places.size - 1):
        most = 0.0
        for p in range(U(places[j]), U(places[j + 1])):
            most = max(most, off[p])
        lost[j] = most
    lost[places.size - 1] = 0
