"""What a fitted process says of its training examples, each as if it had not been there; less the prior mean.

In closed form, for examples as the kernel matrix has them and without the slack of tables. Where new examples are
judged otherwise, the difference that makes for each of these is added: new and old ones are judged alike. Of an example
with a weight, one copy is left out; of one that a low rank holds out, all are.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.inference.approximations.base import Approximation, outputs
from saccade.inference.approximations.exact import Exact
from saccade.inference.leave_one_out.by_approximation import left_out_by
from saccade.inference.leave_one_out.centre import without_each
from saccade.inference.likelihoods.prior_mean import plus_values
from saccade.inference.solving.closed_form import leave_one_out

if TYPE_CHECKING:
    from saccade.inference.posterior.gp import GP

Moments = tuple[Array, Array]  # mean (b, m), and variance (b, 1) or (b, m)


def exact_moments(gp: GP) -> Moments:
    """Of every example without one copy of it, by the exact mean."""
    sites, found = gp.sites, gp.solution
    if has_centre(gp):
        return gp.refitted if gp.kernel.mixes_centre else gp.recentred
    return leave_one_out(sites.targets, found.alpha, found.inverse_diagonal, sites.noise, gp.weight)


def moments(
    gp: GP,
    rows: Annotated[Array, "b"],  # ascending
    X: Annotated[Any, "b, d"] = None,  # the same as they came; None asks `gram.as_given`
) -> Moments:
    """By the approximations of mean and variance."""
    if has_centre(gp):
        exact = not gp.kernel.mixes_centre and gp.approximation.mean == gp.variance_method == "exact"
        mean, variance = gp.recentred if exact else gp.refitted
        return mean[rows], variance[rows]
    X, method = gp.gram.as_given(rows) if X is None else X, gp.inverse.variance
    if not isinstance(method, Approximation):
        raise InvalidInput(f'variance="{gp.variance_method}" cannot leave examples out. Use "auto" or "lowrank".')
    mean, variance, with_itself = left_out_by(method, gp.gram, gp.sites, gp.weight, rows)
    if gp.gram.given is not None or gp.inverse.tabled is not None:
        shifted = variance + gp.variance(X) - with_itself
        variance = np.clip(shifted, 0.0, gp.kernel.diag(X)[:, None])
    if gp.approximation.mean != gp.variance_method:
        mean = _plain_mean(gp, rows)
    return mean + _mean_shift(gp, rows, X), variance


def mean_alone(gp: GP, rows: Array, X: Any = None) -> Annotated[Array, "b, m"]:
    """By the approximation of the mean, which takes no variance."""
    if has_centre(gp) and gp.approximation.mean != "exact":
        return gp.refitted[0][rows]
    return np.asarray(_plain_mean(gp, rows) + _mean_shift(gp, rows, X))


def _plain_mean(gp: GP, rows: Array) -> Annotated[Array, "b, m"]:
    """Without what levels and quantised tables change."""
    if gp.approximation.mean == "exact" and not np.isnan(gp.solution.error):
        return exact_moments(gp)[0][rows]
    return left_out_by(gp.inverse.mean, gp.gram, gp.sites, gp.weight, rows)[0]


def variance_alone(
    gp: GP,
    exact: Annotated[Array, "n, 1 | n, m"] | None,  # without each example, where it is known
    most: int,
) -> tuple[Annotated[Array, "b"], Annotated[Array, "b, 1 | b, m"]]:
    """Numbers of training examples, at most so many where a sample will do, and their variance."""
    if exact is not None and gp.variance_method == "exact":
        return np.arange(len(exact)), exact
    rows = comparable(gp, most)
    if exact is None or isinstance(gp.inverse.variance, Approximation):
        return rows, moments(gp, rows)[1]
    # "fine" cannot leave an example out: take the larger of its variance with the example and the exact one without
    return rows, np.maximum(exact[rows], gp.variance(gp.gram.as_given(rows)))


def comparable(
    gp: GP,
    most: int | None = None,  # None for all
) -> Annotated[Array, "b"]:
    """Numbers of the training examples that new ones are to be compared with, as `moments` has them."""
    methods = [] if gp.approximation.mean == "exact" else [gp.inverse.mean]
    every = [*methods, *([] if gp.variance_method is None else [gp.inverse.variance])]
    pools = [gp.gram.given, *(method.comparable() for method in every)]
    rows = reduce(np.intersect1d, [pool for pool in pools if pool is not None], np.arange(gp.gram.shape[0]))
    return rows if most is None or rows.size <= most else np.sort(gp.solving.rng().choice(rows, most, replace=False))


def has_centre(gp: GP) -> bool:
    """Whether the kernel has the mean of the training examples in it, which goes with each of them."""
    moves = gp.kernel.mixes_centre or gp.kernel.centred_part() is not None
    return moves and gp.gram.shape[0] > 1


def recentre(gp: GP) -> Moments:
    """`exact_moments` where the mean of the training examples goes without each of them too."""
    sites, part, found = gp.sites, gp.kernel.centred_part(), list[Moments]()
    C = None if part is gp.kernel or part is None else part(gp.gram.all_rows())
    alpha, d = Exact(gp.inverse.system).alpha_and_diagonal(np.arange(gp.gram.shape[0]), sites.targets)
    for j, noise in enumerate(sites.noise.T):
        solve, (own, Y) = partial(gp.inverse.solve, j=j), (outputs(A, sites.noise, j) for A in (alpha, sites.targets))
        found.append(without_each(gp.gram.diag(), C, noise, solve, d[:, j], own, Y, gp.weight))
    return np.hstack([mean for mean, _ in found]), np.column_stack([variance for _, variance in found])


def refit(gp: GP) -> Moments:
    """Every example by a posterior without it; of many, some are left out together."""
    n, found = gp.gram.shape[0], list[Moments]()
    groups = np.array_split(gp.solving.rng().permutation(n), min(n, limits.LEFT_OUT_TOGETHER))
    for some in groups:
        found.append(_on_some(gp, np.setdiff1d(np.arange(n), some)).mean_and_variance(gp.gram.rows(some)))
        report("leaving one out", len(found) / len(groups))
    back = np.argsort(np.concatenate(groups), kind="stable")
    mean, variance = (np.concatenate(parts)[back] for parts in zip(*found, strict=True))
    return mean, variance


def _on_some(gp: GP, rows: Array) -> GP:
    """The posterior of some of the examples, with a kernel settled on these alone and no prior mean."""
    weight, approximation = None if gp.weight is None else gp.weight[rows], gp.approximation.on_some(rows)
    gram = gp.gram.subset(rows).with_kernel(gp.kernel, weight)
    solving = replace(gp.solving, leave_one_out=False)
    return gp.fit(
        gram, gp.sites.targets[rows], gp.sites.noise[rows], weight=weight, solving=solving, approximation=approximation
    )


def _mean_shift(gp: GP, rows: Array, X: Any = None) -> Annotated[Array, "b, m"] | float:
    """What levels and quantised tables change about the mean at training examples."""
    if gp.gram.given is None and gp.grid is None:
        return 0.0
    X = gp.gram.as_given(rows) if X is None else X
    return gp.mean(X) - plus_values(gp.prior_mean, rows, gp.gram.matmul(gp.solution.alpha)[rows])
