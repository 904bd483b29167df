"""Where to look next: pure functions of mean μ, variance σ² and the best value so far f⁺. Higher is looked at first.

Every score works element by element on arrays of any shape. A variance that rounding has pushed below zero counts as
zero. Where σ = 0 the value is known already, a look tells nothing, and improvement is 0, as in S §11. The limit
max(μ − f⁺ − ξ, 0) of EI is the same there as long as f⁺ is at least every value that is known.
"""

from typing import Annotated

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from saccade._core.arrays import Array, PerRow
from saccade._core.errors import InvalidInput

LOG_ROOT_2PI = 0.5 * float(np.log(2.0 * np.pi))
SERIES_BELOW = -20.0  # of z: the series of `_log_h` is then exact to the last digit
# (−1)^k (2k + 1)!! for k = 0 … 10
SERIES = np.cumprod([1.0, *(-(2.0 * k + 1.0) for k in range(1, 11))])
TIE = 1e-9  # relative: values of a draw closer than this are equal, and the first is taken, on every processor


def probability_of_improvement(mean: PerRow, variance: PerRow, best: float | Array, xi: float = 0.0) -> PerRow:
    """PI_ξ = Φ(z), z = (μ − f⁺ − ξ)/σ; 0 where σ = 0. S §11; Kushner (1964).

    >>> probability_of_improvement(np.array([0.5, 0.4]), np.array([0.04, 0.0]), 0.5)
    array([0.5, 0. ])
    """
    gap, sigma = _gap(mean, variance, best, xi)
    return np.where(sigma > 0, ndtr(_ratio(gap, sigma)), 0.0)


def log_probability_of_improvement(mean: PerRow, variance: PerRow, best: float | Array, xi: float = 0.0) -> PerRow:
    """log PI_ξ, which still ranks where PI_ξ is 0 in float64 (z < −38); −inf where σ = 0."""
    gap, sigma = _gap(mean, variance, best, xi)
    return np.where(sigma > 0, log_ndtr(_ratio(gap, sigma)), -np.inf)


def expected_improvement(mean: PerRow, variance: PerRow, best: float | Array, xi: float = 0.0) -> PerRow:
    """EI_ξ = E max(f − f⁺ − ξ, 0) = (μ − f⁺ − ξ) Φ(z) + σ φ(z), z = (μ − f⁺ − ξ)/σ; 0 where σ = 0.

    S §11 (which prints it once without the bracket); Močkus (1975), Jones, Schonlau, Welch (1998). It is made from
    `log_expected_improvement`, because the two terms of the formula cancel where z is far below zero.

    >>> expected_improvement(np.array([0.5, 0.4]), np.array([0.04, 0.0]), 0.5).round(6)
    array([0.079788, 0.      ])
    """
    return np.asarray(np.exp(log_expected_improvement(mean, variance, best, xi)))


def log_expected_improvement(mean: PerRow, variance: PerRow, best: float | Array, xi: float = 0.0) -> PerRow:
    """log EI_ξ = log σ + log h(z), h(z) = φ(z) + z Φ(z); −inf where σ = 0, or z² overflows (|z| > 1e154).

    It still ranks where EI_ξ is 0 in float64 (z < −38). Ament, Daulton, Eriksson, Balandat, Bakshy: unexpected
    improvements to expected improvement for Bayesian optimization (2023). They take 1 − |z| √(π/2) erfcx(|z|/√2) as
    far as z = −7e7, where no digit of it is right; here a series takes over at z = −20, and all digits stay.

    >>> log_expected_improvement(np.array([0.0, -10.0]), np.array([1.0, 1e-6]), 0.0)
    array([-9.18938533e-01, -5.00000262e+07])
    """
    gap, sigma = _gap(mean, variance, best, xi)
    found = np.where(sigma > 0, sigma, 1.0)
    return np.where(sigma > 0, np.log(found) + _log_h(_ratio(gap, sigma)), -np.inf)


