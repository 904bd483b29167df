"""The examples a question may be about: checked, coded once, and known by a digest."""

import hashlib
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import canonical
from saccade._core.errors import InvalidInput
from saccade.active.answers import has_value, label_array, plain
from saccade.estimators.neighbours import FEWEST, Neighbours, drawn
from saccade.kernels import Kernel
from saccade.kernels.dense_gram import DenseGram
from saccade.kernels.engines import MEMORY, Engine
from saccade.kernels.gram import Gram


def check_pool(X: Any) -> Any:
    """X as finite floats, dense or canonical CSR; an error names the first row with a NaN or an infinity."""
    X = canonical(X)
    kind = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "ensure_min_samples": 1}
    try:
        X = canonical(check_array(X, ensure_all_finite=False, **kind))
    except OverflowError:  # a Python integer of any size
        raise InvalidInput("A value is too large for float64 (beyond 1.8e308). Divide the data first.") from None
    values = X.data if sp.issparse(X) else X
    if not np.isfinite(values.sum(dtype=np.float64)):  # one bad number spoils the sum
        bad = np.flatnonzero(~np.isfinite(values).reshape(-1))
        if bad.size:
            row = np.searchsorted(X.indptr, bad[0], side="right") - 1 if sp.issparse(X) else bad[0] // X.shape[1]
            raise InvalidInput(
                f"Row {row} of the pool has a value that is {values.reshape(-1)[bad[0]]}. Fill it in, or leave the row "
                "out of the pool."
            )
    return X


def digest(X: Annotated[Any, "n, d"]) -> str:
    """A digest of X: equal for equal rows in the same order, dense or sparse, in float32 or float64."""
    found = hashlib.sha256(f"{X.shape[1]}".encode())
    for first in range(0, X.shape[0], limits.ROWS_AT_ONCE):
        rows = sp.csr_matrix(X[first : first + limits.ROWS_AT_ONCE])
        rows.eliminate_zeros()
        for part in (
            np.diff(rows.indptr).astype(np.int64),
            rows.indices.astype(np.int64),
            rows.data.astype(np.float64),
        ):
            found.update(part.tobytes())
    return found.hexdigest()


def pool_gram(
    kernel: Kernel, X: Annotated[Any, "n, d"], levels: int | None, binning: str, engine: Engine = MEMORY
) -> Gram:
    """The kernel matrix of the pool: in memory, held while it is small and else used through products; or by an engine.

    A pool with very many values is coded with 255 levels per feature, so that a value takes one byte: inference is then
    exact for a slightly coarser kernel.
    """
    n = X.shape[0]
    if engine is MEMORY and levels is None and n <= limits.POOL_DENSE_UP_TO:
        return DenseGram(kernel.resolved(X), X)
    count = X.nnz if sp.issparse(X) else np.count_nonzero(X)
    if levels is None and count > limits.POOL_EXACT_NUMBERS:
        levels = limits.MAX_LEVELS
    return kernel.gram(X, levels=levels, binning=binning, held=n <= limits.POOL_HELD_UP_TO, engine=engine)


def pool_graph(
    gram: Gram, X: Annotated[Any, "n, d"], rows: Annotated[Array, "p: of gram"], seed: int
) -> Neighbours | None:
    """The graph of these rows of X, or of some where there are many; None where there are too few."""
    some = drawn(np.arange(rows.size), seed)
    return Neighbours.of(gram.kernel, X[rows[some]], gram.between(some, some)) if some.size >= FEWEST else None


def known_labels(y: Any, n: int, missing: Any = None) -> tuple[Array, Array]:  # (l,), (l,)
    """Rows with a label, and their labels; NaN, None and `missing` stand for none."""
    labels = np.asarray(y, dtype=object) if not isinstance(y, np.ndarray) else y
    if labels.ndim != 1 or labels.size != n:
        raise InvalidInput(
            f"`y` must have one entry for each of the {n} rows of X, got shape {labels.shape}. An entry that is NaN or "
            "None means that the row has no label yet."
        )
    some = np.flatnonzero(~np.isnan(labels)) if labels.dtype.kind == "f" else np.arange(n)
    every, (missing,) = plain(labels[some]), plain([missing])
    named = np.flatnonzero([has_value(value) and not _is(value, missing) for value in every])
    return some[named], label_array(every[place] for place in named)


def _is(value: object, missing: object) -> bool:
    """Whether a label is the one that stands for no label: −1 and −1.0 are equal, 1 and True are not."""
    return missing is not None and value == missing and isinstance(value, bool) == isinstance(missing, bool)


def one_against_rest(labels: Annotated[Array, "l"], classes: Annotated[Array, "m"]) -> Annotated[Array, "l, m"]:
    """±1 for each class."""
    return np.where(labels[:, None] == classes, 1.0, -1.0)
