"""What a covariance function must do, and the few steps that all dense ones share."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from saccade._core.arrays import Array
from saccade._core.chunks import batches

from .._core import limits
from .._core.checks import is_number
from .._core.errors import InvalidInput, InvalidParameter
from .learned import differences, learned

if TYPE_CHECKING:
    from .gram import Gram

__all__ = ["Array", "Kernel", "Matrix"]

Matrix: TypeAlias = Array | sp.csr_matrix | sp.csr_array

ROUNDING = 64 * float(np.finfo(np.float64).eps)  # share of k(x, x) that a difference of kernel values may be off
VANISHED = 1e3  # t from which e^−t is 0 in float64, and with it any power of t times e^−t


class Kernel(BaseEstimator, abc.ABC):
    """A covariance function k(x, z), symmetric and positive semi-definite.

    Parameters are constructor keywords, so scikit-learn's ``clone``, ``get_params`` and
    ``set_params`` work on it, nested ones too (``kernel__base__gamma``). They are checked when
    the kernel is settled or called, not when it is made.
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

    def resolved(
        self,
        X: Matrix,  # (n, d)
        weight: Array | None = None,  # (n,)
    ) -> Kernel:
        """A kernel with every data-dependent part settled on X; self is never changed.

        `weight` says how many copies of itself each row stands for, a fraction perhaps; None means one.
        """
        return self

    def opened(
        self,
        X: Matrix,  # (n, d)
    ) -> Kernel:
        """A copy with a start for all that tuning learns: `Weights()` inside it then has ones, `Monotone()` knots."""
        inside = {
            name: part.opened(X) for name, part in self.get_params(deep=False).items() if isinstance(part, Kernel)
        }
        copy: Kernel = clone(self).set_params(**inside)
        return copy

    def gram(
        self,
        X: Matrix,  # (n, d)
        *,
        levels: int | None = None,  # per dimension, for a kernel that is tables of levels
        binning: str = "quantile",
        weight: Array | None = None,  # (n,)
        held: bool = True,
        seed: int = 0,
    ) -> Gram:
        """The kernel matrix of the training rows X, with this kernel settled on them.

        `held` says whether it may be held as n² numbers; products are slow where it may not.
        """
        from .dense_gram import DenseGram, StreamedGram

        X = X.astype(np.float64)  # a copy: predictions need the rows as they are now
        return (DenseGram if held else StreamedGram)(self.resolved(X, weight), X)

    @abc.abstractmethod
    def __call__(
        self,
        X: Matrix,  # (n, d)
        Z: Matrix | None = None,  # (m, d)
    ) -> Array:
        """The dense float64 block K_ij = k(x_i, z_j), (n, m).

        Without Z it is k(X, X), exactly symmetric and with `diag` on its diagonal.
        """

    @abc.abstractmethod
    def diag(
        self,
        X: Matrix,  # (n, d)
    ) -> Array:
        """k(x_i, x_i) for every row, (n,), without forming the matrix."""

    def gradient(
        self,
        X: Matrix,  # (n, d)
        A: Array,  # (n, n) symmetric
        weight: Array | None = None,  # (n,)
    ) -> dict[str, Array]:
        """The derivatives of Σ_ij A_ij k(x_i, x_j) with respect to the logarithms of what `learned` lists, by name.

        With respect to `eta` itself for `Exponential`, where it may be negative.

        k is `resolved(X, weight)`: what is settled on the data moves with the parameters. The kernels of this package
        have closed forms; one that is made of others hands them another A. This default takes central differences.
        """
        return differences(self, X, A, weight, learned(self))

    def squared_distances(
        self,
        X: Matrix,  # (n, d)
        Z: Matrix | None = None,  # (m, d)
    ) -> tuple[Array, float]:
        """k(x, x) + k(z, z) − 2k(x, z), the squared distances in feature space (n, m), and how far rounding may be off.

        The terms cancel where examples are near each other and far from the origin. Then k(x, x) and k(z, z) are both
        large, so the smaller of their two maxima bounds the error. A kernel with a better way overrides this.
        """
        own = self.diag(X)
        other = own if Z is None else self.diag(Z)
        distance = -2.0 * self(X, Z)
        distance += own[:, None]
        distance += other[None, :]
        return distance, ROUNDING * float(min(own.max(initial=0.0), other.max(initial=0.0)))

    def centred_part(self) -> Kernel | None:
        """The summand of k that is a product of features less their mean over the training rows; None for none.

        k itself where all of it is. Leaving a training row out moves that mean.
        """
        return None

    def centred_gradient(
        self,
        X: Matrix,  # (n, d)
        A: Array,  # (n, n) symmetric
        weight: Array | None = None,  # (n,)
    ) -> dict[str, Array]:
        """As `gradient`, of the centred part alone."""
        return {} if self.centred_part() is None else self.gradient(X, A, weight)

    @property
    def mixes_centre(self) -> bool:
        """Whether that mean counts in other ways too, as in a product of kernels."""
        return False

    def __add__(self, other: object) -> Kernel:
        """k + k', again a kernel."""
        from .combine import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: object) -> Kernel:
        """factor · k for a positive number, or k · k'; again a kernel."""
        from .combine import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        if is_number(other):
            return Scaled(self, float(other))
        return Scaled(self, other) if type(other) is int else NotImplemented  # too large, as it says when it is used

    __rmul__ = __mul__


