"""The slow, readable twin of every loop in `saccade.operators.vector_loops`: same arguments and results."""

import numpy as np

from saccade._core.arrays import Array


def finish_product(
    Kp: Array,  # (n, m)
    noise: Array,  # (n, 1) or (n, m)
    p: Array,  # (n, m)
    first: int,
    last: int,
    q: Array,  # (n, m), changed
    sums: Array,  # (m,), changed
) -> None:
    """q = K p + N p, given K p; sums += p·q."""
    rows = slice(first, last)
    q[rows] = Kp[rows] + noise[rows] * p[rows]
    sums += (p[rows] * q[rows]).sum(axis=0)


def descend(step: Array, p: Array, q: Array, first: int, last: int, x: Array, r: Array, s: Array, sums: Array) -> None:
    """x += step p, r −= step q; with gap = s − r, sums += (gap·gap, s·gap)."""
    rows = slice(first, last)
    x[rows] += step * p[rows]
    r[rows] -= step * q[rows]
    gap = s[rows] - r[rows]
    sums += np.array([(gap * gap).sum(axis=0), (s[rows] * gap).sum(axis=0)])


def smooth(share: Array, x: Array, r: Array, first: int, last: int, y: Array, s: Array, worst: Array) -> None:
    """y += share (x − y), s += share (r − s); worst = max |s|."""
    rows = slice(first, last)
    y[rows] += share * (x[rows] - y[rows])
    s[rows] += share * (r[rows] - s[rows])
    np.maximum(worst, np.abs(s[rows]).max(axis=0, initial=0.0), out=worst)


def inner(r: Array, z: Array, first: int, last: int, sums: Array) -> None:
    """sums += r·z."""
    sums += (r[first:last] * z[first:last]).sum(axis=0)


def take_out(R: Array, u: Array, along: Array, first: int, last: int, z: Array) -> None:
    """z = R − u along."""
    z[first:last] = R[first:last] - u[first:last] * along


def turn(z: Array, beta: Array, first: int, last: int, p: Array, copy: Array) -> None:
    """p = z + beta p, and a copy in another precision."""
    p[first:last] = z[first:last] + beta * p[first:last]
    copy[first:last] = p[first:last]
