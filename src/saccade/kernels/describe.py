"""Kernels of every kind to and from plain values, for model files that keep training rows.

Only kernels and transforms of this package are made again, by their constructors and from numbers: nothing that a file
names is imported or run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import limits
from .._core.errors import ModelFileError
from .base import Kernel
from .centred import Centred
from .combine import Product, Scaled, Sum
from .dot import Chi2, Linear
from .generalized import GeneralizedRBF
from .intersection import HIK
from .monotone import Monotone
from .stationary import RBF, Laplacian, Matern
from .transform_sum import TransformSum
from .transforms import Exponential, Power, Transform, Weights

__all__ = ["describe_kernel", "described_kernel"]

KERNELS = (HIK, RBF, Laplacian, Matern, Linear, Chi2, GeneralizedRBF, Centred, Product, Scaled, Sum)
TRANSFORMS = (Power, Exponential, Weights, Monotone, TransformSum)
KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*KERNELS, *TRANSFORMS)}


def describe_kernel(
    part: Any,  # a kernel or a transform
    depth: int = 0,
) -> dict[str, Any]:
    """Its name and parameters."""
    name = type(part).__name__
    if KINDS.get(name) is not type(part) or depth > limits.KERNEL_SUM_DEPTH:
        raise ModelFileError(
            f"{part!r} cannot be saved: a model file holds no code. It knows {', '.join(KINDS)}, up to "
            f"{limits.KERNEL_SUM_DEPTH} within each other."
        )
    found = {"name": name, "given": {k: _plain(v, depth) for k, v in part.get_params(deep=False).items()}}
    if depth == 0 and _centred(found) > 1:
        raise ModelFileError(f"{part!r} cannot be saved: it is centred twice, which changes nothing. Centre it once.")
    return found


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, Kernel | Transform):
        return {"part": describe_kernel(value, depth + 1)}
    if isinstance(value, list | tuple) and any(isinstance(each, Kernel | Transform) for each in value):
        return {"parts": [describe_kernel(each, depth + 1) for each in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return {"array": np.asarray(value, np.float64).tolist()}


def described_kernel(written: dict[str, Any]) -> Kernel:
    """The kernel that `describe_kernel` described; a ValueError or a relative where it is none."""
    if _centred(written) > 1:  # each multiplies the work for a row: with sixteen, loading would not end
        raise ValueError("a centred kernel within a centred one")
    kernel = _read(written, 0)
    if not isinstance(kernel, Kernel):
        raise ValueError(f"{kernel!r} is no kernel")
    return kernel


def _centred(written: Any, depth: int = 0) -> int:
    """How many centred kernels are within each other."""
    if not isinstance(written, dict | list) or depth > 4 * limits.KERNEL_SUM_DEPTH:
        return 0
    parts = written if isinstance(written, list) else list(written.values())
    own = isinstance(written, dict) and written.get("name") == Centred.__name__
    return own + max((_centred(part, depth + 1) for part in parts), default=0)


def _read(written: dict[str, Any], depth: int) -> Any:
    if depth > limits.KERNEL_SUM_DEPTH:
        raise ValueError(f"more than {limits.KERNEL_SUM_DEPTH} kernels within each other")
    return KINDS[written["name"]](**{name: _value(value, depth) for name, value in written["given"].items()})


def _value(value: Any, depth: int) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "part":
        return _read(content, depth + 1)
    if kind == "parts":
        return [_read(part, depth + 1) for part in content]
    if kind == "array":
        return np.array(content, np.float64)
    raise ValueError(f"unknown value {kind!r}")