def check_kernel(name: str, value: object) -> Kernel:
    """The value, or an error when it is not a kernel."""
    if isinstance(value, Kernel):
        return value
    raise InvalidParameter(f"`{name}` must be a kernel such as HIK(), got {value!r}. Pass an instance, not a name.")


def decay(
    distance: Array,  # (n, m), overwritten
    rate: float,
) -> Array:
    """exp(−rate · distance), in place; rounding below zero is clipped, NaN is never passed on."""
    check_not_nan(distance)
    np.maximum(distance, 0.0, out=distance)
    with np.errstate(over="ignore"):  # farther than float64 can say: exp(−inf) = 0
        distance *= -rate
    return np.exp(distance, out=distance)


def decay_gradient(
    distance: Array,  # (n, n), overwritten
    rate: float,
    A: Array,  # (n, n)
) -> dict[str, Array]:
    """The derivative of Σ_ij A_ij exp(−rate · distance_ij) with respect to log rate, where `gamma` is the rate."""
    check_not_nan(distance)
    with np.errstate(over="ignore"):
        distance *= rate
    np.clip(distance, 0.0, VANISHED, out=distance)
    return {"gamma": np.asarray(-np.einsum("ij,ij,ij->", A, distance, np.exp(-distance)))}


def check_not_nan(distance: Array) -> None:
    """Complain of NaN, without a mask for a matrix that has none."""
    if distance.size and np.isnan(distance.min()):
        check_distances(distance)


def check_distances(values: Array) -> Array:
    """The same values, or an error where one is not finite."""
    if not np.isfinite(values).all():
        raise InvalidInput(
            "A distance between rows must be finite, got nan or inf. The values overflow float64: divide the data by "
            "its largest value and adapt the scale of the kernel."
        )
    return values


def symmetric(
    K: Array,  # (n, n), overwritten
    diagonal: Array | float,  # (n,)
) -> Array:
    """K with the upper triangle copied onto the lower and the diagonal set, in place.

    Both triangles hold the same sums, but BLAS and SIMD loops may round them differently.
    """
    for rows in batches(K.shape[0], limits.MIRRORED_ROWS):
        K[rows.stop :, rows] = K[rows, rows.stop :].T
        block = K[rows, rows]
        lower = np.tril_indices(block.shape[0], -1)
        block[lower] = block.T[lower]
    np.fill_diagonal(K, diagonal)
    return K
