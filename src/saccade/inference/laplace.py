"""Laplace's approximation for the cumulative-Gaussian likelihood: a normal distribution at the posterior's mode.

Newton's step from f is a regression on targets f + ∇/W with noise 1/W, where ∇ and W are slope and minus curvature of
log p(y | f): whatever solves a regression (a factor, or conjugate gradients on the fast product) finds the mode.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.inference.newton import Labels, Means, newton_step
from saccade.inference.probit import log_average
from saccade.inference.regression import Solution
from saccade.inference.sites import Sites, Solve, flattest, log_gaussian

STEPS = 100
ENOUGH = 1e-6  # change of a latent value, by the width of its site, at which the mode is found: the next is 1e-12


def laplace(
    prior: Array,  # (n,): the diagonal of K
    Y: Array,  # (n, m), ±1
    noise: Array,  # (n, 1) or (n, m): σ²
    solve: Solve,
    weight: Array | None = None,  # (n,): how many equal copies each example stands for
    steps: int = STEPS,
    draft: Solve | None = None,  # a quicker solver for all steps but the last, which is by `solve`
) -> tuple[Sites, Solution]:
    """The mode of p(f | Y) for every column, and the sites there."""
    copies = np.ones((len(Y), 1)) if weight is None else weight[:, None]
    every = np.arange(Y.shape[1])
    labels = Labels(Y, np.broadcast_to(noise, Y.shape), np.zeros_like(Y), copies, flattest(prior, noise))
    means, changes, moving = Means.start(labels), list[float](), every
    while moving.size and len(changes) < steps:
        newton_step(labels, means, moving, draft or solve, weight)
        changes.append(float(means.moved[moving].max()))
        report("laplace", len(changes) / steps)
        moving = np.flatnonzero(means.moved > np.maximum(ENOUGH, means.blurred))
    if moving.size:
        _warn(changes)
    posterior = newton_step(labels, means, every, solve, weight)
    f = means.targets - means.noise * posterior.alpha
    log_z = copies * log_average(Y, f, noise)[0] - log_gaussian(f, means.targets, means.noise)
    return Sites(means.targets, means.noise, float(log_z.sum()), tuple(changes), not moving.size), posterior


def _warn(changes: list[float]) -> None:
    warnings.warn(
        f"Laplace's approximation stopped after {len(changes)} steps while a latent value still moved by "
        f"{changes[-1]:.2g} of its width. Raise `noise`, or lower the `tol` of the solver.",
        ConvergenceWarning,
        stacklevel=2,
    )
