"""The one-class methods of O on the kernel blocks of a task: GP measures for three inferences, SVDD, and their AUC."""

import numpy as np
from one_class_kernels import Blocks
from scipy.stats import rankdata

from saccade._core.arrays import Array

NOISE = 0.1  # σ² of the regression; the paper does not print its own
PROBIT_NOISE = 1.0  # O (6)
MEASURES = {"P": "probability", "M": "mean", "V": "variance", "H": "ratio"}
INFERENCES = {"Reg": "regression", "LA": "laplace", "EP": "ep"}
GP = [f"{inference}-{measure}" for inference in INFERENCES for measure in MEASURES]
NUS = tuple(k / 10 for k in range(1, 10))
SVDD = [f"SVDD {nu}" for nu in NUS]
METHODS = GP + SVDD


def auc(
    normal: Array,  # (t,) bool
    scores: Array,  # (t, m)
) -> Array:  # (m,)
    """The share of pairs (a normal example, another one) in which the normal one scores higher; ties count half."""
    members = int(normal.sum())
    ranks = rankdata(scores, axis=0)[normal].sum(axis=0)
    return np.asarray((ranks - members * (members + 1) / 2) / (members * (len(normal) - members)))


def posterior(blocks: Blocks, inference: str, noise: float) -> tuple[Array, Array]:  # (t,), (t,)
    """Mean, and what of the prior variance k(x, x) = 1 is explained: the variance is 1 less it."""
    from saccade.inference.likelihoods.infer import infer
    from saccade.inference.solving.regression import Solving, solve
    from saccade.operators.base import Dense

    K = blocks.K

    labels, solving = np.ones((len(K), 1)), Solving(leave_one_out=True)
    if inference == "regression":
        found = solve(Dense(K), noise * labels, labels, solving)
    else:
        _, found = infer(Dense(K), labels, noise * labels, None, inference, solving)
    half = found.factors[0].half_solve(blocks.cross.T)
    return blocks.cross @ found.alpha[:, 0], np.einsum("ij,ij->j", half, half)


def measures(blocks: Blocks, inference: str, noise: float) -> Array:  # (t, 4)
    """P, M, V and H of O Table 1."""
    from saccade.scores.novelty import membership

    mean, explained = posterior(blocks, inference, noise)
    variance = np.maximum(1.0 - explained, 0.0)
    sign = inference != "regression"
    columns = {name: membership(name, mean, variance, noise, sign=sign) for name in MEASURES.values()}
    columns["variance"] = explained  # ranks as −variance does, and keeps its digits where k* is tiny
    if not sign:
        columns["probability"] = density_gain(mean, explained, noise)
    return np.stack(list(columns.values()), axis=1)


def density_gain(mean: Array, explained: Array, noise: float) -> Array:
    """log N(1; μ, 1 − q + σ²) − log N(1; 0, 1 + σ²), which ranks alike and is exact where mean and q are tiny."""
    before = 1.0 + noise
    after = before - explained
    gain = before * mean * (2 - mean) - explained
    return np.asarray(gain / (2 * before * after) - 0.5 * np.log1p(-explained / before))


def svdd(blocks: Blocks, nu: float) -> Array:  # (t,)
    """Less the squared distance from the centre, without the constants αᵀKα and k(x, x) = 1."""
    from saccade.operators.base import Dense
    from saccade.solvers.smo import solve_svdd

    return np.asarray(blocks.cross @ solve_svdd(Dense(blocks.K), nu).alpha)


def all_aucs(blocks: Blocks, noise: float = NOISE) -> Array:  # (methods,)
    """The AUC of every method, in the order of METHODS."""
    columns = [measures(blocks, name, noise if name == "regression" else PROBIT_NOISE) for name in INFERENCES.values()]
    columns += [svdd(blocks, nu)[:, None] for nu in NUS]
    return auc(blocks.normal, np.hstack(columns))


def local(blocks: Blocks, beta: float) -> Blocks:
    """The generalised RBF of the kernel, exp(−β ‖Φ(x) − Φ(z)‖²) (O §6.3); with k(x, x) = 1 the distance is 2 − 2k."""
    return Blocks(np.exp(-2 * beta * (1 - blocks.K)), np.exp(-2 * beta * (1 - blocks.cross)), blocks.normal)
