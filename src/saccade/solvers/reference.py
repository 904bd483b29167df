"""The slow, readable twin of every loop in `loops.py`: same arguments, same result up to rounding."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


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
    T: Array,  # (L,), changed
) -> None:
    """α_i += (b_i − (Kα)_i − N_i α_i) / (K_ii + N_i), one example after the other, and T_d[b] += δ min(l_b, l_{c_id})."""
    for i in order:
        if not pivots[i] > 0:
            continue
        own = slice(indptr[i], indptr[i + 1])
        change = (b[i] - T[slots[own]].sum() - noise[i] * alpha[i]) / pivots[i]
        alpha[i] += change
        for d, slot in zip(dims[own], slots[own], strict=True):
            table = slice(level_starts[d], level_starts[d + 1])
            T[table] += change * np.minimum(levels[table], levels[slot])


def table_residual(indptr: Array, slots: Array, noise: Array, b: Array, alpha: Array, T: Array) -> float:
    """max_i |b_i − (Kα)_i − N_i α_i|."""
    product = np.array([T[slots[a:z]].sum() for a, z in zip(indptr[:-1], indptr[1:], strict=True)])
    return float(np.abs(b - product - noise * alpha).max(initial=0.0))
