"""Expectation propagation for the cumulative-Gaussian likelihood: sites that give each example its true moments.

All sites move at once. Where example i is left out, f_i is normal (the cavity); the site is the Gaussian that, put in
its place, has the mean and variance that the true factor would have. With β and γ the slope and minus curvature of
log ∫Φ(y f/σ) cavity(f) df in the cavity's mean μ, and v its variance, the site is at μ + β/γ with noise 1/γ − v:
Laplace's formula, averaged over the cavity. The cavities are the closed-form leave-one-out predictions.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from saccade._core.progress import report
from saccade.inference.leave_one_out import leave_one_out
from saccade.inference.probit import log_average
from saccade.inference.regression import Posterior
from saccade.inference.sites import Sites, Solve, flattest, log_gaussian

Array = np.ndarray[Any, np.dtype[Any]]
SWEEPS, SWEEPS_ESTIMATED = 200, 60  # with factors, and with estimates, which may never agree
ENOUGH = 1e-5  # change of a latent mean, in prior standard deviations, at which the sites are found
ESTIMATED = 0.01  # the same on average, without factors: cavities are estimates then, and a few jump at every sweep
SLOWER, FASTER = 0.7, 1.1  # the step shrinks when a sweep does not bring the sites nearer to each other, else it grows
NEARER = 0.1  # share of the best that a step can do which counts as nearer
SHORTEST = 0.05


def ep(
    prior: Array,  # (n,): the diagonal of K
    Y: Array,  # (n, m), ±1
    noise: Array,  # (n, 1) or (n, m): σ²
    solve: Solve,
    weight: Array | None = None,  # (n,): how many equal copies each example stands for
    sweeps: int = SWEEPS,
) -> tuple[Sites, Posterior]:
    """Sites whose cavities agree with them, for every column."""
    copies = np.ones((len(Y), 1)) if weight is None else weight[:, None]
    most, unit = flattest(prior), max(1.0, float(np.sqrt(prior.max(initial=0.0))))
    cavity = np.zeros_like(Y), np.repeat(prior[:, None], Y.shape[1], axis=1)
    mean, alpha, precision, pull = np.zeros_like(Y), None, np.zeros_like(Y), np.zeros_like(Y)
    share, changes, converged = 1.0, list[float](), False
    most_sweeps = sweeps
    while not converged and len(changes) < most_sweeps:
        wanted, at = _matched(Y, noise, *cavity, most)
        precision = (1.0 - share) * precision + share * copies / wanted
        pull = (1.0 - share) * pull + share * copies * at / wanted
        width, targets = 1.0 / precision, pull / precision
        posterior = solve(width, targets, alpha)
        alpha, before = posterior.alpha, mean
        mean = targets - width * alpha
        left, spread = leave_one_out(targets, alpha, posterior.inverse_diagonal, width, weight)
        cavity = left, np.clip(spread, np.finfo(np.float64).tiny, prior[:, None])
        changes.append(_moved(mean - before, bool(posterior.factors)) / share)
        report("ep", len(changes) / sweeps)
        if changes[-1] <= min(changes):
            best = targets, width, cavity, posterior
        most_sweeps = sweeps if posterior.factors else min(sweeps, SWEEPS_ESTIMATED)
        enough = unit * (ENOUGH if posterior.factors else ESTIMATED)
        converged = changes[-1] <= max(enough, 3.0 * float(posterior.residual.max(initial=0.0)))
        if len(changes) > 1:  # a step of this share leaves 1 − share of the change at best
            nearer = changes[-1] <= (1.0 - NEARER * share) * changes[-2]
            share = min(1.0, FASTER * share) if nearer else max(SHORTEST, SLOWER * share)
    if not converged:
        _warn(changes)
    targets, width, cavity, posterior = best
    log_norm = _log_norm(Y, noise, cavity, targets, width, copies)
    return Sites(targets, width, log_norm, tuple(changes), converged), posterior


def _moved(step: Array, exact: bool) -> float:
    """The largest change, or the root of the mean square where single ones are left to chance."""
    return float(np.abs(step).max(initial=0.0) if exact else np.sqrt(np.square(step).mean()))


def _matched(Y: Array, noise: Array, mean: Array, variance: Array, most: float) -> tuple[Array, Array]:
    """Noise and place of the site of one copy, from its cavity."""
    _, slope, curvature = log_average(Y, mean, variance + noise)
    curvature = np.maximum(curvature, 1.0 / (variance + most))
    return np.maximum(1.0 / curvature - variance, 1.0 / most), mean + slope / curvature


def _log_norm(
    Y: Array, noise: Array, cavity: tuple[Array, Array], targets: Array, width: Array, copies: Array
) -> float:
    """Σ log Z: each copy's true average over its cavity, by what its site gives."""
    mean, variance = cavity
    one = width * copies
    log_z = log_average(Y, mean, variance + noise)[0] - log_gaussian(mean, targets, variance + one)
    joined = 0.5 * (np.log(2.0 * np.pi * width) - copies * np.log(2.0 * np.pi * one))  # copies of a site as one
    return float((copies * log_z + joined).sum())


def _warn(changes: list[float]) -> None:
    warnings.warn(
        f"Expectation propagation stopped after {len(changes)} sweeps while a latent mean still moved by "
        f"{changes[-1]:.2g}; the sites of the calmest sweep ({min(changes):.2g}) are kept. Raise `noise`, "
        'drop repeated examples, or use inference="laplace".',
        ConvergenceWarning,
        stacklevel=2,
    )
