"""The compiled bound of `best_window`: plain arrays in and out, no checks.

`tests/localize/windows/window_reference.py` has the slow twin. A set of windows is eight numbers of grid lines: the
first and the last that left, then top, right and bottom may be. Columns and rows are the cells between the lines.
"""

from saccade._core.compiled import compiled


@compiled()
def _largest(peaks, logs, first, last):
    """The largest of nodes first..last, both included; peaks[k, i] is the largest of the 2^k nodes from i on."""
    k = logs[last - first + 1]
    return max(peaks[k, first], peaks[k, last + 1 - (1 << k)])


@compiled(error_model="numpy")
def _between(nodes, values, first, end, x):
    """The piecewise linear function through the nodes first..end at x ≥ 0, constant beyond the last; and its place.

    The place is the last node that is not above x. The first node is 0.
    """
    low, high = first, end
    while high - low > 1:
        middle = (low + high) // 2
        if nodes[middle] <= x:
            low = middle
        else:
            high = middle
    if low + 1 == end:
        return values[low], low
    share = (x - nodes[low]) / (nodes[low + 1] - nodes[low])
    return values[low] + share * (values[low + 1] - values[low]), low


@compiled()
def _count(starts, rows, words, windows, least, most, touched):
    """How often each word is in the smallest and in the largest window; the words of the largest go to `touched`."""
    l0, l1, t0, t1, r0, r1, b0, b1 = windows
    distinct = fewest = all_ = 0
    for column in range(l0, r1):
        inside = l1 <= column < r0
        for k in range(starts[column], starts[column + 1]):
            if t0 <= rows[k] < b1:
                w = words[k]
                if most[w] == 0:
                    touched[distinct] = w
                    distinct += 1
                most[w] += 1
                all_ += 1
                if inside and t1 <= rows[k] < b0:
                    least[w] += 1
                    fewest += 1
    return distinct, fewest, all_


@compiled(error_model="numpy")
def _words(node_starts, nodes, peaks, logs, l1, distinct, fewest, all_, least, most, touched, slope):
    """Σ_w max f_w, and Σ_w α_w of lines f_w(x) ≤ α_w + slope_w x, over what h_w may be; `least`, `most` become zeros.

    Third is the sum of the slopes over the points that are surely there. Counts may be low..high. With `l1`,
    h_w = c_w/(c_w + others) rises with c_w and falls with the others.
    """
    plain = alpha = sure = 0.0
    for k in range(distinct):
        w = touched[k]
        low, high, first = least[w], most[w], node_starts[w]
        least[w] = most[w] = 0
        if l1:
            a = low / (low + (all_ - high)) if low else 0.0
            b = high / (high + (fewest - low))
            at_a, i = _between(nodes, peaks[0], first, node_starts[w + 1], a)
            at_b, j = _between(nodes, peaks[0], first, node_starts[w + 1], b)
        else:
            i, j = first + low, first + high
            a, b, at_a, at_b = nodes[i], nodes[j], peaks[0, i], peaks[0, j]
        top = max(at_a, at_b)
        plain += max(top, _largest(peaks, logs, i + 1, j)) if j > i else top
        if b > a:
            slope[w] = (at_b - at_a) / (b - a)
            highest = max(at_a - slope[w] * a, at_b - slope[w] * b)
            for c in range(i + 1, j + 1):
                highest = max(highest, peaks[0, c] - slope[w] * nodes[c])
            alpha += highest
            sure += slope[w] * low
        else:
            slope[w] = 0.0
            alpha += at_a
    return plain, alpha, sure


@compiled()
def _best_run(sums, first, last, step):
    """The largest sum of a run that begins at `first`, the empty one counted; `sums` become zeros."""
    total = best = 0.0
    for k in range(first, last, step):
        total += sums[k]
        sums[k] = 0.0
        best = max(best, total)
    return best


@compiled()
def _strips(starts, rows, words, windows, slope, shift, across, down, mass):
    """The largest sum of slope_w − shift over the points of a window, or more; `mass` is what each side may change.

    A side that moves takes columns or rows in or out, one after the other: the best run of them counts. A column that
    left or right decide about has its own best runs of rows at the top and at the bottom.
    """
    l0, l1, t0, t1, r0, r1, b0, b1 = windows
    total, mass[:] = 0.0, 0.0
    for column in range(l0, r1):
        left, right = column < l1, column >= r0
        value = above = below = deepest = 0.0
        for k in range(starts[column], starts[column + 1]):
            row = rows[k]
            if row < t0 or row >= b1:
                continue
            top, bottom, add = row < t1, row >= b0, slope[words[k]] - shift
            first = k == starts[column] or rows[k - 1] != row  # of its row: a run has whole rows
            if top and bottom:
                value += max(add, 0.0)
            elif not (top or bottom):
                value += add
            elif not (left or right):
                down[row] += add
            elif top:
                above = (max(above, 0.0) if first else above) + add  # the best run that ends with this row
            else:
                deepest = max(deepest, below) if first else deepest
                below += add
            mass[0] += abs(add) * left
            mass[1] += abs(add) * top
            mass[2] += abs(add) * right
            mass[3] += abs(add) * bottom
        value += max(above, 0.0) + max(deepest, below)
        if left and right:
            total += max(value, 0.0)
        elif left or right:
            across[column] = value
        else:
            total += value
    total += _best_run(across, l1 - 1, l0 - 1, -1) + _best_run(across, r0, r1, 1)
    return total + _best_run(down, t1 - 1, t0 - 1, -1) + _best_run(down, b0, b1, 1)


@compiled(error_model="numpy")
def bounds(
    starts, rows, words, node_starts, nodes, peaks, logs, l1, sets, out, splits,
    least, most, touched, slope, across, down, mass,
):  # fmt: skip
    """out_s ≥ Σ_w f_w(h_w) for every window of set s, equal for a single window; splits_s: the side to divide, or −1.

    The least of two bounds: each word at its best, Σ_w max f_w; and lines above all f_w, whose sum is linear in the
    points. With `l1` the shares sum to 1, so that a shift of all slopes changes nothing but how much the number of
    points, which is uncertain, matters: the shift is their mean over the points that are surely there, and then the
    best mean that the first pass leaves possible.
    `least`, `most`, `across`, `down` are zeros, before and after; `touched`, `slope` and `mass` are scratch.
    """
    for s in range(sets.shape[0]):
        windows = sets[s]
        distinct, fewest, all_ = _count(starts, rows, words, windows, least, most, touched)
        read = node_starts, nodes, peaks, logs
        plain, alpha, sure = _words(*read, l1, distinct, fewest, all_, least, most, touched, slope)
        shift = sure / fewest if l1 and fewest > 0 else 0.0
        lines = plain
        for _ in range(2 if l1 else 1):
            found = _strips(starts, rows, words, windows, slope, shift, across, down, mass)
            if not l1:
                lines = alpha + found
            elif fewest > 0:
                found /= fewest if found > 0.0 else all_
                lines = min(lines, alpha + shift + found)
                shift += found
        out[s] = min(plain, lines)
        widest, splits[s] = -1.0, -1
        for side in range(4):
            if windows[2 * side + 1] > windows[2 * side] and mass[side] > widest:
                widest, splits[s] = mass[side], side
