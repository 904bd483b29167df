"""Why the codes lie as they do: one product with each layout that was considered, in units, in one run.

`python benchmarks/layouts.py` writes benchmarks/results/layouts.json. The layouts that lost live only here.
"""

from typing import Any

import measure
import numpy as np
import scipy.sparse as sp
from bench import data
from harness import arguments
from numba import njit

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.threads import share, thread_count
from saccade.kernels import HIK
from saccade.operators import codes as code_room

SIZES = (10_000, 50_000, 300_000)


@njit(nogil=True)
def rows_in(indptr, flat, first, last, v, H):
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + 1]):
            H[flat[k]] += v[i]


@njit(nogil=True)
def rows_out(indptr, flat, first, last, T, out):
    for i in range(first, last):
        total = T.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += T[flat[k]]
        out[i] = total


@njit(nogil=True)
def columns_fused(starts, rows, codes, level_starts, steps, first, last, v, out, H):
    for d in range(first, last):
        o, count = level_starts[d], level_starts[d + 1] - level_starts[d]
        H[:count] = 0
        for k in range(starts[d], starts[d + 1]):
            H[codes[k]] += v[rows[k]]
        for b in range(count - 2, 0, -1):
            H[b] += H[b + 1]
        H[0] = 0
        for b in range(1, count):
            H[b] = H[b - 1] + steps[o + b] * H[b]
        for k in range(starts[d], starts[d + 1]):
            out[rows[k]] += H[codes[k]]


def one_level_a_value(X: Any) -> Any:
    """Row order with one code a distinct value, as many as there are."""
    C = X.tocsc()
    codes, tables = [], []
    for d in range(X.shape[1]):
        values, inverse = np.unique(C.data[C.indptr[d] : C.indptr[d + 1]], return_inverse=True)
        codes.append(inverse + 1)
        tables.append(np.append(0.0, values))
    return C, np.concatenate(codes), tables


def binned(X: Any) -> Any:
    C = X.tocsc()
    codes, tables = [], []
    for d in range(X.shape[1]):
        values = C.data[C.indptr[d] : C.indptr[d + 1]]
        levels = np.unique(np.quantile(values, np.linspace(0, 1, 255)))
        codes.append(1 + np.searchsorted((levels[1:] + levels[:-1]) / 2, values))
        tables.append(np.append(0.0, levels))
    return C, np.concatenate(codes), tables


def rivals(X: Any, encoded: Any, code_dtype: Any, v: Array, with_rows: bool) -> dict[str, float]:
    C, codes, tables = encoded
    (n, D), threads = X.shape, thread_count()
    level_starts = np.append(0, np.cumsum([t.size for t in tables]))
    steps = np.concatenate([np.diff(t, prepend=0.0) for t in tables]).astype(v.dtype)
    narrow, rows = codes.astype(code_dtype), C.indices.astype(np.uint16 if n <= 65_536 else np.int32)
    longest = int(np.diff(level_starts).max())

    def fused() -> Array:
        out, H = np.zeros((threads, n), v.dtype), np.empty((threads, longest), v.dtype)
        share(
            lambda t, a, b: columns_fused(C.indptr, rows, narrow, level_starts, steps, a, b, v, out[t], H[t]),
            D,
            threads,
        )
        return np.asarray(out.sum(axis=0))

    times = {"code columns, whole": measure.seconds(fused)}
    if with_rows:
        by_row = sp.csc_matrix((codes, C.indices, C.indptr), shape=X.shape).tocsr()
        flat = (level_starts[by_row.indices] + by_row.data).astype(np.int32)

        def by_rows() -> Array:
            H, out = np.zeros((threads, level_starts[-1]), v.dtype), np.empty(n, v.dtype)
            share(lambda t, a, b: rows_in(by_row.indptr, flat, a, b, v, H[t]), n, threads)
            T = H.sum(axis=0)  # the tables cost the same for every layout: left out here, which favours this one
            share(lambda _, a, b: rows_out(by_row.indptr, flat, a, b, T, out), n, threads)
            return out

        times["code rows"] = measure.seconds(by_rows)
    return times


def ours(X: Any, levels: int | None, v: Array, block_rows: int = limits.BLOCK_ROWS) -> float:
    operator = HIK(scale=1.0).operator(code_room.encode(X, levels, most_rows=block_rows))
    return measure.seconds(lambda: operator.matmul(v[:, None]))


def main() -> None:
    options, results = arguments(__doc__).parse_args(), []
    for n in SIZES:
        X, _ = data(n)
        unit = measure.unit(X)
        for dtype in (np.float32, np.float64):
            v = np.random.default_rng(0).standard_normal(n).astype(dtype)
            if n <= 50_000:
                times = {"sorted columns (ours)": ours(X, None, v)}
                times |= rivals(X, one_level_a_value(X), np.uint16, v, with_rows=False)
                results.append(_row(n, "exact", dtype, times, unit))
            times = {}
            for size in (4096, 16_384, 65_536):
                name = f"code columns, blocks of {size:,} rows" + (" (ours)" if size == limits.BLOCK_ROWS else "")
                times[name] = ours(X, 255, v, size)
            times |= rivals(X, binned(X), np.uint8, v, with_rows=True)
            results.append(_row(n, 255, dtype, times, unit))
    measure.write_json(options.out / "layouts.json", {"unit": "CSR matvec", "products": results})


def _row(n: int, levels: Any, dtype: Any, times: dict[str, float], unit: float) -> dict[str, Any]:
    row = {"n": n, "levels": levels, "dtype": dtype.__name__, "units": {k: t / unit for k, t in times.items()}}
    print(row, flush=True)
    return row


if __name__ == "__main__":
    main()
