"""A mixture of normals from few rows, some of them with gaps: shrinkage chosen by left-out rows, then EM.

Few situations determine a covariance of twelve coordinates badly, and fewer than thirteen leave it singular. There are
two remedies, and both matter less as situations come in:

- Variances are averaged with a broad one (`spread`) that counts as one further situation.
- Correlations are multiplied by 1 − λ. λ makes the left-out rows likeliest.

experiments/situations.py compares held-out log densities on the Portland boxes: against the λ of Schäfer and Strimmer
(towards the diagonal too) 0.1 nats less after 5 to 8 situations and up to 0.9 more after 3 and from 20 on; Ledoit and
Wolf's (towards the identity) is 1.5 to 13 nats below.
"""

from typing import Annotated

import numpy as np

from saccade._core.arrays import Array
from saccade.localize.priors.densities import Normals, fill, known_log_density

SHRINKAGES = np.append(np.geomspace(1e-4, 0.5, 24), [0.6, 0.7, 0.8, 0.9, 1.0])
SPREAD_COUNT = 1.0  # situations that the broad variances count for
TIE = 1e-9  # log densities closer than this are equal, and more shrinkage is taken, on every processor
EM_STEPS, EM_TOLERANCE = 300, 1e-7  # at most; of the mean log density


def learn_normals(
    U: Annotated[Array, "n, d"],  # NaN where an object is missing; something known in every row and column
    components: int,
    spread: Annotated[Array, "d"],  # the variance of a coordinate before any situation was seen
) -> tuple[Normals, float]:
    """The mixture, and the shrinkage λ of a normal of all rows."""
    n, mean = len(U), np.nanmean(U, axis=0)
    rows = np.where(np.isnan(U), mean, U)
    shrinkage = choose_shrinkage(rows, spread)
    shares = _first_shares(rows, components)  # (n, k)
    C = np.diag(rows.var(axis=0) + spread)
    normals = Normals(
        np.full(components, 1.0 / components), np.tile(mean, (components, 1)), np.tile(C, (components, 1, 1))
    )
    before = -np.inf
    for step in range(EM_STEPS):
        normals = _maximize(U, shares, normals, shrinkage, spread)
        parts = zip(normals.means, normals.covariances, strict=True)
        logs = np.log(normals.weights) + np.column_stack([known_log_density(U, m, C) for m, C in parts])
        total = np.logaddexp.reduce(logs, axis=1)
        shares = np.exp(logs - total[:, None])
        if abs(total.mean() - before) <= EM_TOLERANCE and step:
            break
        before = total.mean()
    counts = np.maximum(n * normals.weights, 1.0)[:, None, None]
    return Normals(normals.weights, normals.means, normals.covariances * (1.0 + 1.0 / counts)), shrinkage


def choose_shrinkage(rows: Annotated[Array, "n, d"], spread: Annotated[Array, "d"]) -> float:
    """λ for which the left-out rows are likeliest; 1 for one or two rows, which tell nothing about correlations."""
    if len(rows) < 3:
        return 1.0
    scores = left_out_log_densities(rows, spread)
    equal = np.flatnonzero(scores >= scores.max() - TIE * max(1.0, abs(scores.max())))
    return float(SHRINKAGES[equal[-1]])


def left_out_log_densities(
    rows: Annotated[Array, "n, d"], spread: Annotated[Array, "d"]
) -> Array:  # one for each of SHRINKAGES
    """The mean log density of a row under N(m, (1 − λ) S + λ diag(D)), m and S being those of the other rows.

    With z = row − m, leaving a row out changes m by −z/(n − 1), S into n/(n − 1) S − n/(n − 1)² z zᵀ. Then Sherman and
    Morrison give all n densities from one factor, with c = (1 − λ) n/(n − 1)², G = (1 − λ) n/(n − 1) S + λ diag(D) and
    r = zᵀ G⁻¹ z: the squared distance is (n/(n − 1))² r/(1 − c r), the determinant |G| (1 − c r). Theiler: the
    incredible shrinking covariance estimator (2012).
    """
    n, d = rows.shape
    Z = rows - rows.mean(axis=0)
    S = Z.T @ Z / n
    D = _variances(S.diagonal(), n, spread)
    scores = []
    for shrinkage in SHRINKAGES:
        c = (1.0 - shrinkage) * n / (n - 1) ** 2
        L = np.linalg.cholesky((1.0 - shrinkage) * n / (n - 1) * S + np.diag(shrinkage * D))
        r = np.square(np.linalg.solve(L, Z.T)).sum(axis=0)
        left = np.maximum(1.0 - c * r, np.finfo(np.float64).eps)
        distance = (n / (n - 1)) ** 2 * r / left
        scores.append(-0.5 * (distance + np.log(left)).mean() - np.log(L.diagonal()).sum())
    return np.asarray(np.array(scores) - 0.5 * d * np.log(2.0 * np.pi))


def shrunk(
    S: Annotated[Array, "d, d"], count: float, shrinkage: float, spread: Annotated[Array, "d"]
) -> Annotated[Array, "d, d"]:
    """The variances D, with the correlations of (1 − λ) S + λ diag(D): positive definite for every λ > 0."""
    D = _variances(S.diagonal(), count, spread)
    C = (1.0 - shrinkage) * S + np.diag(shrinkage * D)
    scale = np.sqrt(D / C.diagonal())
    return np.asarray(C * np.outer(scale, scale))


def _variances(variances: Array, count: float, spread: Array) -> Array:
    return np.asarray((count * variances + SPREAD_COUNT * spread) / (count + SPREAD_COUNT))


def _maximize(U: Array, shares: Array, before: Normals, shrinkage: float, spread: Array) -> Normals:
    """The M-step: weight, mean and shrunk covariance of each component, from its share of every row.

    A component of fewer rows is shrunk more: λ n/(1 − λ) is the number of rows that the diagonal counts for.
    """
    n, means, covariances = len(U), [], []
    for share, mean, C in zip(shares.T, before.means, before.covariances, strict=True):
        count = max(float(share.sum()), np.finfo(np.float64).tiny)
        filled, doubt = fill(U, mean, C)
        m = share @ filled / count
        Z = filled - m
        S = (Z * share[:, None]).T @ Z / count
        for rows, left in doubt:
            S += share[rows].sum() / count * left
        own = shrinkage * n / (shrinkage * n + (1.0 - shrinkage) * count)
        means.append(m)
        covariances.append(shrunk(S, count, own, spread))
    weights = np.maximum(shares.mean(axis=0), np.finfo(np.float64).tiny)
    return Normals(weights / weights.sum(), np.array(means), np.array(covariances))


def _first_shares(rows: Annotated[Array, "n, d"], components: int) -> Annotated[Array, "n, k"]:
    """Each row wholly to one component: parts of equal size along the direction in which the rows differ most.

    No random numbers. On the Portland boxes EM ends about as well as after k-means.
    """
    scale = rows.std(axis=0)
    standard = (rows - rows.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    direction = np.linalg.eigh(standard.T @ standard)[1][:, -1]
    along = standard @ direction * np.sign(direction[np.abs(direction).argmax()])
    rank = np.argsort(np.argsort(along, kind="stable"))
    return np.asarray(np.eye(components)[rank * components // len(rows)])
