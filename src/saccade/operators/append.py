"""Codes with further rows behind the others."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.arrays import PerRow
from saccade._core.errors import InvalidParameter
from saccade.operators.codes import CodeBlocks, Codes, encode, encode_as, even_rows, suiting_rows
from saccade.operators.decode import decode


def append(
    codes: Codes,
    X: Any,
    levels: int | None = None,
    binning: str = "quantile",
    weight: PerRow | None = None,  # of the old rows and those of X
    *,
    most_rows: int | None = None,  # of a block; None: as the cache likes it
    most_levels: int = limits.MAX_LEVELS,  # of exact codes in blocks
) -> Codes:
    """Codes of the old rows followed by those of X. Chosen levels stay; exact codes take in every new value.

    With chosen levels, a value above the last level counts as the last, and one in a dimension without levels as zero.
    """
    D = max(codes.shape[1], X.shape[1])
    X = _widened(sp.csr_matrix(X), D)
    if levels is None or codes.shape[1] < D:  # new values, or the first negative parts, need new levels
        X = sp.vstack([_widened(decode(codes), D), X], format="csr")
        return encode(X, levels, binning, weight, most_rows=most_rows, most_levels=most_levels)
    if not isinstance(codes, CodeBlocks):
        raise InvalidParameter("`levels` must stay None when rows are added to exact codes. Call fit instead.")
    most_rows = most_rows or suiting_rows(codes.shape, codes.codes.size, codes.rows is None)
    last, block_rows = max(codes.bases.size - 2, 0), even_rows(codes.shape[0] + X.shape[0], most_rows)
    if codes.bases[-1] - codes.bases[last] < block_rows / 2:  # fill the last block up first
        X = sp.vstack([decode(codes, np.arange(codes.bases[last], codes.shape[0])), X], format="csr")
    else:
        last += 1
    if last == 0:
        return encode_as(X, codes.level_starts, codes.values, block_rows=block_rows)
    added = encode_as(X, codes.level_starts, codes.values, dense=codes.rows is None, block_rows=block_rows)
    kept = codes.starts[last * D]
    return CodeBlocks(
        (int(codes.bases[last]) + added.shape[0], D),
        np.concatenate([codes.bases[:last], codes.bases[last] + added.bases]),
        np.concatenate([codes.starts[: last * D], kept + added.starts]),
        None if codes.rows is None or added.rows is None else np.concatenate([codes.rows[:kept], added.rows]),
        np.concatenate([codes.codes[:kept], added.codes]),
        codes.level_starts,
        codes.values,
    )


def _widened(X: sp.csr_matrix, D: int) -> sp.csr_matrix:
    return X if X.shape[1] == D else sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], D))
