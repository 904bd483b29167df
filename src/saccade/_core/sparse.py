"""Whether a scipy.sparse matrix is sound, asked in plain NumPy before compiled code takes its indices at their word.

SciPy's own check is not enough: it asks nothing where the last row pointer says that there is no entry, and only some
of the formats have it.
"""

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput


def check_sparse(X: Annotated[Any, "of any format, as matrix or array"], name: str = "The sparse matrix") -> None:
    """Complain of a sparse matrix whose parts do not fit together."""
    try:
        if len(X.shape) != 2 or min(X.shape) < 0:
            raise ValueError(f"it must have two dimensions, got the shape {X.shape}")
        check = _CHECKS.get(X.format)
        if check is None:
            raise ValueError(f"its format {X.format!r} is unknown")
        check(X, *X.shape)
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidInput(
            f"{name} is not sound: {error}. Build it anew from its entries, such as with "
            "scipy.sparse.coo_array((values, (rows, columns)), shape=shape)."
        ) from None


def rises_in_rows(pointers: Annotated[Array, "n+1"], indices: Annotated[Array, "nnz"]) -> bool:
    """Whether the indices of every row rise: sorted, and none twice. SciPy's own question takes three times as long.

    >>> rises_in_rows(np.array([0, 2, 2, 3]), np.array([1, 4, 0])), rises_in_rows(np.array([0, 2]), np.array([4, 4]))
    (True, False)
    """
    falls = indices[1:] <= indices[:-1]
    first = pointers[:-1][pointers[1:] > pointers[:-1]]  # of rows that have entries: there it may fall
    return bool(np.count_nonzero(falls) == np.count_nonzero(falls[first[1:] - 1]))


def _bsr(X: Any, n: int, d: int) -> None:
    _values(X.data, 3)
    rows, columns = X.data.shape[1:]
    if rows < 1 or columns < 1 or n % rows or d % columns:
        raise ValueError(f"blocks of {rows} × {columns} do not fill a shape of {n} × {d}")
    _compressed(X, n // rows, d // columns, 3)


def _compressed(X: Any, major: int, minor: int, dimensions: int = 1) -> None:
    """`indptr` points to so many rows or columns (major), and `indices` count the others (minor)."""
    _values(X.data, dimensions)
    pointers, indices = _whole_numbers("indptr", X.indptr), _whole_numbers("indices", X.indices)
    if pointers.size != major + 1:
        raise ValueError(f"indptr has {pointers.size} entries where {major + 1} are needed")
    if pointers[0] != 0 or (pointers[1:] < pointers[:-1]).any():
        raise ValueError("indptr must begin with 0 and never fall")
    if indices.size != len(X.data) or pointers[-1] > indices.size:
        raise ValueError(f"indptr ends with {pointers[-1]} for {indices.size} indices and {len(X.data)} values")
    _within("indices", indices[: pointers[-1]], minor)


def _coo(X: Any, n: int, d: int) -> None:
    _values(X.data, 1)
    for name, indices, count in (("row", X.row, n), ("col", X.col, d)):
        if _whole_numbers(name, indices).size != X.data.size:
            raise ValueError(f"{name} has {indices.size} entries for {X.data.size} values")
        _within(name, indices, count)


def _dia(X: Any, n: int, d: int) -> None:
    _values(X.data, 2)
    offsets = _whole_numbers("offsets", X.offsets)
    if offsets.size != len(X.data):
        raise ValueError(f"there are {offsets.size} offsets for {len(X.data)} diagonals")
    if np.unique(offsets).size != offsets.size:
        raise ValueError("a diagonal is there twice")
    _within("offsets", offsets + n, n + d + 1)  # from below the last row to beyond the last column


def _lil(X: Any, n: int, d: int) -> None:
    for name, lists in (("rows", X.rows), ("data", X.data)):
        if not isinstance(lists, np.ndarray) or lists.shape != (n,) or not all(type(one) is list for one in lists):
            raise ValueError(f"{name} must hold a list for each of the {n} rows")
    for columns, values in zip(X.rows, X.data, strict=True):
        if len(columns) != len(values):
            raise ValueError(f"a row has {len(columns)} columns for {len(values)} values")
        found = _whole_numbers("rows", np.array(columns if columns else np.zeros(0, np.int64)))
        _within("rows", found, d)
        if (found[1:] <= found[:-1]).any():
            raise ValueError("the columns of a row must rise")


def _dok(X: Any, n: int, d: int) -> None:
    keys = list(X.keys())
    found = np.array(keys) if keys else np.zeros((0, 2), np.int64)
    if found.ndim != 2 or found.shape[1] != 2:
        raise ValueError("a key must be a row and a column")
    for name, indices, count in (("row", found[:, 0], n), ("column", found[:, 1], d)):
        _within(name, _whole_numbers(name, indices), count)


_CHECKS: dict[str, Callable[[Any, int, int], None]] = {
    **{"csr": _compressed, "csc": lambda X, n, d: _compressed(X, d, n)},
    **{"bsr": _bsr, "coo": _coo, "dia": _dia, "lil": _lil, "dok": _dok},
}


def _whole_numbers(name: str, found: Any) -> Array:
    if not isinstance(found, np.ndarray) or found.ndim != 1 or found.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a plain array of whole numbers")
    return found


def _values(data: Any, dimensions: int) -> None:
    if not isinstance(data, np.ndarray) or data.ndim != dimensions or data.dtype.kind not in "biufc":
        raise ValueError("data must be a plain array of numbers")


def _within(name: str, indices: Array, count: int) -> None:
    unsigned = indices.view(indices.dtype.str.replace("i", "u"))  # where one below 0 is large
    if indices.size and unsigned.max() >= count:
        outside = indices[(indices < 0) | (indices >= count)][0]
        raise ValueError(f"{name} has {outside}, and must stay from 0 to {count - 1}")
