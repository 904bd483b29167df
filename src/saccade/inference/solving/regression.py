"""The Gaussian posterior α = (K + N)⁻¹ Y, with what leave-one-out needs: the diagonal of (K + N)⁻¹ (H (2))."""

import warnings
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dlange
from sklearn.exceptions import ConvergenceWarning

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.blas import blas_threads_for, one_blas_thread
from saccade._core.errors import InvalidParameter
from saccade.inference.solving.inverse_diagonal import ENERGY_TOL, Probes
from saccade.operators.base import Operator
from saccade.solvers.cg import UNEVEN, CGResult, solve_cg
from saccade.solvers.cholesky import Factor, factorise, warn_if_ill_conditioned
from saccade.solvers.nystrom import Nystrom, build, choose_rank
from saccade.solvers.rank_one import Leading, leading

Solver = Literal["auto", "cholesky", "cg"]


@dataclass(frozen=True)
class Solving:
    """How systems with K + N are solved.

    Parameters
    ----------
    solver : "auto", "cholesky" or "cg"
        By a factor, by conjugate gradients, or whichever suits the number of examples.
    tol : float
        Largest residual that conjugate gradients leave.
    max_iter : int
        Most iterations.
    seed : int
        Of the random numbers inside: the same ones every time.
    leave_one_out : bool
        Whether leave-one-out predictions of all examples will be wanted, as with labels: the diagonal of (K + N)⁻¹ is
        found also where that takes further work. `GP.fit` then iterates where this is far quicker than a factor, which
        is made when a question needs it.
    start : array (n, m) or None
        A first guess of α.

    Examples
    --------
    >>> Solving("cg", tol=1e-4).max_iter
    1000
    """

    solver: Solver = "auto"
    tol: float = 1e-3
    max_iter: int = 1000
    seed: int = 0
    leave_one_out: bool = False
    start: Array | None = field(default=None, repr=False, compare=False)

    def rng(self) -> np.random.Generator:
        """Random numbers, equal every time."""
        return np.random.default_rng(self.seed)


@dataclass(frozen=True)
class Solution:
    """α and how it was found."""

    alpha: Annotated[Array, "n, m"]
    inverse_diagonal: Annotated[Array, "n, 1 | n, m"]  # of (K + N)⁻¹; exact from a factor, else estimated
    factors: tuple[Factor, ...]  # one, or one per column of N; empty after conjugate gradients or where too many
    iterations: int
    residual: Annotated[Array, "m"]
    converged: bool
    rank: int  # of the preconditioner, 0 for none
    error: float = 0.0  # of 1 / inverse_diagonal: root of the mean square, relative; 0 where exact, NaN where unwanted
    norm: float = 0.0  # where there are factors: the largest row sum of |K|, or a little more


def solve(
    K: Operator,
    noise: Annotated[Array, "n, 1 | n, m"],
    Y: Annotated[Array, "n, m"],
    solving: Solving,
    *,
    most_kept: int = limits.FACTOR_NUMBERS,
    probe_work: float = limits.PROBE_WORK,
) -> Solution:
    """The posterior by a factor, or by conjugate gradients."""
    if is_direct(K, solving.solver):
        with blas_threads_for(len(Y)):
            return _direct(K, noise, Y, most_kept)
    m, tol, rng = Y.shape[1], solving.tol, solving.rng()
    shared = 1.0 / (1.0 / noise).mean(axis=1)  # a column with very large noise counts little
    alike = bool((noise.max(axis=1) <= UNEVEN * noise.min(axis=1)).all())
    # The products of a matrix in memory are BLAS's; between others its threads would take cores from ours.
    with blas_threads_for(len(Y)) if K.in_memory else one_blas_thread():
        M = precondition(K, shared, m, rng) if alike else None
        probes = Probes(K, noise, M, solving.max_iter, rng, probe_work)
        Z = probes.beside(m) if noise.shape[1] == 1 and solving.leave_one_out else np.empty((len(Y), 0))
        result = solve_cg(
            K,
            noise,
            np.hstack([Y, Z]),
            tol=tol,
            energy_tol=np.append(np.zeros(m), np.full(Z.shape[1], ENERGY_TOL)),
            max_iter=solving.max_iter,
            precondition=M,
            x0=None if solving.start is None else np.hstack([solving.start, np.zeros_like(Z)]),
        )
        converged = bool((result.residual[:m] <= tol).all())
        if not converged:
            _warn(result, m, tol, solving.max_iter)
        diagonal, error = np.full_like(noise, np.nan), np.nan
        if solving.leave_one_out and len(Y) <= limits.SOLVE_EACH_UP_TO:
            diagonal, error = probes.one_by_one()
        elif solving.leave_one_out:
            diagonal, error = probes.settle(Y, Z, result)
    rank, residual = 0 if M is None else M.rank, result.residual[:m]
    return Solution(result.x[:, :m], diagonal, (), result.iterations, residual, converged, rank, error)


def is_direct(K: Operator, solver: Solver) -> bool:
    """Whether a factor of K + N solves, and not conjugate gradients."""
    n = K.shape[0]
    direct = K.in_memory or n <= limits.FACTOR_UP_TO if solver == "auto" else solver == "cholesky"
    if direct and n > limits.DENSE_UP_TO:
        raise InvalidParameter(f'solver="cholesky" needs the whole {n} × {n} matrix, too large. Use "auto" or "cg".')
    return direct


