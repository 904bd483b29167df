"""Small trained processes that every approximation is tried on, and the dense algebra they are held against."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from saccade.inference.approximations.by_name import RegularizedSystem
from saccade.kernels import HIK, RBF, Kernel
from saccade.kernels.dense_gram import StreamedGram
from saccade.operators.base import Dense, Operator
from saccade.solvers.cholesky import factorise
from tests.operators.histograms import encoded, histograms

Array = np.ndarray[Any, np.dtype[Any]]


class Case(NamedTuple):
    """A trained process, what it was trained on, and new examples."""

    trained: RegularizedSystem
    K: Array  # (n, n)
    noise: Array  # (n, 1) or (n, 2)
    Y: Array  # (n, 2)
    k_star: Array  # (n, b)
    prior: Array  # (b,)

    @property
    def n(self) -> int:
        return len(self.K)

    def without(self, i: int) -> Case:
        """The same without example i, which is the only new one; factorised."""
        rest = np.delete(np.arange(self.n), i)
        K, noise = self.K[np.ix_(rest, rest)], self.noise[rest]
        return Case(factorised(K, noise), K, noise, self.Y[rest], self.K[rest][:, [i]], self.K[[i], [i]])


def factorised(K: Array, noise: Array) -> RegularizedSystem:
    return RegularizedSystem(Dense(K), noise, tuple(factorise(K, column) for column in noise.T), 1e-10, 500)


def iterated(K: Operator, noise: Array) -> RegularizedSystem:
    return RegularizedSystem(K, noise, (), 1e-10, 500)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Ties, zeros, empty and identical rows, one example; shared noise, or one for each example and output."""
    kernel: Kernel = draw(st.sampled_from([HIK(scale=1.0), RBF(0.7)]))
    X, new = draw(histograms(dims=3)), draw(histograms(dims=3, top=1.5))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    level, columns = draw(st.sampled_from([1e-3, 0.1, 10.0])), draw(st.integers(1, 2))
    noise = np.full((len(X), 1), level) if draw(st.booleans()) else level * rng.uniform(0.5, 2.0, (len(X), columns))
    K = kernel(X)
    trained = factorised(K, noise)
    how = draw(st.sampled_from(["factor", "intersection", "streamed"]))
    if how == "streamed":
        trained = iterated(StreamedGram(kernel, X), noise)
    elif how == "intersection" and isinstance(kernel, HIK):
        trained = iterated(kernel.operator(encoded(X, "sorted")), noise)
    return Case(trained, K, noise, rng.standard_normal((len(X), 2)), kernel(X, new), kernel.diag(new))


def variance(case: Case) -> Array:  # (b, 1) or (b, 2)
    """k** − k*ᵀ(K + N)⁻¹k*, clipped as rounding needs it."""
    solved = [np.linalg.solve(case.K + np.diag(column), case.k_star) for column in case.noise.T]
    explained = np.column_stack([(case.k_star * x).sum(axis=0) for x in solved])
    return np.asarray(np.clip(case.prior[:, None] - explained, 0.0, case.prior[:, None]))


def alpha(case: Case) -> Array:  # (n, 2)
    """(K + N)⁻¹Y."""
    solved = [np.linalg.solve(case.K + np.diag(column), case.Y) for column in case.noise.T]
    return solved[0] if len(solved) == 1 else np.column_stack([solved[0][:, 0], solved[1][:, 1]])


def refitted(case: Case, variance_of: Any, mean_of: Any) -> tuple[Array, Array]:
    """Mean and variance at every example, from functions of the case without it."""
    means, variances = [], []
    for i in range(case.n):
        rest = case.without(i)
        means.append(mean_of(rest, i))
        variances.append(variance_of(rest, i))
    return np.vstack(means), np.vstack(variances)
