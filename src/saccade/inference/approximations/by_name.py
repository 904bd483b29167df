"""Every approximation by its name, the same list for all estimators (A, O).

    exact       K̃⁻¹ itself                                       no approximation
    lowrank     the leading directions of K̃                      ≥ exact
    diagonal    FA, A §5: D̃ = the row sums of K̃                  ≥ exact; kernel values ≥ 0
    optimized   OA, A §4: the D⁻¹ ≥ 0 nearest below K̃⁻¹           ≥ exact
    optimized-signed  A (6) as printed: D⁻¹ of either sign       ≥ exact
    fitc        inducing points, A §2.2                          on neither side
    dtc         the same without what they leave of K            on neither side
    sor         the same, also for the new example               ≤ exact; 0 far from all inducing points
    sod         a subset of the examples, the rest forgotten     ≥ exact
    parzen      D = nI, O §3.1                                   on neither side
    fine        lowrank, and the rest over the next eigenvalue   ≥ exact; for the variance alone

The right-hand column says where the variance lies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.checks import check_choice, is_number
from saccade.inference.approximations.base import Approximation, PerOutput, RegularizedSystem, VarianceApproximation
from saccade.inference.approximations.diagonal import diagonal, parzen
from saccade.inference.approximations.eigenvalue_bounds import fine
from saccade.inference.approximations.exact import Exact
from saccade.inference.approximations.inducing import inducing_points
from saccade.inference.approximations.low_rank import low_rank, low_ranks
from saccade.inference.approximations.optimized import optimized

Method = Literal[
    "exact", "lowrank", "diagonal", "optimized", "optimized-signed", "fitc", "dtc", "sor", "sod", "parzen", "fine"
]
VARIANCES: tuple[Method, ...] = get_args(Method)
APPROXIMATIONS: tuple[Method, ...] = VARIANCES[:-1]
STREAMS = ("diagonal", "parzen", "fitc", "dtc", "sor", "sod")  # need some columns or one pass: K is never held
LEAST_RANK = 8  # of a low rank for each class: most examples say nothing about most classes


@dataclass(frozen=True)
class Approximating:
    """Which approximations of K̃⁻¹ the mean and the variance use."""

    mean: Method = "exact"
    variance: Method | Literal["auto"] | None = "auto"
    rank: int = 128  # of "lowrank" and "fine"
    inducing: Any = 0.25  # of "fitc", "sor", "dtc" and "sod": a share of the examples, or their numbers
    compares: bool = True  # whether "lowrank" keeps examples apart that new ones are compared with

    def variance_method(self, tables: bool, n: int, factors: bool) -> Method | None:
        """For "auto" the method of the mean, or a cheaper bound where an exact one takes long."""
        if self.variance != "auto":
            return self.variance
        return resolve_method("auto", tables, n, factors) if self.mean == "exact" else self.mean

    def directions(self, columns: int) -> int:
        """The rank of "lowrank" where so many columns of the noise have directions of their own; 1: all share them."""
        return self.rank if columns == 1 else max(LEAST_RANK, 2 * self.rank // columns)

    def on_some(
        self,
        rows: Annotated[Array, "b"],  # ascending numbers of examples
    ) -> Approximating:
        """For these examples alone, with a variance in any case."""
        given = self.inducing if is_number(self.inducing) else np.flatnonzero(np.isin(rows, self.inducing))
        return replace(self, inducing=given, variance=self.variance or "exact")

    @property
    def streams(self) -> bool:
        """Whether the kernel matrix need not be held."""
        return self.mean in STREAMS and self.variance in (*STREAMS, "auto", None)

    def ready(
        self,
        method: Method,
        trained: RegularizedSystem,
        held_out: Array | None,
        rng: np.random.Generator,
        apart: bool = False,  # whether "lowrank" has directions of its own for each column of the noise
    ) -> VarianceApproximation:
        """The approximation of that name, ready for any number of examples."""
        K, noise = trained.K, trained.noise
        if method == "exact":
            return Exact(trained)
        if method == "diagonal":
            return diagonal(trained)
        if method == "parzen":
            return parzen(trained)
        if method in ("optimized", "optimized-signed"):
            return optimized(trained, signed=method == "optimized-signed")
        if method == "lowrank" and apart and noise.shape[1] > 1:
            return PerOutput(low_ranks(K, noise, self.directions(noise.shape[1]), rng, held_out))
        if method == "lowrank":
            return low_ranks(K, noise.max(axis=1, keepdims=True), self.rank, rng, held_out)[0]  # see `low_rank`
        if method == "fine":
            return fine(K, noise, low_rank(K, noise, self.rank, rng), rng)
        return inducing_points(method, trained, self.inducing, rng)


def approximate(
    method: Method,
    trained: RegularizedSystem,
    *,
    rank: int = 128,
    inducing: Any = 0.25,
    rng: np.random.Generator,
) -> Approximation:
    """The approximation of mean and variance of that name."""
    check_choice("approximation", method, APPROXIMATIONS)
    found = Approximating(rank=rank, inducing=inducing).ready(method, trained, None, rng)
    assert isinstance(found, Approximation)
    return found


def resolve_method(method: Method | Literal["auto"], tables: bool, n: int, factors: bool) -> Method:
    """The method that "auto" stands for; `tables` and `factors` say what there is of them."""
    if method != "auto":
        return method
    return "exact" if not tables or (factors and n <= limits.FACTOR_UP_TO) else "lowrank"
