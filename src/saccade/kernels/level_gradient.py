"""Derivatives with respect to the levels of an intersection kernel, handed on to its parameters."""

from __future__ import annotations

import numpy as np

from .base import Array
from .intersection import HIK
from .learned import prefixed
from .transforms import Transform


def level_gradient(
    kernel: HIK,  # not settled yet
    x: Array,  # (L,) raw levels
    dims: Array,  # (L,)
    upstream: Array,  # (L,): the derivative of a number with respect to `apply(x, dims)` of the settled kernel
    share: Array,  # (L,): the mean self-similarity of the training data is Σ share · level
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
    steps, by_x = kernel.chain().gradients(x, kernel.places(dims), up, share)
    for k, own in enumerate(steps):
        found |= prefixed("transform" if isinstance(kernel.transform, Transform) else f"transform{k}", own)
    return found, by_x
