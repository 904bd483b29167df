"""Where the vectors of an operator live, and what conjugate gradients do with them there.

An operator names its backend (`Operator.backend`). The one here keeps vectors in NumPy arrays and works on them with
compiled loops. An operator on a GPU brings another: its vectors then stay on the device through all iterations, and
only sums per column come back. Every backend passes tests/operators/test_backend.py.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.threads import ranged, share, share_calls, thread_count

BackendArray = Any
"""(n, m) numbers in the memory of a backend. They know + − * / @ among each other (a single column or row stands for
all) and with plain numbers, −=, and T, shape, dtype, copy() and astype(dtype, copy=…), as NumPy's arrays do."""


class Backend(Protocol):
    """Vectors, and the loops of conjugate gradients over them. Numbers per column, (m,), are arrays of the host."""

    def array(self, host: Array) -> BackendArray:
        """The numbers of a host array, of the same dtype. They may share its memory: nobody writes to them."""

    def host(self, vectors: BackendArray) -> Array:
        """The numbers as an array of the host, which may share their memory."""

    def zeros(self, shape: tuple[int, int]) -> BackendArray:
        """Zeros in float64."""

    def take(self, V: BackendArray, columns: Array) -> BackendArray:
        """A copy of some columns (numbers, ascending), which may be written to."""

    def put(self, V: BackendArray, columns: Array, values: BackendArray) -> None:
        """Write these columns of V."""

    def worst(self, V: BackendArray) -> Array:  # (m,)
        """max |V| of each column; 0 without rows."""

    def inner(self, r: BackendArray, z: BackendArray) -> Array:  # (m,)
        """r·z of each column of z; r may have one column for all."""

    def take_out(self, R: BackendArray, u: BackendArray, along: Array) -> BackendArray:  # (n, m)
        """R − u along: u (n, 1) in the given share of each column is taken out."""

    def into_low_rank(self, B: BackendArray, R: BackendArray) -> Array:  # (r, m)
        """BᵀR on the host, for B (n, r), in the precision of B."""

    def out_of_low_rank(self, R: BackendArray, B: BackendArray, small: Array) -> None:
        """R −= B small in place."""

    def finish_product(
        self, Kp: BackendArray, noise: BackendArray, p: BackendArray
    ) -> tuple[BackendArray, Array]:  # (n, m), (m,)
        """q = Kp + noise * p, and p·q. Noise may have one column for all; Kp may be float32."""

    def descend(
        self, step: Array, p: BackendArray, q: BackendArray, x: BackendArray, r: BackendArray, s: BackendArray
    ) -> Array:  # (2, m)
        """x += step p and r −= step q in place; then gap·gap and s·gap for gap = s − r."""

    def smooth(self, share: Array, x: BackendArray, r: BackendArray, y: BackendArray, s: BackendArray) -> Array:  # (m,)
        """y += share (x − y) and s += share (r − s) in place; then max |s|."""

    def turn(self, z: BackendArray, beta: Array, p: BackendArray, copy: BackendArray) -> None:
        """p = z + beta p in place, and the same into `copy`, which may be float32."""


class CPU:
    """NumPy arrays in C order, and compiled loops that threads share."""

    def array(self, host: Array) -> Array:
        return np.ascontiguousarray(host)

    def host(self, vectors: Array) -> Array:
        return vectors

    def zeros(self, shape: tuple[int, int]) -> Array:
        return np.zeros(shape)

    def take(self, V: Array, columns: Array) -> Array:
        return np.take(V, columns, axis=1)

    def put(self, V: Array, columns: Array, values: Array) -> None:
        V[:, columns if columns.size < V.shape[1] else slice(None)] = values  # all at once is ten times as fast

    def worst(self, V: Array) -> Array:
        return np.asarray(np.abs(V).max(axis=0, initial=0.0))

    def inner(self, r: Array, z: Array) -> Array:
        from saccade.operators import vector_loops

        parts = _apart(z.shape[1])
        self._run(vector_loops.inner, (r, z), (), parts, z)
        return np.asarray(parts.sum(axis=0))

    def take_out(self, R: Array, u: Array, along: Array) -> Array:
        from saccade.operators import vector_loops

        z, threads = np.empty_like(R), thread_count() if R.size > limits.ONE_THREAD_UP_TO else 1
        share_calls(ranged(vector_loops.take_out, (R, u, along), (z,)), len(R), threads)
        return z

    def into_low_rank(self, B: Array, R: Array) -> Array:
        parts = np.zeros((thread_count(), B.shape[1], R.shape[1]))

        def work(thread: int, a: int, b: int) -> None:
            parts[thread] = B[a:b].T @ R[a:b].astype(B.dtype, copy=False)

        share(work, len(B), len(parts))
        return np.asarray(parts.sum(axis=0))

    def out_of_low_rank(self, R: Array, B: Array, small: Array) -> None:
        small = small.astype(B.dtype)

        def work(_: int, a: int, b: int) -> None:
            R[a:b] -= B[a:b] @ small

        share(work, len(B), thread_count())

    def finish_product(self, Kp: Array, noise: Array, p: Array) -> tuple[Array, Array]:
        from saccade.operators import vector_loops

        q, parts = np.empty_like(p), _apart(p.shape[1])
        self._run(vector_loops.finish_product, (Kp, noise, p), (q,), parts, p)
        return q, np.asarray(parts.sum(axis=0))

    def descend(self, step: Array, p: Array, q: Array, x: Array, r: Array, s: Array) -> Array:
        from saccade.operators import vector_loops

        parts = _apart(2, p.shape[1])
        self._run(vector_loops.descend, (step, p, q), (x, r, s), parts, p)
        return np.asarray(parts.sum(axis=0))

    def smooth(self, share: Array, x: Array, r: Array, y: Array, s: Array) -> Array:
        from saccade.operators import vector_loops

        parts = _apart(x.shape[1])
        self._run(vector_loops.smooth, (share, x, r), (y, s), parts, x)
        return np.asarray(parts.max(axis=0))

    def turn(self, z: Array, beta: Array, p: Array, copy: Array) -> None:
        from saccade.operators import vector_loops

        threads = thread_count() if p.size > limits.ONE_THREAD_UP_TO else 1
        share_calls(ranged(vector_loops.turn, (z, beta), (p, copy)), len(p), threads)

    @staticmethod
    def _run(
        loop: Callable[..., None], read: tuple[Array, ...], write: tuple[Array, ...], parts: Array, like: Array
    ) -> None:
        """Share a loop out over the rows; each thread adds to its own part."""
        threads = len(parts) if like.size > limits.ONE_THREAD_UP_TO else 1
        share_calls(lambda t, a, b: partial(loop, *read, a, b, *write, parts[t]), len(like), threads)


def _apart(*shape: int) -> Array:  # (threads, *shape)
    """Zeros for each thread, far enough apart that no two threads write to one cache line."""
    size, threads = int(np.prod(shape)), thread_count()
    return np.zeros((threads, size + 16))[:, :size].reshape(threads, *shape)


ON_CPU: Backend = CPU()
