"""The compiled loops: plain arrays in and out, no checks, no Python objects. `reference.py` has the slow twin of each.

Every loop works on a range (dimensions, or blocks of rows), so that threads can share it out, and releases the GIL.
`lanes` is a tuple as long as a row of V: see lanes.py. Arrays of T, H and V have shape (rows, lanes).
"""

import numpy as np
from numba import njit

from saccade.operators.lanes import fma_row


@njit(nogil=True, cache=True)
def sorted_product_one(starts, rows, steps, first, last, v, out, A, B):
    """out += K v over dimensions first..last, entries sorted by value in each; A, B are scratch of a column's length.

    H (6): C_k = sum of v from entry k up; T_k = T_{k-1} + step_k C_k is what entry k's row receives. Two columns go in
    step, because one running sum waits for its own last addition.
    """
    zero = v.dtype.type(0)
    for d in range(first, last, 2):
        a, length_a = starts[d], starts[d + 1] - starts[d]
        b, length_b = a, length_a * 0
        if d + 1 < last:
            b, length_b = starts[d + 1], starts[d + 2] - starts[d + 1]
        both = min(length_a, length_b)
        s = t = zero
        for p in range(1, both + 1):
            s += v[rows[a + length_a - p]]
            A[length_a - p] = s
            t += v[rows[b + length_b - p]]
            B[length_b - p] = t
        for p in range(length_a - both - 1, -1, -1):
            s += v[rows[a + p]]
            A[p] = s
        for p in range(length_b - both - 1, -1, -1):
            t += v[rows[b + p]]
            B[p] = t
        s = t = zero
        for p in range(both):
            s += steps[a + p] * A[p]
            t += steps[b + p] * B[p]
            out[rows[a + p]] += s
            out[rows[b + p]] += t
        for p in range(both, length_a):
            s += steps[a + p] * A[p]
            out[rows[a + p]] += s
        for p in range(both, length_b):
            t += steps[b + p] * B[p]
            out[rows[b + p]] += t


@njit(nogil=True, cache=True)
def sorted_product(starts, rows, steps, first, last, V, out, C, lanes):
    """out += K V as in `sorted_product_one`, for several columns of V; C is scratch, two rows longer than a column."""
    one = V.dtype.type(1)
    for d in range(first, last):
        a, length = starts[d], starts[d + 1] - starts[d]
        C[0] = 0
        C[length + 1] = 0
        for p in range(length, 0, -1):
            fma_row(C, p, C, p + 1, one, V, rows[a + p - 1], lanes)
        for p in range(1, length + 1):
            row = rows[a + p - 1]
            fma_row(C, p, C, p - 1, steps[a + p - 1], C, p, lanes)
            fma_row(out, row, out, row, one, C, p, lanes)


@njit(nogil=True, cache=True)
def sorted_tables(starts, rows, steps, first, last, V, T, lanes):
    """T_k of `sorted_product` for every entry k: the table that predicts, each dimension's after one row of zeros."""
    one = V.dtype.type(1)
    for d in range(first, last):
        a, length = starts[d], starts[d + 1] - starts[d]
        o = a + d
        for lane in range(len(lanes)):
            T[o, lane] = 0
        for p in range(length, 0, -1):
            for lane in range(len(lanes)):
                T[o + p, lane] = V[rows[a + p - 1], lane]
            if p < length:
                fma_row(T, o + p, T, o + p, one, T, o + p + 1, lanes)
        for p in range(1, length + 1):
            fma_row(T, o + p, T, o + p - 1, steps[a + p - 1], T, o + p, lanes)


@njit(nogil=True, cache=True)
def histogram(starts, rows, codes, bases, level_starts, first, last, V, A, B, lanes):
    """A_d[b] + B_d[b] += sum of V over the rows with code b, blocks first..last. rows=None (dense): a code a row.

    Two halves of a column go in step into A and B, because neighbouring rows often have one code (pixels: zero), and an
    addition waits for the last one to the same place. A and B may be one array.
    """
    one = V.dtype.type(1)
    dims = level_starts.size - 1
    for block in range(first, last):
        base = bases[block]
        for d in range(dims):
            o = level_starts[d]
            start, end = starts[block * dims + d], starts[block * dims + d + 1]
            half = (end - start) // 2
            for k in range(start, start + half):
                a, b = o + codes[k], o + codes[k + half]
                if rows is None:
                    i, j = base + k - start, base + k - start + half
                else:
                    i, j = base + rows[k], base + rows[k + half]
                fma_row(A, a, A, a, one, V, i, lanes)
                fma_row(B, b, B, b, one, V, j, lanes)
            if start + 2 * half < end:
                a = o + codes[end - 1]
                i = base + end - 1 - start if rows is None else base + rows[end - 1]
                fma_row(A, a, A, a, one, V, i, lanes)


