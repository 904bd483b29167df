"""Data that the tests of this room share: awkward histograms, and every layout that codes can have."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from saccade.operators import codes

Array = codes.Array
LAYOUTS = ("sorted", "dense blocks", "sparse blocks")
BLOCK_ROWS = 5  # small enough for awkward histograms to fill several blocks
TIED = (0.0, 0.0, 0.0, 0.125, 0.5, 1.0)


@st.composite
def histograms(draw: st.DrawFn, dtype: type = np.float64, top: float = 1.0, dims: int | None = None) -> Array:
    """Non-negative rows rich in ties, zeros, empty rows, empty columns and single dimensions."""
    rows = draw(st.integers(1, 14))
    shape = (rows, draw(st.integers(1, 6)) if dims is None else dims)
    free = st.floats(0.0, 1.0, allow_subnormal=False, width=32)
    X: Array = draw(hnp.arrays(dtype, shape, elements=st.one_of(st.sampled_from(TIED), free)))
    X *= np.asarray(top, dtype)
    X[draw(hnp.arrays(np.bool_, shape[0], elements=st.sampled_from([False, False, True])))] = 0
    X[:, draw(hnp.arrays(np.bool_, shape[1], elements=st.sampled_from([False, False, True])))] = 0
    return X


def columns(rows: int, count: int, dtype: type = np.float64, seed: int = 0) -> Array:
    """Right-hand sides, (rows, count): signs differ, so that sums cancel."""
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (rows, count)).astype(dtype)


def sparse_rows(n: int, dims: int, seed: int = 0, density: float = 0.4) -> Array:
    """Random rows with ties between them, an empty row and an empty column."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, dims)) * (rng.random((n, dims)) < density)
    X[n // 2 :] = X[n // 2 :].round(1)
    X[n // 3] = 0.0
    X[:, dims // 2] = 0.0
    return X


def encoded(X: Any, layout: str, levels: int | None = None, binning: str = "quantile") -> codes.Codes:
    """Codes of X in the layout asked for, in blocks of few rows."""
    if layout == "sorted":
        return codes._sorted(codes._columns(X))
    return codes.encode(X, levels, binning, dense=layout == "dense blocks", most_rows=BLOCK_ROWS)


def intersections(A: Array, B: Array | None = None) -> Array:
    """Σ_d min(a_d, b_d) for all pairs: the dense algebra that everything is held against."""
    A = np.asarray(A, np.float64)
    B = A if B is None else np.asarray(B, np.float64)
    K: Array = np.minimum(A[:, None], B[None]).sum(axis=2)
    return K
