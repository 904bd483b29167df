"""Laplace and EP as textbooks have them, and the integrals that they stand for: what the fast ones are judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from saccade.inference.likelihoods.sites import Found, Regression, Sites, Steps
from saccade.inference.solving.regression import Solution, Solving, solve
from saccade.operators.base import Dense

Array = np.ndarray[Any, np.dtype[Any]]


def infer_regression(K: Array, noise: Array, targets: Array) -> Solution:
    """The posterior of a dense kernel matrix under given sites."""
    return solve(Dense(K), noise, targets, Solving(leave_one_out=True))


def estimated(posterior: Solution, diagonal: Array) -> Solution:
    """The same with an estimate of the diagonal of (K + N)⁻¹, as conjugate gradients leave it: without factors."""
    unknown = {"error": np.nan} if "error" in vars(posterior) else {}
    return replace(posterior, inverse_diagonal=diagonal, factors=(), **unknown)


def answered(steps: Steps[Found], solved: Callable[[Regression], Solution]) -> Found:
    """What an inference finds when its regressions are solved like this."""
    try:
        asked = next(steps)
        while True:
            asked = steps.send(solved(asked))
    except StopIteration as end:
        return end.value


def infer(find: Any, K: Array, Y: Array, noise: float = 1.0, **options: Any) -> tuple[Sites, Solution]:
    """Sites and posterior of a dense kernel matrix."""
    steps = find(K.diagonal().copy(), Y, np.full((len(Y), 1), noise), **options)
    return answered(steps, lambda asked: infer_regression(K, asked.noise, asked.targets))


def evidence(K: Array, sites: Sites) -> float:
    """log p(y) of the sites."""
    value = sites.log_norm
    for t, noise in zip(sites.targets.T, sites.noise.T, strict=True):
        S = K + np.diag(noise)
        value -= 0.5 * (np.linalg.slogdet(2.0 * np.pi * S)[1] + t @ np.linalg.solve(S, t))
    return float(value)


def variances(K: Array, sites: Sites) -> Array:  # (n,)
    """The posterior variance at the examples."""
    S = K + np.diag(sites.noise[:, 0])
    return np.asarray((K - K @ np.linalg.solve(S, K)).diagonal())


def one_at_a_time(K: Array, y: Array, noise: float, sweeps: int = 60) -> tuple[Array, Array, float]:
    """EP as textbooks have it: site after site, with the whole posterior refreshed in between."""
    n = len(y)
    tau, nu = np.zeros(n), np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            mu, Sigma = _posterior(K, tau, nu)
            tau_c, nu_c = 1 / Sigma[i, i] - tau[i], mu[i] / Sigma[i, i] - nu[i]
            m, v = nu_c / tau_c, 1 / tau_c
            z = y[i] * m / np.sqrt(noise + v)
            r = norm.pdf(z) / ndtr(z)
            hat_m = m + y[i] * v * r / np.sqrt(noise + v)
            hat_v = v - v**2 * r * (z + r) / (noise + v)
            tau[i], nu[i] = 1 / hat_v - tau_c, hat_m / hat_v - nu_c
    mu, Sigma = _posterior(K, tau, nu)
    v = 1 / (1 / Sigma.diagonal() - tau)
    m = v * (mu / Sigma.diagonal() - nu)
    t, s2 = nu / tau, 1 / tau
    log_z = log_ndtr(y * m / np.sqrt(noise + v)).sum()
    log_z += 0.5 * np.log(v + s2).sum() + ((m - t) ** 2 / (2 * (v + s2))).sum()
    S = K + np.diag(s2)
    log_z -= 0.5 * np.linalg.slogdet(S)[1] + 0.5 * t @ np.linalg.solve(S, t)
    return mu, Sigma.diagonal(), float(log_z)


def _posterior(K: Array, tau: Array, nu: Array) -> tuple[Array, Array]:
    """Mean and covariance for sites of precision τ and pull ν, also where K is singular or τ is 0."""
    root = np.sqrt(tau)
    B = np.eye(len(K)) + root[:, None] * K * root
    Sigma = K - (K * root) @ np.linalg.solve(B, root[:, None] * K)
    return Sigma @ nu, Sigma


def integral(
    K: Array,  # (n, n) of distinct examples, n small
    right: Array,  # (n,): how often each has the label 1
    wrong: Array,  # (n,): and −1
    noise: float,
) -> tuple[float, Array, Array]:
    """log p(y), and mean and variance of f at the examples, on a grid in the axes of the prior."""
    n = len(K)
    x = np.linspace(-8.0, 8.0, {1: 100_001, 2: 601, 3: 61}[n])
    grid = np.stack(np.meshgrid(*[x] * n, indexing="ij")).reshape(n, -1)
    f = np.linalg.cholesky(K) @ grid
    log_p = norm.logpdf(grid).sum(axis=0) + n * np.log(x[1] - x[0])
    log_p += right @ log_ndtr(f / np.sqrt(noise)) + wrong @ log_ndtr(-f / np.sqrt(noise))
    p = np.exp(log_p - log_p.max())
    mean = f @ p / p.sum()
    return float(np.log(p.sum()) + log_p.max()), mean, np.square(f - mean[:, None]) @ p / p.sum()
