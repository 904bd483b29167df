"""What can be asked of a fitted Gaussian process.

It has its training examples (gp.py), tables (compressed.py), or the rows that carry it (supported.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.inference.approximations.by_name import Method
from saccade.inference.likelihoods.prior_mean import PriorMean
from saccade.inference.posterior.shares import shares
from saccade.inference.solving.evidence import Evidence
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
        """How the variance is found: as asked for, or what "auto" stands for; None where there is none."""

    @abstractmethod
    def mean(self, X: Any) -> Array:
        """E f(x) for every row of X.

        Parameters
        ----------
        X : array or sparse matrix (b, d)
            Rows.

        Returns
        -------
        array (b, m)
            One column per output.
        """

    @abstractmethod
    def variance(self, X: Any) -> Array:
        """Var f(x), or an upper bound of it, from 0 to k(x, x).

        Parameters
        ----------
        X : array or sparse matrix (b, d)
            Rows.

        Returns
        -------
        array (b, 1) or (b, m)
            One column when all outputs share it.
        """

    @abstractmethod
    def mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Both at once: kernel values or features are computed once.

        Parameters
        ----------
        X : array or sparse matrix (b, d)
            Rows.

        Returns
        -------
        tuple of two arrays
            `mean` and `variance`.
        """

    def shares(self, X: Any) -> tuple[list[Array], Array, Array]:
        """What each value of X adds to the mean, as parts of CSR matrices.

        Parameters
        ----------
        X : array or sparse matrix (b, d)
            Rows.

        Returns
        -------
        tuple
            The values (e,) for each output, then columns (e,) and row pointers (b + 1,) of all.
        """
        return shares(self.kernel, self.tables, X)

    @abstractmethod
    def quantized(self, bins: int) -> Self:
        """Read the mean off even steps per dimension: faster and slightly coarser.

        Parameters
        ----------
        bins : int
            Steps per dimension.

        Returns
        -------
        Posterior
            A copy.
        """

    @abstractmethod
    def compressed(self) -> Compressed:
        """Keep tables alone, as a model file has them.

        Returns
        -------
        Compressed
            The tables of mean and variance.
        """

    # What follows takes the training examples: see gp.py.

    def covariance(self, X: Any) -> list[Array]:
        """Cov(f(x), f(x')) for all pairs of rows, exact whatever approximates the variance.

        Parameters
        ----------
        X : array or sparse matrix (b, d)
            Rows.

        Returns
        -------
        list of arrays (b, b)
            One for each column of the noise.
        """
        self.needs_examples()

    def sample(self, X: Any, count: int, rng: np.random.Generator) -> Array:
        """Draw f from its joint distribution at the rows of X; outputs are independent of each other.

        Parameters
        ----------
        X : array or sparse matrix (b, d)
            Rows.
        count : int
            Number of draws.
        rng : numpy.random.Generator
            Random numbers.

        Returns
        -------
        array (b, m, count)
            The draws, exact whatever approximates mean and variance.
        """
        self.needs_examples()

    def evidence(self, method: str = "auto") -> Evidence:
        """log p(Y) of kernel and noise, whatever approximates the posterior.

        Parameters
        ----------
        method : "auto", "exact", "stochastic" or "bound"
            How the determinant is found.

        Returns
        -------
        Evidence
            The value, its standard error, and the method.
        """
        self.needs_examples()

    def extended(
        self,
        X: Any,
        Y: Array,
        noise: Array,
        weight: Array | None = None,
        *,
        mean: PriorMean | None = None,
        kernel: Kernel | None = None,
        start: Array | None = None,
    ) -> Posterior:
        """Add examples: a factor grows by them, conjugate gradients start where they ended.

        Parameters
        ----------
        X : array or sparse matrix (b, d)
            Further examples.
        Y : array (n + b, m)
            Targets of all examples.
        noise : array (n + b, 1) or (n + b, m)
            Of all examples.
        weight : array (n + b,) or None
            How many equal copies each stands for.
        mean : PriorMean or None
            Of all examples; None: as it is.
        kernel : Kernel or None
            Settled on all examples; None: as it is.
        start : array (n + b, m) or None
            A first guess of α; None: α as it was, and 0.

        Returns
        -------
        Posterior
            That of all examples.
        """
        self.needs_examples()

    @property
    def relevance(self) -> Array:
        """How much each feature moves the mean: the standard deviation of f_d over the examples, f = Σ_d f_d(x_d)."""
        self.needs_examples()

    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and variance of every training example without one copy of it, by the exact mean (closed form).

        Returns
        -------
        tuple of two arrays
            Mean (n, m); variance (n, 1) or (n, m).
        """
        self.needs_examples()

    def left_out(self, rows: Array, X: Any = None) -> tuple[Array, Array]:
        """Mean and variance at training examples, each as if it had not been there, by the approximations of both.

        Parameters
        ----------
        rows : array (b,)
            Numbers of training examples, ascending.
        X : array or sparse matrix (b, d), or None
            These examples as they came; None: the kernel matrix has them.

        Returns
        -------
        tuple of two arrays
            Mean (b, m); variance (b, 1) or (b, m).
        """
        self.needs_examples()

    def left_out_mean(self, rows: Array, X: Any = None) -> Array:
        """The mean of `left_out` alone, which takes no variance.

        Parameters
        ----------
        rows, X
            As for `left_out`.

        Returns
        -------
        array (b, m)
            The mean.
        """
        self.needs_examples()

    def left_out_variance(self, exact: Array | None, most: int) -> tuple[Array, Array]:
        """Numbers of training examples and their variance, each as if it had not been there.

        Parameters
        ----------
        exact : array (n, 1) or (n, m), or None
            The exact variance without each example, where it is known.
        most : int
            Of examples, where a sample has to do.

        Returns
        -------
        tuple of two arrays
            Numbers (b,); variance (b, 1) or (b, m).
        """
        self.needs_examples()

    def comparable(self, most: int | None = None) -> Array:
        """Numbers of the training examples that new ones are to be compared with, as `left_out` has them.

        Parameters
        ----------
        most : int or None
            A sample of so many at most; None for all.

        Returns
        -------
        array (b,)
            Numbers, ascending.
        """
        self.needs_examples()

    def needs_examples(self) -> NoReturn:
        """The one error for every question that tables or support cannot answer."""
        raise InvalidInput(
            "A loaded model holds no training examples, which this needs. Ask the model that was fitted, or fit again."
        )
