"""Intersection kernels to and from plain values, as a model file holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import limits
from .._core.checks import check_positive
from .._core.errors import ModelFileError
from .base import Kernel
from .intersection import HIK
from .monotone import Monotone
from .transform_sum import TransformSum
from .transforms import Exponential, Power, Transform, Weights

__all__ = ["read_kernel", "write_kernel"]

TRANSFORMS: dict[str, type[Transform]] = {kind.__name__: kind for kind in (Power, Exponential, Weights, Monotone)}


def write_kernel(resolved: HIK, given: Kernel | None, depth: int = 0) -> dict[str, Any]:
    """The kernel that predicts, and which of its scales were "auto" in the kernel that was `given`; None is HIK()."""
    given = HIK() if given is None else given
    given = given if isinstance(given, HIK) else resolved  # another kernel was set after the fit
    auto = isinstance(given.scale, str) and given.scale == "auto"
    return {
        "scale": resolved.check_scale(),
        "auto": auto,
        **({} if given.factor is None or not auto else {"factor": float(given.factor)}),
        "transforms": [_write_transform(*pair, depth) for pair in _pairs(resolved.transforms(), given.transforms())],
    }


def _pairs(resolved: Sequence[Any], given: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each settled part with the given one; with itself where another number of parts was set after the fit."""
    return list(zip(resolved, given if len(given) == len(resolved) else resolved, strict=True))


def _write_transform(resolved: Transform, given: Transform, depth: int) -> dict[str, Any]:
    name = type(resolved).__name__
    if isinstance(resolved, TransformSum):
        if depth >= limits.KERNEL_SUM_DEPTH:
            raise ModelFileError(
                f"More than {limits.KERNEL_SUM_DEPTH} sums of kernels within sums cannot be saved. Add them with +."
            )
        parts = given.parts if isinstance(given, TransformSum) else resolved.parts
        return {"name": name, "parts": [write_kernel(*pair, depth + 1) for pair in _pairs(resolved.parts, parts)]}
    if name not in TRANSFORMS:
        known = ", ".join([*TRANSFORMS, TransformSum.__name__])
        raise ModelFileError(f"{resolved!r} cannot be saved: a model file knows {known}.")
    return {"name": name, **{k: np.asarray(v).tolist() for k, v in resolved.get_params().items()}}


def read_kernel(written: dict[str, Any], features: int) -> tuple[HIK, HIK]:
    """The kernel that predicts on so many features, and the one to fit with; ValueError where it can be neither."""
    resolved, given = _read_kernel(written, 0)
    resolved.check_width(features)
    resolved.apply(np.zeros(1), np.zeros(1, np.int64))  # complains of parameters out of range
    return resolved, given


def _read_kernel(written: dict[str, Any], depth: int) -> tuple[HIK, HIK]:
    pairs = [_read_transform(dict(transform), depth) for transform in written["transforms"]]
    steps, opened = ([pair[k] for pair in pairs] or None for k in (0, 1))
    resolved = HIK(steps, scale=check_positive("scale", written["scale"], "Save the model again."))
    given = HIK(opened, scale="auto" if written["auto"] else resolved.scale, factor=written.get("factor"))
    given.scaled(lambda _: 1.0)  # complains of a bad factor
    return resolved, given


def _read_transform(written: dict[str, Any], depth: int) -> tuple[Transform, Transform]:
    name = written.pop("name")
    if name == TransformSum.__name__:
        if depth >= limits.KERNEL_SUM_DEPTH:
            raise ValueError(f"more than {limits.KERNEL_SUM_DEPTH} sums of kernels within sums")
        pairs = [_read_kernel(part, depth + 1) for part in written["parts"]]
        return TransformSum([pair[0] for pair in pairs]), TransformSum([pair[1] for pair in pairs])
    transform = TRANSFORMS[name](**{k: np.array(v) if isinstance(v, list) else v for k, v in written.items()})
    return transform, transform
