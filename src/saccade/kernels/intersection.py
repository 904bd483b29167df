"""The generalised histogram intersection kernel k(x, z) = s Σ_d min(g_d(x_d), g_d(z_d)) (H (4), (7), (8))."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from .._core import limits
from .._core.checks import LARGEST, canonical, check_positive, check_range, is_number
from .._core.chunks import batches
from .._core.errors import InvalidInput, InvalidParameter
from ..operators.block import intersections
from ..operators.codes import Codes, encode, level_dims, split_signs
from ..operators.compress import compressed
from ..operators.intersection import intersection
from ..operators.intersection_base import Intersection
from .base import Array, Kernel, Matrix, shares
from .chain import Chain
from .dense_values import symmetric
from .gram import TabledGram
from .learned import prefixed
from .transforms import Transform

if TYPE_CHECKING:
    from .engines import Engine

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
        from .transform_sum import TransformSum

        if not isinstance(other, HIK):
            return super().__add__(other)
        return HIK(TransformSum([*self._parts(), *other._parts()]), scale=1.0)

    def __mul__(self, other: object) -> Kernel:
        """The HIK with a factor, for a positive number."""
        return self._times(float(other)) if is_number(other) else super().__mul__(other)

    __rmul__ = __mul__

    def _times(self, number: float) -> HIK:
        return HIK(self.transform, scale=self.scale, factor=number * (1.0 if self.factor is None else self.factor))

    def _parts(self) -> list[HIK]:
        """The kernels that this one is the sum of."""
        from .transform_sum import TransformSum

        if not isinstance(self.transform, TransformSum) or isinstance(self.scale, str):
            return [self]
        times = self.scale * (1.0 if self.factor is None else self.factor)
        return [part if times == 1.0 else part._times(times) for part in self.transform.parts]

    def resolved(self, X: Matrix, weight: Array | None = None) -> HIK:
        # With a number for every "auto", and the factor in the scale.
        self.check_width(X.shape[1])
        return self._settled(X, weight)

    def _settled(self, X: Matrix, weight: Array | None = None) -> HIK:
        return self.scaled(lambda steps: float(np.average(HIK(steps, scale=1.0)._sums(X), weights=weight)))

    def resolved_on_codes(
        self,
        K: Intersection,  # of the codes, with any levels
        weight: Array | None = None,  # (n,)
    ) -> HIK:
        """As `resolved`, from coded data; examples may count more or less.

        The mean self-similarity is Σ share · level: one pass over the codes serves all transforms.
        """
        asked = isinstance(self.scale, str) or any(type(g).scaled is not Transform.scaled for g in self.transforms())
        share = K.level_sums(shares(K.shape[0], weight)) if asked else np.zeros(0)
        return self.scaled(lambda steps: float(share @ HIK(steps, scale=1.0).levels(K.codes)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        # Of a list of transforms, the one with number k is `transform{k}`.
        found: dict[str, Any] = super().get_params(deep)
        if deep and self.transform is not None and not isinstance(self.transform, Transform):
            for k, step in enumerate(self.transforms()):
                found |= {f"transform{k}": step} | prefixed(f"transform{k}", step.get_params())
        return found

    def opened(self, X: Matrix) -> HIK:
        # What is "auto" stays so.
        plain, width = _plain(X), X.shape[1]
        chain = self.resolved(X).chain().resolved(plain.levels, level_dims(plain.starts) % width, width)
        numbers = HIK(chain.short if isinstance(self.transform, Transform) else chain.steps).get_params()
        copy = clone(self)
        left_open = [name for name, value in copy.get_params().items() if value is None and "__" in name]
        opened: HIK = copy.set_params(**{name: numbers[name] for name in left_open})
        return opened

    def gram(
        self,
        X: Matrix,  # (n, d)
        *,
        levels: int | None = None,
        binning: str = "quantile",
        weight: Array | None = None,  # (n,)
        held: bool = True,
        seed: int = 0,
        engine: Engine | None = None,
    ) -> TabledGram:
        # By codes and levels; it is never held as n² numbers.
        from .engines import MEMORY
        from .intersection_gram import Coding

        return (engine or MEMORY).intersection(self, X, weight, Coding(levels, binning, seed))

    def scaled(self, mean: Callable[[list[Transform]], float]) -> HIK:
        """A number for every "auto"; `mean` is the mean self-similarity of the data for such transforms, scale 1."""
        steps: list[Transform] = []
        for step in self.transforms():
            before = list(steps)
            steps.append(step.scaled(lambda inner, before=before: mean([*before, *inner])))  # type: ignore[misc]
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
        """The scale with its factor, where it is not "auto"."""
        remedy = 'scale="auto" suits any data, scale=1.0 is the plain kernel.'
        return check_positive("scale", self.scale, remedy) * self._check_factor()

    def _check_factor(self) -> float:
        remedy = "A kernel times a number of zero or less is no kernel; leave it out instead."
        return 1.0 if self.factor is None else check_positive("factor", self.factor, remedy)

    def transforms(self) -> list[Transform]:
        """The transforms, in order."""
        if self.transform is None:
            return []
        steps = [self.transform] if isinstance(self.transform, Transform) else list(self.transform)
        for step in steps:
            if not isinstance(step, Transform):
                raise InvalidParameter(
                    f"`transform` must be a transform or a list of them, got {step!r}. Try HIK(Power(0.5))."
                )
        return steps

    def chain(self) -> Chain:
        """The transforms as one."""
        return Chain(self.transforms())

    def check_width(self, width: int) -> None:
        """Complain of transforms that do not fit data of `width` dimensions."""
        self.chain().check_width(width)

    @property
    def width(self) -> int:
        """The number of dimensions that some transform tells apart, 0 for none."""
        return self.chain().width

    def apply(self, x: Array, dims: Array) -> Array:
        """Transforms and scale on values x of the given dimensions."""
        y, scale = self.chain()(x, self.places(dims)), self.check_scale()
        with np.errstate(over="ignore"):  # `features` complains
            return np.asarray(y * scale, np.float64) if scale != 1.0 else y

    def places(self, dims: Array) -> Array:
        """The dimensions that transforms tell apart; negative parts share their dimension's."""
        return np.asarray(dims % self.width) if self.width else np.zeros(0, np.int64)

    def levels(
        self,
        codes: Codes,
    ) -> Array:  # (L,)
        """What the operator works with: transformed, weighted and scaled levels."""
        return self.apply(codes.values, level_dims(codes.level_starts) if self.width else np.zeros(0, np.int64))

    def operator(self, codes: Codes) -> Intersection:
        """The products of this kernel, settled, on codes."""
        return intersection(codes, self.levels(codes))

    def features(self, X: Matrix) -> sp.csr_matrix:
        """Rows whose plain intersection is this kernel: k(x, z) = Σ_d min(features(x)_d, features(z)_d)."""
        found = self._features(X)
        with np.errstate(over="ignore"):
            if not found.data.sum() <= LARGEST:  # else none of the rows is beyond
                check_range(np.asarray(found.sum(axis=1)))
        return found

    def _features(self, X: Matrix) -> sp.csr_matrix:
        """The same without a check of their range."""
        if 2 * self.width != X.shape[1]:  # decoded examples are rows of both parts
            self.check_width(X.shape[1])
        S = split_signs(compressed(canonical(X)))
        data = self.apply(S.data, S.indices)
        return sp.csr_matrix((data, S.indices, S.indptr), shape=S.shape)

    def diag(self, X: Matrix) -> Array:
        X = canonical(X)
        return check_range(self._settled(X)._sums(X))

    def _sums(self, X: Matrix) -> Array:
        """k(x, x) for every row, or inf."""
        X = canonical(X)
        some = batches(X.shape[0], limits.ROWS_AT_ONCE)  # features are float64 copies: a block at a time
        with np.errstate(over="ignore"):
            return np.concatenate([np.asarray(self._features(X[rows]).sum(axis=1)).ravel() for rows in some])

    def __call__(self, X: Matrix, Z: Matrix | None = None) -> Array:
        kernel = self._settled(X)
        A = kernel.features(X)
        B = None if Z is None else kernel.features(Z)
        K = intersections(A, B)
        return K if Z is not None else symmetric(K, np.asarray(A.sum(axis=1)).ravel())

    def gradient(
        self,
        X: Matrix,  # (n, d)
        A: Array,  # (n, n)
        weight: Array | None = None,  # (n,)
    ) -> dict[str, Array]:
        # By way of the levels: one pass over the codes gives the derivative with respect to each.
        from .level_gradient import level_gradient

        self.check_width(X.shape[1])
        plain = _plain(X)
        share = plain.level_sums(shares(X.shape[0], weight))
        upstream = plain.matrix_gradient(np.ascontiguousarray(A))
        return level_gradient(self, plain.levels, level_dims(plain.starts), upstream, share)[0]


def _plain(X: Matrix) -> Intersection:
    """The rows of X under the plain intersection kernel."""
    return HIK(scale=1.0).operator(encode(split_signs(compressed(canonical(X)))))
