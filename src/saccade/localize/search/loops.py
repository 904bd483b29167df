"""The compiled loops of a search: plain arrays in and out, no checks.

`tests/localize/search/look_reference.py` has the slow twin of each.
"""

import math

from saccade._core.compiled import compiled


@compiled(error_model="numpy")
def _overlap(a, i, b, j):
    """Intersection over union of boxes a[i] and b[j]."""
    width = min(a[i, 2], b[j, 2]) - max(a[i, 0], b[j, 0])
    height = min(a[i, 3], b[j, 3]) - max(a[i, 1], b[j, 1])
    if width <= 0.0 or height <= 0.0:
        return 0.0
    shared = width * height
    return shared / ((a[i, 2] - a[i, 0]) * (a[i, 3] - a[i, 1]) + (b[j, 2] - b[j, 0]) * (b[j, 3] - b[j, 1]) - shared)


@compiled(error_model="numpy")
def _nearness(a, i, b, j, width, height, fall):
    """exp(−fall · distance of the centres), in shares of a picture of this width and height."""
    x = 0.5 * (a[i, 0] + a[i, 2] - b[j, 0] - b[j, 2]) / width
    y = 0.5 * (a[i, 1] + a[i, 3] - b[j, 1] - b[j, 3]) / height
    return math.exp(-fall * math.sqrt(x * x + y * y))


@compiled(error_model="numpy")
def shares(boxes, objects, width, height, fall, first, last, found):
    """found[0, i, j] and found[1, i, j]: overlap and nearness of boxes first..last and every object."""
    for i in range(first, last):
        for j in range(objects.shape[0]):
            found[0, i, j] = _overlap(boxes, i, objects, j)
            found[1, i, j] = _nearness(boxes, i, objects, j, width, height, fall)


@compiled(error_model="numpy")
def overlaps(boxes, objects, weights, first, last, mean, half):
    """Expected overlap of boxes first..last, and the weight of the objects that they overlap by a half."""
    for i in range(first, last):
        total = above = 0.0
        for j in range(objects.shape[0]):
            overlap = _overlap(boxes, i, objects, j)
            total += weights[j] * overlap
            if overlap >= 0.5:
                above += weights[j]
        mean[i] = total
        half[i] = above


@compiled(error_model="numpy")
def moments(boxes, objects, weights, beta, inverse, known, base, own, width, height, fall, first, last, mean, variance):
    """Mean and variance of the score of boxes first..last over all hypotheses.

    known[0, i, j] and known[1, i, j] are what the looks say of overlap and nearness already, base[i] and own[i] are
    mean and variance of the score without an object.
    """
    for i in range(first, last):
        total = square = spread = 0.0
        for j in range(objects.shape[0]):
            p = _overlap(boxes, i, objects, j) - known[0, i, j]
            q = _nearness(boxes, i, objects, j, width, height, fall) - known[1, i, j]
            m = beta[0, j] * p + beta[1, j] * q
            total += weights[j] * m
            square += weights[j] * m * m
            spread += weights[j] * (
                inverse[0, 0, j] * p * p + 2.0 * inverse[0, 1, j] * p * q + inverse[1, 1, j] * q * q
            )
        mean[i] = base[i] + total
        variance[i] = max(own[i] + spread + square - total * total, 0.0)


@compiled(error_model="numpy")
def _gain(kind, mean, variance, best, xi, i):
    """Candidate i's mean score over all hypotheses: expected improvement (kind 0), or its probability (kind 1)."""
    total = 0.0
    for j in range(mean.shape[1]):
        gap, sigma = mean[i, j] - best[j] - xi, math.sqrt(max(variance[i, j], 0.0))
        if sigma > 0.0 and gap > -38.0 * sigma:  # beyond, both are 0 in float64
            z = gap / sigma
            below = 0.5 * math.erfc(-z * math.sqrt(0.5))
            total += below if kind == 1 else gap * below + sigma * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return max(total, 0.0) / mean.shape[1]


@compiled(error_model="numpy")
def greedy(kind, mean, variance, best, xi, tie, gains, taken):
    """Fill `taken` with candidates: the best, then the best once that one is taken, and so on; `best` is overwritten.

    A taken candidate raises what the others have to exceed, so gains only fall: a candidate is scored again only when
    its last score is the highest. Of gains that are equal but for rounding the first is taken.
    """
    n = mean.shape[0]
    for i in range(n):
        gains[i] = _gain(kind, mean, variance, best, xi, i)
    scored = [0] * n  # how many were taken when it was scored
    done = 0
    while done < taken.size:
        top = gains.max()
        i = 0
        while gains[i] < top - tie * abs(top):
            i += 1
        if scored[i] < done:
            gains[i] = _gain(kind, mean, variance, best, xi, i)
            scored[i] = done
            continue
        taken[done] = i
        done += 1
        gains[i] = -1.0  # below every gain
        for j in range(mean.shape[1]):
            best[j] = max(best[j], mean[i, j])
