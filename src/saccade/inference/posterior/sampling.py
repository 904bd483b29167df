"""Functions drawn from the posterior by pathwise conditioning (Matheron's rule; Wilson et al., ICML 2020).

With f a draw from the prior and ε one of the noise, f(x) + k*ᵀK̃⁻¹(y − f(X) − ε) is a draw from the posterior.

min(a, b) is the covariance of Brownian motion, so a draw from the prior of an intersection kernel is a sum of
independent Brownian motions, one per dimension: exact, and drawn at all training values and all new ones together for a
normal number each. The update is a table walk, so a new x costs what a prediction costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import scipy.sparse as sp

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.chunks import batches
from saccade.kernels.gram import TabledGram
from saccade.operators.codes import level_dims
from saccade.operators.tables import PiecewiseTables

if TYPE_CHECKING:
    from saccade.inference.posterior.gp import GP


def sample(gp: GP, X: Any, count: int, rng: np.random.Generator) -> Annotated[Array, "b, m, count"]:
    """`count` draws of each output at the rows of X, jointly and exact, less the prior mean."""
    gram, sites = gp.gram, gp.sites
    if isinstance(gram, TabledGram):
        train, new, solve = gram.features(gram.all_rows()), gram.features(X), gp.inverse.solve
        return sample_intersection(gram, train, new, sites.noise, sites.targets, solve, count, rng)
    mean = gram.cross(X).T @ gp.inverse.alpha(sites, gp.solution)
    covariances, found = gp.covariance(X), []
    for j, column in enumerate(mean.T):
        found.append(sample_normal(column, covariances[min(j, len(covariances) - 1)], count, rng))
    return np.stack(found, axis=1)


def sample_intersection(
    K: TabledGram,
    train: Annotated[sp.csr_matrix, "n, D"],  # values after the kernel's transforms, all of them levels of K
    new: Annotated[sp.csr_matrix, "b, D'"],
    noise: Annotated[Array, "n, 1 | n, m"],
    Y: Annotated[Array, "n, m"],
    solve: Callable[[Array, int], Array],  # B (n, k), column of the noise -> (K + N)⁻¹ B
    count: int,
    rng: np.random.Generator,
) -> Annotated[Array, "b, m, count"]:
    """`count` draws of each output at the rows of `new`, jointly; outputs are independent of each other."""
    levels = K.tables(np.zeros((K.shape[0], 1)))
    m, shared = Y.shape[1], noise.shape[1] == 1
    out = np.empty((new.shape[0], m * count))
    room = max(1, limits.NORMALS_AT_ONCE // (levels.levels.size + new.nnz + 1))
    for j in range(1 if shared else m):  # outputs that share the noise are solved for together
        first, last = (0, m * count) if shared else (j * count, (j + 1) * count)
        for block in batches(last - first, room):
            columns = np.arange(first + block.start, first + block.stop)
            prior, at_new = _brownian(levels, new, columns.size, rng)
            error = np.sqrt(noise[:, [j]]) * rng.standard_normal((K.shape[0], columns.size))
            update = K.tables(solve(Y[:, columns // count] - prior.walk(train) - error, j))
            out[:, columns] = at_new + update.walk(new)
    return out.reshape(new.shape[0], m, count)


def _brownian(
    levels: PiecewiseTables, new: Annotated[sp.csr_matrix, "b, D'"], count: int, rng: np.random.Generator
) -> tuple[PiecewiseTables, Array]:  # tables with `count` columns, (b, count)
    """Sums of Brownian motions: their tables at all levels, and their values at the rows of `new`."""
    place = np.concatenate([level_dims(levels.level_starts), new.indices])
    value = np.concatenate([levels.levels, new.data])
    order = np.lexsort((value, place))
    place, value = place[order], value[order]
    steps = np.diff(value, prepend=0.0)
    begins = np.diff(place, prepend=-1) > 0
    steps[begins] = value[begins]
    paths = np.cumsum(np.sqrt(steps)[:, None] * rng.standard_normal((value.size, count)), axis=0)
    if place.size:  # every dimension starts from zero, where the last one ended
        ends = np.vstack([np.zeros((1, count)), paths])[np.flatnonzero(begins)]
        paths -= np.repeat(ends, np.diff(np.append(np.flatnonzero(begins), place.size)), axis=0)
    back = np.empty_like(paths)
    back[order] = paths
    sums = sp.csr_matrix((np.ones(new.nnz), np.arange(new.nnz), new.indptr), shape=(new.shape[0], new.nnz))
    known = levels.levels.size
    return PiecewiseTables(levels.level_starts, levels.levels, back[:known]), np.asarray(sums @ back[known:])


def sample_normal(
    mean: Annotated[Array, "b"], covariance: Annotated[Array, "b, b"], count: int, rng: np.random.Generator
) -> Annotated[Array, "b, count"]:
    """Draws from N(mean, covariance), which may be singular: eigenvalues below zero are rounding."""
    values, U = np.linalg.eigh(covariance)
    root = U * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(mean[:, None] + root @ rng.standard_normal((len(mean), count)))
