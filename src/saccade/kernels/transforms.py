"""Monotone transforms of single features, g(0) = 0: a generalised intersection kernel (H (7)) is HIK after one.

They act on the levels of a dimension, never on the coded data. What can be learned of a transform are its
*coordinates*: free numbers, logarithms where the parameter is positive, that `pull` differentiates by.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saccade._core.checks import as_floats, check_positive, is_number, shown
from saccade._core.chunks import in_chunks
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels.base import Array
from saccade.kernels.transform import Transform

__all__ = ["Exponential", "Power", "Transform", "Weights"]

SHRINK, GROW = 1e-4, 1e4  # how far a learned weight may go from 1
LARGEST_EXPONENT = 500.0  # of e: beyond, float64 overflows soon


class Power(Transform):
    """Power g(x) = x^η (H §4). Small η makes few occurrences of a word count nearly as much as many.

    Parameters
    ----------
    eta : float above 0
        η; 1 changes nothing, 0.5 is the square root.

    Examples
    --------
    >>> Power(0.5)(np.array([0.0, 4.0]), np.array([0, 0]))
    array([0., 2.])
    """

    by_dimension = False

    def __init__(self, eta: float = 0.5) -> None:
        self.eta = eta

    def __call__(self, x: Array, dims: Array) -> Array:
        eta = self._checked()
        if eta == 1.0 and x.dtype == np.float64:
            return x
        g = np.empty(x.shape, np.result_type(x, eta))

        def raise_(some: slice) -> bool:
            with np.errstate(over="ignore"):
                return bool(np.isfinite(np.power(x[some], eta, out=g[some])).all())

        return g if all(in_chunks(raise_, len(x))) else _finite(g, x, self)

    def _checked(self) -> float:
        return check_positive("eta", self.eta, "Power(1.0) changes nothing, Power(0.5) takes the square root.")

    def coordinates(self, x: Array, dims: Array) -> Array:
        return np.array([[np.log(self._checked()), np.log(0.05), np.log(5.0), 1.0]])

    def moved(self, theta: Array) -> Power:
        return Power(float(np.exp(theta[0])))

    def pull(self, x: Array, dims: Array, upstream: Array) -> tuple[Array, Array]:
        g, positive = self(x, dims), x > 0
        log_x = np.log(x, out=np.zeros_like(x), where=positive)
        slope = np.divide(self.eta * g, x, out=np.zeros_like(x), where=positive)
        return np.array([self.eta * (upstream * g) @ log_x]), upstream * slope

    def by_coordinates(self, x: Array, dims: Array, upstream: Array) -> Array:
        def total(some: slice) -> float:
            part = x[some]
            grown = np.log(part, out=np.zeros_like(part), where=part > 0)
            grown *= np.power(part, self.eta)
            grown *= upstream[some]
            return float(grown.sum())

        return np.array([self.eta * sum(in_chunks(total, len(x)))])


class Exponential(Transform):
    """Exponential g(x) = (e^{ηx} − 1) / (e^η − 1) (H §4); η → 0 is the identity, η < 0 bends the other way.

    Parameters
    ----------
    eta : float
        η of either sign.

    Examples
    --------
    >>> Exponential(1e-9)(np.array([0.0, 0.5]), np.array([0, 0])).round(6)
    array([0. , 0.5])
    """

    is_log = False
    by_dimension = False

    def __init__(self, eta: float = 1.0) -> None:
        self.eta = eta

    def __call__(self, x: Array, dims: Array) -> Array:
        eta = self._checked()
        if eta == 0:
            return np.array(x, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite(np.expm1(eta * x) / np.expm1(eta), x, self)

    def _checked(self) -> float:
        if not is_number(self.eta) or not abs(self.eta) <= LARGEST_EXPONENT:
            raise InvalidParameter(
                f"`eta` must be a number from -{LARGEST_EXPONENT:g} to {LARGEST_EXPONENT:g}, got {shown(self.eta)}. "
                "Exponential(1.0) is a start; scale the features up rather than going further."
            )
        return float(self.eta)

    def coordinates(self, x: Array, dims: Array) -> Array:
        top = float(x.max(initial=0.0)) or 1.0
        most = min(30.0 / top, LARGEST_EXPONENT / max(1.0, top))
        return np.array([[self._checked(), -most, most, min(1.0 / top, most)]])

    def moved(self, theta: Array) -> Exponential:
        return Exponential(float(theta[0]))

    def pull(self, x: Array, dims: Array, upstream: Array) -> tuple[Array, Array]:
        # with φ(t) = t / (1 − e^{−t}): ∂ log g / ∂η = (φ(ηx) − φ(η)) / η, and ∂ log g / ∂x = φ(ηx) / x
        eta, g, positive = float(self.eta), self(x, dims), x > 0
        bend = _phi(eta * x)
        close = abs(eta) * np.maximum(x, 1.0) < 1e-4
        series = (x - 1.0) / 2 + eta * (x * x - 1.0) / 12
        growth = np.where(close, series, (bend - _phi(np.array([eta]))) / (eta or 1.0))
        slope = np.divide(g * bend, x, out=np.zeros_like(x), where=positive)
        return np.array([(upstream * g) @ growth]), upstream * slope


class Weights(Transform):
    """Weight of each dimension, or of each block of dimensions: g_d(x) = w_d x, w_d ≥ 0 (H (8)).

    Parameters
    ----------
    w : array (d,), or one weight per block, or None
        The weights. None means ones, which `tune` may change; a weight of 0 stays 0.
    blocks : sequence of int, or None
        Sizes of consecutive blocks of dimensions, each with one weight: Weights(blocks=[1000, 1280]) combines a kernel
        on words with one on deep features.

    Examples
    --------
    >>> Weights([1.0, 3.0])(np.array([2.0, 2.0]), np.array([0, 1]))
    array([2., 6.])
    >>> Weights([1.0, 3.0], blocks=[2, 1])(np.array([2.0, 2.0]), np.array([1, 2]))
    array([2., 6.])
    """

    learned = "w"

    def __init__(self, w: Any = None, *, blocks: Any = None) -> None:
        self.w = w
        self.blocks = blocks

    @property
    def width(self) -> int:
        if self.blocks is not None:
            return int(self._block_sizes().sum())
        return 0 if self.w is None else np.size(self.w)

    def __call__(self, x: Array, dims: Array) -> Array:
        if self.w is None:
            return np.array(x, np.float64)
        w = self._checked()
        if dims.size and dims.max() >= self.width:
            raise InvalidParameter(
                f"`w` must have one weight per dimension, got {self.width} for dimension {dims.max()}."
            )
        return np.asarray(x * w[self._block(dims)])

    def resolved(self, x: Array, dims: Array, width: int) -> Weights:
        if self.w is not None:
            return self
        return Weights(np.ones(width if self.blocks is None else len(self.blocks)), blocks=self.blocks)

    def coordinates(self, x: Array, dims: Array) -> Array:
        w = self._checked()
        start, row = np.log(np.clip(w, SHRINK, GROW)), [np.log(SHRINK), np.log(GROW), 1.0]
        return np.column_stack([np.where(w > 0, start, 0.0), np.where(w[:, None] > 0, row, [0.0, 0.0, 1.0])])

    def moved(self, theta: Array) -> Weights:
        return Weights(np.where(self._checked() > 0, np.exp(theta), 0.0), blocks=self.blocks)

    def pull(self, x: Array, dims: Array, upstream: Array) -> tuple[Array, Array]:
        if self.w is None:
            return np.zeros(0), upstream
        w, block = self._checked(), self._block(dims)
        slope = upstream * w[block]
        return np.bincount(block, slope * x, w.size), slope

    def penalty(self, theta: Array) -> tuple[float, Array]:
        # Log weights are normal around their mean with variance 1; a weight of 0 has no logarithm and no part.
        some = np.ones(theta.size, bool) if self.w is None else self._checked() > 0
        apart = np.where(some, theta - theta[some].mean(), 0.0)
        return 0.5 * float(apart @ apart), apart

    def _block(self, dims: Array) -> Array:
        if self.blocks is None:
            return dims
        return np.asarray(np.repeat(np.arange(len(self.blocks)), self._block_sizes())[dims])

    def _block_sizes(self) -> Array:
        sizes = np.asarray(self.blocks)
        if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
            raise InvalidParameter(
                f"`blocks` must be sizes of blocks from 1 on, got {self.blocks!r}. Two blocks of 3 dimensions: [3, 3]."
            )
        return sizes

    def _checked(self) -> Array:
        w = as_floats(self.w)
        if w.ndim != 1 or not np.isfinite(w).all() or (w < 0).any() or not w.any():
            raise InvalidParameter(
                f"`w` must be a list of finite weights ≥ 0, not all zero, got {shown(self.w)}. Weights([1, …]) changes "
                "nothing."
            )
        if self.blocks is not None and w.size != self._block_sizes().size:
            raise InvalidParameter(f"`w` must have one weight per block, got {w.size} for {len(self.blocks)} blocks.")
        return w


def _phi(t: Array) -> Array:
    """t / (1 − e^{−t}), 1 at 0."""
    with np.errstate(over="ignore"):
        return np.divide(t, -np.expm1(-t), out=np.ones_like(t), where=np.abs(t) > 1e-8)


def _finite(g: Array, x: Array, transform: Transform) -> Array:
    if np.isfinite(g).all():
        return g
    raise InvalidInput(
        f"{transform!r} overflows at the value {x[~np.isfinite(g)].max():.4g}. "
        "Scale the features to about [0, 1] first, or take a smaller eta."
    )
