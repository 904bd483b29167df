"""What tuning asks of an intersection kernel: where to start, and derivatives by way of its levels."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from sklearn.base import clone

from saccade._core.checks import canonical
from saccade.kernels.base import Array, Matrix, PerRow, Rows, shares
from saccade.kernels.intersection import HIK
from saccade.kernels.learned import prefixed
from saccade.kernels.transforms import Transform
from saccade.operators.codes import encode, level_dims, split_signs
from saccade.operators.compress import compressed
from saccade.operators.intersection_base import Intersection


def gradient(
    kernel: Annotated[HIK, "not settled yet"], X: Rows, A: Annotated[Array, "n, n"], weight: PerRow | None
) -> dict[str, Array]:
    """`kernel.gradient`: one pass over the codes gives the derivative with respect to each level."""
    kernel.check_width(X.shape[1])
    plain = plain_operator(X)
    upstream, share = plain.matrix_gradient(np.ascontiguousarray(A)), plain.level_sums(shares(X.shape[0], weight))
    return level_gradient(kernel, plain.levels, level_dims(plain.starts), upstream, share)[0]


def opened(kernel: HIK, X: Matrix) -> HIK:
    """`kernel.opened`: what is "auto" stays so."""
    plain, width = plain_operator(X), X.shape[1]
    chain = kernel.resolved(X).chain().resolved(plain.levels, level_dims(plain.starts) % width, width)
    numbers = HIK(chain.short if isinstance(kernel.transform, Transform) else chain.steps).get_params()
    copy = clone(kernel)
    left_open = [name for name, value in copy.get_params().items() if value is None and "__" in name]
    found: HIK = copy.set_params(**{name: numbers[name] for name in left_open})
    return found


def plain_operator(X: Matrix) -> Intersection:
    """The rows of X under the plain intersection kernel."""
    return HIK(scale=1.0).operator(encode(split_signs(compressed(canonical(X)))))


def level_gradient(
    kernel: HIK,  # not settled yet
    x: Annotated[Array, "L"],  # raw levels
    dims: Annotated[Array, "L"],
    upstream: Annotated[Array, "L"],  # the derivative of a number by `apply(x, dims)` of the settled kernel
    share: Annotated[Array, "L"],  # the mean self-similarity of the training data is Σ share · level
) -> tuple[dict[str, Array], Array]:  # and (L,)
    """The derivatives of that number with respect to the parameters, as in `gradient`, and to x."""
    resolved = kernel.scaled(lambda steps: float(share @ HIK(steps, scale=1.0).apply(x, dims)))
    levels = resolved.apply(x, dims)
    along, up = upstream @ levels, resolved.check_scale() * upstream
    found = {}
    if kernel.factor is not None:
        found["factor"] = np.asarray(along)
    if not isinstance(kernel.scale, str):
        found["scale"] = np.asarray(along)
    elif (mean := share @ levels) > 0.0:  # "auto": the scale follows the transforms
        up = up - share * (resolved.check_scale() * along / mean)
    chain = kernel.chain()
    steps, by_x = chain.gradients(x, chain.places(dims), up, share)
    for k, own in enumerate(steps):
        found |= prefixed("transform" if isinstance(kernel.transform, Transform) else f"transform{k}", own)
    return found, by_x
