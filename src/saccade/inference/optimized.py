"""The optimised diagonal approximation OA (A §4): of all diagonals below K̃⁻¹ the one that leaves the least.

    min over D⁻¹ of λ_max(K̃⁻¹ − D⁻¹)   subject to   λ_min(K̃⁻¹ − D⁻¹) ≥ 0,   D⁻¹ ≥ 0      A (6)

λ_max is replaced by the smooth and convex ε log Σ exp(λ_i/ε), at most ε log n above it, for a row of shrinking ε (Chen
et al. 2004), and the constraint by ε/n times a logarithmic barrier. Each stage is minimised by L-BFGS-B from one
eigendecomposition a step; its solution is scaled onto the constraint, so that whatever is returned is feasible, and
the best one is kept. The first candidate is the diagonal of row sums (FA), so the result never leaves more than that.

Learning takes some hundred times n³. Where the largest eigenvalue of K̃⁻¹ belongs to few examples, OA spends all it has
on those, and on average over new examples may explain less than FA, as A found in two of its three data sets.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from saccade._core.progress import report
from saccade.inference.base import Trained
from saccade.inference.diagonal import Diagonal
from saccade.operators.base import written_out
from saccade.solvers.cholesky import factorise

Array = np.ndarray[Any, np.dtype[Any]]
SHRINK = 0.8  # of ε from one stage to the next, A §4
SMALLEST = 1e-4  # ε: λ_max is then right to four digits
STEPS = 20  # a stage: the next one starts where it ends
PATIENCE = 8  # stages without a gain before the end
GAIN = 1e-4  # share of λ_max that counts as one
INSIDE = 0.9  # of FA, which is on the edge of the constraint: where the barrier starts
BEYOND = 1e-3  # times ε: eigenvalues from which the barrier goes on as a parabola, finite for steps that go too far


@dataclass(frozen=True)
class Search:
    """How D⁻¹ was found."""

    epsilon: float  # of the last stage, in units of λ_max(K̃⁻¹)
    largest: float  # λ_max(K̃⁻¹ − D⁻¹)
    largest_of_sums: float  # the same for FA
    iterations: int  # eigendecompositions


@dataclass(frozen=True)
class Optimized(Diagonal):
    """OA, and the record of each column of the noise."""

    searches: tuple[Search, ...]


def optimized(trained: Trained) -> Optimized:
    """D⁻¹ for every column of the noise."""
    K = written_out(trained.K)
    found = [_search(trained, K, j) for j in range(trained.noise.shape[1])]
    return Optimized(np.column_stack([inverse for inverse, _ in found]), tuple(record for _, record in found))


def _search(trained: Trained, K: Array, j: int) -> tuple[Array, Search]:
    """D⁻¹ (n,) for one column of the noise."""
    noise = trained.noise[:, j]
    P = (trained.factors[j] if trained.factors else factorise(K, noise)).inverse()
    sums = 1.0 / (np.abs(K).sum(axis=1) + noise)  # absolute values: for any kernel below K̃⁻¹
    unit = float(np.linalg.eigvalsh(P)[-1])
    best, least = sums, float(np.linalg.eigvalsh(P - np.diag(sums))[-1])
    surrogate = _Surrogate(P, sums, unit)
    start, since, x = least, 0, np.full(len(K), INSIDE)
    used = epsilon = 1.0
    while epsilon >= SMALLEST and since < PATIENCE and least > GAIN * GAIN * unit:
        x = surrogate.minimise(x, epsilon)
        inverse = _onto_constraint(K, noise, sums * x)
        largest = float(np.linalg.eigvalsh(P - np.diag(inverse))[-1])
        since = 0 if largest < (1.0 - GAIN) * least or least == start else since + 1
        if largest < least:
            best, least = inverse, largest
        used, epsilon = epsilon, SHRINK * epsilon
        report("variance", float(np.log(used) / np.log(SMALLEST)))
    return best, Search(used, least, start, surrogate.count)


def _onto_constraint(
    K: Array,  # (n, n)
    noise: Array,  # (n,)
    inverse: Array,  # (n,)
) -> Array:  # (n,)
    """γD⁻¹ with the largest γ that keeps it below K̃⁻¹: 1/γ = λ_max(D^−½K̃D^−½), and a little less for rounding."""
    root = np.sqrt(inverse)
    scaled = root[:, None] * K * root
    scaled[np.diag_indices_from(scaled)] += inverse * noise
    top = float(np.linalg.eigvalsh(scaled)[-1])
    slack = 1.0 + 8 * len(K) * np.finfo(np.float64).eps
    return inverse / (top * slack) if top > 0 else inverse


class _Surrogate:
    """The smooth objective over x ≥ 0, D⁻¹ = x times that of FA; eigenvalues in units of λ_max(K̃⁻¹)."""

    def __init__(self, P: Array, sums: Array, unit: float) -> None:
        self.P, self.sums, self.unit, self.count = P, sums, unit, 0

    def minimise(self, x: Array, epsilon: float) -> Array:
        found = minimize(
            self._value,
            x,
            (epsilon,),
            method="L-BFGS-B",
            jac=True,
            bounds=[(0.0, None)] * x.size,
            options={"maxiter": STEPS},
        )
        return np.asarray(found.x)

    def _value(self, x: Array, epsilon: float) -> tuple[float, Array]:
        """ε log Σ exp(λ_i/ε) − (ε/n) Σ log λ_i and its slope: the weights of the λ_i on the squared eigenvectors."""
        self.count += 1
        values, vectors = np.linalg.eigh((self.P - np.diag(self.sums * x)) / self.unit)
        powers = np.exp((values - values[-1]) / epsilon)
        edge, share = BEYOND * epsilon, epsilon / x.size
        inside, over = np.maximum(values, edge), np.minimum(values / edge - 1.0, 0.0)
        barrier = -np.log(inside) - over + over**2 / 2
        value = values[-1] + epsilon * np.log(powers.sum()) + share * barrier.sum()
        weights = powers / powers.sum() + share * (over / edge - 1.0 / inside)
        return float(value), -np.square(vectors) @ weights * self.sums / self.unit
