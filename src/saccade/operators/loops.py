"""The compiled loops: plain arrays in and out, no checks, no Python objects.

`tests/operators/reference.py` has the slow twin of each.

Every loop works on a range (dimensions, or blocks of rows), so that threads can share it out, and releases the GIL.
`lanes` is a tuple as long as a row of V: see simd.py. Arrays of T, H and V have shape (rows, lanes).

Innermost loops count in unsigned numbers: Numba lets a signed index count from the end, and asks each time whether it
does. That question cost a third of the exact product. (An unsigned number plus a signed one is a float to Numba.)
"""

import numpy as np

from saccade._core.compiled import Unsigned, compiled
from saccade.operators.simd import add_rows, add_up, fma_row, step_down, sum_minima

U, SIGNED = Unsigned, np.int64
ONE, TWO, THREE, FOUR = U(1), U(2), U(3), U(4)
CODES = 256  # of a byte


@compiled()
def rises(levels, starts, first, last, steps):
    """steps_k = level_k − level_{k−1} in dimensions first..last, the first one from 0.

    Each makes up for the rounding of those before it, so that their sums stay as near to the levels as four steps are.
    Four quarters of a dimension go in step, because each sum waits for its own last addition.
    """
    for d in range(first, last):
        own, found = levels[starts[d] : starts[d + 1]], steps[starts[d] : starts[d + 1]]
        if own.size == 0:
            continue
        quarter = U(own.size // 4)
        second, third, fourth = quarter, quarter + quarter, quarter + quarter + quarter
        a = 0.0
        b, c, e = own[max(second, ONE) - ONE], own[max(third, ONE) - ONE], own[max(fourth, ONE) - ONE]
        for k in range(quarter):
            found[k] = max(own[k] - a, 0.0)
            a += found[k]
            found[k + second] = max(own[k + second] - b, 0.0)
            b += found[k + second]
            found[k + third] = max(own[k + third] - c, 0.0)
            c += found[k + third]
            found[k + fourth] = max(own[k + fourth] - e, 0.0)
            e += found[k + fourth]
        e = e if quarter > 0 else 0.0
        for k in range(fourth + quarter, U(own.size)):
            found[k] = max(own[k] - e, 0.0)
            e += found[k]


@compiled()
def sum_by_row(starts, rows, levels, first, last, out):
    """out_i += the levels of row i and their squares, in dimensions first..last of sorted columns."""
    owners, own = rows[starts[first] : starts[last]], levels[starts[first] : starts[last]]
    for k in range(U(owners.size)):
        out[owners[k], 0] += own[k]
        out[owners[k], 1] += own[k] * own[k]


@compiled()
def sorted_product_one(starts, rows, steps, first, last, v, out, A, B):
    """out += K v over dimensions first..last, entries sorted by value in each; A, B are scratch of a column's length.

    H (6): C_k = sum of v from entry k up; T_k = T_{k-1} + step_k C_k is what entry k's row receives. Two columns go in
    step, because one running sum waits for its own last addition.
    """
    for d in range(first, last, 2):
        a, b, end = starts[d], starts[d + 1], starts[min(d + 2, last)]
        rows_a, rows_b, steps_a, steps_b = rows[a:b], rows[b:end], steps[a:b], steps[b:end]
        length_a, length_b = U(rows_a.size), U(rows_b.size)
        both = min(length_a, length_b)
        s = t = v.dtype.type(0)
        for p in range(both):
            i, j = length_a - p - ONE, length_b - p - ONE
            s += v[rows_a[i]]
            A[i] = s
            t += v[rows_b[j]]
            B[j] = t
        for p in range(both, length_a):
            i = length_a - p - ONE
            s += v[rows_a[i]]
            A[i] = s
        for p in range(both, length_b):
            j = length_b - p - ONE
            t += v[rows_b[j]]
            B[j] = t
        s = t = v.dtype.type(0)
        for p in range(both):
            s += steps_a[p] * A[p]
            t += steps_b[p] * B[p]
            out[rows_a[p]] += s
            out[rows_b[p]] += t
        for p in range(both, length_a):
            s += steps_a[p] * A[p]
            out[rows_a[p]] += s
        for p in range(both, length_b):
            t += steps_b[p] * B[p]
            out[rows_b[p]] += t


@compiled()
def sorted_product(starts, rows, steps, first, last, V, out, C, lanes):
    """out += K V as in `sorted_product_one`, for several columns of V; C is scratch of a column's length."""
    for d in range(first, last):
        column = rows[starts[d] : starts[d + 1]]
        add_up(C, V, column, lanes)
        step_down(out, column, steps[starts[d] : starts[d + 1]], C, lanes)


@compiled()
def sorted_tables(starts, rows, steps, first, last, V, T, lanes):
    """T_k of `sorted_product` for every entry k: the table that predicts, each dimension's after one row of zeros."""
    one = V.dtype.type(1)
    for d in range(first, last):
        column, up = rows[starts[d] : starts[d + 1]], steps[starts[d] : starts[d + 1]]
        length, table = U(column.size), T[starts[d] + d :]
        table[0] = 0
        for p in range(length):
            at = length - p
            for lane in range(len(lanes)):
                table[at, lane] = V[column[at - ONE], lane]
            if at < length:
                fma_row(table, at, table, at, one, table, at + ONE, lanes)
        for p in range(length):
            fma_row(table, p + ONE, table, p, T.dtype.type(up[p]), table, p + ONE, lanes)


@compiled()
def histogram(starts, rows, codes, bases, level_starts, first, last, V, H, lanes):
    """H_d[b] += sum of V over the rows with code b, blocks first..last. rows=None (dense): a code per row.

    Two halves of a column go in step, because an addition waits for the last one to the same place. A dense column has
    often one code in neighbouring rows (pixels: zero): four quarters, each into sums of its own. Both kinds of column
    are in one loop: Numba compiles only the one that is met, and a loop that calls another is compiled twice.
    """
    one, dims = V.dtype.type(1), level_starts.size - 1
    sums = np.empty((4 * CODES if rows is None else 0, len(lanes)), V.dtype)
    for column in range(first * dims, last * dims):
        base, o, start, end = bases[column // dims], level_starts[column % dims], starts[column], starts[column + 1]
        own, count = codes[start:end], U(end - start)
        if rows is None:
            quarter = count >> TWO
            sums[:] = 0
            for k in range(quarter):
                a, b = U(own[k]), U(own[k + quarter]) + U(CODES)
                c, e = U(own[k + TWO * quarter]) + U(2 * CODES), U(own[k + THREE * quarter]) + U(3 * CODES)
                i = U(base) + k
                fma_row(sums, a, sums, a, one, V, i, lanes)
                fma_row(sums, b, sums, b, one, V, i + quarter, lanes)
                fma_row(sums, c, sums, c, one, V, i + TWO * quarter, lanes)
                fma_row(sums, e, sums, e, one, V, i + THREE * quarter, lanes)
            for k in range(FOUR * quarter, count):
                a = U(own[k])
                fma_row(sums, a, sums, a, one, V, U(base) + k, lanes)
            for b in range(U(level_starts[column % dims + 1] - o)):
                for part in range(4):
                    fma_row(H, U(o) + b, H, U(o) + b, one, sums, b + U(part * CODES), lanes)
        else:
            owners, half = rows[start:end], count >> ONE
            for k in range(half):
                a, b = o + own[k], o + own[k + half]
                fma_row(H, a, H, a, one, V, base + owners[k], lanes)
                fma_row(H, b, H, b, one, V, base + owners[k + half], lanes)
            for k in range(TWO * half, count):
                a = o + own[k]
                fma_row(H, a, H, a, one, V, base + owners[k], lanes)


@compiled()
def histogram_of(starts, codes, bases, level_starts, cuts, chosen, first, last, V, H, lanes):
    """H_d[b] += sum of V over those of the chosen rows that have code b, dimensions first..last of dense codes.

    Rows are in ascending order; those of a block are chosen[cuts[block]] .. chosen[cuts[block + 1]].
    """
    one = V.dtype.type(1)
    dims = level_starts.size - 1
    for block in range(bases.size - 1):
        a, b, base = cuts[block], cuts[block + 1], bases[block]
        for d in range(first, last):
            o, start = level_starts[d], starts[block * dims + d] - base
            for k in range(a, b):
                at = o + codes[start + chosen[k]]
                fma_row(H, at, H, at, one, V, k, lanes)


@compiled()
def cumulate(level_starts, steps, first, last, H, lanes):
    """Turn histograms into tables, in place: H[0] becomes T of the summed H (one H per thread), dimensions first..last.

    C_d[b] = sum_{b' >= b} H_d[b'],  T_d[b] = T_d[b-1] + step_d[b] C_d[b],  T_d[0] = 0.
    """
    T = H[0]
    one = T.dtype.type(1)
    for d in range(first, last):
        o, end = level_starts[d], level_starts[d + 1]
        for part in range(1, H.shape[0]):
            other = H[part]
            for b in range(o, end):
                fma_row(T, b, T, b, one, other, b, lanes)
        for b in range(end - 2, o, -1):
            fma_row(T, b, T, b, one, T, b + 1, lanes)
        T[o] = 0
        for b in range(o + 1, end):
            fma_row(T, b, T, b - 1, steps[b], T, b, lanes)


@compiled()
def look_up(starts, rows, codes, bases, level_starts, first, last, T, out, lanes):
    """out_i += sum_d T_d[c_id], blocks first..last: the second half of the product.

    Four dimensions of dense codes at a time: out_i is loaded and stored once for four.
    """
    one, dims = T.dtype.type(1), level_starts.size - 1
    for block in range(first, last):
        base, done = bases[block], 0
        if rows is None:
            done, count = dims - dims % 4, bases[block + 1] - base
            for d in range(0, done, 4):
                a, b, c, e = level_starts[d], level_starts[d + 1], level_starts[d + 2], level_starts[d + 3]
                start = starts[block * dims + d]
                p, q = codes[start : start + count], codes[start + count : start + 2 * count]
                r, s = codes[start + 2 * count : start + 3 * count], codes[start + 3 * count : start + 4 * count]
                for k in range(U(count)):
                    add_rows(out, base + SIGNED(k), T, (a + p[k], b + q[k], c + r[k], e + s[k]), lanes)
        for d in range(done, dims):
            o = level_starts[d]
            start, end = starts[block * dims + d], starts[block * dims + d + 1]
            column, owners = codes[start:end], None if rows is None else rows[start:end]
            for k in range(U(column.size)):
                i = base + (SIGNED(k) if rows is None else owners[k])
                fma_row(out, i, out, i, one, T, o + column[k], lanes)


@compiled()
def look_up_at(starts, codes, bases, level_starts, cuts, chosen, first, last, T, out, lanes):
    """out_k += sum_d T_d[c_id] for the chosen rows i with numbers first..last, of dense codes; cuts as above."""
    one = T.dtype.type(1)
    dims = level_starts.size - 1
    for block in range(bases.size - 1):
        a, b, base = max(cuts[block], first), min(cuts[block + 1], last), bases[block]
        for d in range(dims if a < b else 0):
            o, start = level_starts[d], starts[block * dims + d] - base
            for k in range(a, b):
                fma_row(out, k, out, k, one, T, o + codes[start + chosen[k]], lanes)


@compiled()
def weighted_squares(K, weight, first, last, out):
    """out_j += sum_i weight_i K_ij^2, columns first..last: A (12) at the speed of reading K.

    Some columns at a time, whose sums stay in the cache, and four rows at once, which add to a sum together. Rows
    after the last are the last one with no weight: one loop compiles in half the time of two.
    """
    rows = U(weight.size)
    for a in range(U(first), U(last), U(512)):
        b = min(a + U(512), U(last))
        for i in range(U(0), rows, FOUR):
            p, q, r = min(i + ONE, rows - ONE), min(i + TWO, rows - ONE), min(i + THREE, rows - ONE)
            v = weight[i]
            w = weight[p] if i + ONE < rows else 0.0
            x = weight[q] if i + TWO < rows else 0.0
            y = weight[r] if i + THREE < rows else 0.0
            for j in range(a, b):
                out[j] += (v * K[i, j] ** 2 + w * K[p, j] ** 2) + (x * K[q, j] ** 2 + y * K[r, j] ** 2)


@compiled()
def intersect(cuts, indices, data, z_cuts, z_indices, z_data, upper, first, last, out, panel, sums, lanes):
    """out[i, j] += sum_d min(X[i, d], Z[j, d]) for two CSR matrices, panels first..last of `lanes` rows of Z.

    The panel holds those rows side by side, some dimensions at a time, so that one entry of X meets all of them at once
    and zeros of X cost nothing. Row i has entries cuts[b, i] .. cuts[b + 1, i] in the b-th block of dimensions.
    `upper`: only what is on or above the diagonal, and perhaps a little below. Panels are taken from both ends in turn:
    every run of them is then as much work. `panel` and `sums` are scratch.
    """
    n, m = out.shape
    dims, count = len(panel), -(-m // len(lanes))
    for turn in range(first, last):
        j = (turn // 2 if turn % 2 == 0 else count - 1 - turn // 2) * len(lanes)
        width = min(len(lanes), m - j)
        for b in range(len(cuts) - 1):
            panel.fill(0)
            for lane in range(width):
                for k in range(z_cuts[b, j + lane], z_cuts[b + 1, j + lane]):
                    panel[z_indices[k] - b * dims, lane] = z_data[k]
            for i in range(min(n, j + width) if upper else n):
                start, end = cuts[b, i], cuts[b + 1, i]
                sum_minima(sums, panel, b * dims, indices[start:end], data[start:end], lanes)
                for lane in range(width):
                    out[i, j + lane] += sums[0, lane]
