"""The cumulative-Gaussian likelihood p(y | f) = Φ(y f/σ): its logarithm, slopes and averages over a normal f.

It is p(sign of f + noise of variance σ² is y); O (6) has σ² = 1.
"""

import numpy as np
from scipy.special import erfcx, log_ndtr

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.threads import share, thread_count

TAIL = -100.0  # where z + φ/Φ(z) loses twelve of its digits, and four terms of its series have them all


def log_average(
    y: Array,  # ±1
    mean: Array,  # like y
    variance: Array,  # like y: of f, and σ²
) -> tuple[Array, Array, Array]:
    """log ∫Φ(y f/σ) N(f; mean, variance − σ²) df, its slope in the mean and minus its curvature.

    The average is Φ(z) with z = y mean / √variance; where f is known it is the likelihood itself. The curvature lies
    between 0 and 1 / variance: the logarithm is concave.
    """
    width = np.sqrt(variance)
    z = y * mean / width
    r, bend, _ = hazard(z)
    return log_ndtr(z), y * r / width, bend / width / width


def hazard(z: Array) -> tuple[Array, Array, Array]:
    """r = φ(z)/Φ(z), q = r(z + r) and 1 − q, for any z without overflow and with all digits.

    −q is the slope of r; both q and 1 − q lie between 0 and 1. Far on the wrong side z + r is a small difference of
    large numbers; there q = 1 − z⁻² + 6z⁻⁴ − 50z⁻⁶ + … .
    """
    z = np.asarray(z)
    found = np.empty((3, *z.shape))
    flat, parts = z.reshape(-1), found.reshape(3, -1)

    def work(_: int, first: int, last: int) -> None:
        parts[:, first:last] = _hazard(flat[first:last])

    share(work, flat.size, thread_count() if flat.size >= limits.PROBITS_SHARED_FROM else 1)
    return found[0], found[1], found[2]


def _hazard(z: Array) -> tuple[Array, Array, Array]:
    """The work of one thread."""
    r = np.sqrt(2.0 / np.pi) / erfcx(-z / np.sqrt(2.0))
    far = np.square(1.0 / np.minimum(z, TAIL))
    near = np.where(z < TAIL, 0.0, r)
    bend = near * np.maximum(z + near, 0.0)
    straight = far * (1.0 - far * (6.0 - 50.0 * far))
    return r, np.where(z < TAIL, 1.0 - straight, bend), np.where(z < TAIL, straight, 1.0 - bend)
