"""The slow, readable twin of the loop in `saccade.solvers.loops`: same arguments, same results up to rounding."""

import numpy as np

from saccade._core.arrays import Array


def smo_steps(
    K: Array,  # (n, n)
    diag: Array,  # (n,)
    bound: float,
    enough: float,
    max_steps: int,
    g: Array,  # (n,), changed
    alpha: Array,  # (n,), changed
) -> tuple[int, float]:
    """Move weight from j to i until no move gains: the steepest i, and the j with the largest gain beside it."""
    for steps in range(max_steps + 1):
        may_grow, may_shrink = alpha < bound, alpha > 0.0
        if not may_grow.any():
            return steps, 0.0
        i = int(np.argmin(np.where(may_grow, g, np.inf)))
        rise = np.where(may_shrink, np.maximum(g - g[i], 0.0), 0.0)
        gap = float(rise.max())
        if gap <= enough or steps == max_steps:
            break
        distance = np.maximum(diag[i] + diag - 2.0 * K[i], 0.0)
        gain = np.divide(rise**2, distance, out=np.where(rise > 0, np.inf, 0.0), where=distance > 0)
        j = int(np.argmax(gain))
        best = rise[j] / (2.0 * distance[j]) if distance[j] > 0 else np.inf
        step = min(bound - alpha[i], alpha[j], best)
        alpha[i], alpha[j] = min(alpha[i] + step, bound), max(alpha[j] - step, 0.0)
        g += 2.0 * step * (K[i] - K[j])
    return steps, gap
