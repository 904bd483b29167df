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


def descend(
    step: Array,  # (m,)
    q: Array,  # (m, n)
    u: Array,  # (1, n)
    smoothed: Array,  # (m,) bool
    first: int,
    last: int,
    r: Array,  # (m, n), changed
    s: Array,  # (m, n)
    sums: Array,  # (4, m), changed
) -> None:
    """r −= step q; sums += (r·r, r·u), and where smoothed (gap·gap, s·gap) with gap = s − r."""
    some = slice(first, last)
    r[:, some] -= step[:, None] * q[:, some]
    left, twin = r[:, some], s[:, some]
    gap = np.where(smoothed[:, None], twin - left, 0.0)
    pairs = (left, left), (left, u[:, some]), (gap, gap), (twin, gap)
    sums += np.array([(a * b).sum(axis=1) for a, b in pairs])


def advance(
    step: Array,  # (m,)
    share: Array,  # (m,)
    beta: Array,  # (m,)
    along: Array,  # (m,)
    z: Array,  # (m, n)
    u: Array,  # (1, n)
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
    """x += step p, p = z − along u + beta p and a copy, worst = max |r|.

    Where smoothed y += share (x − y), s += share (r − s), and the worst is that of s.
    """
    some, floats = slice(first, last), worst.view(np.float64)
    for j in range(len(p)):
        x[j, some] += step[j] * p[j, some]
        p[j, some] = z[j, some] - along[j] * u[0, some] + beta[j] * p[j, some]
        copy[j, some] = p[j, some]
        if smoothed[j]:
            y[j, some] += share[j] * (x[j, some] - y[j, some])
            s[j, some] += share[j] * (r[j, some] - s[j, some])
        judged = s if smoothed[j] else r
        floats[j] = max(floats[j], np.abs(judged[j, some]).max(initial=0.0))


def inner(r: Array, z: Array, first: int, last: int, sums: Array) -> None:
    """sums += r·z."""
    sums += (r[:, first:last] * z[:, first:last]).sum(axis=1)


def take_out(R: Array, u: Array, along: Array, first: int, last: int, z: Array) -> None:
    """z = R − u along."""
    z[:, first:last] = R[:, first:last] - u[:, first:last] * along[:, None]
