"""The compiled loops of the solvers: plain arrays in and out, no checks. `reference.py` has the slow twin of each.

First the vector steps of conjugate gradients: each reads every vector once, where NumPy would make a pass an operation.
They work on rows first..last, so that threads can share them, and add to sums that belong to one thread.

Then coordinate descent on the tables. Row i of the data has the entries indptr[i] <= k < indptr[i+1]: d = dims[k] and
slots[k] = level_starts[d] + code. F has a row for each level of each dimension. With h_b = the sum of α over the
examples of code b, its two columns are Fenwick trees of h_b and l_b h_b over the codes from 1 on; the row of code 0,
which no tree needs, has the sum of all h.

Last the steps of sequential minimal optimisation, on a kernel matrix that is there.
"""

import math

from saccade._core.compiled import compiled

ROWS = 256  # rows that go column by column: sums stay in registers, and the rows in the first-level cache
sums_may_regroup = compiled(fastmath={"reassoc"})  # so that they run in parallel lanes


@sums_may_regroup
def finish_product(Kp, noise, p, first, last, q, sums):
    """q = K p + N p, given K p; sums_j += p·q of column j."""
    shared = noise.shape[1] == 1
    for start in range(first, last, ROWS):
        for j in range(p.shape[1]):
            total = 0.0
            for i in range(start, min(start + ROWS, last)):
                q[i, j] = Kp[i, j] + noise[i, 0 if shared else j] * p[i, j]
                total += p[i, j] * q[i, j]
            sums[j] += total


@sums_may_regroup
def descend(step, p, q, first, last, x, r, s, sums):
    """x += step p, r −= step q; with the gap s − r to the smoothed residual, sums += (gap·gap, s·gap)."""
    for start in range(first, last, ROWS):
        for j in range(p.shape[1]):
            length = along = 0.0
            for i in range(start, min(start + ROWS, last)):
                x[i, j] += step[j] * p[i, j]
                r[i, j] -= step[j] * q[i, j]
                gap = s[i, j] - r[i, j]
                length += gap * gap
                along += s[i, j] * gap
            sums[0, j] += length
            sums[1, j] += along


@sums_may_regroup
def smooth(share, x, r, first, last, y, s, worst):
    """y += share (x − y), s += share (r − s); worst_j = max |s| of column j."""
    for start in range(first, last, ROWS):
        for j in range(x.shape[1]):
            most = worst[j]
            for i in range(start, min(start + ROWS, last)):
                y[i, j] += share[j] * (x[i, j] - y[i, j])
                s[i, j] += share[j] * (r[i, j] - s[i, j])
                most = max(most, abs(s[i, j]))
            worst[j] = most


@sums_may_regroup
def inner(r, z, first, last, sums):
    """sums_j += r·z of column j."""
    for start in range(first, last, ROWS):
        for j in range(r.shape[1]):
            total = 0.0
            for i in range(start, min(start + ROWS, last)):
                total += r[i, j] * z[i, j]
            sums[j] += total


@compiled()
def turn(z, beta, first, last, p, copy):
    """p = z + beta p, and a copy of p in the precision of the product."""
    for i in range(first, last):
        for j in range(p.shape[1]):
            p[i, j] = z[i, j] + beta[j] * p[i, j]
            copy[i, j] = p[i, j]


@compiled()
def _row_product(first, last, dims, slots, level_starts, levels, F):
    """(Kα)_i = Σ_d Σ_b min(l_b, l_c) h_b = Σ_d (Σ_{b <= c} l_b h_b + l_c Σ_{b > c} h_b), row of entries first..last."""
    total = 0.0
    for k in range(first, last):
        o, slot = level_starts[dims[k]], slots[k]
        code, below, weighted = slot - o, 0.0, 0.0
        while code > 0:
            below += F[o + code, 0]
            weighted += F[o + code, 1]
            code &= code - 1
        total += weighted + levels[slot] * (F[o, 0] - below)
    return total


@compiled()
def _row_change(first, last, dims, slots, level_starts, levels, change, F):
    """Take a change of α_i into the trees, for the row of entries first..last."""
    for k in range(first, last):
        o, slot = level_starts[dims[k]], slots[k]
        code, size, weighted = slot - o, level_starts[dims[k] + 1] - o, change * levels[slot]
        F[o, 0] += change
        while code < size:
            F[o + code, 0] += change
            F[o + code, 1] += weighted
            code += code & -code


@compiled()
def coordinate_sweep(indptr, dims, slots, level_starts, levels, pivots, noise, b, order, alpha, F):
    """Visit the examples in `order`: α_i += r_i / (K_ii + N_i), r_i = b_i − (Kα)_i − N_i α_i. Returns max |r_i|."""
    worst = 0.0
    for i in order:
        product = _row_product(indptr[i], indptr[i + 1], dims, slots, level_starts, levels, F)
        residual = b[i] - product - noise[i] * alpha[i]
        worst = max(worst, abs(residual))
        if pivots[i] > 0:
            change = residual / pivots[i]
            alpha[i] += change
            _row_change(indptr[i], indptr[i + 1], dims, slots, level_starts, levels, change, F)
    return worst


@compiled()
def table_product(indptr, dims, slots, level_starts, levels, F, out):
    """out = Kα as the trees have it."""
    for i in range(out.size):
        out[i] = _row_product(indptr[i], indptr[i + 1], dims, slots, level_starts, levels, F)


@compiled()
def table_from(indptr, dims, slots, level_starts, levels, alpha, F):
    """The trees of α, made anew."""
    F[:] = 0
    for i in range(alpha.size):
        _row_change(indptr[i], indptr[i + 1], dims, slots, level_starts, levels, alpha[i], F)


@compiled()
def smo_steps(K, diag, bound, enough, max_steps, g, alpha):
    """Steps on pairs for min αᵀKα − diagᵀα, Σα kept, 0 ≤ α ≤ bound, given g = 2Kα − diag. Returns steps and gap.

    i is the steepest that may grow; j, which may shrink, makes the step gain most: (g_j − g_i)² / ‖Φ(x_i) − Φ(x_j)‖².
    """
    n, steps, unit = g.size, 0, 0.0
    for k in range(n):
        unit = max(unit, diag[k])
    # Cubes of small or large kernel values would leave float64. A power of two, so that nothing is rounded.
    unit = math.ldexp(1.0, -math.frexp(unit)[1])
    while True:
        i, low = -1, 0.0
        for k in range(n):
            if alpha[k] < bound and (i < 0 or g[k] < low):
                i, low = k, g[k]
        if i < 0:
            return steps, 0.0
        j, gap, slope, length = -1, 0.0, 0.0, 1.0
        for k in range(n):
            rise = g[k] - low
            if alpha[k] > 0.0 and rise > 0.0:
                gap = max(gap, rise)
                distance = max(diag[i] + diag[k] - 2.0 * K[i, k], 0.0) * unit
                rise *= unit
                if rise * rise * length > slope * slope * distance:
                    j, slope, length = k, rise, distance
        if gap <= enough or steps == max_steps:
            return steps, gap
        room, stock = bound - alpha[i], alpha[j]
        step = min(room, stock)
        if 2.0 * step * length > slope:
            step = slope / (2.0 * length)
        alpha[i] = bound if step == room else alpha[i] + step
        alpha[j] = 0.0 if step == stock else alpha[j] - step
        for k in range(n):
            g[k] += 2.0 * step * (K[i, k] - K[j, k])
        steps += 1
