"""The compiled loops of the solvers: plain arrays in and out, no checks. `reference.py` has the slow twin of each.

Row i of the data has the entries indptr[i] <= k < indptr[i+1]: d = dims[k], slots[k] = level_starts[d] + code.
F has a row for each level of each dimension. With h_b = the sum of α over the examples of code b, its two columns are
Fenwick trees of h_b and l_b h_b over the codes from 1 on; the row of code 0, which no tree needs, has the sum of all h.
"""

from numba import njit


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def coordinate_sweep(indptr, dims, slots, level_starts, levels, pivots, noise, b, order, alpha, F):
    """One visit to the examples in `order`: α_i += (b_i − (Kα)_i − N_i α_i) / (K_ii + N_i)."""
    for i in order:
        if pivots[i] > 0:
            product = _row_product(indptr[i], indptr[i + 1], dims, slots, level_starts, levels, F)
            change = (b[i] - product - noise[i] * alpha[i]) / pivots[i]
            alpha[i] += change
            _row_change(indptr[i], indptr[i + 1], dims, slots, level_starts, levels, change, F)


@njit(nogil=True, cache=True)
def table_product(indptr, dims, slots, level_starts, levels, F, out):
    """out = Kα as the trees have it."""
    for i in range(out.size):
        out[i] = _row_product(indptr[i], indptr[i + 1], dims, slots, level_starts, levels, F)


@njit(nogil=True, cache=True)
def table_from(indptr, dims, slots, level_starts, levels, alpha, F):
    """The trees of α, made anew."""
    F[:] = 0
    for i in range(alpha.size):
        _row_change(indptr[i], indptr[i + 1], dims, slots, level_starts, levels, alpha[i], F)