def upper_confidence_bound(mean: PerRow, variance: PerRow, weight: float = 2.0) -> PerRow:
    """μ + κ σ. Srinivas, Krause, Kakade, Seeger (2010), whose κ is √β_t.

    >>> upper_confidence_bound(np.array([0.5]), np.array([0.04]))
    array([0.9])
    """
    return np.asarray(mean + weight * np.sqrt(np.maximum(variance, 0.0)))


def maximum_variance(variance: PerRow) -> PerRow:
    """σ²: look where least is known. S §12 (4), "max entropy": the entropy ½ log(2πe σ²) ranks alike."""
    return np.maximum(variance, 0.0)


def thompson(
    draws: Annotated[Array, "s, n"],  # a row for each function drawn from the posterior at the n candidates
) -> Annotated[Array, "s"]:
    """Candidates by Thompson's rule: for each draw its best candidate that no earlier draw has taken.

    Thompson (1933); Kandasamy, Krishnamurthy, Schneider, Póczos (2018) for batches. Of values that are equal but for
    rounding, the first is taken.

    >>> thompson(np.array([[0.1, 0.9, 0.3], [0.2, 0.8, 0.7]]))
    array([1, 2])
    """
    draws = np.asarray(draws, np.float64)
    if draws.ndim != 2 or draws.shape[0] > draws.shape[1] or not np.isfinite(draws).all():
        raise InvalidInput(
            f"`draws` must be finite numbers (draws, candidates) with no more draws than candidates, got an array of "
            f"shape {draws.shape}. Draw less, or offer more candidates."
        )
    taken = list[int]()
    for draw in draws:
        open_ = np.where(np.isin(np.arange(draw.size), taken), -np.inf, draw)
        taken.append(int(np.flatnonzero(open_ >= open_.max() - TIE * np.abs(draw).max())[0]))
    return np.array(taken, np.int64)


def decaying_xi(start: float, looks: int, half_life: float) -> float:
    """ξ after so many looks: start · 2^(−looks / half_life).

    A large ξ explores and a small one refines. S §12 keeps 0.05 and says that it should change as looks are taken.

    >>> [decaying_xi(0.05, looks, 20) for looks in (0, 20, 40)]
    [0.05, 0.025, 0.0125]
    """
    return float(start * 2.0 ** (-looks / half_life))


def _gap(mean: Array, variance: Array, best: float | Array, xi: float) -> tuple[Array, Array]:
    """μ − f⁺ − ξ and σ, of the same shape."""
    gap, sigma = np.broadcast_arrays(np.asarray(mean, np.float64) - best - xi, np.sqrt(np.maximum(variance, 0.0)))
    return gap, sigma


def _ratio(gap: Array, sigma: Array) -> Array:
    """z = gap/σ, and 0 where σ = 0; ±inf where it overflows."""
    with np.errstate(over="ignore"):
        return np.divide(gap, sigma, out=np.zeros(gap.shape), where=sigma > 0)


def _log_h(z: PerRow) -> PerRow:
    """log(φ(z) + z Φ(z)).

    From z = −1 on as it stands. Below, φ(z) (1 − |z| √(π/2) erfcx(|z|/√2)), since Φ(z) = ½ exp(−z²/2) erfcx(|z|/√2).
    Below −20, where the bracket cancels, its asymptotic series z⁻² (1 − 3 z⁻² + 15 z⁻⁴ − 105 z⁻⁶ + …).
    """
    near, far = np.maximum(z, -1.0), np.minimum(z, SERIES_BELOW)
    middle = np.clip(-z, 1.0, -SERIES_BELOW)
    with np.errstate(over="ignore", under="ignore"):
        log_phi = -0.5 * np.square(z) - LOG_ROOT_2PI
        plain = np.log(np.exp(-0.5 * np.square(near) - LOG_ROOT_2PI) + near * ndtr(near))
        bracket = np.log1p(-middle * np.sqrt(np.pi / 2.0) * erfcx(middle / np.sqrt(2.0)))
        series = np.log(np.polynomial.polynomial.polyval(np.square(1.0 / far), SERIES)) - 2.0 * np.log(-far)
    return np.where(z >= -1.0, plain, log_phi + np.where(z >= SERIES_BELOW, bracket, series))
