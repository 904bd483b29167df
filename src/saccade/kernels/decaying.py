"""Kernels that decay exponentially with a distance."""

from __future__ import annotations

import abc
from typing import Annotated, ClassVar

import numpy as np

from saccade._core.checks import check_positive
from saccade.kernels.base import Array, Kernel, Matrix, PerRow, Rows
from saccade.kernels.distances import decay, decay_gradient, symmetric


class Decaying(Kernel):
    """k(x, z) = exp(−γ · distance): subclasses say which distance."""

    remedy: ClassVar[str]
    """What to try where γ is not positive."""

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    @abc.abstractmethod
    def distance(self, X: Rows, Z: Annotated[Matrix, "m, d"] | None = None) -> Array:
        """Distances between rows.

        Parameters
        ----------
        X, Z : Matrix, and Matrix or None
            Rows, (n, d), and other rows, (m, d); None for X.

        Returns
        -------
        Array
            (n, m).
        """

    def resolved(self, X: Rows, weight: PerRow | None = None) -> Kernel:
        self._check()
        self.check_rows("X", X)
        return self

    def check_rows(self, name: str, X: Matrix) -> None:
        """Complain of rows that the distance does not take: here of none.

        Parameters
        ----------
        name : str
            What the error calls them.
        X : Matrix
            Rows, (n, d).
        """

    def __call__(self, X: Rows, Z: Annotated[Matrix, "m, d"] | None = None) -> Array:
        gamma = self._check()
        self.check_rows("X", X)
        if Z is not None:
            self.check_rows("Z", Z)
        K = decay(self.distance(X, Z), gamma)
        return symmetric(K, 1.0) if Z is None else K

    def diag(self, X: Rows) -> Array:
        return np.ones(X.shape[0])

    def gradient(self, X: Matrix, A: Array, weight: Array | None = None) -> dict[str, Array]:
        # ∂k/∂log γ = −γ · distance · k.
        return decay_gradient(self.distance(X), self._check(), A)

    def _check(self) -> float:
        return check_positive("gamma", self.gamma, self.remedy)
