"""What every approximation of a trained Gaussian process offers: mean, variance and leaving one out, from k* alone."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.chunks import batches
from saccade._core.progress import report
from saccade.kernels.gram import Gram
from saccade.operators.base import Operator
from saccade.solvers.cholesky import Factor


@dataclass(frozen=True)
class RegularizedSystem:
    """K̃ = K + N, and its factors where there are some."""

    K: Operator
    noise: Annotated[Array, "n, 1 | n, m"]
    factors: tuple[Factor, ...]  # one for each column of the noise, or none
    tol: float
    max_iter: int
    weight: Annotated[Array, "n"] | None = (
        None  # how many equal copies each example stands for; N is that of all together
    )


class VarianceApproximation(ABC):
    """An approximation of K̃⁻¹ for the variance. The noise of a new label is never part of the variance."""

    @property
    def support(self) -> Annotated[Array, "s"] | None:  # ascending
        """Numbers of the examples whose kernel values it takes; None for all n, and s is n below."""
        return None

    def supported(self, k_star: Annotated[Array, "n, b"]) -> Annotated[Array, "s, b"]:
        """The rows of k* that it takes."""
        return k_star if self.support is None else k_star[self.support]

    @abstractmethod
    def explained(
        self, k_star: Annotated[Array, "s, b"]
    ) -> Annotated[Array, "b, 1 | b, m"]:  # one column when all outputs share it
        """How much of the variance the training examples explain: the approximation of k*ᵀK̃⁻¹k*."""

    def variance(
        self,
        k_star: Annotated[Array, "s, b"],
        prior: Annotated[Array, "b"],  # k**
    ) -> Annotated[Array, "b, 1 | b, m"]:
        """k** less what is explained, from 0 to k**."""
        return np.asarray(np.clip(prior[:, None] - self.explained(k_star), 0.0, prior[:, None]))

    def comparable(self) -> Array | None:
        """Numbers of the examples that, left out, look as new ones of their kind do; None for all.

        New examples are compared with these, for thresholds and p-values.
        """
        return None


class Approximation(VarianceApproximation):
    """An approximation of K̃⁻¹ for the mean too, and for examples as if they had not been there."""

    @abstractmethod
    def weights(self, Y: Annotated[Array, "n, m"]) -> Annotated[Array, "n, m"]:
        """α̃, the approximation of α = K̃⁻¹Y: the approximate mean is k*ᵀα̃. It is 0 beside the support."""

    @abstractmethod
    def left_out(
        self,
        k_rows: Annotated[Array, "s, b"],  # K[support, rows]; anything where `takes_columns` is False
        prior: Annotated[Array, "b"],  # k(x, x) of the rows
        rows: Annotated[Array, "b"],  # numbers of training examples
        Y: Annotated[Array, "n, m"],
    ) -> tuple[Annotated[Array, "b, m"], Annotated[Array, "b, 1 | b, m"]]:
        """Mean and variance of f at the training examples `rows`, each predicted by all the others."""

    def takes_columns(self) -> bool:
        """Whether `left_out` looks at `k_rows`."""
        return True

    def leaves_all(
        self,
        weight: Annotated[Array, "n"],  # how many equal copies each example stands for
    ) -> Annotated[Array, "n"] | None:
        """How many copies `left_out` leaves out with each example; None where it is one, as it should be."""
        return weight


@dataclass(frozen=True)
class PerOutput(Approximation):
    """One approximation per column of the noise, where the columns differ too much to share one."""

    parts: tuple[Approximation, ...]

    def explained(self, k_star: Array) -> Array:
        return np.column_stack([part.explained(k_star) for part in self.parts])

    def variance(self, k_star: Array, prior: Array) -> Array:
        return np.column_stack([part.variance(k_star, prior) for part in self.parts])

    def weights(self, Y: Array) -> Array:
        return np.column_stack([part.weights(Y[:, [j]]) for j, part in enumerate(self.parts)])

    def left_out(self, k_rows: Array, prior: Array, rows: Array, Y: Array) -> tuple[Array, Array]:
        found = [part.left_out(k_rows, prior, rows, Y[:, [j]]) for j, part in enumerate(self.parts)]
        mean, variance = (np.column_stack(columns) for columns in zip(*found, strict=True))
        return mean, variance

    def comparable(self) -> Array | None:
        return self.parts[0].comparable()


def outputs(
    Y: Annotated[Array, "n, m"], noise: Annotated[Array, "n, 1 | n, m"], j: int
) -> Annotated[Array, "n, m | n, 1"]:
    """The columns of Y that belong to column j of the noise: all where it is shared."""
    return Y if noise.shape[1] == 1 else Y[:, [j]]


def new_columns(
    gram: Gram,  # of the support
    X: Annotated[Any, "b, d"],
) -> Iterator[tuple[Array, Array]]:  # (s, some), (some,)
    """k* and k** of the rows of X, some at a time."""
    at_once = max(limits.KERNEL_VALUES_AT_ONCE // max(gram.shape[0], 1), limits.NEW_AT_LEAST)
    for rows in batches(X.shape[0], min(at_once, limits.NEW_AT_ONCE)):
        new = X[rows].astype(np.float64)
        yield gram.cross_and_own(new)
        report("predicting", rows.stop / X.shape[0])
