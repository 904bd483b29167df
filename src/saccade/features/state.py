"""What a transformer has learned, as named arrays for a cache or a model file."""

import numpy as np

from saccade._core.arrays import Array

State = dict[str, Array]


def part(state: State, name: str, kind: str, *shape: int | None) -> Array:
    """An array of a kept state, of the kind ("f", "iu") and shape it must have; None stands for any length."""
    array = state.get(name)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in kind or array.ndim != len(shape):
        raise ValueError(f"`{name}` is missing or of the wrong kind")
    if any(want is not None and want != have for want, have in zip(shape, array.shape, strict=True)):
        raise ValueError(f"`{name}` has the shape {array.shape}, not {shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"`{name}` is not finite")
    return array


def prefixed(prefix: str, state: State) -> State:
    """A state inside another: every name with a prefix."""
    return {f"{prefix}.{name}": array for name, array in state.items()}


def without(prefix: str, state: State) -> State:
    """The state inside another: the names with the prefix, without it."""
    return {name[len(prefix) + 1 :]: array for name, array in state.items() if name.startswith(f"{prefix}.")}
