"""Kernels to and from plain values: of every kind, and in short for the intersection kernels of files with tables.

Only kernels and transforms of this package are made again, by their constructors and from numbers: nothing that a file
names is imported or run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saccade._core import limits
from saccade._core.by_parameters import ByParameters
from saccade._core.checks import check_positive
from saccade._core.errors import ModelFileError
from saccade._core.fields import Reading
from saccade.kernels.base import Kernel
from saccade.kernels.centred import Centred
from saccade.kernels.combine import Product, Scaled, Sum
from saccade.kernels.dot import Chi2, Linear
from saccade.kernels.generalized import GeneralizedRBF
from saccade.kernels.intersection import HIK
from saccade.kernels.monotone import Monotone
from saccade.kernels.stationary import RBF, Laplacian, Matern
from saccade.kernels.transform_sum import TransformSum
from saccade.kernels.transforms import Exponential, Power, Transform, Weights

__all__ = ["describe_kernel", "described_kernel", "read_kernel", "write_kernel"]

KERNELS = (HIK, RBF, Laplacian, Matern, Linear, Chi2, GeneralizedRBF, Centred, Product, Scaled, Sum)
TRANSFORMS = (Power, Exponential, Weights, Monotone, TransformSum)
KINDS: dict[str, Any] = {kind.__name__: kind for kind in (*KERNELS, *TRANSFORMS)}
KERNEL = ByParameters(KINDS, KINDS.__getitem__)
SUMS = ByParameters(KINDS, KINDS.__getitem__, depth=2 * limits.KERNEL_SUM_DEPTH + 1)  # a kernel and its transform each


def describe_kernel(kernel: Kernel) -> dict[str, Any]:
    """Its name and parameters."""
    found = KERNEL.write(kernel, None, "")
    if _centred(found) > 1:
        raise ModelFileError(f"{kernel!r} cannot be saved: it is centred twice, which changes nothing. Centre it once.")
    return found


def described_kernel(written: dict[str, Any]) -> Kernel:
    """The kernel that `describe_kernel` described; a ValueError or a relative where it is none."""
    if _centred(written) > 1:  # each multiplies the work for a row: with sixteen, loading would not end
        raise ValueError("a centred kernel within a centred one")
    kernel = KERNEL.read(written, Reading(None, {}, "kernel"))
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
    if KINDS.get(name) is not type(resolved):
        raise ModelFileError(f"{resolved!r:.300} cannot be saved: a model file knows {', '.join(KINDS)}.")
    if isinstance(resolved, TransformSum):
        if depth >= limits.KERNEL_SUM_DEPTH:
            raise ModelFileError(
                f"More than {limits.KERNEL_SUM_DEPTH} sums of kernels within sums cannot be saved. Add them with +."
            )
        parts = given.parts if isinstance(given, TransformSum) else resolved.parts
        return {"name": name, "parts": [write_kernel(*pair, depth + 1) for pair in _pairs(resolved.parts, parts)]}
    return {"name": name, **{k: np.asarray(v).tolist() for k, v in resolved.get_params().items()}}


def read_kernel(written: dict[str, Any], features: int) -> tuple[HIK, HIK]:
    """The kernel that predicts on so many features, and the one to fit with; ValueError where it can be neither."""
    resolved, given = (SUMS.read(_in_full(written, auto), Reading(None, {}, "kernel")) for auto in (False, True))
    resolved.check_width(features)
    resolved.apply(np.zeros(1), np.zeros(1, np.int64))  # complains of parameters out of range
    given.scaled(lambda _: 1.0)  # complains of a bad factor
    return resolved, given


def _in_full(written: dict[str, Any], auto: bool) -> dict[str, Any]:
    """The description of an HIK from the short one; `auto` as it was given, else as it was resolved."""
    check_positive("scale", written["scale"], "Save the model again.")
    steps = [_transform_in_full(step, auto) for step in written["transforms"]]
    scale = (
        {"scale": "auto", "factor": written.get("factor")} if auto and written["auto"] else {"scale": written["scale"]}
    )
    return {"name": "HIK", "given": {"transform": {"parts": steps} if steps else None, **scale}}


def _transform_in_full(written: dict[str, Any], auto: bool) -> dict[str, Any]:
    if not issubclass(KINDS[written["name"]], Transform):
        raise ValueError(f"{written['name']} is no transform")
    given = {k: {"array": v} if isinstance(v, list) else v for k, v in written.items() if k != "name"}
    if written["name"] == "TransformSum":
        given["parts"] = {"parts": [_in_full(part, auto) for part in written["parts"]]}
    return {"name": written["name"], "given": given}
