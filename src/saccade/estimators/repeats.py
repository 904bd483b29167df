"""Rows of X that were looked at more than once.

w looks at one x with noise σ² and targets y_i say the same of f(x) as one look with noise σ²/w and target ȳ, so equal
rows are joined to one with the weight w: the posterior is the same, the matrix smaller and better conditioned. Without
noise a second look says nothing new, and must agree with the first.
"""

from hashlib import blake2b
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput

SAME = 1e-9  # share of the largest target by which two exact looks at one x may differ: rounding of a judge


class Looks(NamedTuple):
    """Rows to learn from, in the order of their first appearance."""

    X: Annotated[Any, "n, d"]
    y: Annotated[Array, "n | n, m"]  # the mean of the targets
    weight: Annotated[Array, "n"] | None = None  # how many looks; None for one at each
    scatter: Annotated[Array, "n, m"] | None = (
        None  # Σ (y − ȳ)² of the looks at each row; None where nothing was joined
    )


def join(X: Annotated[Any, "n, d"], y: Annotated[Array, "n | n, m"], weight: Annotated[Array, "n"] | None) -> Looks:
    """Equal rows as one with the mean of their targets and the sum of their weights."""
    group, first = groups(row_keys(X))
    if first.size == group.size:
        return Looks(X, y, weight)
    looks = np.ones(len(y)) if weight is None else weight
    Y, total = y.reshape(len(y), -1), np.bincount(group, looks)
    mean = np.stack([np.bincount(group, looks * column) / total for column in Y.T], axis=1)
    apart = np.stack([np.bincount(group, looks * column) for column in np.square(Y - mean[group]).T], axis=1)
    return Looks(X[first], mean.reshape(-1, *y.shape[1:]), total, apart)


def unseen(
    X: Annotated[Any, "b, d"],
    y: Annotated[Array, "b | b, m"],
    keys_before: list[bytes],  # of the n rows that are known
    y_before: Annotated[Array, "n | n, m"],
) -> tuple[Looks, list[bytes]]:
    """The rows that are new, each once, for targets without noise, and the keys of all rows now."""
    n, keys, y = len(keys_before), keys_before + row_keys(X), np.concatenate([y_before, y])
    rows = _first_looks(keys, y, n)
    return Looks(X[rows[n:] - n], y[rows[n:]]), [keys[row] for row in rows]


def _first_looks(keys: list[bytes], y: Array, before: int) -> Array:
    """Numbers of the first of each set of equal rows; an error where the targets of two differ."""
    group, first = groups(keys)
    apart = np.abs(y - y[first[group]]) > SAME * np.abs(y).max(initial=0.0)
    clash = np.flatnonzero(apart.reshape(len(y), -1).any(axis=1))
    if clash.size:
        late, early = clash[0], first[group[clash[0]]]
        where = f"rows {early - before} and {late - before} of `X` are equal"
        if early < before:
            where = f"row {late - before} of `X` was in an earlier call"
        raise InvalidInput(
            f"`noise` is 0, but {where}, and the targets differ: {y[early]} and {y[late]}. Pass the variance of the "
            "targets as `noise`, or one target for each row."
        )
    return first


def groups(keys: list[bytes]) -> tuple[Array, Array]:  # (n,), (g,)
    """The group of each key, numbered as they appear, and the first member of each."""
    seen: dict[bytes, int] = {}
    group = np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.intp)
    return group, np.unique(group, return_index=True)[1]


def row_keys(X: Annotated[Any, "n, d"]) -> list[bytes]:
    """16 bytes per row: equal for equal rows, different for different ones."""
    if sp.issparse(X):
        X = sp.csr_matrix(X, dtype=np.float64, copy=True)
        X.eliminate_zeros()
        bounds = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        indices = X.indices.astype(np.int64)
        return [_digest(indices[a:b], X.data[a:b]) for a, b in bounds]
    return [_digest(np.asarray(row, np.float64) + 0.0) for row in X]  # −0.0 + 0.0 is 0.0


def _digest(*parts: Array) -> bytes:
    return blake2b(b"".join(part.tobytes() for part in parts), digest_size=16).digest()
