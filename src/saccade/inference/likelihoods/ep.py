"""Expectation propagation for the cumulative-Gaussian likelihood: sites that give each example its true moments.

Where example i is left out, f_i is normal (the cavity); the site is the Gaussian that, put in its place, has the mean
and variance that the true factor would have. Sites that all move at once overshoot where examples are alike: each makes
the correction that all should share. With the cavities' variances held, the means are a convex problem, which Newton's
steps solve for all examples at once (newton.py); then the variances follow, in the closed form of leaving one out, and
so on.
"""

import warnings
from dataclasses import replace
from typing import Annotated

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.inference.likelihoods.newton import Labels, Means, exact, newton_step
from saccade.inference.likelihoods.probit import log_average
from saccade.inference.likelihoods.sites import Regression, Sites, Steps, flattest, log_gaussian
from saccade.inference.solving.closed_form import leave_one_out
from saccade.inference.solving.regression import Solution

SWEEPS, SWEEPS_ESTIMATED = 60, 20  # with factors, and with estimated variances, which may never agree
STEPS = 10  # Newton's steps to the means in one sweep
NEARLY = 0.1  # share of the variances' last change to which a sweep settles the means
ENOUGH = 1e-5  # change at which sites are found: of means by the widths of sites, and relative of posterior variances
CHECKED = 32  # examples at which estimated variances are compared with true ones
ESTIMATED = 0.01  # relative error of them, and change in a sweep, that still counts as converged


def ep(
    prior: Annotated[Array, "n"],  # the diagonal of K
    Y: Annotated[Array, "n, m"],  # ±1
    noise: Annotated[Array, "n, 1 | n, m"],  # σ²
    weight: Annotated[Array, "n"] | None = None,  # how many equal copies each example stands for
    sweeps: int = SWEEPS,
) -> Steps[tuple[Sites, Solution]]:
    """Sites whose cavities agree with them, for every column: those of the sweep that changed least."""
    copies = np.ones((len(Y), 1)) if weight is None else weight[:, None]
    largest = np.repeat(prior[:, None], Y.shape[1], axis=1)
    labels = Labels(Y, np.broadcast_to(noise, Y.shape), largest, copies, flattest(prior, noise))
    means, changes, moving = Means.start(labels), list[float](), np.arange(Y.shape[1])
    best, least = means.copy(), np.full(Y.shape[1], np.inf)
    nearly, known = np.full(Y.shape[1], NEARLY), True
    while moving.size and len(changes) < (sweeps if known else min(sweeps, SWEEPS_ESTIMATED)):
        before, held = means.copy(), labels.variance
        known = yield from _settle(labels, means, moving, weight, nearly)
        share = (
            1.0 if known else 2.0 / (2.0 + len(changes))
        )  # the average of estimates varies less than the last of them
        found = np.clip(means.left_out, 0.0, largest)
        labels = replace(labels, variance=(1.0 - share) * held + share * found)
        change = _change(labels, before, means, known)
        nearly = np.clip(NEARLY * _share_moved(labels, held), NEARLY * ENOUGH, NEARLY)
        changes.append(float(change[moving].max()))
        report("ep", len(changes) / sweeps)
        better = moving[change[moving] < least[moving]]
        best.take(means, better)
        least[better] = change[better]
        enough = np.maximum(ENOUGH if known else ESTIMATED, means.blurred)
        moving = moving[change[moving] > enough[moving]]
    posterior = yield Regression(best.noise, best.targets, best.alpha)
    off = 0.0 if known else (yield from _error(labels, best, posterior, weight))
    converged = not moving.size and off <= ESTIMATED
    if not converged:
        _warn(changes if moving.size else [], off, len(Y))
    log_norm = _log_norm(labels, best, posterior, weight)
    return Sites(best.targets, best.noise, log_norm, tuple(changes), converged), posterior


def _settle(labels: Labels, means: Means, moving: Array, weight: Array | None, nearly: Array) -> Steps[bool]:
    """The means that go with the cavities' variances, for the columns that still move; whether variances are exact."""
    for _ in range(STEPS):
        posterior = yield from newton_step(labels, means, moving, weight)
        moving = moving[means.moved[moving] > np.maximum(nearly[moving], means.blurred[moving])]
        if not moving.size:
            break
    return exact(posterior)


