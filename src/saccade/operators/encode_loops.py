"""The compiled loops that make codes out of data: plain arrays in and out, as in loops.py.

`tests/operators/reference.py` has the slow twin of each.
"""

import numpy as np

from saccade._core.compiled import Unsigned, compiled

U = Unsigned  # innermost loops count in unsigned numbers: see loops.py
ONE, FOUR, NINE = U(1), U(4), U(9)
TILE_ROWS, TILE_DIMS = 256, 16


@compiled()
def _codes(values, borders, codes):
    """The number of borders, which ascend, below each value. They search in step: one alone waits for its own loads.

    No branch depends on a value, so the processor never guesses wrong.
    """
    codes[:] = 0
    count = U(borders.size)
    while count > ONE:
        half = count >> ONE
        for k in range(U(codes.size)):
            low = U(codes[k])
            codes[k] = low + half if borders[low + half - ONE] < values[k] else low
        count -= half
    if count == ONE:
        for k in range(U(codes.size)):
            codes[k] += borders[U(codes[k])] < values[k]


@compiled()
def encode_sparse(indptr, indices, data, bases, borders, border_starts, first, last, starts, rows, codes):
    """CSR rows as code columns, one block of rows after another. `starts` holds each (block, dimension)'s first entry.

    A dimension with levels 0 = l_0 < l_1 < ... < l_m has m borders: 0, and midway between l_1 ... l_m. The nearest
    level wins, and only a zero is coded as zero, unless the dimension has no other level. The entries of a block go by
    dimension first, so that the borders of one dimension at a time are in the cache.
    """
    dims = border_starts.size - 1
    fill = np.empty(dims, np.int64)
    for block in range(first, last):
        start, base = starts[block * dims], bases[block]
        own = np.empty(starts[(block + 1) * dims] - start, data.dtype)
        for d in range(dims):
            fill[d] = starts[block * dims + d]
        for i in range(base, bases[block + 1]):
            for k in range(indptr[i], indptr[i + 1]):
                if data[k] > 0:
                    at = fill[indices[k]]
                    rows[at], own[at - start] = i - base, data[k]
                    fill[indices[k]] += 1
        for d in range(dims):
            a, b = starts[block * dims + d], starts[block * dims + d + 1]
            _codes(own[a - start : b - start], borders[border_starts[d] : border_starts[d + 1]], codes[a:b])


@compiled()
def count_sparse(indptr, indices, data, bases, dims, first, last, counts):
    """counts[block, d] = non-zeros of dimension d among the rows of the block."""
    for block in range(first, last):
        for k in range(indptr[bases[block]], indptr[bases[block + 1]]):
            if data[k] > 0:
                counts[block * dims + indices[k]] += 1


@compiled()
def encode_dense(X, borders, border_starts, first, last, start, codes):
    """One block of dense rows as code columns, dimensions first..last; zero is code 0.

    Some rows and dimensions at a time are turned round first: each cache line of X is then read once.
    """
    n, tile = X.shape[0], np.empty((TILE_DIMS, TILE_ROWS), X.dtype)
    for i in range(0, n, TILE_ROWS):
        rows = min(TILE_ROWS, n - i)
        for d in range(first, last, TILE_DIMS):
            dims = min(TILE_DIMS, last - d)
            for a in range(rows):
                for b in range(dims):
                    tile[b, a] = max(X[i + a, d + b], X.dtype.type(0))
            for b in range(dims):
                at, own = start + (d + b) * n + i, borders[border_starts[d + b] : border_starts[d + b + 1]]
                _codes(tile[b, :rows], own, codes[at : at + rows])


@compiled()
def to_rows(X, indptr, first, last, indices, data):
    """Dense rows first..last as CSR, where indptr is known. A zero is overwritten by what follows it."""
    for i in range(first, last):
        row, end = X[i], U(indptr[i + 1])
        k, d = U(indptr[i]), U(0)
        while k < end:  # no branch depends on the values: scipy's guesses, often wrong, took ten times as long
            indices[k], data[k] = d, row[d]
            k += U(row[d] != 0)
            d += ONE


@compiled()
def to_columns(indptr, indices, data, bases, first, last, fill, rows, values):
    """The non-zeros of CSR row blocks first..last by dimension; fill[block, d] is where those of a block begin."""
    for block in range(first, last):
        tails = fill[block]
        for i in range(bases[block], bases[block + 1]):
            dims, entries = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
            for k in range(U(dims.size)):
                if entries[k] > 0:
                    at = U(tails[U(dims[k])])
                    rows[at], values[at] = i, entries[k]
                    tails[U(dims[k])] += 1


