"""The cumulative-Gaussian likelihood p(y | f) = Φ(y f/σ): its logarithm, slopes and averages over a normal f.

It is p(sign of f + noise of variance σ² is y); O (6) has σ² = 1.
"""

from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr

Array = np.ndarray[Any, np.dtype[Any]]


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
    r = hazard(z)
    return log_ndtr(z), y * r / width, r * np.maximum(z + r, 0.0) / width**2


def hazard(z: Array) -> Array:
    """φ(z) / Φ(z), for any z without overflow."""
    return np.asarray(np.sqrt(2.0 / np.pi) / erfcx(-z / np.sqrt(2.0)))
