"""Small linear systems (K + N) x = b that every solver is tried on, with K written out beside its operator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from saccade._core.arrays import Array
from saccade.kernels import HIK, RBF
from saccade.operators.base import Dense, Operator
from saccade.operators.codes import encode


class Problem(NamedTuple):
    """An operator, the same matrix written out, and the data both come from."""

    operator: Operator
    K: Array  # (n, n)
    X: Array  # (n, D)


def hik(X: Array, levels: int | None = None) -> Problem:
    """The intersection kernel of X; few distinct values make it coded, many sorted."""
    operator = HIK(scale=1.0).operator(encode(X, levels))
    return Problem(operator, np.minimum(X[:, None, :], X[None, :, :]).sum(axis=2), X)


def rbf(X: Array) -> Problem:
    """A dense kernel."""
    K = RBF(length_scale=1.5)(X)
    return Problem(Dense(K), K, X)


def random_problem(kind: str, n: int = 40, D: int = 12, seed: int = 0) -> Problem:
    """ "coded", "sorted" or "dense"."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(n, D)) * (rng.random((n, D)) < 0.5)
    if kind == "coded":
        return hik(np.ceil(4 * X) / 4)
    if kind == "sorted":
        return hik(np.tile(X, (300 // n + 1, 1)) + rng.random((n * (300 // n + 1), D)))
    return rbf(X)


def correlated(n: int = 400, D: int = 60, seed: int = 0) -> Problem:
    """Rows near a few centres: a spectrum with a steep start, where a preconditioner pays."""
    rng = np.random.default_rng(seed)
    centres = rng.gamma(1.0, size=(6, D))
    X = np.round(centres[rng.integers(0, 6, n)] + 0.2 * rng.gamma(1.0, size=(n, D)), 1)
    return hik(X / D)


@st.composite
def coded_problems(draw: st.DrawFn) -> Problem:
    """Histograms rich in ties, zeros, empty rows and copies; one row or one dimension among them."""
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 5)))
    counts = draw(hnp.arrays(np.int64, shape, elements=st.sampled_from([0, 0, 0, 1, 1, 2, 3, 7])))
    return hik(counts / 4.0)
