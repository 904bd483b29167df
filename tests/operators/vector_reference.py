"""The slow, readable twin of every loop in `saccade.operators.vector_loops`: same arguments and results."""

import numpy as np

from saccade._core.arrays import Array


def finish_product(
    Kp: Array,  # (m, n)
    noise: Array,  # (1, n) or (m, n)
    p: Array,  # (m, n)
    first: int,
    last: int,
    q: Array,  # (m, n), changed
    sums: Array,  # (m,), changed
) -> None:
    """q = K p + N p, given K p; sums += p·q."""
    some = slice(first, last)
    q[:, some] = Kp[:, some] + noise[:, some] * p[:, some]
    sums += (p[:, some] * q[:, some]).sum(axis=1)


def descend(step: Array, q: Array, smoothed: Array, first: int, last: int, r: Array, s: Array, sums: Array) -> None:
    """r −= step q; where smoothed, with gap = s − r, sums += (gap·gap, s·gap)."""
    some = slice(first, last)
    r[:, some] -= step[:, None] * q[:, some]
    gap = s[:, some] - r[:, some]
    sums += np.where(smoothed, np.array([(gap * gap).sum(axis=1), (s[:, some] * gap).sum(axis=1)]), 0.0)


def advance(
    step: Array,  # (m,)
    share: Array,  # (m,)
    beta: Array,  # (m,)
    z: Array,  # (m, n)
    r: Array,  # (m, n)
    smoothed: Array,  # (m,) bool
    first: int,
    last: int,
    x: Array,  # (m, n), changed, and all that follow
    y: Array,
    s: Array,
    p: Array,
    copy: Array,  # (m, n), float32 or float64
    worst: Array,  # (m,): the bits of floats
) -> None:
    """x += step p, p = z + beta p and a copy, worst = max |r|; where smoothed y += share (x − y), s += share (r − s).

    And there the worst is that of s.
    """
    for j in range(len(p)):
        some = slice(first, last)
        x[j, some] += step[j] * p[j, some]
        p[j, some] = z[j, some] + beta[j] * p[j, some]
        copy[j, some] = p[j, some]
        if smoothed[j]:
            y[j, some] += share[j] * (x[j, some] - y[j, some])
            s[j, some] += share[j] * (r[j, some] - s[j, some])
        judged = s if smoothed[j] else r
        floats = worst.view(np.float64)
        floats[j] = max(floats[j], np.abs(judged[j, some]).max(initial=0.0))


def inner(r: Array, z: Array, first: int, last: int, sums: Array) -> None:
    """sums += r·z."""
    sums += (r[:, first:last] * z[:, first:last]).sum(axis=1)


def take_out(R: Array, u: Array, along: Array, first: int, last: int, z: Array) -> None:
    """z = R − u along."""
    z[:, first:last] = R[:, first:last] - u[:, first:last] * along[:, None]
