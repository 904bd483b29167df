"""Greedy block coordinate descent (L. Bo and C. Sminchisescu, UAI 2008): any kernel, no kernel matrix in memory.

Minimises ½ αᵀ(K + N)α − bᵀα. Every iteration solves for `size` coordinates exactly, the others kept, and pays `size`
kernel rows of length n. H §6.4 takes size 10 and 20 candidates. The rule by which the block S is chosen here:

1. moving coordinate i alone lowers the objective by r_i² / 2(K_ii + N_i), r = b − (K + N)α the residual; the
   `candidates` examples with the largest such decrease may enter;
2. the best enters S. Given S, candidate i would lower the objective by a further g_i² / 2d_i, where g is the residual
   after S has been solved for and d the diagonal of the Schur complement of S; the largest enters next, until S is
   full.

Step 2 is a pivoted Cholesky factorisation of the candidates' matrix that stops after `size` pivots. It reads only rows
that the update of r needs anyway, so it costs no kernel value more than taking the `size` best of step 1, and it keeps
near copies of one example from filling the block.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from saccade._core.arrays import Array
from saccade._core.errors import InvalidParameter
from saccade._core.progress import report

Rows = Callable[[Array], Array]  # (k,) example numbers ↦ (k, n) kernel values
FRESH_ROWS = 256  # rows at a time when the residual is computed afresh
NO_PIVOT = 1e-13  # share of its diagonal entry below which a pivot is rounding


@dataclass(frozen=True)
class BlockwiseResult:
    """The solution and how it was reached."""

    x: Array  # (n,)
    iterations: int  # blocks solved
    residual: float  # max-norm of b - (K + N) x, computed afresh
    converged: bool


def solve_blockwise(
    kernel_rows: Rows,
    diag: Array,  # (n,) the diagonal of K
    noise: Array,  # (n,) the diagonal N
    b: Array,  # (n,)
    *,
    size: int = 10,
    candidates: int = 20,
    tol: float = 1e-3,
    max_iter: int = 100_000,
    callback: Callable[[int, float], None] | None = None,  # (iteration, residual)
) -> BlockwiseResult:
    """x with max |b − (K + N) x| ≤ tol, or the last after `max_iter` blocks.

    The residual is kept up to date with the rows of each block; before the end it is computed afresh, which reads all
    n² kernel values once.
    """
    if not 1 <= size <= candidates:
        raise InvalidParameter(
            f"`size` must be from 1 to `candidates`, got size={size} and candidates={candidates}. "
            "The paper takes 10 and 20."
        )
    pivots = diag + noise
    alpha, r = np.zeros(b.size), np.array(b, np.float64)
    residual, iterations = float(np.abs(r).max(initial=0.0)), 0
    while not residual <= tol and iterations < max_iter:
        block, rows, change = _solve_block(kernel_rows, pivots, noise, r, size, candidates)
        alpha[block] += change
        r -= change @ rows
        r[block] -= noise[block] * change
        iterations += 1
        residual = float(np.abs(r).max())
        last = iterations == max_iter or block.size == 0
        if residual <= tol or last:
            r = _residual(kernel_rows, noise, b, alpha)
            residual = float(np.abs(r).max())
        if callback is not None:
            callback(iterations, residual)
        report("solving", iterations / max_iter)
        if block.size == 0:  # no example has a positive pivot: nothing can be solved
            break
    return BlockwiseResult(alpha, iterations, residual, bool(residual <= tol))


def _solve_block(
    kernel_rows: Rows, pivots: Array, noise: Array, r: Array, size: int, candidates: int
) -> tuple[Array, Array, Array]:
    """The block S (k,), its kernel rows (k, n) and the change (K_SS + N_S)⁻¹ r_S (k,), with k ≤ size."""
    score = np.divide(r * r, pivots, out=np.zeros_like(r), where=pivots > 0)
    count = min(candidates, r.size)
    some = np.argpartition(-score, count - 1)[:count]
    W = np.zeros((min(size, count), count))  # the first rows of the pivoted Cholesky factor, W Wᵀ
    chosen: list[int] = []
    rows, half = np.empty((len(W), r.size)), np.zeros(len(W))
    g, d = r[some].copy(), pivots[some].copy()
    for k in range(len(W)):
        free = d > NO_PIVOT * pivots[some]
        free[chosen] = False
        gain = np.divide(g * g, d, out=np.full(count, -1.0), where=free)
        j = int(gain.argmax())
        if not free[j]:
            break
        rows[k] = kernel_rows(some[j : j + 1])[0]
        column = rows[k, some]
        column[j] += noise[some[j]]
        root = np.sqrt(d[j])
        W[k] = (column - W[:k, j] @ W[:k]) / root
        W[k, j] = root
        half[k] = g[j] / root
        g -= half[k] * W[k]
        d -= W[k] ** 2
        chosen.append(j)
    filled = len(chosen)
    change = solve_triangular(W[:filled, chosen], half[:filled]) if filled else np.empty(0)
    return some[chosen], rows[:filled], np.asarray(change)


def _residual(kernel_rows: Rows, noise: Array, b: Array, alpha: Array) -> Array:
    r: Array = b - noise * alpha
    for k in range(0, b.size, FRESH_ROWS):
        some = np.arange(k, min(k + FRESH_ROWS, b.size))
        r[some] -= kernel_rows(some) @ alpha
    return r
