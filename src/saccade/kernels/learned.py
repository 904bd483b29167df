"""Which parameters of a kernel are learned, and their derivatives by differences where the kernel gives none."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from sklearn.base import clone

from saccade._core.checks import is_number

if TYPE_CHECKING:
    from saccade.kernels.base import Array, Kernel, PerRow, Rows

NUDGE = 1e-4  # of a logarithm


def learned(kernel: Kernel) -> dict[str, Array]:
    """The parameters that tuning may change, by their names in `get_params`: positive numbers, one or many.

    A whole number is learned too, RBF(2) as well as RBF(2.0), unless the parameter counts: its default is then a whole
    number (`pieces`) or None (`blocks`). What a class lists in `chosen` is left as it is, and so are zeros among many.
    The `eta` of `Exponential` may also be negative or 0.
    """
    parameters = kernel.get_params()
    owners = {name: parameters.get(name.rpartition("__")[0], kernel) for name in parameters}
    return {
        name: np.asarray(value, np.float64)
        for name, value in parameters.items()
        if _is_learned(owners[name], name.rpartition("__")[2], value)
    }


def owner_of(kernel: Kernel, name: str) -> Any:
    """The kernel or transform inside `kernel` that has the parameter of this name in `get_params`."""
    return kernel.get_params().get(name.rpartition("__")[0], kernel)


def is_log(kernel: Kernel, name: str) -> bool:
    """Whether the logarithm of the parameter is learned, and not the parameter itself."""
    return getattr(owner_of(kernel, name), "is_log", True)


def _is_learned(owner: object, name: str, value: object) -> bool:
    plain = is_number(value) or isinstance(value, list | tuple | np.ndarray)
    if not plain or name in getattr(owner, "chosen", ()):
        return False
    numbers, of_transform = np.asarray(value), getattr(owner, "learned", "") == name
    if of_transform and not owner.is_log:  # type: ignore[attr-defined]
        return True
    if numbers.dtype.kind not in "iuf" or not numbers.any() or not (numbers >= 0).all():
        return False
    if numbers.dtype.kind == "f" or of_transform:
        return True
    return isinstance(signature(type(owner)).parameters[name].default, float | str)


def differences(
    kernel: Kernel, X: Rows, A: Annotated[Array, "n, n: symmetric"], weight: PerRow | None, names: Iterable[str]
) -> dict[str, Array]:
    """As `Kernel.gradient` for the named parameters, from two kernel matrices for each number."""
    values = learned(kernel)
    found = {}
    for name in names:
        value = values[name]
        found[name] = np.empty_like(value)
        for place in np.ndindex(value.shape):
            K = []
            for nudge in (NUDGE, -NUDGE):
                at = value.copy()
                at[place] = at[place] * np.exp(nudge) if is_log(kernel, name) else at[place] + nudge
                K.append(with_values(kernel, {name: at}).resolved(X, weight)(X))
            found[name][place] = np.einsum("ij,ij->", A, K[0] - K[1]) / (2.0 * NUDGE)
    return found


def with_values(kernel: Kernel, values: dict[str, Array]) -> Kernel:
    """A copy of the kernel with other values of some parameters."""
    parameters: dict[str, Any] = {name: value if value.ndim else float(value) for name, value in values.items()}
    moved: Kernel = clone(kernel).set_params(**parameters)
    return moved


def prefixed(name: str, found: dict[str, Array]) -> dict[str, Array]:
    """Derivatives of a parameter's own parameters, by their names in the whole."""
    return {f"{name}__{inner}": value for inner, value in found.items()}
