"""The share of each feature of the mean of an additive model f(x) = Σ_d f_d(x_d), example by example."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade.kernels.base import Kernel
from saccade.kernels.intersection import HIK
from saccade.operators.codes import split_signs
from saccade.operators.compress import compressed
from saccade.operators.tables import GridTables, PiecewiseTables


def shares(
    kernel: Kernel, tables: PiecewiseTables | GridTables | None, X: Annotated[Any, "n, d"]
) -> tuple[list[Array], Array, Array]:  # m of (e,), (e,), (n + 1,)
    """f_d(x_d) of the e values that are not 0, in the order of a CSR matrix, then its columns and row pointers.

    f_d(0) = 0, so that all other shares are 0. A row of one value has the mean f_d(x_d): the tables are walked with
    each value as a row of its own, by the same loop that predicts.
    """
    if tables is None or not isinstance(kernel, HIK):
        raise InvalidInput(
            f"A {type(kernel).__name__} model is no sum over features, so no feature has a share of its own. Use "
            "HIK(), or sklearn.inspection.permutation_importance, which takes any model."
        )
    X = compressed(X)
    rows = split_signs(X) if isinstance(tables, GridTables) else kernel.features(X)
    values = [np.empty(rows.nnz) for _ in range(tables.T.shape[1])]  # apart: SciPy copies what is part of an array
    for first in range(0, rows.nnz, limits.SHARES_AT_ONCE):
        some = slice(first, min(first + limits.SHARES_AT_ONCE, rows.nnz))
        alone = np.arange(some.stop - first + 1, dtype=rows.indptr.dtype)
        shape = (alone.size - 1, rows.shape[1])
        found = tables.walk(sp.csr_matrix((rows.data[some], rows.indices[some], alone), shape=shape))
        for own, column in zip(values, found.T, strict=True):
            own[some] = column
    return values, rows.indices % X.shape[1], rows.indptr
