"""The compiled loops that predict: tables read at the values of new rows. `tests/operators/predict_reference.py` has
the slow twin of each; loops.py says what loops have in common.

Some rows at a time go by dimension, so that one dimension at a time is in the cache. Its levels and its table are read
from front to back first where many values will need them: the values alone would fetch them in random order, and wait
for each. That halved the time of exact prediction.
"""

import numpy as np

from saccade._core import limits
from saccade._core.compiled import Unsigned, compiled
from saccade.operators.plain_simd import NODE
from saccade.operators.simd import add_between, add_rows, count_below, fma_row

U, SIGNED = Unsigned, np.int64
ZERO, ONE, TWO, THREE, FOUR, WIDE = U(0), U(1), U(2), U(3), U(4), U(NODE)
TOGETHER = 256  # values that search their places in step
LINE = 64  # bytes in a line of the cache
FEW = U(8)  # a dimension whose values are fewer than one for so many levels is searched without a ladder
RUNGS = 24  # more than a ladder of 2^63 levels has


@compiled()
def _count(indices, heads):
    """heads[d] = the number of indices below d; those of unknown dimensions are as large as the last one."""
    known = U(heads.size - 2)
    heads[:] = 0
    for k in range(U(indices.size)):
        heads[min(U(indices[k]), known) + ONE] += 1
    for d in range(known + ONE):
        heads[d + ONE] += heads[d]


@compiled()
def _by_dimension(indptr, indices, data, first, last, heads, tails, entries):
    """(number of the row in the chunk, value) of rows first..last by dimension: those of d from heads[d] to heads[d+1].

    Entries of unknown dimensions come after all. Row and value lie side by side: two arrays took twice the time.
    """
    known = U(heads.size - 2)
    _count(indices[indptr[first] : indptr[last]], heads)
    for d in range(known + TWO):  # plain loops throughout: a slice that is assigned takes seconds to compile
        tails[d] = heads[d]
    for i in range(first, last):
        dims, values = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        for k in range(U(dims.size)):
            d = min(U(dims[k]), known)
            at = U(tails[d])
            entries[at, 0], entries[at, 1] = i - first, values[k]
            tails[d] += 1


@compiled()
def _halve(values, levels, places):
    """places[k] = the last level below values[k] that has another after it, or 0; `levels` start with zero.

    All values halve their range in step: one search alone waits for each of its own loads.
    """
    for k in range(U(values.size)):
        places[k] = 0
    count = U(levels.size - 1)
    while count > ONE:
        half = count >> ONE
        for k in range(U(values.size)):
            place = U(places[k])
            places[k] = place + half if levels[place + half] < values[k] else place
        count -= half


