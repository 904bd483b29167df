"""Laplace's approximation for the cumulative-Gaussian likelihood: a normal distribution at the posterior's mode.

Newton's step from f is a regression on targets f + ∇/W with noise 1/W, where ∇ and W are slope and minus curvature of
log p(y | f): whatever solves a regression (a factor, or conjugate gradients on the fast product) finds the mode.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from saccade._core.progress import report
from saccade.inference.probit import log_average
from saccade.inference.regression import Posterior
from saccade.inference.sites import Sites, Solve, flattest, log_gaussian

Array = np.ndarray[Any, np.dtype[Any]]
STEPS = 50
HALVINGS = 20
ENOUGH = 1e-7  # change of a latent value at which the mode is found, or what the solver leaves


def laplace(
    prior: Array,  # (n,): the diagonal of K
    Y: Array,  # (n, m), ±1
    noise: Array,  # (n, 1) or (n, m): σ²
    solve: Solve,
    weight: Array | None = None,  # (n,): how many equal copies each example stands for
    steps: int = STEPS,
    draft: Solve | None = None,  # something quicker to climb with; the last step is always by `solve`
) -> tuple[Sites, Posterior]:
    """The mode of p(f | Y) for every column, and the sites there."""
    copies = np.ones((len(Y), 1)) if weight is None else weight[:, None]
    f, alpha = np.zeros_like(Y), np.zeros_like(Y)
    height = _height(Y, f, alpha, noise, copies)
    changes: list[float] = []
    while True:
        targets, width = _newton(Y, f, noise, copies, flattest(prior))
        posterior = (draft or solve)(width, targets, alpha)
        step = targets - width * posterior.alpha - f, posterior.alpha - alpha
        moved, alpha, height = _climb(Y, f, alpha, step, height, noise, copies)
        changes.append(float(np.abs(moved - f).max(initial=0.0)))
        f = moved
        report("laplace", len(changes) / steps)
        converged = changes[-1] <= max(ENOUGH, 3.0 * float(posterior.residual.max(initial=0.0)))
        if converged or len(changes) == steps:
            break
    if not converged:
        _warn(changes)
    if draft is not None:
        targets, width = _newton(Y, f, noise, copies, flattest(prior))
        posterior = solve(width, targets, alpha)
        f = targets - width * posterior.alpha
    log_z = copies * log_average(Y, f, noise)[0] - log_gaussian(f, targets, width)
    return Sites(targets, width, float(log_z.sum()), tuple(changes), converged), posterior


def _newton(Y: Array, f: Array, noise: Array, copies: Array, most: float) -> tuple[Array, Array]:
    """Targets and noise of the sites at f."""
    _, slope, curvature = log_average(Y, f, noise)
    width = 1.0 / np.maximum(copies * curvature, 1.0 / most)
    return f + width * copies * slope, width


def _climb(
    Y: Array, f: Array, alpha: Array, step: tuple[Array, Array], height: Array, noise: Array, copies: Array
) -> tuple[Array, Array, Array]:
    """As much of the step, column by column, as does not lead down."""
    share = np.ones(Y.shape[1])
    for _ in range(HALVINGS):
        new_f, new_alpha = f + share * step[0], alpha + share * step[1]
        reached = _height(Y, new_f, new_alpha, noise, copies)
        down = reached < height - 1e-9 * np.abs(height)
        if not down.any():
            break
        share[down] /= 2.0
    return new_f, new_alpha, reached


def _height(Y: Array, f: Array, alpha: Array, noise: Array, copies: Array) -> Array:  # (m,)
    """log p(Y | f) + log p(f) up to a constant, where f = Kα."""
    return np.asarray((copies * log_average(Y, f, noise)[0] - 0.5 * alpha * f).sum(axis=0))


def _warn(changes: list[float]) -> None:
    warnings.warn(
        f"Laplace's approximation stopped after {len(changes)} steps while a latent value still moved by "
        f"{changes[-1]:.2g}. Raise `noise`, or lower the `tol` of the solver.",
        ConvergenceWarning,
        stacklevel=2,
    )