def _share_moved(labels: Labels, held: Array) -> Annotated[Array, "m"]:
    """The largest change of a cavity's variance, by that of the label."""
    return np.asarray((np.abs(labels.variance - held) / labels.width**2).max(axis=0, initial=0.0))


def _change(labels: Labels, before: Means, now: Means, known: bool) -> Annotated[Array, "m"]:
    """How far a sweep moved the posterior, for every column.

    A site whose precision changes by dτ changes the posterior variance s of any f, there or elsewhere, by no more than
    s s_i dτ: of itself at most the leverage s_i τ times d log τ. The sum bounds what all do. Where variances are
    estimates and single ones jump, averages have to do.
    """
    step = np.abs(now.f - before.f) / np.minimum(labels.width + np.abs(now.f), np.sqrt(now.noise * labels.copies))
    log_step = now.leverage * np.abs(np.log(now.noise / before.noise))
    if known:
        return np.asarray(np.maximum(step.max(axis=0, initial=0.0), log_step.sum(axis=0)))
    total = np.maximum(now.leverage.sum(axis=0), np.finfo(np.float64).tiny)
    return np.asarray(np.maximum(np.sqrt(np.square(step).mean(axis=0)), log_step.sum(axis=0) / total))


def _error(labels: Labels, sites: Means, posterior: Solution, weight: Array | None) -> Steps[float]:
    """How far estimated variances of cavities are off, by that of the label: root of the mean square.

    Some examples, evenly from the first to the last, are solved for: (K + N)⁻¹e_i has the true [(K + N)⁻¹]_ii at i.
    """
    n, m = sites.f.shape
    columns, diagonal = np.arange(m), np.broadcast_to(posterior.inverse_diagonal, (n, m))
    true, checked = diagonal.copy(), np.zeros((n, m), bool)
    for rows in np.linspace(0, n - 1, -(-CHECKED // m) * m).astype(int).reshape(-1, m):
        some, unit = (rows, columns), np.zeros((n, m))
        size = 1.0 / np.sqrt(diagonal[some])  # that of the targets, for which the solver's tolerance is meant
        unit[some] = size
        found = yield Regression(sites.noise, unit)
        true[some] = found.alpha[some] / size
        checked[some] = True
    estimate, right = (
        leave_one_out(sites.targets, posterior.alpha, d, sites.noise, weight)[1][checked] for d in (diagonal, true)
    )
    return float(np.sqrt(np.square((estimate - right) / (right + labels.noise[checked])).mean()))


def _log_norm(labels: Labels, sites: Means, posterior: Solution, weight: Array | None) -> float:
    """Σ log Z: each copy's true average over its cavity, by what its site gives."""
    targets, width, copies = sites.targets, sites.noise, labels.copies
    mean, variance = leave_one_out(targets, posterior.alpha, posterior.inverse_diagonal, width, weight)
    variance, one = np.maximum(variance, 0.0), width * copies
    log_z = log_average(labels.Y, mean, variance + labels.noise)[0] - log_gaussian(mean, targets, variance + one)
    joined = 0.5 * (np.log(2.0 * np.pi * width) - copies * np.log(2.0 * np.pi * one))  # copies of a site as one
    return float((copies * log_z + joined).sum())


def _warn(changes: list[float], off: float, n: int) -> None:
    """Say what is wrong: sites that still moved, estimated variances, or both."""
    moved = (
        f"Expectation propagation stopped after {len(changes)} sweeps while means or variances still moved by "
        f"{changes[-1]:.2g} of themselves; the sites of the calmest sweep ({min(changes):.2g}) are kept. "
        if changes
        else ""
    )
    estimates = (
        f"The variances of the cavities in expectation propagation are estimates with {n} examples, {100 * off:.2g} % "
        'off where compared with true ones. solver="cholesky" has true ones, in time n³ and memory n² for every class. '
    )
    remedy = 'Raise `noise`, drop repeated examples, or use inference="laplace".'
    warnings.warn(moved + (estimates if off else "") + remedy, ConvergenceWarning, stacklevel=3)
