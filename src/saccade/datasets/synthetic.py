"""Random histograms of two classes: data of any size for experiments, benchmarks and tests."""

from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidParameter
from saccade._core.threads import share, thread_count

PROFILE_SHARE = 0.15  # of every draw; the rest is uniform


def histograms(
    n: int,
    D: int = 1000,
    nonzeros: int = 200,
    *,
    rng: np.random.Generator,
    dtype: Any = np.float64,
    positives: int | None = None,
    at_once: int = limits.KEYS_AT_ONCE,
) -> tuple[sp.csr_matrix, Array]:
    """Random sparse histograms of two classes.

    Each class has a profile over the dimensions, gamma(½) and normalised. A row's dimensions are drawn one after
    the other without replacement, with probability 0.15 · profile + 0.85 / D; its values are gamma(1), L1-normalised.

    The result depends on `rng` and the arguments alone, not on the number of threads, and the memory needed beyond
    the result is bounded.

    Parameters
    ----------
    n, D : int
        Rows and columns.
    nonzeros : int
        Non-zeros per row, from 1 to D.
    rng : numpy.random.Generator
        Source of all random numbers.
    dtype : dtype
        Type of the values of X.
    positives : int, optional
        Number of rows of class 1, at random places. None: each row is of class 1 with probability ½.
    at_once : int
        Random numbers that a thread holds at once; they limit its memory. Another number gives another X.

    Returns
    -------
    X : CSR matrix of shape (n, D)
        Each row sums to 1.
    y : array of shape (n,)
        The classes, 0 and 1.

    Examples
    --------
    >>> X, y = histograms(4, D=6, nonzeros=3, rng=np.random.default_rng(0))
    >>> X.shape, X.nnz, X.sum(axis=1).ravel().tolist()
    ((4, 6), 12, [[1.0, 1.0, 1.0, 1.0]])
    >>> _, y = histograms(5, D=6, nonzeros=3, positives=2, rng=np.random.default_rng(0))
    >>> sorted(y.tolist())
    [0, 0, 0, 1, 1]
    """
    if not 1 <= nonzeros <= D:
        raise InvalidParameter(f"`nonzeros` must be from 1 to D = {D}, got {nonzeros}. A row has D dimensions.")
    if positives is not None and not 0 <= positives <= n:
        raise InvalidParameter(f"`positives` must be from 0 to n = {n}, got {positives}.")
    profiles = rng.gamma(0.5, size=(2, D))
    rates = PROFILE_SHARE * profiles / profiles.sum(axis=1, keepdims=True) + (1.0 - PROFILE_SHARE) / D
    y = rng.integers(0, 2, n) if positives is None else rng.permutation((np.arange(n) < positives).astype(np.int64))
    indices = np.empty((n, nonzeros), np.int32)
    values = np.empty((n, nonzeros), dtype)
    rows = max(1, at_once // D)
    sources = rng.spawn(-(-n // rows))

    def work(_: int, first: int, last: int) -> None:
        for k in range(first, last):
            chunk = slice(k * rows, (k + 1) * rows)
            indices[chunk] = _distinct_dimensions(rates, y[chunk], nonzeros, sources[k])
            drawn = sources[k].standard_exponential(indices[chunk].shape)  # gamma(1)
            values[chunk] = drawn / drawn.sum(axis=1, keepdims=True)

    share(work, len(sources), thread_count())
    indptr = np.arange(n + 1, dtype=np.int32 if n * nonzeros < 2**31 else np.int64) * nonzeros
    return sp.csr_matrix((values.ravel(), indices.ravel(), indptr), shape=(n, D)), y


def _distinct_dimensions(
    rates: Annotated[Array, "2, D"], y: Annotated[Array, "rows"], nonzeros: int, rng: np.random.Generator
) -> Annotated[Array, "rows, nonzeros"]:  # ascending
    """Weighted draws without replacement, as a race: dimension d comes at the rate rates[y, d], the first win."""
    times = rng.standard_exponential((y.size, rates.shape[1]), np.float32)
    times /= rates.astype(np.float32)[y]
    first = times.argpartition(nonzeros - 1, axis=1)[:, :nonzeros].astype(np.int32)
    first.sort(axis=1)
    return first
