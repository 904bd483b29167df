"""The slow, readable twins of the loops of coordinate descent: same arguments, same α and K α up to rounding.

Where the loops keep trees in F, the twins keep the plain histogram h in its first column and nothing in its second.
"""

import numpy as np

from saccade._core.arrays import Array


def coordinate_sweep(
    indptr: Array,  # (n+1,)
    dims: Array,  # (nnz,)
    slots: Array,  # (nnz,)
    level_starts: Array,  # (D+1,)
    levels: Array,  # (L,)
    pivots: Array,  # (n,) K_ii + N_i
    noise: Array,  # (n,)
    b: Array,  # (n,)
    order: Array,  # the examples to visit
    alpha: Array,  # (n,), changed
    F: Array,  # (L, 2), changed
) -> float:
    """α_i += r_i / (K_ii + N_i), r_i = b_i − (Kα)_i − N_i α_i, one example after the other. Returns max |r_i|."""
    product, worst = np.empty(alpha.size), 0.0
    for i in order:
        table_product(indptr, dims, slots, level_starts, levels, F, product)
        residual = b[i] - product[i] - noise[i] * alpha[i]
        worst = max(worst, abs(residual))
        if pivots[i] > 0:
            alpha[i] += residual / pivots[i]
            F[slots[indptr[i] : indptr[i + 1]], 0] += residual / pivots[i]
    return float(worst)


def table_product(
    indptr: Array, dims: Array, slots: Array, level_starts: Array, levels: Array, F: Array, out: Array
) -> None:
    """out_i = Σ_d Σ_b min(l_b, l_{c_id}) h_b."""
    for i in range(out.size):
        out[i] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            own = slice(level_starts[dims[k]], level_starts[dims[k] + 1])
            out[i] += np.minimum(levels[own], levels[slots[k]]) @ F[own, 0]


def table_from(
    indptr: Array, dims: Array, slots: Array, level_starts: Array, levels: Array, alpha: Array, F: Array
) -> None:
    """h_b = the sum of α over the examples of code b."""
    F[:] = 0
    np.add.at(F[:, 0], slots, np.repeat(alpha, np.diff(indptr)))
