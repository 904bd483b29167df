"""The rows of simd.py in plain NumPy, under the same names: what runs with NUMBA_DISABLE_JIT=1."""

import numpy as np

from saccade._core.arrays import Array

Lanes = tuple[int, ...]
NODE = 8  # numbers that `count_below` compares at once: a line of the cache


def fma_row(dst: Array, i: int, a: Array, j: int, s: float, b: Array, k: int, lanes: Lanes) -> None:
    """dst[i, :] = a[j, :] + s * b[k, :]."""
    dst[i] = a[j] + s * b[k]


def add_rows(dst: Array, i: int, T: Array, places: tuple[int, ...], lanes: Lanes) -> None:
    """dst[i, :] += T[p, :] for every p of a tuple, in this order."""
    for p in places:
        dst[i] += T[p]


def add_between(dst: Array, i: int, T: Array, b: int, w: float, lanes: Lanes) -> None:
    """dst[i, :] += (1 - w) * T[b, :] + w * T[b + 1, :]."""
    dst[i] = (dst[i] + (1 - w) * T[b]) + w * T[b + 1]


def add_up(C: Array, V: Array, rows: Array, lanes: Lanes) -> None:
    """C[p, :] = the sum of V[rows[q], :] over q >= p, for every p below rows.size."""
    C[: rows.size] = np.cumsum(V[rows[::-1]], axis=0)[::-1]


def step_down(out: Array, rows: Array, steps: Array, C: Array, lanes: Lanes) -> None:
    """out[rows[p], :] += the sum of steps[q] * C[q, :] over q <= p, for every p below rows.size."""
    np.add.at(out, rows, np.cumsum(steps[:, None] * C[: rows.size], axis=0))


def count_below(values: Array, first: int, x: float) -> int:
    """How many of values[first : first + NODE] are below x."""
    return int((values[first : first + NODE] < x).sum())


def sum_minima(dst: Array, panel: Array, base: int, dims: Array, values: Array, lanes: Lanes) -> None:
    """dst[0, :] = the sum over k of min(values[k], panel[dims[k] - base, :])."""
    dst[0] = np.minimum(values[:, None], panel[dims.astype(np.int64) - base]).sum(axis=0)
