"""What a transform of single features must do, and what can be learned of it."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from .._core.errors import InvalidParameter
from .base import Array


class Transform(BaseEstimator, abc.ABC):
    """g: [0, ∞) → [0, ∞), monotone, g(0) = 0. Parameters are checked when it is used."""

    learned: ClassVar[str] = "eta"
    """The parameter behind the coordinates."""
    is_log: ClassVar[bool] = True
    """Whether the coordinates are logarithms of it, and not the parameter itself."""

    @property
    def width(self) -> int:
        """The number of dimensions that g tells apart, 0 when it is the same for all."""
        return 0

    @property
    def by_dimension(self) -> bool:
        """Whether g may come to tell dimensions apart; if not, `dims` is never looked at."""
        return True

    def check_width(self, width: int) -> None:
        """Complain where g does not fit data of `width` dimensions."""
        if self.width not in (0, width):
            raise InvalidParameter(
                f"{type(self).__name__} must have one weight or row of knots per dimension, "
                f"got {self.width} for {width} dimensions."
            )

    def scaled(self, mean: Callable[[list[Transform]], float]) -> Self:
        """The same with a number for every scale that is "auto".

        `mean` is the mean self-similarity of the training data when these transforms are applied instead of this one.
        """
        return self

    @abc.abstractmethod
    def __call__(
        self,
        x: Array,  # (k,) non-negative
        dims: Array,  # (k,) the dimension of each value; anything when `width` is 0
    ) -> Array:  # (k,)
        """g(x)."""

    def resolved(
        self,
        x: Array,  # (k,) the values it will see
        dims: Array,  # (k,)
        width: int,
    ) -> Self:
        """The same with every parameter that was left open at its start."""
        return self

    @abc.abstractmethod
    def coordinates(
        self,
        x: Array,  # (k,) the values it will see
        dims: Array,  # (k,)
    ) -> Array:  # (p, 4)
        """What can be learned, one row per coordinate: its start, lower and upper bound, and a typical step."""

    @abc.abstractmethod
    def moved(
        self,
        theta: Array,  # (p,)
    ) -> Self:
        """The transform at these coordinates."""

    @abc.abstractmethod
    def pull(
        self,
        x: Array,  # (k,)
        dims: Array,  # (k,)
        upstream: Array,  # (k,): the derivative of a number with respect to g(x)
    ) -> tuple[Array, Array]:  # (p,), (k,)
        """The derivatives of that number with respect to the coordinates, and to x."""

    def by_coordinates(
        self,
        x: Array,  # (k,)
        dims: Array,  # (k,)
        upstream: Array,  # (k,)
    ) -> Array:  # (p,)
        """The first of what `pull` returns."""
        return self.pull(x, dims, upstream)[0]

    def names(self) -> list[str]:  # (p,)
        """The name of every coordinate, for `Tune(fixed=...)`; several may share one."""
        return [type(self).__name__.lower()] * len(self.coordinates(np.zeros(1), np.zeros(1, np.int64)))

    def gradient(
        self,
        x: Array,  # (k,)
        dims: Array,  # (k,)
        upstream: Array,  # (k,)
        share: Array,  # (k,): how much of each value the mean self-similarity of the training data holds
    ) -> tuple[dict[str, Array], Array]:  # and (k,)
        """The derivatives of that number with respect to the coordinates, by the name of the parameter, and to x."""
        by_theta, by_x = self.pull(x, dims, upstream)
        return {self.learned: by_theta}, by_x

    def penalty(
        self,
        theta: Array,  # (p,)
    ) -> tuple[float, Array]:  # and (p,)
        """How unlikely a prior of strength 1 finds the coordinates (−log p), and its derivative; 0 without a prior."""
        return 0.0, np.zeros_like(theta)
