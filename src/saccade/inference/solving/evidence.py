"""The marginal likelihood of the labels: how well kernel and noise explain them, with f integrated out (H §5.2).

−log p(Y) = Σ_m ½ y_mᵀ K̃_m⁻¹ y_m + ½ log |K̃_m| + (n/2) log 2π, over the outputs, which share the kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import check_choice
from saccade._core.errors import InvalidParameter
from saccade.operators.base import Dense, Operator
from saccade.solvers.cholesky import Factor, factorise
from saccade.solvers.logdet import Estimate, bound_log_determinant, stochastic_log_determinant

METHODS = ("auto", "exact", "stochastic", "bound")


@dataclass(frozen=True)
class Evidence:
    """log p(Y), its standard error (0 where nothing is random), and how it was found."""

    value: float
    error: float
    method: str  # "bound": the truth is not below `value`


def log_marginal_likelihood(
    K: Operator,
    noise: Annotated[Array, "n, 1 | n, m"],
    Y: Annotated[Array, "n, m"],
    alpha: Annotated[Array, "n, m"],  # (K + N)⁻¹ Y
    *,
    method: str = "auto",
    rng: np.random.Generator,
    factors: Sequence[Factor] = (),  # of K + N, one for each column of the noise, where they are known
) -> Evidence:
    """The evidence of all outputs together."""
    method, (n, m) = _resolved(method, K), Y.shape
    K = Dense(K.to_dense()) if K.in_memory and not factors else K  # for products and a factor per column
    if method == "exact" and factors:
        found = [Estimate(factor.log_determinant(), 0.0) for factor in factors]
    else:
        found = [_log_determinant(K, column, method, rng) for column in noise.T]
    times = m if len(found) == 1 else 1  # shared noise: one determinant for all
    log_determinant = times * sum(part.value for part in found)
    error = times * float(np.sqrt(sum(part.error**2 for part in found)))
    # 2 yᵀα − αᵀK̃α is yᵀK̃⁻¹y where α is exact, and else below it by the square of α's error: yᵀα by the error itself
    fit = float(np.einsum("ij,ij->", 2.0 * Y - _products(K, noise, alpha, factors), alpha))
    value = -0.5 * (fit + log_determinant + n * m * np.log(2.0 * np.pi))
    return Evidence(float(value), 0.5 * error, method)


def _resolved(method: str, K: Operator) -> str:
    """How the determinant is found: "auto" is exact where K is held or small."""
    check_choice("method", method, METHODS)
    n = K.shape[0]
    if method == "exact" and n > limits.DENSE_UP_TO and not K.in_memory:
        raise InvalidParameter(f'method="exact" needs the whole {n} × {n} matrix, too large. Use "stochastic".')
    if method != "auto":
        return method
    return "exact" if n <= limits.FACTOR_UP_TO or K.in_memory else "stochastic"


def _products(K: Operator, noise: Array, alpha: Array, factors: Sequence[Factor]) -> Annotated[Array, "n, m"]:
    """(K + N)α, without K where there are factors."""
    if not factors:
        return np.asarray(K.matmul(alpha) + noise * alpha)
    shared = noise.shape[1] == 1
    return np.hstack([factor.product(alpha if shared else alpha[:, [j]]) for j, factor in enumerate(factors)])


def of_copies(
    noise: Annotated[Array, "n, 1 | n, m"],  # of w copies together
    m: int,
    weight: Annotated[Array, "n"] | None,
    scatter: Annotated[Array, "n, m"]
    | None = None,  # Σ (y − ȳ)² of the copies, where their labels differ and Y has the mean ȳ
) -> tuple[float, float]:
    """What w observations of one example add to −log p beyond one with noise N = σ²/w, and d / d log N.

    Π N(y_i; f, σ²) over w copies is N(ȳ; f, σ²/w) √(2πσ²/w) (2πσ²)^{−w/2} exp(−Σ (y_i − ȳ)² / 2σ²).
    """
    if weight is None:
        return 0.0, 0.0
    w, columns = weight[:, None], m if noise.shape[1] == 1 else 1
    value = 0.5 * columns * float(((w - 1.0) * np.log(2.0 * np.pi * noise * w) + np.log(w)).sum())
    apart = 0.0 if scatter is None else 0.5 * float((scatter / (noise * w)).sum())
    return value + apart, 0.5 * m * float((w - 1.0).sum()) - apart


def _log_determinant(K: Operator, noise: Array, method: str, rng: np.random.Generator) -> Estimate:
    if method == "stochastic":
        return stochastic_log_determinant(K, noise, rng)
    if method == "bound":
        return Estimate(bound_log_determinant(K, noise), 0.0)
    return Estimate(factorise(K.to_dense(), noise, overwrite=True).log_determinant(), 0.0)
