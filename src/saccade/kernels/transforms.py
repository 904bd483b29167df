"""Monotone transforms of single features, g(0) = 0: a generalised intersection kernel (H (7)) is HIK after one.

They act on the levels of a dimension, never on the coded data.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from .._core.checks import check_positive
from .._core.errors import InvalidInput, InvalidParameter
from .base import Array


class Transform(BaseEstimator, abc.ABC):
    """g: [0, ∞) → [0, ∞), monotone, g(0) = 0. Parameters are checked when it is used."""

    per_dimension: ClassVar[bool] = False
    """True when g depends on the dimension."""

    @abc.abstractmethod
    def __call__(
        self,
        x: Array,  # (k,) non-negative
        dims: Array,  # (k,) the dimension of each value; anything when not per_dimension
    ) -> Array:  # (k,)
        """g(x)."""


class Power(Transform):
    """g(x) = x^η (H §4). Small η makes few occurrences of a word count nearly as much as many.

    >>> Power(0.5)(np.array([0.0, 4.0]), np.array([0, 0]))
    array([0., 2.])
    """

    def __init__(self, eta: float = 0.5) -> None:
        self.eta = eta

    def __call__(self, x: Array, dims: Array) -> Array:
        eta = check_positive("eta", self.eta, "Power(1.0) changes nothing, Power(0.5) takes the square root.")
        with np.errstate(over="ignore"):
            return _finite(np.power(x, eta), x, self)


class Exponential(Transform):
    """g(x) = (e^{ηx} − 1) / (e^η − 1) (H §4); η → 0 is the identity, η < 0 bends the other way.

    >>> Exponential(1e-9)(np.array([0.0, 0.5]), np.array([0, 0])).round(6)
    array([0. , 0.5])
    """

    def __init__(self, eta: float = 1.0) -> None:
        self.eta = eta

    def __call__(self, x: Array, dims: Array) -> Array:
        if not isinstance(self.eta, int | float | np.number) or not np.isfinite(self.eta):
            raise InvalidParameter(f"`eta` must be a finite number, got {self.eta!r}. Exponential(1.0) is a start.")
        if self.eta == 0:
            return np.array(x, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite(np.expm1(self.eta * x) / np.expm1(self.eta), x, self)


class Weights(Transform):
    """g_d(x) = w_d x, w_d ≥ 0 (H (8)): how much each dimension counts.

    >>> Weights([1.0, 3.0])(np.array([2.0, 2.0]), np.array([0, 1]))
    array([2., 6.])
    """

    per_dimension = True

    def __init__(self, w: Any) -> None:
        self.w = w

    def __call__(self, x: Array, dims: Array) -> Array:
        w = np.asarray(self.w, np.float64)
        if w.ndim != 1 or not np.isfinite(w).all() or (w < 0).any() or not w.any():
            raise InvalidParameter(
                f"`w` must be a list of finite weights ≥ 0, not all zero, got {self.w!r}. Weights([1, …]) is neutral."
            )
        if dims.size and dims.max() >= w.size:
            raise InvalidParameter(f"`w` must have one weight a dimension, got {w.size} for dimension {dims.max()}.")
        return np.asarray(x * w[dims])


def _finite(g: Array, x: Array, transform: Transform) -> Array:
    if np.isfinite(g).all():
        return g
    raise InvalidInput(
        f"{transform!r} overflows at the value {x[~np.isfinite(g)].max():.4g}. "
        "Scale the features to about [0, 1] first, or take a smaller eta."
    )
