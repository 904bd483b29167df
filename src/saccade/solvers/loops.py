"""The compiled loops of the solvers: plain arrays in and out, no checks.

`tests/solvers/reference.py` has the slow twin of each.

First the vector steps of conjugate gradients: each reads every vector once, where NumPy would make a pass per
operation. They work on rows first..last, so that threads can share them, and add to sums that belong to one thread.

Then the steps of sequential minimal optimisation, on a kernel matrix that is there.
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
