"""The slow, readable twin of `saccade.localize.windows.loops.bounds`."""

from itertools import product
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Point = tuple[int, int, int]  # column, row, word
Functions = list[tuple[Array, Array]]  # nodes and values of each word


def score(counts: Array, functions: Functions, l1: bool) -> float:
    """Σ_w f_w(h_w)."""
    h = counts / max(counts.sum(), 1) if l1 else counts
    return float(sum(np.interp(x, nodes, values) for x, (nodes, values) in zip(h, functions, strict=True)))


def counted(points: list[Point], words: int, left: int, top: int, right: int, bottom: int) -> Array:
    inside = [w for c, r, w in points if left <= c < right and top <= r < bottom]
    return np.bincount(np.array(inside, int), minlength=words)


def windows_of(windows: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """All windows of a set: left, top, right, bottom."""
    sides = [range(windows[2 * k], windows[2 * k + 1] + 1) for k in range(4)]
    return [(x0, y0, x1, y1) for x0, y0, x1, y1 in product(*sides) if x0 < x1 and y0 < y1]


def bound(points: list[Point], functions: Functions, l1: bool, windows: tuple[int, ...]) -> float:
    """The smaller one of both bounds, word by word and point by point."""
    a0, a1, t0, t1, r0, r1, b0, b1 = windows
    most = counted(points, len(functions), a0, t0, r1, b1)
    least = counted(points, len(functions), a1, t1, r0, b0)
    plain, alpha, slope = 0.0, 0.0, np.zeros(len(functions))
    for w in np.flatnonzero(most):
        nodes, values = functions[w]
        low, high = float(least[w]), float(most[w])
        if l1:
            low = low / (low + (most.sum() - most[w])) if low else 0.0
            high = high / (high + (least.sum() - least[w]))
        x = np.concatenate([[low, high], nodes[(nodes > low) & (nodes < high)]])
        f = np.interp(x, nodes, values)
        slope[w] = (f[1] - f[0]) / (high - low) if high > low else 0.0
        plain, alpha = plain + f.max(), alpha + (f - slope[w] * x).max()
    sure, all_ = least.sum(), most.sum()
    if not l1:
        return min(plain, alpha + strips(points, slope, windows))
    if not sure:
        return float(plain)
    shift, found = float(slope @ least) / sure, [plain]
    for _ in range(2):
        more = strips(points, slope - shift, windows)
        more /= sure if more > 0 else all_
        found.append(alpha + shift + more)
        shift += more
    return float(min(found))


def strips(points: list[Point], weight: Array, windows: tuple[int, ...]) -> float:
    """What the points that are surely there add, and the best runs of columns and rows that each side can take in."""
    a0, a1, t0, t1, r0, r1, b0, b1 = windows
    columns: dict[int, float] = {}
    rows: dict[int, float] = {}
    total = 0.0
    for column in range(a0, r1):
        value, above, below = 0.0, dict[int, float](), dict[int, float]()
        for r, w in [(r, w) for c, r, w in points if c == column and t0 <= r < b1]:
            add = float(weight[w])
            if r < t1 and r >= b0:
                value += max(add, 0.0)
            elif t1 <= r < b0:
                value += add
            elif a1 <= column < r0:
                rows[r] = rows.get(r, 0.0) + add
            else:
                side = above if r < t1 else below
                side[r] = side.get(r, 0.0) + add
        value += best_run([above[r] for r in sorted(above, reverse=True)]) + best_run([below[r] for r in sorted(below)])
        if column < a1 and column >= r0:
            total += max(value, 0.0)
        elif a1 <= column < r0:
            total += value
        else:
            columns[column] = value
    total += best_run([columns.get(c, 0.0) for c in range(a0, a1) if c < r0][::-1])
    total += best_run([columns.get(c, 0.0) for c in range(r0, r1) if c >= a1])
    total += best_run([rows.get(r, 0.0) for r in range(t0, t1) if r < b0][::-1])
    return total + best_run([rows.get(r, 0.0) for r in range(b0, b1) if r >= t1])


def best_run(values: list[float]) -> float:
    """The largest sum of the first few values, of none too."""
    return max(0.0, *np.cumsum(values), 0.0)
