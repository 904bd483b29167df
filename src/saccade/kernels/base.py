"""What a covariance function must do, and the few steps that all dense ones share."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from saccade._core.arrays import Array, PerRow
from saccade._core.checks import is_number
from saccade._core.errors import InvalidParameter
from saccade.kernels.learned import differences, learned

if TYPE_CHECKING:
    from saccade.kernels.engines import Engine
    from saccade.kernels.gram import Gram

__all__ = ["Array", "Kernel", "Matrix", "PerRow", "Rows"]

Matrix: TypeAlias = Array | sp.csr_matrix | sp.csr_array
Rows: TypeAlias = Annotated[Matrix, "n, d"]

ROUNDING = 64 * float(np.finfo(np.float64).eps)  # share of k(x, x) that a difference of kernel values may be off


class Kernel(BaseEstimator, abc.ABC):
    """A covariance function k(x, z), symmetric and positive semi-definite.

    Parameters are constructor keywords, so scikit-learn's ``clone``, ``get_params`` and
    ``set_params`` work on it, nested ones too (``kernel__base__gamma``). They are checked when
    the kernel is settled or called, not when it is made.

    Examples
    --------
    >>> from saccade.kernels import RBF
    >>> isinstance(RBF(), Kernel), RBF().get_params()["amplitude"]
    (True, 1.0)
    """

    has_tables: ClassVar[bool] = False
    """Whether the kernel is a sum over features, so that functions of new rows are tables."""
    __array_ufunc__ = None  # np.float64(2) * kernel comes to __rmul__, not to numpy
    chosen: ClassVar[tuple[str, ...]] = ()
    """Positive numbers among the parameters that tuning leaves as they are."""

    def __init_subclass__(cls, **options: Any) -> None:
        """A class with its own values and no gradient of its own takes differences, not the gradient of its parent."""
        super().__init_subclass__(**options)
        if "__call__" in vars(cls) and "gradient" not in vars(cls):
            cls.gradient = Kernel.gradient  # type: ignore[method-assign]

    def resolved(self, X: Rows, weight: PerRow | None = None) -> Kernel:
        """Settle every data-dependent part on X; self is never changed.

        Parameters
        ----------
        X : Matrix
            Rows, (n, d).
        weight : Array or None
            How many copies of itself each row stands for, (n,), a fraction perhaps; None means one.

        Returns
        -------
        Kernel
            With a number for every "auto".
        """
        return self

    def opened(self, X: Rows) -> Kernel:
        """Copy with a start for all that tuning learns: `Weights()` inside it then has ones, `Monotone()` knots.

        Parameters
        ----------
        X : Matrix
            Rows, (n, d).

        Returns
        -------
        Kernel
            What is "auto" stays so.
        """
        inside = {
            name: part.opened(X) for name, part in self.get_params(deep=False).items() if isinstance(part, Kernel)
        }
        copy: Kernel = clone(self).set_params(**inside)
        return copy

    def gram(
        self,
        X: Rows,
        *,
        levels: int | None = None,  # per dimension, for a kernel that is tables of levels
        binning: str = "quantile",
        weight: PerRow | None = None,
        held: bool = True,
        seed: int = 0,
        engine: Engine | None = None,
    ) -> Gram:
        """Make the kernel matrix of the training rows, with this kernel settled on them.

        Parameters
        ----------
        X : Matrix
            Rows, (n, d).
        levels : int or None
            Levels per dimension, for a kernel that is tables of levels; None for all values.
        binning : {"quantile", "width"}
            How these levels are chosen.
        weight : Array or None
            How many copies of itself each row stands for, (n,), a fraction perhaps; None means one.
        held : bool
            Whether it may be held as n² numbers; products are slow where it may not. An HIK needs none.
        seed : int
            Of the rows that are kept as they came where there are levels.
        engine : Engine or None
            What holds the matrix (saccade.kernels.engines); None for the memory of this process.

        Returns
        -------
        Gram
            K, known by what it can do.
        """
        from saccade.kernels.engines import MEMORY

        return (engine or MEMORY).dense(self, X, weight, held)

    @abc.abstractmethod
    def __call__(self, X: Rows, Z: Annotated[Matrix, "m, d"] | None = None) -> Array:
        """The dense float64 block K_ij = k(x_i, z_j), (n, m).

        Without Z it is k(X, X), exactly symmetric and with `diag` on its diagonal.
        """

    @abc.abstractmethod
    def diag(self, X: Rows) -> Array:
        """Self-similarity k(x_i, x_i) of every row, without forming the matrix.

        Parameters
        ----------
        X : Matrix
            Rows, (n, d).

        Returns
        -------
        Array
            (n,).
        """

    def gradient(self, X: Rows, A: Annotated[Array, "n, n"], weight: PerRow | None = None) -> dict[str, Array]:
        """Derivatives of Σ_ij A_ij k(x_i, x_j) with respect to the logarithms of what `learned` lists.

        With respect to `eta` itself for `Exponential`, where it may be negative. k is `resolved(X, weight)`: what is
        settled on the data moves with the parameters. The kernels of this package have closed forms; one that is made
        of others hands them another A. This default takes central differences.

        Parameters
        ----------
        X : Matrix
            Rows, (n, d).
        A : Array
            Symmetric, (n, n).
        weight : Array or None
            How many copies of itself each row stands for, (n,), a fraction perhaps; None means one.

        Returns
        -------
        dict of str to Array
            By the name of the parameter.
        """
        return differences(self, X, A, weight, learned(self))

    def squared_distances(self, X: Rows, Z: Annotated[Matrix, "m, d"] | None = None) -> tuple[Array, float]:
        """Squared distances in feature space, k(x, x) + k(z, z) − 2k(x, z), and how far rounding may be off.

        The terms cancel where examples are near each other and far from the origin. Then k(x, x) and k(z, z) are both
        large, so the smaller of their two maxima bounds the error. A kernel with a better way overrides this.

        Parameters
        ----------
        X, Z : Matrix, and Matrix or None
            Rows, (n, d), and other rows, (m, d); None for X.

        Returns
        -------
        tuple of Array and float
            (n, m), and the error of each.
        """
        own = self.diag(X)
        other = own if Z is None else self.diag(Z)
        distance = -2.0 * self(X, Z)
        distance += own[:, None]
        distance += other[None, :]
        return distance, ROUNDING * float(min(own.max(initial=0.0), other.max(initial=0.0)))

    def centred_part(self) -> Kernel | None:
        """Find the summand of k that is a product of features less their mean over the training rows.

        Leaving a training row out moves that mean.

        Returns
        -------
        Kernel or None
            k itself where all of it is; None for none.
        """
        return None

    def centred_gradient(self, X: Rows, A: Annotated[Array, "n, n"], weight: PerRow | None = None) -> dict[str, Array]:
        """Derivatives as in `gradient`, of the centred part alone.

        Parameters
        ----------
        X, A, weight : Matrix, Array, and Array or None
            As in `gradient`.

        Returns
        -------
        dict of str to Array
            By the name of the parameter.
        """
        return {} if self.centred_part() is None else self.gradient(X, A, weight)

    @property
    def mixes_centre(self) -> bool:
        """Whether that mean counts in other ways too, as in a product of kernels."""
        return False

    def __add__(self, other: object) -> Kernel:
        """k + k', again a kernel."""
        from saccade.kernels.combine import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: object) -> Kernel:
        """factor · k for a positive number, or k · k'; again a kernel."""
        from saccade.kernels.combine import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        if is_number(other):
            return Scaled(self, float(other))
        return Scaled(self, other) if type(other) is int else NotImplemented  # too large, as it says when it is used

    __rmul__ = __mul__


def shares(n: int, weight: PerRow | None) -> PerRow:
    """The share of each training row in a mean over them."""
    return np.full(n, 1.0 / n) if weight is None else weight / weight.sum()


def check_kernel(name: str, value: object) -> Kernel:
    """The value, or an error when it is not a kernel."""
    if isinstance(value, Kernel):
        return value
    raise InvalidParameter(f"`{name}` must be a kernel such as HIK(), got {value!r}. Pass an instance, not a name.")
