"""Where the vectors of an operator live, and what conjugate gradients do with them there.

Each operator has a backend (`Operator.backend`). The one here keeps vectors in NumPy arrays and works on them with
compiled loops. An operator on a GPU brings another: its vectors then stay on the device through all iterations, and
only sums per column come back. Every backend passes tests/operators/test_backend.py.
"""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Annotated, Any, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.threads import Calls, ranged, share, share_calls, thread_count


class BackendArray(Protocol):
    """(n, m) numbers in the memory of a backend, as NumPy's arrays are; a single column or row stands for all."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def T(self) -> Self: ...
    def copy(self) -> Self: ...
    def astype(self, dtype: Any, *, copy: bool = True) -> Any: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __isub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __matmul__(self, other: Any, /) -> Any: ...


Vectors = TypeVar("Vectors", bound=BackendArray)


class Stride(NamedTuple):
    """Numbers per column, (m,), of a step of conjugate gradients."""

    step: Array  # along p
    share: Array  # of the new iterate in the smoothed one
    beta: Array  # of the old direction in the new one
    along: Array  # what is taken out of it along u
    smoothed: Array  # bool: whether y and s are kept


class Run(NamedTuple, Generic[Vectors]):
    """The vectors of a run of conjugate gradients, (n, m) each."""

    x: Vectors  # iterate
    y: Vectors  # its smoothed twin
    r: Vectors  # residual of x
    s: Vectors  # of y
    p: Vectors  # direction
    copy: Vectors  # the same as products take it


class BackendOf(Protocol[Vectors]):
    """Vectors, and the loops of conjugate gradients over them. Numbers per column, (m,), are arrays of the host."""

    def array(self, host: Array) -> Vectors:
        """The numbers of a host array, of the same dtype. They may share its memory: nobody writes to them."""

    def host(self, vectors: Vectors) -> Array:
        """The numbers as an array of the host, which may share their memory."""

    def zeros(self, shape: tuple[int, int]) -> Vectors:
        """Zeros in float64."""

    def take(self, V: Vectors, columns: Array) -> Vectors:
        """A copy of some columns (numbers, ascending), which may be written to."""

    def put(self, V: Vectors, columns: Array, values: Vectors) -> None:
        """Write these columns of V."""

    def max_abs(self, V: Vectors) -> Annotated[Array, "m"]:
        """max |V| of each column; 0 without rows."""

    def inner(self, r: Vectors, z: Vectors) -> Annotated[Array, "m"]:
        """r·z of each column of z; r may have one column for all."""

    def take_out(self, R: Vectors, u: Vectors, along: Array) -> Vectors:  # (n, m)
        """R − u along: u (n, 1) in the given share of each column is taken out."""

    def into_low_rank(self, B: Vectors, R: Vectors) -> Annotated[Array, "r, m"]:
        """BᵀR on the host, for B (n, r), in the precision of B."""

    def out_of_low_rank(self, R: Vectors, B: Vectors, small: Array) -> None:
        """R −= B small in place."""

    def for_product(self, p: Vectors, dtype: Any) -> Vectors:
        """A copy of vectors in this precision, in the order that products of the operator like."""

    def finish_product(self, Kp: Vectors, noise: Vectors, p: Vectors, q: Vectors) -> Annotated[Array, "m"]:
        """q = Kp + noise * p in place, then p·q. Noise may have one column for all; Kp may be float32."""

    def descend(
        self, step: Array, q: Vectors, u: Vectors, smoothed: Array, r: Vectors, s: Vectors
    ) -> Annotated[Array, "4, m"]:
        """r −= step q in place; then r·r and r·u for the one column of u, and gap·gap and s·gap for gap = s − r.

        The last two are zero for columns that are not smoothed.
        """

    def advance(self, by: Stride, z: Vectors, u: Vectors, run: Run[Vectors]) -> Annotated[Array, "m"]:
        """x += step p and then p = z − along u + beta p in place, and p into `copy` in its precision; then max |r|.

        For smoothed columns also y += share (x − y) and s += share (r − s), and max |s| instead.
        """


Backend: TypeAlias = BackendOf[Any]


class CPU:
    """NumPy arrays, each vector in one piece (Fortran's order), and compiled loops that threads share."""

    def array(self, host: Array) -> Array:
        return np.asarray(host)

    def host(self, vectors: Array) -> Array:
        return np.ascontiguousarray(vectors)

    def zeros(self, shape: tuple[int, int]) -> Array:
        return np.zeros(shape, order="F")

    def take(self, V: Array, columns: Array) -> Array:
        return np.take(V.T, columns, axis=0).T

    def put(self, V: Array, columns: Array, values: Array) -> None:
        V[:, columns if columns.size < V.shape[1] else slice(None)] = values  # all at once is ten times as fast

    def max_abs(self, V: Array) -> Array:
        return np.asarray(np.maximum(V.max(axis=0, initial=0.0), -V.min(axis=0, initial=0.0)))

    def inner(self, r: Array, z: Array) -> Array:
        from saccade.operators import vector_loops

        parts, (r, z) = _apart(z, z.shape[1]), _rows(r, z)
        share_calls(_adding(vector_loops.inner, (r, z), (), parts), z.shape[1], len(parts))
        return np.asarray(parts.sum(axis=0))

    def take_out(self, R: Array, u: Array, along: Array) -> Array:
        from saccade.operators import vector_loops

        rows, out = _rows(R, u), np.empty(R.shape[::-1])
        share_calls(ranged(vector_loops.take_out, (*rows, along), (out,)), len(R), _threads(R))
        return out.T

    def into_low_rank(self, B: Array, R: Array) -> Array:
        parts = np.zeros((thread_count(), B.shape[1], R.shape[1]))

        def work(thread: int, a: int, b: int) -> None:
            parts[thread] = B[a:b].T @ R[a:b].astype(B.dtype, copy=False)

        share(work, len(B), len(parts))
        return np.asarray(parts.sum(axis=0))

    def out_of_low_rank(self, R: Array, B: Array, small: Array) -> None:
        small = small.T.astype(B.dtype)

        def work(_: int, a: int, b: int) -> None:
            R.T[:, a:b] -= small @ B[a:b].T

        share(work, len(B))

    def for_product(self, p: Array, dtype: Any) -> Array:
        return p.astype(dtype, order="C")

    def finish_product(self, Kp: Array, noise: Array, p: Array, q: Array) -> Array:
        from saccade.operators import vector_loops

        parts = _apart(p, p.shape[1])
        calls = _adding(vector_loops.finish_product, (Kp.T, *_rows(noise, p)), (q.T,), parts)
        share_calls(calls, len(q), len(parts))
        return np.asarray(parts.sum(axis=0))

    def descend(self, step: Array, q: Array, u: Array, smoothed: Array, r: Array, s: Array) -> Array:
        from saccade.operators import vector_loops

        parts = _apart(q, 4, q.shape[1])
        calls = _adding(vector_loops.descend, (step, q.T, *_rows(u), smoothed), (r.T, s.T), parts)
        share_calls(calls, len(q), len(parts))
        return np.asarray(parts.sum(axis=0))

    def advance(self, by: Stride, z: Array, u: Array, run: Run[Array]) -> Array:
        from saccade.operators import vector_loops

        parts, v = _apart(z, z.shape[1]), Run(*(vectors.T for vectors in run))
        read = by.step, by.share, by.beta, by.along, *_rows(z, u), v.r, by.smoothed
        calls = _adding(vector_loops.advance, read, (v.x, v.y, v.s, v.p, v.copy), parts.view(np.int64))
        share_calls(calls, v.p.shape[1], len(parts))
        return np.asarray(parts.max(axis=0))


def _adding(loop: Callable[..., None], read: tuple[Array, ...], write: tuple[Array, ...], parts: Array) -> Calls:
    """Calls of a loop over the entries of all vectors; each thread adds to its own part."""
    return lambda t, a, b: partial(loop, *read, a, b, *write, parts[t])


def _rows(*vectors: Array) -> list[Array]:
    """Vectors as rows, each in one piece: copies only where they came from elsewhere."""
    return [np.ascontiguousarray(V.T) for V in vectors]


def _threads(V: Array) -> int:
    """How many threads pay for one pass over V."""
    return thread_count() if V.size > limits.ONE_THREAD_UP_TO else 1


def _apart(like: Array, *shape: int) -> Annotated[Array, "threads, *shape"]:
    """Zeros for each thread of a pass over `like`, so far apart that no two threads write to one cache line."""
    size, threads = prod(shape), _threads(like)
    return np.zeros((threads, size + 16))[:, :size].reshape(threads, *shape)


ON_CPU: BackendOf[Array] = CPU()
