"""The approximations of A and O by their names.

    exact       K̃⁻¹ itself                                       no approximation
    diagonal    FA, A §5: D̃ = the row sums of K̃                  ≥ exact; kernel values ≥ 0
    optimized   OA, A §4: the D⁻¹ ≥ 0 nearest below K̃⁻¹           ≥ exact
    optimized-signed  A (6) as printed: D⁻¹ of either sign       ≥ exact
    lowrank     the leading directions of K̃                      ≥ exact
    sod         a subset of the examples, the rest forgotten     ≥ exact
    fitc        inducing points, A §2.2                          on neither side
    dtc         the same without what they leave of K            on neither side
    sor         the same, also for the new example               ≤ exact; 0 far from all inducing points
    parzen      D = nI, O §3.1                                   on neither side

The right-hand column says where the variance lies.
"""

from typing import Any

import numpy as np

from saccade._core.checks import check_choice
from saccade.inference.base import Approximation, Trained
from saccade.inference.diagonal import diagonal, parzen
from saccade.inference.exact import Exact
from saccade.inference.inducing import inducing_points
from saccade.inference.low_rank import low_rank
from saccade.inference.optimized import optimized

__all__ = ["APPROXIMATIONS", "Approximation", "Trained", "approximate"]

Array = np.ndarray[Any, np.dtype[Any]]
APPROXIMATIONS = (
    "exact",
    "diagonal",
    "optimized",
    "optimized-signed",
    "fitc",
    "sor",
    "dtc",
    "sod",
    "lowrank",
    "parzen",
)


def approximate(
    method: str,
    trained: Trained,
    *,
    rank: int = 128,  # of "lowrank"
    held_out: Array | None = None,  # examples that stay new to "lowrank", for others to be compared with
    inducing: float | Array = 0.25,  # of "fitc", "sor", "dtc" and "sod": a share, or example numbers
    rng: np.random.Generator,
) -> Approximation:
    """The approximation of that name, ready for any number of examples."""
    check_choice("approximation", method, APPROXIMATIONS)
    if method == "exact":
        return Exact(trained)
    if method == "diagonal":
        return diagonal(trained.K, trained.noise)
    if method == "parzen":
        return parzen(trained.K.shape[0])
    if method in ("optimized", "optimized-signed"):
        return optimized(trained, signed=method == "optimized-signed")
    if method == "lowrank":
        return low_rank(trained.K, trained.noise, rank, rng, held_out)
    return inducing_points(method, trained, inducing, rng)
