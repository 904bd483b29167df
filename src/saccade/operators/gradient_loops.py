"""The compiled loops behind derivatives: plain arrays in and out, as in loops.py.

`tests/operators/reference.py` has the slow twin of each.

K is linear in the steps δ_d[b] = ℓ_d[b] − ℓ_d[b−1]: uᵀ(∂K/∂δ_d[b])v = C^u_d[b] C^v_d[b], two suffix sums multiplied.
"""

from saccade._core.compiled import compiled
from saccade.operators.loops import U
from saccade.operators.simd import add_up


@compiled(fastmath={"reassoc", "nsz"})
def sorted_moments(starts, rows, first, last, left, right, A, B, G, lanes):
    """G[k] += sum over lanes of C^left[k] C^right[k] for the entries of dimensions first..last.

    A and B are scratch; `right` is of length 0 where it is `left`, and B then is A.
    """
    for d in range(first, last):
        column, out = rows[starts[d] : starts[d + 1]], G[starts[d] : starts[d + 1]]
        add_up(A, left, column, lanes)
        if right.size:
            add_up(B, right, column, lanes)
        for k in range(U(column.size)):
            total = 0.0
            for lane in range(len(lanes)):
                total += A[k, lane] * B[k, lane]
            out[k] += total


@compiled(fastmath={"reassoc", "nsz"})
def sorted_matrix_moments(starts, rows, first, last, A, G):
    """G[k] = sum of A[i, j] over the rows i, j of entry k's dimension that are at its level or above; A symmetric."""
    for d in range(first, last):
        column, out = rows[starts[d] : starts[d + 1]], G[starts[d] : starts[d + 1]]
        length, total = U(column.size), 0.0
        for p in range(length):
            k = length - p - U(1)
            row = A[column[k]]
            cross = 0.0
            for j in range(k + U(1), length):
                cross += row[column[j]]
            total += row[column[k]] + 2.0 * cross
            out[k] = total


@compiled(fastmath={"reassoc", "nsz"})
def binned_moments(level_starts, first, last, A, B, same, G, lanes):
    """Moments from histograms A, B of left and right over the levels, which become suffix sums; `same`: B is A."""
    for d in range(first, last):
        o, end = level_starts[d], level_starts[d + 1]
        a, b, out = A[o:end], B[o:end], G[o:end]
        length = U(out.size)
        for p in range(length):
            k = length - p - U(1)
            total = 0.0
            for lane in range(len(lanes)):
                if p > 0:
                    a[k, lane] += a[k + U(1), lane]
                    if not same:
                        b[k, lane] += b[k + U(1), lane]
                total += a[k, lane] * b[k, lane]
            if k > 0:  # nothing depends on the step to level zero
                out[k] += total


@compiled()
def falls(starts, first, last, G):
    """Each G less the one after it in its dimension, in place, dimensions first..last."""
    for d in range(first, last):
        part = G[starts[d] : starts[d + 1]]
        for k in range(U(max(part.size, 1) - 1)):
            part[k] -= part[k + U(1)]
