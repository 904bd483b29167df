"""Dense rows as a sparse matrix, at the speed of reading them."""

from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from saccade._core.threads import ranged, share_calls


def compressed(X: Annotated[Any, "n, D: dense or sparse"]) -> sp.csr_matrix:
    """`sp.csr_matrix(X)`; for dense floats ten times faster, and with float64 values.

    >>> print(compressed(np.array([[0.0, 2.0], [0.0, 0.0]])).toarray())
    [[0. 2.]
     [0. 0.]]
    """
    if sp.issparse(X) or np.ndim(X) != 2 or X.dtype not in (np.float32, np.float64):
        return sp.csr_matrix(X)
    from . import encode_loops

    dense = np.ascontiguousarray(X)
    counts = np.count_nonzero(dense, axis=1)
    index = np.int32 if dense.size <= np.iinfo(np.int32).max else np.int64
    indptr = np.append(0, np.cumsum(counts)).astype(index)
    indices, data = np.empty(indptr[-1], index), np.empty(indptr[-1])
    share_calls(ranged(encode_loops.to_rows, (dense, indptr), (indices, data)), len(dense))
    return sp.csr_matrix((data, indices, indptr), shape=dense.shape)
