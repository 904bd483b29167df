"""The generalised histogram intersection kernel k(x, z) = s Σ_d min(g_d(x_d), g_d(z_d)) (H (4), (7), (8))."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from .._core.checks import LARGEST, canonical, check_positive, check_range
from .._core.errors import InvalidInput, InvalidParameter
from ..operators.block import intersections
from ..operators.codes import Codes, level_dims, split_signs
from ..operators.compress import compressed
from ..operators.intersection import intersection
from .base import Array, Kernel, Matrix, symmetric
from .gram import TabledGram
from .transforms import Transform

__all__ = ["HIK"]

BLOCK_ROWS = 16_384


class HIK(Kernel):
    """Histogram intersection, with any monotone transforms of the features before it.

    `transform` is one transform or a list applied in order; `scale` is a factor, or "auto": one over the mean
    self-similarity of the training data, so that `noise` means the same on any data. scale=1.0 is the paper's kernel.
    Signed features are split into positive and negative parts: equal signs intersect, opposite signs share nothing.

    >>> HIK(scale=1.0)(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))
    array([[2.]])
    >>> from saccade.kernels import Power
    >>> HIK(Power(2.0), scale=1.0)(np.array([[1.0, -2.0]]), np.array([[3.0, -1.0]]))
    array([[2.]])
    """

    has_tables = True

    def __init__(
        self, transform: Transform | Sequence[Transform] | None = None, *, scale: float | str = "auto"
    ) -> None:
        self.transform = transform
        self.scale = scale

    def settled(self, X: Matrix, weight: Array | None = None) -> HIK:
        """The same kernel with `scale` a number."""
        self.check_width(X.shape[1])
        plain = HIK(self.transform, scale=1.0)
        return self._scaled(lambda: float(np.average(plain._sums(X), weights=weight)))

    def settled_on_codes(
        self,
        codes: Codes,
        weight: Array | None = None,  # (n,)
    ) -> HIK:
        """As `settled`, from coded data."""
        plain = HIK(self.transform, scale=1.0)
        return self._scaled(lambda: float(np.average(intersection(codes, plain.levels).diag(), weights=weight)))

    def gram(
        self,
        X: Matrix,  # (n, d)
        *,
        levels: int | None = None,
        binning: str = "quantile",
        weight: Array | None = None,  # (n,)
        held: bool = True,
        seed: int = 0,
    ) -> TabledGram:
        """By codes and levels; it is never held as n² numbers."""
        from .intersection_gram import IntersectionGram

        return IntersectionGram.of_rows(self, X, levels, binning, weight, seed)

    def _scaled(self, mean_similarity: Callable[[], float]) -> HIK:
        if self.scale != "auto":
            self.check_scale()
            return self
        with np.errstate(over="ignore"):
            mean = mean_similarity()
            factor = float(1.0 / np.float64(mean)) if mean > 0 else 1.0
        if not 0.0 < factor < np.inf:
            raise InvalidInput(
                f"The mean self-similarity of the data is {mean:.3g}, which float64 cannot invert. "
                "Scale the features to about [0, 1] first."
            )
        return HIK(self.transform, scale=factor)

    def check_scale(self) -> float:
        """The scale as a positive number, where it is not "auto"."""
        return check_positive("scale", self.scale, 'scale="auto" suits any data, scale=1.0 is the plain kernel.')

    def transforms(self) -> list[Transform]:
        """The chain of transforms, in order."""
        if self.transform is None:
            return []
        chain = [self.transform] if isinstance(self.transform, Transform) else list(self.transform)
        for transform in chain:
            if not isinstance(transform, Transform):
                raise InvalidParameter(
                    f"`transform` must be a transform or a list of them, got {transform!r}. Try HIK(Power(0.5))."
                )
        return chain

    def check_width(self, width: int) -> None:
        """Complain of transforms that do not fit data of `width` dimensions."""
        for transform in self.transforms():
            if transform.width not in (0, width):
                raise InvalidParameter(
                    f"{type(transform).__name__} must have one weight or row of knots a dimension, "
                    f"got {transform.width} for {width} dimensions."
                )

    def _width(self) -> int:
        """The number of dimensions that some transform tells apart, 0 for none."""
        return max((transform.width for transform in self.transforms()), default=0)

    def _apply(self, x: Array, dims: Array) -> Array:
        """Transforms and scale on values x of the given dimensions."""
        y = np.asarray(x, np.float64)
        places = self.places(dims)
        for transform in self.transforms():
            y = transform(y, places)
        with np.errstate(over="ignore"):  # `features` complains
            return np.asarray(y * float(self.scale), np.float64) if self.scale != 1.0 else y

    def places(self, dims: Array) -> Array:
        """The dimensions that transforms tell apart; negative parts share their dimension's."""
        return np.asarray(dims % self._width()) if self._width() else np.zeros(0, np.int64)

    def levels(
        self,
        values: Array,  # (L,) raw levels, dimension after dimension
        starts: Array,  # (D+1,)
    ) -> Array:  # (L,)
        """What the operator works with: transformed, weighted and scaled levels."""
        return self._apply(values, level_dims(starts) if self._width() else np.zeros(0, np.int64))

    def features(self, X: Matrix) -> sp.csr_matrix:
        """Rows whose plain intersection is this kernel: k(x, z) = Σ_d min(features(x)_d, features(z)_d)."""
        found = self._features(X)
        with np.errstate(over="ignore"):
            if not found.data.sum() <= LARGEST:  # else none of the rows is beyond
                check_range(np.asarray(found.sum(axis=1)))
        return found

    def _features(self, X: Matrix) -> sp.csr_matrix:
        """The same without a check of their range."""
        if 2 * self._width() != X.shape[1]:  # decoded examples are rows of both parts
            self.check_width(X.shape[1])
        S = split_signs(compressed(canonical(X)))
        data = self._apply(S.data, S.indices)
        return sp.csr_matrix((data, S.indices, S.indptr), shape=S.shape)

    def diag(self, X: Matrix) -> Array:
        X = canonical(X)
        return check_range(self._ready(X)._sums(X))

    def _sums(self, X: Matrix) -> Array:
        """k(x, x) for every row, or inf."""
        X = canonical(X)
        batches = gen_batches(X.shape[0], BLOCK_ROWS)  # features are float64 copies: a block at a time
        with np.errstate(over="ignore"):
            return np.concatenate([np.asarray(self._features(X[rows]).sum(axis=1)).ravel() for rows in batches])

    def __call__(self, X: Matrix, Z: Matrix | None = None) -> Array:
        kernel = self._ready(X)
        A = kernel.features(X)
        B = None if Z is None else kernel.features(Z)
        K = intersections(A, B)
        return K if Z is not None else symmetric(K, np.asarray(A.sum(axis=1)).ravel())

    def _ready(self, X: Matrix) -> HIK:
        return self if self.scale != "auto" else self.settled(X)
