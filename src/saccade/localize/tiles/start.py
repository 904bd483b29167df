"""The first looks: one random tile from each cell of a coarse grid, so that no large part stays unseen."""

from __future__ import annotations

import numpy as np

from saccade._core.arrays import Array


def first_tiles(
    shape: tuple[int, int], count: int, rng: np.random.Generator
) -> tuple[Array, int]:  # (m,), tiles in a cell
    """About `count` tile numbers in random order, and how many tiles the largest cell has.

    >>> numbers, cell = first_tiles((8, 8), 4, np.random.default_rng(0))
    >>> sorted((number // 8 // 4, number % 8 // 4) for number in numbers.tolist()), cell
    ([(0, 0), (0, 1), (1, 0), (1, 1)], 16)
    """
    rows, columns = shape
    side = np.sqrt(rows * columns / max(count, 1))  # of a cell, in tiles
    down = min(rows, max(1, round(min(rows / side, count))))
    across = min(columns, max(1, round(count / down)))
    y, x = (
        np.rint(np.linspace(0, length, parts + 1)).astype(int) for length, parts in ((rows, down), (columns, across))
    )
    numbers = [
        int(rng.integers(y[a], y[a + 1])) * columns + int(rng.integers(x[b], x[b + 1]))
        for a in range(down)
        for b in range(across)
    ]
    return rng.permutation(np.array(numbers)), int(np.diff(y).max() * np.diff(x).max())
