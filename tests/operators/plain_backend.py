"""A second backend, without compiled code: it says what each operation is, and shows that the solvers keep to it.

Its arrays live on a "device" of their own. They know only what `BackendArray` promises, and any meeting with an array
of the host that did not go through the backend is an error, as it would be on a GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saccade._core.arrays import Array
from saccade.operators.backend import Run, Stride
from saccade.operators.base import Dense


class OnDevice:
    """Numbers that only meet their like."""

    __array_ufunc__ = None  # NumPy leaves every operation with its own arrays to us, and we refuse

    def __init__(self, values: Array) -> None:
        assert values.ndim == 2
        self.values = values

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("an array of the device must go through Backend.host")

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def T(self) -> OnDevice:
        return OnDevice(self.values.T)

    def copy(self) -> OnDevice:
        return OnDevice(self.values.copy())

    def astype(self, dtype: Any, *, copy: bool = True) -> OnDevice:
        return OnDevice(self.values.astype(dtype, copy=copy))

    def __add__(self, other: OnDevice | float) -> OnDevice:
        return OnDevice(self.values + number_or_values(other))

    def __sub__(self, other: OnDevice | float) -> OnDevice:
        return OnDevice(self.values - number_or_values(other))

    def __isub__(self, other: OnDevice | float) -> OnDevice:
        self.values -= number_or_values(other)
        return self

    def __mul__(self, other: OnDevice | float) -> OnDevice:
        return OnDevice(self.values * number_or_values(other))

    def __truediv__(self, other: OnDevice | float) -> OnDevice:
        return OnDevice(self.values / number_or_values(other))

    def __matmul__(self, other: OnDevice) -> OnDevice:
        return OnDevice(self.values @ other.values)


def number_or_values(other: OnDevice | float) -> Any:
    if isinstance(other, OnDevice):
        return other.values
    if isinstance(other, np.ndarray):
        raise TypeError("an array of the host must go through Backend.array")
    return other


class PlainBackend:
    """Every operation by NumPy alone."""

    def array(self, host: Array) -> OnDevice:
        return OnDevice(host.copy())

    def host(self, vectors: OnDevice) -> Array:
        return vectors.values.copy()

    def zeros(self, shape: tuple[int, int]) -> OnDevice:
        return OnDevice(np.zeros(shape))

    def take(self, V: OnDevice, columns: Array) -> OnDevice:
        return OnDevice(V.values[:, columns].copy())

    def put(self, V: OnDevice, columns: Array, values: OnDevice) -> None:
        V.values[:, columns] = values.values

    def max_abs(self, V: OnDevice) -> Array:
        return np.asarray(np.abs(V.values).max(axis=0, initial=0.0))

    def inner(self, r: OnDevice, z: OnDevice) -> Array:
        return np.asarray((r.values * z.values).sum(axis=0))

    def take_out(self, R: OnDevice, u: OnDevice, along: Array) -> OnDevice:
        return OnDevice(R.values - u.values * along)

    def into_low_rank(self, B: OnDevice, R: OnDevice) -> Array:
        return np.asarray(B.values.T @ R.values)

    def out_of_low_rank(self, R: OnDevice, B: OnDevice, small: Array) -> None:
        R.values -= B.values @ small

    def finish_product(self, Kp: OnDevice, noise: OnDevice, p: OnDevice, q: OnDevice) -> Array:
        q.values = Kp.values + noise.values * p.values
        return np.asarray((p.values * q.values).sum(axis=0))

    def for_product(self, p: OnDevice, dtype: Any) -> OnDevice:
        return p.astype(dtype)

    def descend(self, step: Array, q: OnDevice, u: OnDevice, smoothed: Array, r: OnDevice, s: OnDevice) -> Array:
        r.values -= step * q.values
        gap = np.where(smoothed, s.values - r.values, 0.0)
        pairs = (r.values, r.values), (r.values, u.values), (gap, gap), (s.values, gap)
        return np.array([(a * b).sum(axis=0) for a, b in pairs])

    def advance(self, by: Stride, z: OnDevice, u: OnDevice, run: Run[OnDevice]) -> Array:
        x, y, r, s, p, copy = run
        x.values += by.step * p.values
        p.values = z.values - u.values * by.along + by.beta * p.values
        copy.values = p.values.astype(copy.dtype)
        y.values += np.where(by.smoothed, by.share * (x.values - y.values), 0.0)
        s.values += np.where(by.smoothed, by.share * (r.values - s.values), 0.0)
        return np.where(by.smoothed, self.max_abs(s), self.max_abs(r))


class DenseOnDevice(Dense):
    """A matrix whose products are made where the vectors are."""

    def __init__(self, K: Array) -> None:
        super().__init__(K)
        self._backend = PlainBackend()

    @property
    def backend(self) -> PlainBackend:
        return self._backend

    def matmul(self, V: Any) -> Any:
        return OnDevice(super().matmul(V.values)) if isinstance(V, OnDevice) else super().matmul(V)