@compiled()
def dense_to_columns(X, starts, first, last, rows, values):
    """The positive entries of a dense matrix by dimension, first..last. A zero is overwritten by what follows it."""
    for d in range(first, last):
        at, end, i = starts[d], starts[d + 1], 0
        while at < end:  # as in to_rows
            rows[at], values[at] = i, X[i, d]
            at += X[i, d] > 0
            i += 1


@compiled()
def count_placed(starts, rows, wanted, first, last, counts):
    """counts[d] = the entries of dimension d, first..last of sorted columns, whose row is wanted."""
    for d in range(first, last):
        owners, found = rows[starts[d] : starts[d + 1]], 0
        for k in range(U(owners.size)):
            found += wanted[owners[k]]
        counts[d] = found


@compiled()
def pick_placed(starts, rows, values, wanted, place, heads, first, last, row, value):
    """Those entries, by their new rows: of dimension d from heads[d] to heads[d+1]."""
    for d in range(first, last):
        owners, own, at = rows[starts[d] : starts[d + 1]], values[starts[d] : starts[d + 1]], heads[d]
        for k in range(U(owners.size)):
            if wanted[owners[k]]:
                row[at], value[at] = place[owners[k]], own[k]
                at += 1


@compiled()
def sort_columns(starts, first, last, bits, rows):
    """Sort the entries of dimensions first..last, positive floats seen as integers (ordered alike); `rows` move along.

    The leading bits above the smallest tell a bucket, of which there are four for each entry; what is left is nearly
    sorted, and insertion finishes it. Where many fall into one bucket, Shell's gaps first.
    """
    longest = 1
    for d in range(first, last):
        longest = max(longest, starts[d + 1] - starts[d])
    heads, some = np.empty(4 * longest + 1, np.int64), np.empty(longest, np.int64)
    some_rows = np.empty(longest, rows.dtype)
    for d in range(first, last):
        own, owners = bits[starts[d] : starts[d + 1]], rows[starts[d] : starts[d + 1]]
        count = U(own.size)
        if count < 2:
            continue
        low = high = own[0]
        for k in range(count):
            low, high = min(low, own[k]), max(high, own[k])
        shift = U(0)
        while U(high - low) >> shift >= FOUR * count:
            shift += ONE
        for b in range(FOUR * count + ONE):
            heads[b] = 0
        for k in range(count):
            heads[(U(own[k] - low) >> shift) + ONE] += 1
        most = 0
        for b in range(FOUR * count):
            most = max(most, heads[b + ONE])
            heads[b + ONE] += heads[b]
        for k in range(count):
            b = U(own[k] - low) >> shift
            at = U(heads[b])
            some[at], some_rows[at] = own[k], owners[k]
            heads[b] += 1
        for k in range(count):  # plain loops throughout: a slice that is assigned takes a second to compile
            own[k], owners[k] = some[k], some_rows[k]
        gap = ONE
        while most > 64 and gap < count // NINE:
            gap = U(3) * gap + ONE
        while gap > 0:
            _insert(own, owners, gap)
            gap //= U(3)


@compiled()
def _insert(keys, rows, gap):
    """Every gap-th key in order, by insertion."""
    for k in range(gap, U(keys.size)):
        x, row, at = keys[k], rows[k], k
        while at >= gap and keys[at - gap] > x:
            keys[at], rows[at] = keys[at - gap], rows[at - gap]
            at -= gap
        keys[at], rows[at] = x, row


@compiled()
def column_max(indices, data, first, last, out):
    """out_d = max(out_d, values of dimension d) over the entries first..last of a CSR matrix."""
    for k in range(first, last):
        out[indices[k]] = max(out[indices[k]], data[k])


@compiled()
def distinct(bits, table, found):
    """Write the distinct positive numbers of a column to `found`, unsorted; returns how many, 0 when more than fit.

    Floats come as their bits: positive floats are positive integers, zeros and negative ones are not. `table` is
    scratch, zeros, some times as long as `found`.
    """
    slots, count = table.size, 0
    for x in bits:
        if x <= 0:
            continue
        slot = ((x ^ (x >> 29) ^ (x >> 47)) & 0x7FFFFFFF) % slots
        while table[slot] != 0 and table[slot] != x:
            slot = slot + 1 if slot + 1 < slots else 0
        if table[slot] == 0:
            if count == found.size:
                return 0
            table[slot] = found[count] = x
            count += 1
    return count
