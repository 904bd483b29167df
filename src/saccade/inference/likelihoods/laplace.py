"""Laplace's approximation for the cumulative-Gaussian likelihood: a normal distribution at the posterior's mode.

Newton's step from f is a regression on targets f + ∇/W with noise 1/W, where ∇ and W are slope and minus curvature of
log p(y | f): whatever solves a regression (a factor, or conjugate gradients on the fast product) finds the mode.
Conjugate gradients solve the first steps roughly: each step goes to a point that the next one leaves again.
"""

import warnings
from typing import Annotated

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.inference.likelihoods.newton import Labels, Means, newton_step
from saccade.inference.likelihoods.probit import log_average
from saccade.inference.likelihoods.sites import Sites, Steps, flattest, log_gaussian
from saccade.inference.solving.regression import Solution

STEPS = 100
LEFT = 0.1  # share of the last step that a draft may leave undone; more takes further steps
FIRST = 3.0  # what counts for the step before the first
ENOUGH = 1e-6  # change of a latent value, by the width of its site, at which the mode is found: the next is 1e-12


def laplace(
    prior: Annotated[Array, "n"],  # the diagonal of K
    Y: Annotated[Array, "n, m"],  # ±1
    noise: Annotated[Array, "n, 1 | n, m"],  # σ²
    weight: Annotated[Array, "n"] | None = None,  # how many equal copies each example stands for
    steps: int = STEPS,
    least: float | None = None,  # residual that all steps but the last may leave in any case; None: as the last
) -> Steps[tuple[Sites, Solution]]:
    """The mode of p(f | Y) for every column, and the sites there."""
    copies = np.ones((len(Y), 1)) if weight is None else weight[:, None]
    every = np.arange(Y.shape[1])
    labels = Labels(Y, np.broadcast_to(noise, Y.shape), np.zeros_like(Y), copies, flattest(prior, noise))
    means, changes, moving = Means.start(labels), list[float](), every
    while moving.size and len(changes) < steps:
        left = LEFT * float(labels.width.min(initial=np.inf)) * (changes[-1] if changes else FIRST)
        yield from newton_step(labels, means, moving, weight, None if least is None else left)
        changes.append(float(means.moved[moving].max()))
        report("laplace", len(changes) / steps)
        rough = least is not None and left > least
        moving = moving if rough else moving[means.moved[moving] > np.maximum(ENOUGH, means.blurred[moving])]
    if moving.size:
        _warn(changes)
    posterior = yield from newton_step(labels, means, every, weight)
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