@njit(nogil=True, cache=True)
def cumulate(level_starts, steps, first, last, H, lanes):
    """Turn histograms into tables, in place: H[0] becomes T of the summed H (one H a thread), dimensions first..last.

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


@njit(nogil=True, cache=True)
def look_up(starts, rows, codes, bases, level_starts, first, last, T, out, lanes):
    """out_i += sum_d T_d[c_id], blocks first..last: the second half of the product."""
    one = T.dtype.type(1)
    dims = level_starts.size - 1
    for block in range(first, last):
        base = bases[block]
        for d in range(dims):
            o = level_starts[d]
            start = starts[block * dims + d]
            for k in range(start, starts[block * dims + d + 1]):
                i = base + k - start if rows is None else base + rows[k]
                fma_row(out, i, out, i, one, T, o + codes[k], lanes)


@njit(nogil=True, cache=True)
def _code(x, borders, o, end):
    """The number of borders below x among borders[o:end], which ascend."""
    low, count = o, end - o
    while count > 1:  # no branch depends on x, so the processor never guesses wrong
        half = count >> 1
        low += half * (borders[low + half - 1] < x)
        count -= half
    if count == 1:
        low += borders[low] < x
    return low - o


@njit(nogil=True, cache=True)
def encode_sparse(indptr, indices, data, bases, borders, border_starts, first, last, starts, rows, codes):
    """CSR rows as code columns, one block of rows after another. `starts` holds each (block, dimension)'s first entry.

    A dimension with levels 0 = l_0 < l_1 < ... < l_m has m borders: 0, and midway between l_1 ... l_m. The nearest
    level wins, and only a zero is coded as zero, unless the dimension has no other level.
    """
    dims = border_starts.size - 1
    fill = np.empty(dims, np.int64)
    for block in range(first, last):
        for d in range(dims):
            fill[d] = starts[block * dims + d]
        base = bases[block]
        for i in range(base, bases[block + 1]):
            for k in range(indptr[i], indptr[i + 1]):
                if data[k] > 0:
                    d = indices[k]
                    rows[fill[d]] = i - base
                    codes[fill[d]] = _code(data[k], borders, border_starts[d], border_starts[d + 1])
                    fill[d] += 1


@njit(nogil=True, cache=True)
def count_sparse(indptr, indices, data, bases, dims, first, last, counts):
    """counts[block, d] = non-zeros of dimension d among the rows of the block."""
    for block in range(first, last):
        for k in range(indptr[bases[block]], indptr[bases[block + 1]]):
            if data[k] > 0:
                counts[block * dims + indices[k]] += 1


@njit(nogil=True, cache=True)
def encode_dense(X, borders, border_starts, first, last, start, codes):
    """One block of dense rows as code columns, dimensions first..last; zero is code 0."""
    for d in range(first, last):
        at = start + d * X.shape[0]
        for i in range(X.shape[0]):
            x = X[i, d]
            codes[at + i] = _code(x, borders, border_starts[d], border_starts[d + 1]) if x > 0 else 0


@njit(nogil=True, cache=True)
def sort_columns(starts, first, last, values, bits, rows):
    """Sort the entries of dimensions first..last by their positive values, in place; `rows` moves along.

    `bits` are the same numbers seen as integers, which are ordered alike: their leading bits above the smallest tell a
    bucket. There are as many buckets as entries, and Shell's insertion finishes each.
    """
    longest = 1
    for d in range(first, last):
        longest = max(longest, starts[d + 1] - starts[d])
    heads, some_values, some_rows = np.empty(longest + 1, np.int64), np.empty(longest), np.empty(longest, rows.dtype)
    for d in range(first, last):
        a, count = starts[d], starts[d + 1] - starts[d]
        if count < 2:
            continue
        low = high = bits[a]
        for k in range(a, a + count):
            low, high = min(low, bits[k]), max(high, bits[k])
            heads[k - a] = 0
        heads[count] = shift = 0
        while (high - low) >> shift >= count:
            shift += 1
        for k in range(a, a + count):
            heads[((bits[k] - low) >> shift) + 1] += 1
        for b in range(count):
            heads[b + 1] += heads[b]
        for k in range(a, a + count):
            b = (bits[k] - low) >> shift
            some_values[heads[b]], some_rows[heads[b]] = values[k], rows[k]
            heads[b] += 1  # in the end, where the bucket ends
        for k in range(count):
            values[a + k], rows[a + k] = some_values[k], some_rows[k]
        start = 0
        for b in range(count):
            _shell_sort(values, rows, a + start, a + heads[b])
            start = heads[b]


@njit(nogil=True, cache=True)
def _shell_sort(values, rows, start, end):
    """Insertion over shrinking gaps: plain insertion for a few entries, no quadratic time for many."""
    gap = 1
    while gap < (end - start) // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(start + gap, end):
            x, row, at = values[k], rows[k], k
            while at >= start + gap and values[at - gap] > x:
                values[at], rows[at] = values[at - gap], rows[at - gap]
                at -= gap
            values[at], rows[at] = x, row
        gap //= 3


@njit(nogil=True, cache=True)
def column_max(indices, data, first, last, out):
    """out_d = max(out_d, values of dimension d) over the entries first..last of a CSR matrix."""
    for k in range(first, last):
        out[indices[k]] = max(out[indices[k]], data[k])


@njit(nogil=True, cache=True)
def distinct(bits, limit):
    """The distinct positive numbers of a column, unsorted; an empty array when there are more than `limit`.

    Floats come as their bits: positive floats are positive integers, zeros and negative ones are not.
    """
    slots = 4 * limit
    table, found = np.zeros(slots, np.int64), np.empty(limit, np.int64)
    count = 0
    for x in bits:
        if x <= 0:
            continue
        slot = ((x ^ (x >> 29) ^ (x >> 47)) & 0x7FFFFFFF) % slots
        while table[slot] != 0 and table[slot] != x:
            slot = slot + 1 if slot + 1 < slots else 0
        if table[slot] == 0:
            if count == limit:
                return found[:0]
            table[slot] = found[count] = x
            count += 1
    return found[:count]


@njit(nogil=True, cache=True)
def guide_levels(level_starts, levels, first, last, guide):
    """A first guess where a value lies, dimensions first..last: of the 2m steps up to the last of m levels, step q has
    guide[2 * level_starts[d] + q] = the number of levels of dimension d below q steps.
    """
    for d in range(first, last):
        o, count = level_starts[d], level_starts[d + 1] - level_starts[d]
        top, q = levels[o + count - 1], 0
        guide[2 * o : 2 * (o + count)] = 0
        per_unit = 2 * count / top if top > 0 else 0.0
        for b in range(count):
            while q < 2 * count and q <= levels[o + b] * per_unit:
                guide[2 * o + q] = b
                q += 1


@njit(nogil=True, cache=True)
def interpolate(indptr, indices, data, level_starts, levels, guide, T, first, last, out, lanes):
    """out_i += sum_d T_d(x_id), T_d piecewise linear through (levels, T): H (6) for rows first..last of a CSR matrix.

    T_d(x) = T_d[b] + (x - l_b) / (l_{b+1} - l_b) (T_d[b+1] - T_d[b]) between two levels; constant beyond the last.
    Some rows at a time go by dimension, so that the table of one dimension at a time is in the cache.
    """
    one = T.dtype.type(1)
    dims = level_starts.size - 1
    heads = np.empty(dims + 1, np.int64)
    for chunk in range(first, last, 8192):
        end = min(chunk + 8192, last)
        heads[:] = 0
        for k in range(indptr[chunk], indptr[end]):
            heads[min(indices[k], dims - 1) + 1] += 1
        for d in range(dims):
            heads[d + 1] += heads[d]
        tails, rows, values = heads.copy(), np.empty(heads[dims], np.int32), np.empty(heads[dims])
        for i in range(chunk, end):
            for k in range(indptr[i], indptr[i + 1]):
                if indices[k] < dims and data[k] > 0:  # dimensions and signs never seen add nothing
                    d = indices[k]
                    rows[tails[d]], values[tails[d]] = i, data[k]
                    tails[d] += 1
        for d in range(dims):
            o, count = level_starts[d], level_starts[d + 1] - level_starts[d]
            top = levels[o + count - 1]
            if not top > 0:
                continue
            per_unit = 2 * count / top
            for k in range(heads[d], tails[d]):
                i, x = rows[k], values[k]
                if x >= top:
                    fma_row(out, i, out, i, one, T, o + count - 1, lanes)
                    continue
                q = int(min(x * per_unit, 2.0 * count - 1.0))
                low = o + guide[2 * o + q]
                high = o + guide[2 * o + q + 1] if q + 1 < 2 * count else o + count - 1
                b = low + _code(x, levels, low, high) - 1
                w = T.dtype.type((x - levels[b]) / (levels[b + 1] - levels[b]))
                fma_row(out, i, out, i, one - w, T, b, lanes)
                fma_row(out, i, out, i, w, T, b + 1, lanes)


@njit(nogil=True, cache=True)
def look_up_grid(indptr, indices, data, per_unit, bins, T, first, last, out, lanes):
    """out_i += sum_d T_d[nearest grid node to x_id]: constant time a value (H §4, quantisation)."""
    one = T.dtype.type(1)
    dims = per_unit.size
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + 1]):
            d, x = indices[k], data[k]
            if x > 0 and d < dims:
                b = min(int(min(x * per_unit[d], bins) + 0.5), bins - 1)
                fma_row(out, i, out, i, one, T, d * bins + b, lanes)


@njit(nogil=True, cache=True, fastmath={"reassoc", "nsz"})
def block_dense(X, Z, first, last, out):
    """out[i, j] += sum_d min(X[i, d], Z[j, d]), rows first..last of X."""
    for i in range(first, last):
        for j in range(Z.shape[0]):
            total = out.dtype.type(0)
            for d in range(X.shape[1]):
                total += min(X[i, d], Z[j, d])
            out[i, j] += total