def keeps_factors(K: Operator, noise: Array, most_kept: int = limits.FACTOR_NUMBERS) -> bool:
    """Whether the factors stay for variances: one always does, many of an intersection kernel may be too large."""
    return K.in_memory or noise.shape[1] == 1 or noise.size * len(noise) <= most_kept


def _direct(K: Operator, noise: Array, Y: Array, most_kept: int) -> Solution:
    """By a factor for each column of the noise; the last one takes the memory of K."""
    dense, columns, keep = K.to_dense(), noise.shape[1], keeps_factors(K, noise, most_kept)
    alpha, diagonal, factors = np.empty_like(Y), np.empty_like(noise), list[Factor]()
    residual, worst = np.empty(Y.shape[1]), noise.min(axis=0).argmin()  # the worst conditioned one
    norm = float(dlange("1", dense.T))
    for j, column in enumerate(noise.T):
        own = slice(None) if columns == 1 else slice(j, j + 1)
        factor = factorise(dense, column, overwrite=j == columns - 1)
        alpha[:, own], diagonal[:, j] = factor.solve(Y[:, own]), factor.inverse_diagonal()
        residual[own] = np.abs(Y[:, own] - factor.product(alpha[:, own])).max(axis=0, initial=0.0)
        if j == worst:
            warn_if_ill_conditioned(factor, norm, column)
        if keep:
            factors.append(factor)
    return Solution(alpha, diagonal, tuple(factors), 0, residual, True, 0, norm=norm)


def precondition(
    K: Operator, noise: Annotated[Array, "n"], columns: int, rng: np.random.Generator
) -> Nystrom | Leading | None:
    """The preconditioner that pays for this problem: a low rank, else the leading direction where there is one.

    None where the noise is uneven and a low rank does not pay: conjugate gradients then divide by the noise.
    """
    n = K.shape[0]
    order = rng.permutation(n)
    rank = 0
    for probe in limits.SPECTRUM_EXAMPLES:  # a larger probe only where the smaller one promises enough
        some = np.sort(order[:probe])
        root = np.sqrt(noise[some])
        rank = choose_rank(K.block(some) / np.outer(root, root), n, 1.0, K.work, columns)
        if 4 * rank < probe or limits.SPECTRUM_EXAMPLES[-1] ** 2 > 20 * n:  # dear for few examples
            break
    if rank:
        return build(K, noise, order[:rank])
    return leading(K, noise) if noise.max() <= UNEVEN * noise.min() else None


def _warn(result: CGResult, m: int, tol: float, max_iter: int) -> None:
    warnings.warn(
        f"The solver stopped after {result.iterations} iterations with a residual of {result.residual[:m].max():.2g}, "
        f"above tol={tol:g}. Raise `max_iter` (now {max_iter}), or raise `noise` or `tol`.",
        ConvergenceWarning,
        stacklevel=2,
    )


def unsolved(Y: Annotated[Array, "n, m"], noise: Annotated[Array, "n, 1 | n, m"]) -> Solution:
    """A placeholder where the approximation of the mean needs no solution."""
    unknown = np.full_like(noise, np.nan)
    return Solution(np.zeros_like(Y), unknown, (), 1, np.zeros(Y.shape[1]), True, 0, np.nan)


def grown(
    before: Solution,  # with factors, of the first n examples
    K: Operator,  # of all n + b examples
    noise: Annotated[Array, "n + b, 1 | n + b, m"],  # for the first n as before
    Y: Annotated[Array, "n + b, m"],
) -> Solution:
    """The solution with b more examples, in time n²b.

    With S = chol of the Schur complement and H = L⁻¹B, the diagonal of the inverse grows by the squared columns of
    S⁻¹HᵀL⁻¹ for old examples, and is that of S⁻ᵀS⁻¹ for new ones.
    """
    n, factors = len(before.alpha), list[Factor]()
    K_new = K.columns(np.arange(n, len(Y)))
    alpha, diagonal, residual = np.empty_like(Y), np.empty_like(noise), np.empty(Y.shape[1])
    worst, added = noise.min(axis=0).argmin(), np.abs(K_new)
    norm = max(before.norm + float(added[:n].sum(axis=1).max(initial=0.0)), float(added.sum(axis=0).max(initial=0.0)))
    for j, (factor, column) in enumerate(zip(before.factors, noise.T, strict=True)):
        own = slice(None) if noise.shape[1] == 1 else slice(j, j + 1)
        more = factor.grown(K_new[:n], K_new[n:] + np.diag(column[n:]))
        back = solve_triangular(factor.L, more.L[n:, :n].T, lower=True, trans=1)
        inner = Factor(more.L[n:, n:])
        diagonal[:n, j] = before.inverse_diagonal[:, j] + np.square(inner.half_solve(back.T)).sum(axis=0)
        diagonal[n:, j] = inner.inverse_diagonal()
        alpha[:, own] = more.solve(Y[:, own])
        residual[own] = np.abs(Y[:, own] - more.product(alpha[:, own])).max(axis=0, initial=0.0)
        if j == worst:
            warn_if_ill_conditioned(more, norm, column)
        factors.append(more)
    return Solution(alpha, diagonal, tuple(factors), 0, residual, True, 0, norm=norm)
