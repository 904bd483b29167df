"""From labels to Gaussians and their posterior: Laplace or EP on the kernel matrix of the examples."""

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidParameter
from saccade.inference.likelihoods.draft import Draft
from saccade.inference.likelihoods.ep import ep
from saccade.inference.likelihoods.laplace import laplace
from saccade.inference.likelihoods.sites import Sites, Steps
from saccade.inference.solving.regression import Solution, Solver, Solving, is_direct, solve
from saccade.operators.base import Dense, Operator

Inference = Literal["regression", "laplace", "ep"]


def infer(
    K: Operator,
    Y: Annotated[Array, "n, m"],  # labels ±1
    noise: Annotated[Array, "n, 1 | n, m"],  # of an example with all its copies
    weight: Annotated[Array, "n"] | None,  # how many equal copies each example stands for
    inference: Literal["laplace", "ep"],
    solving: Solving,
    mean: Annotated[Array, "n, 1"] | None = None,  # before any label
) -> tuple[Sites, Solution]:
    """The likelihood of labels as Gaussians, less the prior mean, and the posterior under them.

    The solver's tolerance is for labels ±1: targets, which are latent values, are divided by the size of these. With a
    prior mean m, sites are of f and the posterior is that of f − m: Kα + m = targets − noise · α as without it.
    """
    K = Dense(K.to_dense()) if K.in_memory else K  # for many factors, not for one
    unit, before = float(np.sqrt(K.diag().mean())) or 1.0, 0.0 if mean is None else mean
    one_noise = noise if weight is None else noise * weight[:, None]  # of one copy of an example
    K, steps, draft = _begun(K, (Y, one_noise, weight), inference, solving, unit, mean is not None)
    try:
        asked = next(steps)
        while True:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # `newton_step` tells what overflows
                if draft is not None and asked.left is not None:
                    solution: Solution = draft.solve(asked.noise, asked.targets, asked.guess, asked.left)
                else:
                    start = None if asked.guess is None else asked.guess / unit
                    how = replace(solving, leave_one_out=True, start=start)
                    found = solve(K, asked.noise, (asked.targets - before) / unit, how)
                    solution = replace(found, alpha=unit * found.alpha, residual=unit * found.residual)
            asked = steps.send(solution)
    except StopIteration as end:
        sites, solution = end.value
    return replace(sites, targets=sites.targets - before), solution


def _begun(
    K: Operator,
    labels: tuple[Array, Array, Array | None],  # ±1, σ², and how many copies
    inference: Literal["laplace", "ep"],
    solving: Solving,
    unit: float,
    has_mean: bool,
) -> tuple[Operator, Steps[tuple[Sites, Solution]], Draft | None]:
    """The matrix to solve with, the inference before its first step, and the solver of rough steps, if any."""
    Y = labels[0]
    if has_mean and (Y.shape[1] > 1 or not is_direct(K, solving.solver)):
        raise InvalidParameter('A prior mean with labels takes one output and solver="cholesky".')
    if inference == "ep":
        return _for_cavities(K, Y.shape[1], solving.solver), ep(K.diag(), *labels), None
    draft = None if has_mean else _draft(K, solving, unit)
    return K, laplace(K.diag(), *labels, least=None if draft is None else draft.least), draft


def _draft(K: Operator, solving: Solving, unit: float) -> Draft | None:
    """The solver of all Laplace's steps but the last, where conjugate gradients are quicker; None: as the last step."""
    n, few = K.shape[0], solving.solver == "auto" and K.shape[0] <= limits.FACTOR_UP_TO
    if K.in_memory or solving.solver == "cholesky" or (few and n <= limits.LAPLACE_FACTOR_UP_TO):
        return None
    return Draft(K, unit, (0.1 if few else 0.3) * solving.tol, solving.max_iter)


def _for_cavities(K: Operator, columns: int, solver: Solver) -> Operator:
    """K written out while factors are affordable: only they have the exact variances that EP needs."""
    n = K.shape[0]
    few = solver == "auto" and n <= limits.EP_FACTOR_UP_TO and n * n * columns <= limits.EP_FACTOR_NUMBERS
    return Dense(K.to_dense()) if few else K
