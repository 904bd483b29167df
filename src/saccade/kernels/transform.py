"""What a transform of single features must do, and what can be learned of it."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Annotated, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from saccade._core.errors import InvalidParameter
from saccade.kernels.base import Array


class Transform(BaseEstimator, abc.ABC):
    """Function g: [0, ∞) → [0, ∞), monotone, g(0) = 0. Parameters are checked when it is used.

    Examples
    --------
    >>> from saccade.kernels import Power
    >>> isinstance(Power(0.5), Transform), Power(0.5)(np.array([4.0]), np.zeros(1, np.int64))
    (True, array([2.]))
    """

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
        """Complain where g does not fit the data.

        Parameters
        ----------
        width : int
            Dimensions of the data.
        """
        if self.width not in (0, width):
            raise InvalidParameter(
                f"{type(self).__name__} must have one weight or row of knots per dimension, "
                f"got {self.width} for {width} dimensions."
            )

    def scaled(self, mean: Callable[[list[Transform]], float]) -> Self:
        """Settle every scale that is "auto".

        Parameters
        ----------
        mean : callable
            The mean self-similarity of the training data when a list of transforms is applied instead of this one.

        Returns
        -------
        Transform
            With a number for each.
        """
        return self

    @abc.abstractmethod
    def __call__(
        self,
        x: Annotated[Array, "k"],  # non-negative
        dims: Annotated[Array, "k"],  # the dimension of each value; anything when `width` is 0
    ) -> Annotated[Array, "k"]:
        """g(x)."""

    def resolved(self, x: Annotated[Array, "k"], dims: Annotated[Array, "k"], width: int) -> Self:
        """Give every parameter that was left open its start.

        Parameters
        ----------
        x, dims : Array
            The values it will see and the dimension of each, (k,); any dimension when `width` is 0.
        width : int
            Dimensions of the data.

        Returns
        -------
        Transform
            With numbers alone.
        """
        return self

    @abc.abstractmethod
    def coordinates(self, x: Annotated[Array, "k"], dims: Annotated[Array, "k"]) -> Annotated[Array, "p, 4"]:
        """What can be learned, one row per coordinate.

        Parameters
        ----------
        x, dims : Array
            The values it will see and the dimension of each, (k,); any dimension when `width` is 0.

        Returns
        -------
        Array
            Start, lower and upper bound, and a typical step, (p, 4).
        """

    @abc.abstractmethod
    def moved(self, theta: Annotated[Array, "p"]) -> Self:
        """Move the transform to other coordinates.

        Parameters
        ----------
        theta : Array
            (p,).

        Returns
        -------
        Transform
            With these parameters.
        """

    @abc.abstractmethod
    def pull(
        self, x: Annotated[Array, "k"], dims: Annotated[Array, "k"], upstream: Annotated[Array, "k"]
    ) -> tuple[Array, Array]:  # (p,), (k,)
        """Derivatives of that number with respect to the coordinates, and to x.

        Parameters
        ----------
        x, dims, upstream : Array
            Values, the dimension of each, and the derivative of a number with respect to g(x), (k,) each.

        Returns
        -------
        tuple of two Arrays
            (p,) and (k,).
        """

    def by_coordinates(
        self, x: Annotated[Array, "k"], dims: Annotated[Array, "k"], upstream: Annotated[Array, "k"]
    ) -> Annotated[Array, "p"]:
        """The first of what `pull` returns.

        Parameters
        ----------
        x, dims, upstream : Array
            Values, the dimension of each, and the derivative of a number with respect to g(x), (k,) each.

        Returns
        -------
        Array
            (p,).
        """
        return self.pull(x, dims, upstream)[0]

    def names(self) -> list[str]:  # (p,)
        """Name every coordinate, for `Tune(fixed=...)`; several may share one.

        Returns
        -------
        list of str
            As many as coordinates.
        """
        return [type(self).__name__.lower()] * len(self.coordinates(np.zeros(1), np.zeros(1, np.int64)))

    def gradient(
        self,
        x: Annotated[Array, "k"],
        dims: Annotated[Array, "k"],
        upstream: Annotated[Array, "k"],
        share: Annotated[Array, "k"],  # how much of each value the mean self-similarity of the training data holds
    ) -> tuple[dict[str, Array], Array]:  # and (k,)
        """Derivatives as in `pull`, by the name of the parameter.

        Parameters
        ----------
        x, dims, upstream : Array
            Values, the dimension of each, and the derivative of a number with respect to g(x), (k,) each.
        share : Array
            How much of each value the mean self-similarity of the training data holds, (k,).

        Returns
        -------
        tuple of dict and Array
            Those with respect to the coordinates, and to x, (k,).
        """
        by_theta, by_x = self.pull(x, dims, upstream)
        return {self.learned: by_theta}, by_x

    def penalty(self, theta: Annotated[Array, "p"]) -> tuple[float, Array]:  # and (p,)
        """How unlikely a prior of strength 1 finds the coordinates, −log p, and its derivative.

        Parameters
        ----------
        theta : Array
            (p,).

        Returns
        -------
        tuple of float and Array
            0 without a prior.
        """
        return 0.0, np.zeros_like(theta)
