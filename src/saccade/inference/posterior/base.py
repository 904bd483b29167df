"""What can be asked of a fitted Gaussian process, with its training examples (gp.py) or from tables (compressed.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.inference.approximations.by_name import Method
from saccade.inference.posterior.evidence import Evidence
from saccade.inference.posterior.shares import shares
from saccade.kernels.base import Kernel
from saccade.operators.tables import GridTables, PiecewiseTables

if TYPE_CHECKING:
    from saccade.inference.posterior.compressed import Compressed


class Posterior(ABC):
    """The latent functions f, one per output: f ~ N(mean, variance) at any x."""

    kernel: Kernel

    @property
    @abstractmethod
    def tables(self) -> PiecewiseTables | GridTables | None:
        """The mean as tables, where the kernel has some."""

    @property
    @abstractmethod
    def variance_method(self) -> Method | None:
        """How the variance is found; None where there is none."""

    @abstractmethod
    def mean(self, X: Any) -> Array:  # (b, m)
        """E f(x) for every row of X."""

    @abstractmethod
    def variance(self, X: Any) -> Array:  # (b, 1) or (b, m)
        """Var f(x), or an upper bound of it, from 0 to k(x, x); one column when all outputs share it."""

    def mean_and_variance(self, X: Any) -> tuple[Array, Array]:  # (b, m), and (b, 1) or (b, m)
        """Both at once."""
        return self.mean(X), self.variance(X)

    def shares(self, X: Any) -> tuple[list[Array], Array, Array]:  # m of (e,), (e,), (b + 1,)
        """What each value of X adds to the mean, as the values, columns and row pointers of a CSR matrix."""
        return shares(self.kernel, self.tables, X)

    @abstractmethod
    def quantized(self, bins: int) -> Self:
        """The same with its mean read off `bins` even steps per dimension: faster and slightly coarser."""

    @abstractmethod
    def compressed(self) -> Compressed:
        """Tables alone, as a model file has them."""

    # What follows takes the training examples: see gp.py.

    def covariance(self, X: Any) -> list[Array]:  # (b, b) for each column of the noise
        """Cov(f(x), f(x')) for all pairs of rows."""
        self.needs_examples()

    def left_out(self, rows: Array, X: Any = None) -> tuple[Array, Array]:  # (b, m), and (b, 1) or (b, m)
        """Mean and variance at training examples, each as if it had not been there."""
        self.needs_examples()

    def sample(self, X: Any, count: int, rng: np.random.Generator) -> Array:  # (b, m, count)
        """Draws of f from its joint distribution at the rows of X."""
        self.needs_examples()

    def evidence(self, method: str = "auto") -> Evidence:
        """log p(Y)."""
        self.needs_examples()

    def extended(self, X: Any, Y: Array, noise: Array, weight: Array | None = None) -> Posterior:
        """With further examples."""
        self.needs_examples()

    @property
    def relevance(self) -> Array:  # (d,)
        """How much each feature moves the mean."""
        self.needs_examples()

    def needs_examples(self) -> NoReturn:
        """The one error for every question that tables cannot answer."""
        raise InvalidInput(
            "A loaded model holds no training examples, which this needs. Ask the model that was fitted, or fit again."
        )


def check_bins(tables: object, bins: object) -> PiecewiseTables:
    """The tables, once they and the number of steps are known to be good for quantising."""
    if not isinstance(tables, PiecewiseTables):
        raise InvalidInput("Only a fitted HIK model that is not quantised yet has tables to quantise.")
    if not isinstance(bins, int) or not 2 <= bins <= limits.TABLE_BINS:
        wanted = f"`bins` must be a whole number from 2 to {limits.TABLE_BINS}"
        raise InvalidParameter(f"{wanted}, got {bins!r}. The default is 256.")
    return tables