@compiled()
def _build(levels, ladder, starts):
    """Every NODE-th level is a rung, every NODE-th rung one of the ladder above, and so on; returns how many ladders.

    Ladder r begins at starts[r], and its last node is filled with infinity. This reads the levels from front to back.
    """
    at, above, below, count = ZERO, ZERO, levels, U(levels.size) // WIDE
    while count > ZERO:
        rungs = ladder[at : at + WIDE * (count // WIDE + ONE)]
        for k in range(count):
            rungs[k] = below[WIDE * k + WIDE - ONE]
        rungs[count:] = np.inf
        starts[above] = at
        at, above, below, count = at + U(rungs.size), above + ONE, rungs, count // WIDE
    return above


@compiled()
def _room(level_starts):
    """The numbers that the ladders of the largest dimension take: a seventh of its levels, and a node of each."""
    most = 0
    for d in range(level_starts.size - 1):
        most = max(most, level_starts[d + 1] - level_starts[d])
    return most // 7 + NODE * RUNGS


@compiled()
def _search(values, levels, ladder, starts, above, places):
    """What `_halve` finds. Where there are ladders, which takes NODE levels, by comparing with a whole node of each."""
    if above == ZERO:
        _halve(values, levels, places)
        return
    for k in range(U(values.size)):
        places[k] = 0
    for r in range(above):
        rungs = ladder[starts[above - ONE - r] :]
        for k in range(U(values.size)):
            node = WIDE * U(places[k])
            places[k] = node + count_below(rungs, node, values[k])
    end, last = U(levels.size) - WIDE, U(levels.size - 2)
    for k in range(U(values.size)):
        node = min(WIDE * U(places[k]), end)
        found = node + count_below(levels, node, values[k])
        places[k] = min(max(found, ONE) - ONE, last)


@compiled(error_model="numpy")
def _share(x, low, high):
    """How far x is on the way from one level to the next, from 0 to 1; 0 for x = 0, also where both levels are 0."""
    return min((x - low) / (high - low), 1.0) if x > low else 0.0


@compiled()
def _read(table, ladder):
    """Fetch a table into the cache, from front to back. The sum is kept, or the compiler would not read."""
    numbers, total = table.ravel(), table.dtype.type(0)
    for k in range(ZERO, U(numbers.size), U(LINE // numbers.itemsize)):
        total += numbers[k]
    ladder[0] = total


@compiled()
def _on_lines(rows, T):
    """Room for `rows` rows as wide as T's, from the beginning of a line of the cache on: see tables.on_lines."""
    width = T.shape[2]
    room = np.empty(rows * width + LINE, T.dtype)
    skip = (-room.ctypes.data % LINE) // room.itemsize
    return room[skip : skip + rows * width].reshape(rows, width)


@compiled()
def _end_of_chunk(indptr, first, last, rows, entries):
    """Where a chunk that begins with row `first` ends: after so many rows, or about so many entries."""
    end = min(first + rows, last)
    count = indptr[end] - indptr[first]
    return end if count <= entries else first + max((end - first) * entries // count, 1)


@compiled(error_model="numpy")
def interpolate(indptr, indices, data, level_starts, levels, T, first, last, out, lanes):
    """out_i += sum_d T_d(x_id), T_d piecewise linear through (levels, T): H (6) for rows first..last of a CSR matrix.

    T_d(x) = T_d[b] + (x - l_b) / (l_{b+1} - l_b) (T_d[b+1] - T_d[b]) between two levels; constant beyond the last.
    T_d is 0 at its first level, which is 0.
    """
    heads, tails = np.empty((2, level_starts.size + 1), np.int64)
    values, places = np.empty(TOGETHER), np.empty(TOGETHER, np.uint32)
    ladder, starts = np.empty(_room(level_starts)), np.empty(RUNGS, np.uint64)
    chunk = first
    while chunk < last:
        end = _end_of_chunk(indptr, chunk, last, limits.PREDICTED_ROWS, limits.PREDICTED_ENTRIES)
        entries = np.empty((indptr[end] - indptr[chunk], 2))
        _by_dimension(indptr, indices, data, chunk, end, heads, tails, entries)
        for d in range(level_starts.size - 1):
            own, table = levels[level_starts[d] : level_starts[d + 1]], T[level_starts[d] : level_starts[d + 1]]
            count, above = heads[d + 1] - heads[d] if own.size > 1 else 0, ZERO
            if U(count) * FEW >= U(own.size):
                _read(table, ladder)
                above = _build(own, ladder, starts)
            for start in range(heads[d], heads[d] + count, TOGETHER):
                some = entries[start : min(start + TOGETHER, heads[d + 1])]
                x = values[: len(some)]
                for k in range(U(len(some))):
                    x[k] = some[k, 1]
                _search(x, own, ladder, starts, above, places)
                for k in range(U(len(some))):
                    b = U(places[k])
                    w = T.dtype.type(_share(x[k], own[b], own[b + ONE]))
                    add_between(out, chunk + SIGNED(some[k, 0]), table, SIGNED(b), w, lanes)
        chunk = end


@compiled(error_model="numpy")
def _find(level_starts, levels, slack, heads, entries, base, scratch, fill, records, out):
    """Append (base + row and place, weight) of every entry to the records of its dimension d, at fill[d]; add slack.

    A row and a place, which counts from the first level of its dimension, share four bytes.
    """
    pairs, (values, found, ladder, starts) = records.view(np.uint16), scratch
    for d in range(level_starts.size - 1):
        own, lost = levels[level_starts[d] : level_starts[d + 1]], slack[level_starts[d] : level_starts[d + 1]]
        count, above = heads[d + 1] - heads[d] if own.size > 1 else 0, ZERO
        if U(count) * FEW >= U(own.size):
            above = _build(own, ladder, starts)
        for start in range(heads[d], heads[d] + count, TOGETHER):
            some = entries[start : min(start + TOGETHER, heads[d + 1])]
            x = values[: len(some)]
            for k in range(U(len(some))):
                x[k] = some[k, 1]
            _search(x, own, ladder, starts, above, found)
            at = U(fill[d])
            for k in range(U(len(some))):
                b, i = U(found[k]), U(SIGNED(some[k, 0]))
                if x[k] > 0:
                    out[i, 2] += lost[b, 0]
                    out[i, 3] += lost[b, 1]
                pairs[at + k, 0], pairs[at + k, 1] = base + i, b
                records[at + k, 1] = _share(x[k], own[b], own[b + ONE])
            fill[d] += len(some)


@compiled(fastmath={"reassoc", "contract"})
def _squares(numbers):
    """The sum of their squares, in float64; in any order, so that they are squared some at a time."""
    total = 0.0
    for k in range(U(numbers.size)):
        total += np.float64(numbers[k]) * np.float64(numbers[k])
    return total


@compiled()
def walk_squares(indptr, indices, data, level_starts, levels, T, slack, first, last, out, lanes):
    """out_i += (f_0, the sum of the other f_j^2, the slack of both where x_i lies), f as in `interpolate`.

    T is (blocks, levels, lanes), of 65,536 levels in a dimension at most. Places are searched once for all columns, by
    few rows at a time; then one block of columns at a time goes over many rows, whose f stays in the cache, so that
    nothing of the size rows x columns is written.
    """
    size = level_starts.size + 1
    heads, tails, ends, fill = np.empty((4, size), np.int64)
    ladder = np.empty(_room(level_starts))
    scratch = np.empty(TOGETHER), np.empty(TOGETHER, np.uint32), ladder, np.empty(RUNGS, np.uint64)
    f = _on_lines(min(limits.SQUARED_ROWS, last - first), T)
    chunk = first
    while chunk < last:
        end = _end_of_chunk(indptr, chunk, last, limits.SQUARED_ROWS, limits.PREDICTED_ENTRIES)
        _count(indices[indptr[chunk] : indptr[end]], ends)
        for d in range(U(size)):
            fill[d] = ends[d]
        records = np.empty((ends[size - 1], 2), np.float32)
        part = chunk
        while part < end:
            stop = _end_of_chunk(indptr, part, end, end, limits.SEARCHED_ENTRIES)
            entries = np.empty((indptr[stop] - indptr[part], 2))
            _by_dimension(indptr, indices, data, part, stop, heads, tails, entries)
            base, own = U(part - chunk), out[part:stop]
            _find(level_starts, levels, slack, heads, entries, base, scratch, fill, records, own)
            part = stop
        _add_squares(level_starts, T, ends, records, ladder, f[: end - chunk], out[chunk:end], lanes)
        chunk = end


@compiled()
def _add_squares(level_starts, T, ends, records, ladder, f, out, lanes):
    """Columns 0 and 1 of some rows, from the records of their entries; f is scratch."""
    pairs = records.view(np.uint16)
    for block in range(T.shape[0]):
        f[:] = 0
        for d in range(level_starts.size - 1):
            table = T[block, level_starts[d] : level_starts[d + 1]]
            count = ends[d + 1] - ends[d] if len(table) > 1 else 0
            if U(count) * FEW >= U(len(table)):
                _read(table, ladder)
            for k in range(U(ends[d]), U(ends[d] + count)):
                add_between(f, pairs[k, 0], table, pairs[k, 1], T.dtype.type(records[k, 1]), lanes)
        for i in range(U(len(f))):
            out[i, 0] += f[i, 0] if block == 0 else 0.0
            out[i, 1] += _squares(f[i, 1:] if block == 0 else f[i, 0:])


@compiled()
def _nearest(d, x, width, per_unit, bins):
    """The place in T of the node that is nearest to x in dimension d: 0, where T is 0, for dimensions never seen."""
    if x < 0:
        d, x = d + width, -x
    if d >= U(per_unit.size):
        return 0
    return SIGNED(d) * bins + SIGNED(min(x * per_unit[d] + 0.5, bins - 0.5))


@compiled()
def look_up_grid(indptr, indices, data, width, per_unit, bins, T, first, last, out, lanes):
    """out_i += sum_d T_d[nearest grid node to x_id]: constant time per value (H §4, quantisation).

    T_d is 0 at its first node. A value below 0 of dimension d is one above 0 of dimension d + width. Four values at a
    time: a sum waits until the last one is stored, and that took half of the time.
    """
    one, width = T.dtype.type(1), U(width)
    for i in range(first, last):
        dims, values = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        count = U(dims.size)
        fours = count - count % FOUR
        for k in range(ZERO, fours, FOUR):
            a = _nearest(U(dims[k]), values[k], width, per_unit, bins)
            b = _nearest(U(dims[k + ONE]), values[k + ONE], width, per_unit, bins)
            c = _nearest(U(dims[k + TWO]), values[k + TWO], width, per_unit, bins)
            e = _nearest(U(dims[k + THREE]), values[k + THREE], width, per_unit, bins)
            add_rows(out, i, T, (a, b, c, e), lanes)
        for k in range(fours, count):
            fma_row(out, i, out, i, one, T, _nearest(U(dims[k]), values[k], width, per_unit, bins), lanes)
