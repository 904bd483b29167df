"""The slow twins of `saccade.operators.predict_loops`: each is its formula, written out. See reference.py."""

import numpy as np

from saccade._core.arrays import Array


def interpolate(
    indptr: Array,  # (n+1,)
    indices: Array,  # (nnz,)
    data: Array,  # (nnz,)
    level_starts: Array,  # (D+1,)
    levels: Array,  # (levels,)
    T: Array,  # (levels, m)
    first: int,
    last: int,
    out: Array,  # (n, m)
) -> None:
    """out_i += Σ_d T_d(x_id), T_d the line through the points (levels_d, T_d); rows first..last."""
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + 1]):
            if data[k] > 0 and indices[k] < level_starts.size - 1:
                table = slice(level_starts[indices[k]], level_starts[indices[k] + 1])
                if levels[table].size > 1:
                    out[i] += [np.interp(data[k], levels[table], column) for column in T[table].T]


def walk_squares(
    indptr: Array,  # (n+1,)
    indices: Array,  # (nnz,)
    data: Array,  # (nnz,)
    level_starts: Array,  # (D+1,)
    levels: Array,  # (levels,)
    T: Array,  # (blocks, levels, m)
    slack: Array,  # (levels, 2)
    first: int,
    last: int,
    out: Array,  # (n, 4)
) -> None:
    """out_i += f_0, Σ_{j>0} f_j² and the slack of both at the level below x_id; f as in `interpolate`, all blocks."""
    f = np.zeros((T.shape[0], indptr.size - 1, T.shape[2]))
    for part, table in zip(f, T, strict=True):
        interpolate(indptr, indices, data, level_starts, levels, table, first, last, part)
    out[first:last, 0] += f[0, first:last, 0]
    out[first:last, 1] += (np.square(f).sum(axis=(0, 2)) - np.square(f[0, :, 0]))[first:last]
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + 1]):
            if data[k] > 0 and indices[k] < level_starts.size - 1:
                own = levels[level_starts[indices[k]] : level_starts[indices[k] + 1]]
                if own.size > 1:
                    below = min(np.searchsorted(own, data[k]) - 1, own.size - 2)
                    out[i, 2:] += slack[level_starts[indices[k]] + below]


def look_up_grid(
    indptr: Array,  # (n+1,)
    indices: Array,  # (nnz,)
    data: Array,  # (nnz,)
    width: int,
    per_unit: Array,  # (D,)
    bins: int,
    T: Array,  # (D*bins, m)
    first: int,
    last: int,
    out: Array,  # (n, m)
) -> None:
    """out_i += Σ_d T_d[b], b the node nearest to |x_id| · per_unit_d, at most the last; rows first..last.

    A negative value of dimension d is one of dimension d + width.
    """
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + 1]):
            d = indices[k] + (width if data[k] < 0 else 0)
            if data[k] != 0 and d < per_unit.size:
                node = np.floor(abs(data[k]) * per_unit[d] + 0.5)
                out[i] += T[d * bins + int(min(node, bins - 1))]
