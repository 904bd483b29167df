"""The compiled loops that predict few rows: tables read row by row. See loops.py for what all loops have in common.

`tests/operators/predict_reference.py` has the slow twin of each.

`predict_loops` goes by dimension, which pays for many rows. For few it only adds work, and its loops take ten times as
long to compile: whoever predicts few rows waits for these alone.
"""

import numpy as np

from saccade._core.compiled import Unsigned, compiled
from saccade.operators.simd import add_between

U, SIGNED = Unsigned, np.int64
ONE = U(1)


@compiled(error_model="numpy")
def interpolate_few(indptr, indices, data, level_starts, levels, T, first, last, out, lanes):
    """out_i += sum_d T_d(x_id), T_d piecewise linear through (levels, T), constant beyond the last level."""
    for i in range(first, last):
        for k in range(U(indptr[i]), U(indptr[i + 1])):
            d, x = U(indices[k]), np.float64(data[k])
            if d >= U(level_starts.size - 1):
                continue
            b, count = U(level_starts[d]), U(level_starts[d + ONE] - level_starts[d])
            if count > ONE:
                while count > ONE + ONE:
                    half = (count - ONE) >> ONE
                    b = b + half if levels[b + half] < x else b
                    count -= half
                low, high = levels[b], levels[b + ONE]
                w = (x - low) / (high - low) if x > low else 0.0
                add_between(out, i, T, SIGNED(b), T.dtype.type(w if w < 1.0 else 1.0), lanes)


@compiled(error_model="numpy")
def walk_squares_few(indptr, indices, data, level_starts, levels, T, slack, first, last, out, f, lanes):
    """out_i += (f_0, the sum of the other f_j^2, the slack of both where x_i lies), f as in `interpolate_few`.

    T is (blocks x levels, lanes), and f is scratch of (blocks, lanes).
    """
    for i in range(first, last):
        f[:] = 0
        for k in range(U(indptr[i]), U(indptr[i + 1])):
            d, x = U(indices[k]), np.float64(data[k])
            if d >= U(level_starts.size - 1):
                continue
            b, count = U(level_starts[d]), U(level_starts[d + ONE] - level_starts[d])
            if count > ONE:
                while count > ONE + ONE:
                    half = (count - ONE) >> ONE
                    b = b + half if levels[b + half] < x else b
                    count -= half
                low, high = levels[b], levels[b + ONE]
                w = (x - low) / (high - low) if x > low else 0.0
                if x > 0:
                    out[i, 2] += slack[b, 0]
                    out[i, 3] += slack[b, 1]
                for block in range(U(len(f))):
                    at = SIGNED(block * U(levels.size) + b)
                    add_between(f, SIGNED(block), T, at, T.dtype.type(w if w < 1.0 else 1.0), lanes)
        out[i, 0] += f[0, 0]
        f[0, 0] = 0
        for block in range(U(len(f))):
            for lane in range(U(len(lanes))):
                out[i, 1] += np.float64(f[block, lane]) * np.float64(f[block, lane])
