"""What conjugate gradients may expect of a backend: one suite for all, against formulas written out in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saccade._core import limits
from saccade.operators.backend import ON_CPU, Backend, Run, Stride
from tests.operators.histograms import Array
from tests.operators.plain_backend import PlainBackend
from tests.tolerances import assert_close

BACKENDS = {"cpu": ON_CPU, "plain": PlainBackend()}
SHARED = limits.ONE_THREAD_UP_TO // 4 + 3  # rows: five columns of them are shared by threads
SHAPES = [(7, 3), (1, 1), (0, 2), (300, 1), (5, 0), (SHARED, 5)]
by_backend = pytest.mark.parametrize("backend", BACKENDS.values(), ids=list(BACKENDS))
by_shape = pytest.mark.parametrize("shape", SHAPES)


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def several(backend: Backend, shape: tuple[int, int], count: int) -> tuple[list[Array], list[Any]]:
    """Arrays of the host, and copies of them on the backend that may be written to."""
    host = [numbers(*shape, seed=k) for k in range(count)]
    return host, [backend.take(backend.array(array), np.arange(shape[1])) for array in host]


@by_backend
@by_shape
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_there_and_back(backend: Backend, shape: tuple[int, int], dtype: type) -> None:
    V = numbers(*shape).astype(dtype)
    for laid_out in (V, np.asfortranarray(V), np.hstack([V, V])[:, ::2][:, : shape[1]]):
        there = backend.array(laid_out)
        assert there.shape == laid_out.shape
        assert there.dtype == dtype
        np.testing.assert_array_equal(backend.host(there), laid_out)
    zeros = backend.zeros(shape)
    assert zeros.dtype == np.float64
    np.testing.assert_array_equal(backend.host(zeros), np.zeros(shape))


@by_backend
@by_shape
def test_arithmetic(backend: Backend, shape: tuple[int, int]) -> None:
    (A, B), (a, b) = several(backend, shape, 2)
    row, column = numbers(1, shape[1], seed=2), numbers(shape[0], 1, seed=3)
    u, v = backend.array(row), backend.array(column)
    pairs: list[tuple[Any, Array]] = [
        (a + b, A + B),
        (a - b * 2.0, A - B * 2.0),
        (a / (v * v + 1.0), A / (column**2 + 1.0)),
        (a - v * u, A - column * row),
        (a.T @ b, A.T @ B),
        (a.astype(np.float32), A.astype(np.float32)),
        (a.astype(np.float64, copy=False), A),
    ]
    for found, expected in pairs:
        assert_close(backend.host(found), expected)
        assert found.dtype == expected.dtype
    kept = a.copy()
    a -= b
    assert_close(backend.host(a), A - B)
    np.testing.assert_array_equal(backend.host(kept), A)


@by_backend
@pytest.mark.parametrize("columns", [[], [1], [0, 2], [0, 1, 2, 3]])
def test_columns_are_taken_and_put(backend: Backend, columns: list[int]) -> None:
    V, some = numbers(6, 4), np.array(columns, np.int64)
    there = backend.array(V).copy()
    part = backend.take(there, some)
    np.testing.assert_array_equal(backend.host(part), V[:, columns])
    part -= part * 3.0  # a copy: V stays as it is
    np.testing.assert_array_equal(backend.host(there), V)
    backend.put(there, some, part)
    expected = V.copy()
    expected[:, columns] -= 3.0 * V[:, columns]
    np.testing.assert_array_equal(backend.host(there), expected)


@by_backend
@by_shape
def test_sums_and_norms(backend: Backend, shape: tuple[int, int]) -> None:
    (A, B), (a, b) = several(backend, shape, 2)
    one = numbers(shape[0], 1, seed=5)
    assert_close(backend.max_abs(a), np.abs(A).max(axis=0, initial=0.0))
    assert_close(backend.inner(a, b), (A * B).sum(axis=0))
    assert_close(backend.inner(backend.array(one), b), (one * B).sum(axis=0))
    along = numbers(shape[1], seed=6)
    assert_close(backend.host(backend.take_out(a, backend.array(one), along)), A - one * along)
    B_low, small = numbers(shape[0], 4, seed=8), numbers(4, shape[1], seed=9)
    low = backend.array(B_low)
    assert_close(backend.into_low_rank(low, a), B_low.T @ A)
    left = a.copy()
    backend.out_of_low_rank(left, low, small)
    assert_close(backend.host(left), A - B_low @ small)
    for found in (backend.max_abs(a), backend.inner(a, b)):
        assert isinstance(found, np.ndarray)
        assert found.shape == shape[1:]


@by_backend
@by_shape
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_finish_product(backend: Backend, shape: tuple[int, int], single: bool, shared: bool) -> None:
    (Kp, p), (_, there) = several(backend, shape, 2)
    Kp = Kp.astype(np.float32 if single else np.float64)
    noise = np.abs(numbers(shape[0], 1 if shared else shape[1], seed=7))
    q = backend.zeros(shape)
    sums = backend.finish_product(backend.array(Kp), backend.array(noise), there, q)
    assert_close(backend.host(q), Kp + noise * p)
    assert_close(sums, (p * (Kp + noise * p)).sum(axis=0))


@by_backend
@by_shape
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step(backend: Backend, shape: tuple[int, int], dtype: type) -> None:
    """descend and advance, each in place; every other column is smoothed."""
    (p, q, x, r, s, y, z), there = several(backend, shape, 7)
    p_, q_, x_, r_, s_, y_, z_ = there
    step, share, beta, along = (numbers(shape[1], seed=k) for k in (11, 12, 13, 14))
    smoothed, u = np.arange(shape[1]) % 2 == 0, numbers(shape[0], 1, seed=15)
    u_ = backend.array(u)

    sums = backend.descend(step, q_, u_, smoothed, r_, s_)
    r = r - step * q
    gap = smoothed * (s - r)
    assert_close(
        sums, np.array([(r * r).sum(axis=0), (r * u).sum(axis=0), (gap * gap).sum(axis=0), (s * gap).sum(axis=0)])
    )

    copy = backend.for_product(p_, dtype)
    assert copy.dtype == dtype
    assert_close(backend.host(copy), p, dtype)
    worst = backend.advance(Stride(step, share, beta, along, smoothed), z_, u_, Run(x_, y_, r_, s_, p_, copy))
    x, p = x + step * p, z - along * u + beta * p
    y, s = y + smoothed * share * (x - y), s + smoothed * share * (r - s)
    assert_close(worst, np.abs(np.where(smoothed, s, r)).max(axis=0, initial=0.0))
    assert_close(backend.host(copy), p, dtype)
    for found, expected in zip((p_, q_, x_, r_, s_, y_, z_), (p, q, x, r, s, y, z), strict=True):
        assert_close(backend.host(found), expected)
