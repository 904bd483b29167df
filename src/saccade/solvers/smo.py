"""Support vector data description (O §4): the smallest ball around the examples in feature space, with outliers.

    max_α diag(K)ᵀα − αᵀKα,   0 ≤ α_i ≤ 1/(νn),   Σ_i α_i = 1                                             O (10), (11)

Sequential minimal optimisation: weight moves between two examples at a time, chosen by how much the move gains (the
second-order rule of Fan, Chen and Lin, "Working set selection using second order information", JMLR 2005). With the
gradient g = 2Kα − diag(K) of what is minimised, ‖Φ(x_i) − c‖² = αᵀKα − g_i: far examples are steep ones.

Three things are ours. The start is the best α for a ball around the mean, all weight on the νn farthest examples; it
leaves up to a hundred times fewer steps than an arbitrary start. A kernel known by its products is never written out:
steps go on among the few hundred steepest examples, then one product brings g up to date for all. There is no other
shrinking: all steps together cost less than the matrix they read (docs/decisions/009).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import check_range, is_number, shown
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.progress import report
from saccade.operators.base import Dense, Operator

SMALLEST = 1e-280  # of the largest k(x, x): a share of it must still be told from 0
ROUNDING = 1e-13  # of the largest k(x, x): differences of distances below it mean nothing


@dataclass(frozen=True)
class SVDDResult:
    """The ball and how it was found."""

    alpha: Annotated[Array, "n"]  # the centre is Σ α_i Φ(x_i)
    radius2: float  # R²
    centre_norm2: float  # αᵀKα
    iterations: int  # moves of weight between two examples
    gap: float  # largest violation of the optimality conditions, a difference of squared distances
    converged: bool


def check_nu(nu: object) -> float:
    if is_number(nu) and 0.0 < float(nu) <= 1.0:
        return float(nu)
    raise InvalidParameter(
        f"`nu` must be above 0 and at most 1, got {shown(nu)}. It is the largest share of examples outside; try 0.1."
    )


def solve_svdd(
    K: Operator,
    nu: float,
    *,
    tol: float = 1e-6,
    max_iter: int = 10_000_000,
    submatrix: Callable[[Array], Array] | None = None,  # example numbers -> their kernel matrix
    working_set: int | None = None,  # examples among which steps go on when K is known by its products
    steps_at_once: int = limits.SMO_STEPS_AT_ONCE,
) -> SVDDResult:
    """The ball with at most a share ν of the examples outside, or the last one after `max_iter` moves.

    It ends when the squared distances of all examples that ought to lie on the ball's surface agree up to `tol` times
    the mean squared distance of the examples from their mean: a measure that neither scaling nor centring K changes.
    `submatrix` is for a K whose products are cheap and whose columns are not, as the intersection kernel's.
    """
    n, diag = K.shape[0], K.diag()
    working_set = limits.WORKING_SET if working_set is None else working_set
    count = _snapped(check_nu(nu) * n)
    bound = 1.0 / count
    check_range(diag)
    if 0.0 < diag.max() < SMALLEST:
        raise InvalidInput(
            f"Values of the kernel must be 0 or reach {SMALLEST:g}, got at most {diag.max():g}, too small for float64 "
            "arithmetic. Scale the features to about [0, 1] first."
        )
    mean = K.matmul(np.full((n, 1), 1.0 / n))[:, 0]
    enough = max(tol * float(diag.mean() - mean.mean()), ROUNDING * float(diag.max()))
    alpha = _farthest(diag - 2.0 * mean, count)
    g = _gradient(K, alpha, diag)
    if not np.isfinite(g).all():
        raise InvalidInput("Kernel values must be finite, got inf or nan. Scale the features to about [0, 1] first.")
    steps, moved, gap = 0, 1, _gap(g, alpha, bound)
    first = gap
    while gap > enough and steps < max_iter and moved > 0:  # without a move only rounding is left
        moved = _improve(K, submatrix, bound, enough, min(steps_at_once, max_iter - steps), g, alpha, working_set)
        steps += moved
        gap = _gap(g, alpha, bound)
        if gap <= enough or steps == max_iter or moved == 0:
            g = _gradient(K, alpha, diag)  # without the rounding of all the updates before
            gap = _gap(g, alpha, bound)
        report("solving", np.log(first / max(gap, enough)) / np.log(first / enough))
    centre_norm2 = float(alpha @ (g + diag)) / 2.0
    radius2 = max(_radius2(centre_norm2 - g, alpha, bound), 0.0)
    return SVDDResult(alpha, radius2, centre_norm2, steps, gap, gap <= enough)


def _snapped(count: float) -> float:
    """νn, a whole number where only rounding keeps it from being one: 0.29 · 100 is 28.999999999999996."""
    whole = round(count)
    return float(whole) if abs(count - whole) < 1e-9 * count else count


def _farthest(distance: Annotated[Array, "n"], count: float) -> Annotated[Array, "n"]:
    """α with all that the bound allows on the farthest examples."""
    order = np.argsort(-distance, kind="stable")
    full = int(count)
    alpha = np.zeros(distance.size)
    alpha[order[:full]] = 1.0 / count
    if count > full:
        alpha[order[full]] = 1.0 - full / count
    return alpha


def _gradient(K: Operator, alpha: Array, diag: Array) -> Annotated[Array, "n"]:
    return np.asarray(2.0 * K.matmul(alpha[:, None])[:, 0] - diag)


def _gap(g: Array, alpha: Array, bound: float) -> float:
    """How much steeper an example whose weight may grow is than one whose weight may shrink."""
    may_grow = alpha < bound
    return max(float(g[alpha > 0].max() - g[may_grow].min()), 0.0) if may_grow.any() else 0.0


def _improve(
    K: Operator,
    submatrix: Callable[[Array], Array] | None,
    bound: float,
    enough: float,
    max_steps: int,
    g: Annotated[Array, "n"],  # changed
    alpha: Annotated[Array, "n"],  # changed
    working_set: int,
) -> int:
    """Steps among all examples where K is there, else among the steepest; returns how many."""
    from saccade.solvers import loops

    if isinstance(K, Dense):
        matrix = np.ascontiguousarray(K.K, np.float64)
        return int(loops.smo_steps(matrix, K.diag(), bound, enough, max_steps, g, alpha)[0])
    some = _steepest(g, alpha, bound, working_set)
    if submatrix is not None:
        beside, part = None, submatrix(some)
    else:
        beside = K.columns(some)
        part = beside[some]
    part = np.ascontiguousarray(part)
    slopes, new = g[some], alpha[some]
    steps, _ = loops.smo_steps(part, part.diagonal().copy(), bound, enough / 2, max_steps, slopes, new)
    change = new - alpha[some]
    alpha[some] = new
    if beside is None:
        sparse = np.zeros((alpha.size, 1))
        sparse[some, 0] = change
        g += 2.0 * K.matmul(sparse)[:, 0]
    else:
        g += 2.0 * (beside @ change)
    return int(steps)


def _steepest(g: Array, alpha: Array, bound: float, count: int) -> Array:
    """The examples that most want to gain weight and those that most want to lose it, ascending."""
    half = count // 2
    if g.size <= count:
        return np.arange(g.size)
    gaining, losing = np.flatnonzero(alpha < bound), np.flatnonzero(alpha > 0)
    if gaining.size > half:
        gaining = gaining[np.argpartition(g[gaining], half)[:half]]
    if losing.size > half:
        losing = losing[np.argpartition(-g[losing], half)[:half]]
    return np.union1d(gaining, losing)


def _radius2(
    distance: Annotated[Array, "n"],  # ‖Φ(x_i) − c‖²
    alpha: Annotated[Array, "n"],
    bound: float,
) -> float:
    """R²: the farthest of the examples on the surface, those with 0 < α < 1/(νn) (O §4).

    Where rounding and `tol` tell their distances apart, the mean would put half of them outside and break the promise
    of ν; the farthest has them all inside, at the price of an R² that is too large by at most the gap.
    When there are none, every R² between the farthest example inside and the nearest outside solves O (9): the middle.
    With ν = 1 none is inside, and the ball ends at the nearest example.
    """
    surface = (alpha > 0) & (alpha < bound)
    if surface.any():
        return float(distance[surface].max())
    nearest, inside = float(distance[alpha > 0].min()), distance[alpha <= 0]
    return (nearest + float(inside.max())) / 2.0 if inside.size else nearest
