"""K̃⁻¹ replaced by a diagonal matrix D⁻¹ (A §3): testing takes linear time, and D ⪰ K̃ makes the variance a bound."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.threads import share, thread_count
from saccade.inference.approximations.base import Approximation, RegularizedSystem, outputs
from saccade.operators.base import Operator

ROUNDING = 1e-12  # share of the largest kernel value below which a negative one is taken for zero


@dataclass(frozen=True)
class Diagonal(Approximation):
    """D⁻¹, one column for each column of the noise.

    An example that stands for w copies, each with D⁻¹ = p, has wp.
    """

    inverse: Annotated[Array, "n, 1 | n, m"]  # ≥ 0
    weight: Annotated[Array, "n"] | None = None  # copies

    def explained(self, k_star: Annotated[Array, "n, b"]) -> Annotated[Array, "b, 1 | b, m"]:
        """Σ_j (k*_j)² / D_jj, A (12): a lower bound of k*ᵀK̃⁻¹k* where D ⪰ K̃."""
        if self.inverse.shape[1] == 1 and k_star.size >= limits.COMPILED_SQUARES_FROM:
            return _weighted_squares(np.ascontiguousarray(k_star), self.inverse[:, 0].copy())
        return np.asarray(np.square(k_star).T @ self.inverse)

    def weights(self, Y: Annotated[Array, "n, m"]) -> Annotated[Array, "n, m"]:
        """D⁻¹Y, A (13)."""
        return np.asarray(self.inverse * Y)

    def left_out(
        self,
        k_rows: Annotated[Array, "n, b"],
        prior: Annotated[Array, "b"],
        rows: Annotated[Array, "b"],
        Y: Annotated[Array, "n, m"],
    ) -> tuple[Annotated[Array, "b, m"], Annotated[Array, "b, 1 | b, m"]]:
        """Mean and variance without the term of one copy of the example, D being what it is without that copy."""
        copies = np.ones(len(k_rows)) if self.weight is None else self.weight
        own_place, gone = (rows, np.arange(rows.size)), np.minimum(copies[rows], 1.0)
        count = np.repeat(copies[:, None], rows.size, axis=1)
        count[own_place] -= gone
        others = np.where(count > 0, k_rows, 0.0)
        means, known = [], []
        for j, inverse in enumerate(self.inverse.T):
            shares = count * others * self._without((inverse / copies)[:, None], others, gone)
            means.append(shares.T @ outputs(Y, self.inverse, j))
            known.append(np.einsum("ij,ij->j", shares, others))
        top = prior[:, None]
        return np.hstack(means), np.clip(top - np.column_stack(known), 0.0, top)

    def leaves_all(self, weight: Array) -> Array | None:
        return None

    def _without(
        self,
        inverse: Annotated[Array, "n, 1"],  # of one copy
        others: Annotated[Array, "n, b"],  # K_ji, 0 where no copy is left
        gone: Annotated[Array, "b"],  # copies of example i that are left out, 1 or less
    ) -> Annotated[Array, "n, 1 | n, b"]:
        """D⁻¹ of a copy without one of example i.

        As it is: a principal submatrix of D − K̃ ⪰ 0 is ⪰ 0, so the bound stands.
        """
        return inverse


class RowSums(Diagonal):
    """The fast approximation FA (A §5): D̃_jj = Σ_i K̃_ij."""

    def _without(self, inverse: Array, others: Array, gone: Array) -> Array:
        """1 / (D̃_jj − K_ij): what training without example i gives."""
        return np.asarray(inverse / (1.0 - inverse * others * gone))


class Parzen(Diagonal):
    """D = nI: the mean is Parzen's estimator (O §3.1), the variance k** less the mean squared kernel value.

    No bound: it is one only where K̃ ⪯ nI, such as for k(x, x) ≤ 1 − σ².
    """

    def _without(self, inverse: Array, others: Array, gone: Array) -> Array:
        return np.asarray(inverse / np.maximum(1.0 - inverse * gone, np.finfo(np.float64).eps))


def diagonal(trained: RegularizedSystem) -> RowSums:
    """FA, A (12): one pass over K, which must not be negative, and n numbers.

    D̃ − K̃ is diagonally dominant, hence positive semi-definite, and D̃⁻¹ is below K̃⁻¹. Of w copies, each has
    D̃ = Σ_i w_i K_ij + σ², and N is σ²/w.
    """
    sums, weight = _row_sums(trained.K), trained.weight
    if weight is not None:
        sums = trained.K.matmul(weight[:, None]) / weight[:, None]
    return RowSums(1.0 / (sums + trained.noise), weight)


def parzen(trained: RegularizedSystem) -> Parzen:
    """Parzen's estimator for n examples."""
    weight = np.ones(trained.K.shape[0]) if trained.weight is None else trained.weight
    return Parzen((weight / weight.sum())[:, None], trained.weight)


def _weighted_squares(k_star: Annotated[Array, "n, b"], weight: Annotated[Array, "n"]) -> Annotated[Array, "b, 1"]:
    """Σ_j weight_j (k*_j)², every k* read once."""
    from saccade.operators import loops

    found = np.zeros(k_star.shape[1])
    share(lambda _, a, b: loops.weighted_squares(k_star, weight, a, b, found), found.size, thread_count())
    return found[:, None]


def _row_sums(K: Operator) -> Annotated[Array, "n, 1"]:
    """Σ_j K_ij; an error where a kernel value is negative."""
    sums, smallest = K.row_sums()
    if smallest < -ROUNDING * float(K.diag().max(initial=0.0)):
        raise InvalidInput(
            f"The diagonal approximation needs kernel values ≥ 0, got {smallest:.3g} between two training examples. "
            'Use "lowrank" or "exact" in the place of "diagonal", or a kernel such as HIK or RBF.'
        )
    return sums[:, None]
