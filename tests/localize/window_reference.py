"""The slow, readable twin of `saccade.localize.window_loops.bounds`."""

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
    """What the points that are surely there add, the best run of each side, and the good points of the corners."""
    a0, a1, t0, t1, r0, r1, b0, b1 = windows
    total = 0.0
    sides: list[dict[int, float]] = [{}, {}, {}, {}]
    for c, r, w in points:
        if not (a0 <= c < r1 and t0 <= r < b1):
            continue
        on = [c < a1, c >= r0, r < t1, r >= b0]
        if sum(on) == 0:
            total += weight[w]
        elif sum(on) > 1:
            total += max(weight[w], 0.0)
        else:
            side, line = on.index(True), (c if on[0] or on[1] else r)
            sides[side][line] = sides[side].get(line, 0.0) + weight[w]
    for side, nearest_last in zip(sides, (True, False, True, False), strict=True):
        runs = np.cumsum([side[line] for line in sorted(side, reverse=nearest_last)])
        total += max(runs.max(initial=0.0), 0.0)
    return total
