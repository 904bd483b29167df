"""The generalised histogram intersection kernel k(x, z) = s Σ_d min(g_d(x_d), g_d(z_d)) (H (4), (7), (8))."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.checks import LARGEST, canonical, check_positive, check_range, is_number
from saccade._core.chunks import batches
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels.base import Array, Kernel, Matrix, PerRow, Rows
from saccade.kernels.chain import Chain
from saccade.kernels.distances import symmetric
from saccade.kernels.gram import TabledGram
from saccade.kernels.learned import prefixed
from saccade.kernels.transforms import Transform
from saccade.operators.block import intersections
from saccade.operators.codes import Codes, level_dims, split_signs
from saccade.operators.compress import compressed
from saccade.operators.intersection import intersection
from saccade.operators.intersection_base import Intersection

if TYPE_CHECKING:
    from saccade.kernels.engines import Engine

__all__ = ["HIK"]


class HIK(Kernel):
    """Histogram intersection, with any monotone transforms of the features before it.

    A number times an HIK is an HIK, and so is the sum of two: ``HIK(Power(0.5)) + 2.0 * HIK()`` is one kernel, as fast
    as either (see `TransformSum`). Signed features are split into positive and negative parts: equal signs intersect,
    opposite signs share nothing.

    Parameters
    ----------
    transform : Transform, list of them applied in order, or None
        g.
    scale : float or "auto"
        s. "auto" is one over the mean self-similarity of the training data, so that `noise` means the same on any
        data; 1.0 is the paper's kernel.
    factor : float or None
        A further factor, also of what "auto" settles on: ``2.0 * HIK()`` is ``HIK(factor=2.0)``. None means 1, and
        that there is nothing to learn.

    Examples
    --------
    >>> HIK(scale=1.0)(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))
    array([[2.]])
    >>> from saccade.kernels import Power
    >>> HIK(Power(2.0), scale=1.0)(np.array([[1.0, -2.0]]), np.array([[3.0, -1.0]]))
    array([[2.]])
    >>> 3.0 * HIK(scale=0.5)
    HIK(factor=3.0, scale=0.5)
    """

    has_tables = True

    def __init__(
        self,
        transform: Transform | Sequence[Transform] | None = None,
        *,
        scale: float | Literal["auto"] = "auto",
        factor: float | None = None,
    ) -> None:
        self.transform = transform
        self.scale = scale
        self.factor = factor

    def __add__(self, other: object) -> Kernel:
        """The HIK of the sum of the transforms, for another HIK."""
        from saccade.kernels.transform_sum import sum_of

        return sum_of(self, other) if isinstance(other, HIK) else super().__add__(other)

    def __mul__(self, other: object) -> Kernel:
        """The HIK with a factor, for a positive number."""
        own = 1.0 if self.factor is None else self.factor
        times = HIK(self.transform, scale=self.scale, factor=own * float(other)) if is_number(other) else None
        return super().__mul__(other) if times is None else times

    __rmul__ = __mul__

    def resolved(self, X: Matrix, weight: Array | None = None) -> HIK:
        self.check_width(X.shape[1])
        return self._settled(X, weight)

    def _settled(self, X: Matrix, weight: Array | None = None) -> HIK:
        return self.scaled(lambda steps: float(np.average(HIK(steps, scale=1.0)._sums(X), weights=weight)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        # Of a list of transforms, the one with number k is `transform{k}`.
        found: dict[str, Any] = super().get_params(deep)
        if deep and self.transform is not None and not isinstance(self.transform, Transform):
            for k, step in enumerate(self.transforms()):
                found |= {f"transform{k}": step} | prefixed(f"transform{k}", step.get_params())
        return found

    def opened(self, X: Matrix) -> HIK:
        from saccade.kernels.level_gradient import opened

        return opened(self, X)

    def gram(
        self,
        X: Rows,
        *,
        levels: int | None = None,
        binning: str = "quantile",
        weight: PerRow | None = None,
        held: bool = True,
        seed: int = 0,
        engine: Engine | None = None,
    ) -> TabledGram:
        # By codes and levels; it is never held as n² numbers.
        from saccade.kernels.engines import MEMORY, Coding

        return (engine or MEMORY).intersection(self, X, weight, Coding(levels, binning, seed))

    def scaled(self, mean: Callable[[list[Transform]], float]) -> HIK:
        """Settle every "auto".

        Parameters
        ----------
        mean : callable
            The mean self-similarity of the data for a list of transforms, at scale 1.

        Returns
        -------
        HIK
            With a number for each.
        """
        steps: list[Transform] = []
        for step in self.transforms():
            steps.append(step.scaled(lambda inner, before=(*steps,): mean([*before, *inner])))  # type: ignore[misc]
        if isinstance(self.scale, str) and self.scale == "auto":
            with np.errstate(over="ignore"):
                found = mean(steps)
                scale = float(self._check_factor() / np.float64(found or 1.0))
            if not 0.0 < scale < np.inf:
                raise InvalidInput(
                    f"The mean self-similarity of the data is {found:.3g}, which float64 cannot invert. "
                    "Scale the features to about [0, 1] first."
                )
            return HIK(Chain(steps).short, scale=scale)
        return HIK(Chain(steps).short, scale=self.check_scale())

    def check_scale(self) -> float:
        """Check the scale where it is not "auto".

        Returns
        -------
        float
            The scale with its factor.
        """
        remedy = 'scale="auto" suits any data, scale=1.0 is the plain kernel.'
        return check_positive("scale", self.scale, remedy) * self._check_factor()

    def _check_factor(self) -> float:
        remedy = "A kernel times a number of zero or less is no kernel; leave it out instead."
        return 1.0 if self.factor is None else check_positive("factor", self.factor, remedy)

    def transforms(self) -> list[Transform]:
        """List the transforms.

        Returns
        -------
        list of Transform
            In the order in which they are applied.
        """
        steps = [self.transform] if isinstance(self.transform, Transform) else list(self.transform or ())
        for step in steps:
            if not isinstance(step, Transform):
                raise InvalidParameter(
                    f"`transform` must be a transform or a list of them, got {step!r}. Try HIK(Power(0.5))."
                )
        return steps

    def chain(self) -> Chain:
        """Join the transforms to one.

        Returns
        -------
        Chain
            Of all of them.
        """
        return Chain(self.transforms())

    def check_width(self, width: int) -> None:
        """Complain of transforms that do not fit the data.

        Parameters
        ----------
        width : int
            Dimensions of the data.
        """
        self.chain().check_width(width)

    def apply(self, x: Array, dims: Array) -> Array:
        """Apply transforms and scale to single values.

        Parameters
        ----------
        x, dims : Array
            Values and the dimension of each, (k,).

        Returns
        -------
        Array
            (k,).
        """
        chain, scale = self.chain(), self.check_scale()
        y = chain(x, chain.places(dims))
        with np.errstate(over="ignore"):  # `features` complains
            return np.asarray(y * scale, np.float64) if scale != 1.0 else y

    def levels(self, codes: Codes) -> Array:
        """Transformed, weighted and scaled levels, which the operator works with.

        Parameters
        ----------
        codes : Codes
            Of the training rows.

        Returns
        -------
        Array
            One per value of the codes.
        """
        return self.apply(codes.values, level_dims(codes.level_starts) if self.chain().width else np.zeros(0))

    def operator(self, codes: Codes) -> Intersection:
        """Make the products of this kernel, which is settled, on codes.

        Parameters
        ----------
        codes : Codes
            Of the training rows.

        Returns
        -------
        Intersection
            K, known by its products.
        """
        return intersection(codes, self.levels(codes))

    def features(self, X: Matrix) -> sp.csr_matrix:
        """Rows whose plain intersection is this kernel: k(x, z) = Σ_d min(features(x)_d, features(z)_d).

        Parameters
        ----------
        X : Matrix
            Rows, (n, d).

        Returns
        -------
        csr_matrix
            (n, D), where D is 2d if some values are negative.
        """
        found = self._features(X)  # `_sums` takes them without a check of their range
        with np.errstate(over="ignore"):
            if not found.data.sum() <= LARGEST:  # else none of the rows is beyond
                check_range(np.asarray(found.sum(axis=1)))
        return found

    def _features(self, X: Matrix) -> sp.csr_matrix:
        if 2 * self.chain().width != X.shape[1]:  # decoded examples are rows of both parts
            self.check_width(X.shape[1])
        S = split_signs(compressed(canonical(X)))
        return sp.csr_matrix((self.apply(S.data, S.indices), S.indices, S.indptr), shape=S.shape)

    def diag(self, X: Matrix) -> Array:
        return check_range(self._settled(X)._sums(X))

    def _sums(self, X: Matrix) -> Array:
        """k(x, x) for every row, or inf."""
        X, some = canonical(X), batches(X.shape[0], limits.ROWS_AT_ONCE)  # features are float64 copies
        with np.errstate(over="ignore"):
            return np.concatenate([np.asarray(self._features(X[rows]).sum(axis=1)).ravel() for rows in some])

    def __call__(self, X: Matrix, Z: Matrix | None = None) -> Array:
        kernel = self._settled(X)
        A = kernel.features(X)
        K = intersections(A, None if Z is None else kernel.features(Z))
        return K if Z is not None else symmetric(K, np.asarray(A.sum(axis=1)).ravel())

    def gradient(self, X: Matrix, A: Array, weight: Array | None = None) -> dict[str, Array]:
        from saccade.kernels.level_gradient import gradient

        return gradient(self, X, A, weight)
