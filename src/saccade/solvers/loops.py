"""The compiled loops of the solvers: plain arrays in and out, no checks. `reference.py` has the slow twin of each.

Row i of the data has the entries indptr[i] <= k < indptr[i+1]: dimension dims[k] and place slots[k] in the flat tables.
"""

from numba import njit


@njit(nogil=True, cache=True)
def coordinate_sweep(indptr, dims, slots, level_starts, levels, pivots, noise, b, order, alpha, T):
    """One visit to the examples in `order`: α_i += (b_i − (Kα)_i − N_i α_i) / (K_ii + N_i).

    (Kα)_i = Σ_d T_d[c_id], and a change δ of α_i adds δ min(l_b, l_{c_id}) to every T_d[b]: the levels themselves up to
    the example's own, a constant from there on, so that both runs are plain vector code.
    """
    for i in order:
        if not pivots[i] > 0:
            continue
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += T[slots[k]]
        change = (b[i] - total - noise[i] * alpha[i]) / pivots[i]
        alpha[i] += change
        for k in range(indptr[i], indptr[i + 1]):
            d, slot = dims[k], slots[k]
            for p in range(level_starts[d] + 1, slot):
                T[p] += change * levels[p]
            most = change * levels[slot]
            for p in range(slot, level_starts[d + 1]):
                T[p] += most


@njit(nogil=True, cache=True)
def table_residual(indptr, slots, noise, b, alpha, T):
    """max_i |b_i − (Kα)_i − N_i α_i| as the tables have it."""
    worst = 0.0
    for i in range(b.size):
        total = noise[i] * alpha[i]
        for k in range(indptr[i], indptr[i + 1]):
            total += T[slots[k]]
        worst = max(worst, abs(b[i] - total))
    return worst
