"""The compiled steps of sequential minimal optimisation, on a kernel matrix that is there.

`tests/solvers/reference.py` has the slow twin.
"""

import math

from saccade._core.compiled import compiled


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
