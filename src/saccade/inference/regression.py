"""The Gaussian posterior α = (K + N)⁻¹ Y, with what leave-one-out needs: the diagonal of (K + N)⁻¹ (H (2))."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from saccade._core.errors import InvalidParameter
from saccade.operators.base import Dense, Operator, written_out
from saccade.solvers.cg import UNEVEN, CGResult, solve_cg
from saccade.solvers.cholesky import Factor, factorise, warn_if_ill_conditioned
from saccade.solvers.leading import Leading, leading
from saccade.solvers.nystrom import PROBES, Nystrom, build, choose_rank

Array = np.ndarray[Any, np.dtype[Any]]
DIRECT_LIMIT = 30_000  # examples whose dense matrix (7 GB) we are willing to make
DIRECT_BELOW = 2048  # examples up to which a Cholesky factor is quick
LONELINESS_BINS = 25
ENERGY_TOL = 1e-2  # a probe stops when no more than this share of what it tells seems to come


@dataclass(frozen=True)
class Posterior:
    """α and how it was found."""

    alpha: Array  # (n, m)
    inverse_diagonal: Array  # (n, 1) or (n, m): of (K + N)⁻¹; exact from a factor, else estimated
    factors: tuple[Factor, ...]  # one, or one a column of N; empty after conjugate gradients
    iterations: int
    residual: Array  # (m,)
    converged: bool
    rank: int  # of the preconditioner, 0 for none


def solve(
    K: Operator,
    noise: Array,  # (n, 1) or (n, m)
    Y: Array,  # (n, m)
    *,
    submatrix: Callable[[Array], Array],  # example numbers -> their kernel matrix
    solver: str = "auto",
    tol: float = 1e-3,
    max_iter: int = 1000,
    rng: np.random.Generator,
    start: Array | None = None,  # (n, m): a first guess of α
) -> Posterior:
    """The posterior by Cholesky ("cholesky"), conjugate gradients ("cg"), or whichever suits n ("auto")."""
    n, factors = K.shape[0], noise.shape[1]
    small = n * n * factors <= 8 * DIRECT_BELOW**2 and n <= DIRECT_BELOW
    direct = isinstance(K, Dense) or small if solver == "auto" else solver == "cholesky"
    if direct and n > DIRECT_LIMIT:
        raise InvalidParameter(f'solver="cholesky" needs the whole {n} × {n} matrix, too large. Use "auto" or "cg".')
    if direct:
        return _direct(K, noise, Y)
    return _iterate(K, noise, Y, submatrix, tol, max_iter, rng, start)


def _direct(K: Operator, noise: Array, Y: Array) -> Posterior:
    dense = written_out(K)
    factors = tuple(factorise(dense, column) for column in noise.T)
    warn_if_ill_conditioned(factors, dense, noise)
    if len(factors) == 1:
        alpha = factors[0].solve(Y)
    else:
        alpha = np.column_stack([f.solve(y) for f, y in zip(factors, Y.T, strict=True)])
    residual = np.abs(Y - dense @ alpha - noise * alpha).max(axis=0, initial=0.0)
    diagonal = np.column_stack([f.inverse_diagonal() for f in factors])
    return Posterior(alpha, diagonal, factors, 0, residual, True, 0)


def _iterate(
    K: Operator,
    noise: Array,
    Y: Array,
    submatrix: Callable[[Array], Array],
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    start: Array | None,
) -> Posterior:
    n, m = Y.shape
    shared = 1.0 / (1.0 / noise).mean(axis=1, keepdims=True)  # where some columns know nothing, the others count
    probes = 1 if m == 1 else 1 + (-m - 1) % 4  # as many as fill the lanes of the product
    Z = rng.choice([-1.0, 1.0], (n, probes))
    alike = bool((noise.max(axis=1) <= UNEVEN * noise.min(axis=1)).all())
    M = precondition(K, shared[:, 0], m, submatrix, rng) if alike else None
    wide = noise if noise.shape[1] == 1 else np.hstack([noise, np.repeat(shared, probes, axis=1)])
    result = solve_cg(
        K,
        wide,
        np.hstack([Y, Z]),
        tol=tol,
        energy_tol=np.append(np.zeros(m), np.full(probes, ENERGY_TOL)),
        max_iter=max_iter,
        precondition=M,
        x0=None if start is None else np.hstack([start, np.zeros_like(Z)]),
    )
    converged = bool((result.residual[:m] <= tol).all())
    if not converged:
        _warn(result, m, tol, max_iter)
    estimate = (Z * result.x[:, m:]).mean(axis=1)
    left, rank = (M.left, M.rank) if isinstance(M, Nystrom) else (None, 0 if M is None else 1)
    diagonal = _inverse_diagonal(estimate, shared[:, 0], noise, K.diag(), left)
    return Posterior(result.x[:, :m], diagonal, (), result.iterations, result.residual[:m], converged, rank)


def precondition(
    K: Operator,
    noise: Array,  # (n,)
    columns: int,
    submatrix: Callable[[Array], Array],
    rng: np.random.Generator,
) -> Nystrom | Leading | None:
    """The preconditioner that pays for this problem: a low rank, else the leading direction where there is one.

    None where the noise is uneven and a low rank does not pay: conjugate gradients then divide by the noise.
    """
    n = K.shape[0]
    order = rng.permutation(n)
    rank = 0
    for probe in PROBES:  # a larger probe only where the smaller one promises enough
        some = np.sort(order[:probe])
        root = np.sqrt(noise[some])
        rank = choose_rank(submatrix(some) / np.outer(root, root), n, 1.0, K.work, columns)
        if 4 * rank < probe or PROBES[-1] ** 2 > 20 * n:  # a large probe is dear next to few examples
            break
    if rank:
        return build(K, noise, order[:rank])
    return leading(K, noise) if noise.max() <= UNEVEN * noise.min() else None


def _inverse_diagonal(
    estimate: Array,  # (n,): unbiased and noisy, z ⊙ (K + N)⁻¹z
    shared: Array,  # (n,): the noise of the probes
    noise: Array,  # (n, 1) or (n, m)
    prior: Array,  # (n,): the diagonal of K
    left: Array | None,  # (n,): what a low rank leaves of it, large where the other examples tell little
) -> Array:  # like noise
    """The diagonal d of (K + N)⁻¹: the estimate averaged over examples that are about equally lonely.

    N_i d_i is one minus the leverage of example i. 1/d_i − N_i is the latent variance with example i left out; it
    depends on N only through the other examples, so it serves every column of N.
    """
    order = np.argsort((prior if left is None else left) / shared, kind="stable")
    kept = np.empty_like(estimate)
    for some in np.array_split(order, max(1, min(LONELINESS_BINS, order.size // 200))):
        kept[some] = (shared * estimate)[some].mean()
    kept = np.clip(kept, shared / (shared + prior), 1.0)  # no example left out can be lonelier than with none at all
    left_out = (1.0 / kept - 1.0) * shared
    return np.asarray(1.0 / (left_out[:, None] + noise))


def _warn(result: CGResult, m: int, tol: float, max_iter: int) -> None:
    warnings.warn(
        f"The solver stopped after {result.iterations} iterations with a residual of {result.residual[:m].max():.2g}, "
        f"above tol={tol:g}. Raise `max_iter` (now {max_iter}), or raise `noise` or `tol`.",
        ConvergenceWarning,
        stacklevel=2,
    )
