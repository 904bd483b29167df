"""Predictive variance k** − k*ᵀK̃⁻¹k* (A (2), no noise added): exact, or an upper bound that costs less.

Every method is a lower bound of what the training examples explain, k*ᵀK̃⁻¹k*. Costs are for one new example and n
training examples with s non-zeros each; for other kernels than the intersection, read n · D wherever s stands alone.

    exact      k*ᵀK̃⁻¹k*                                     n² (a factor) or a solve
    fine       low rank, rest over the next eigenvalue       n · s
    diagonal   Σ_j (k*_j)² / D̃_jj, A (12)                    n · s
    lowrank    ‖Wᵀk*‖² from tables                           rank · s
    rough      ‖k*‖² from below over the first eigenvalue    s
"""

from typing import Any

import numpy as np

from saccade.inference.approximation import approximate
from saccade.inference.base import Explains, Trained
from saccade.inference.eigenvalue_bounds import fine, rough
from saccade.inference.exact import Exact
from saccade.inference.low_rank import low_rank

__all__ = ["METHODS", "Exact", "Explains", "Trained", "choose", "explainer"]

Array = np.ndarray[Any, np.dtype[Any]]
METHODS = (None, "auto", "exact", "lowrank", "diagonal", "fine", "rough")
EXACT_UP_TO = 2048  # examples: exact takes a third of a millisecond there, and tables two seconds to make


def choose(method: str | None, tables: bool, n: int, factors: bool) -> str | None:
    """The method that "auto" stands for; `tables` and `factors` say what there is of them."""
    if method != "auto":
        return method
    return "exact" if not tables or (factors and n <= EXACT_UP_TO) else "lowrank"


def explainer(
    method: str,
    trained: Trained,
    rank: int,
    rng: np.random.Generator,
    held_out: Array | None = None,
) -> Explains:
    """The method, made ready for any number of examples."""
    K, noise = trained.K, trained.noise
    if method == "rough":
        return rough(K, noise)
    if method == "fine":
        return fine(K, noise, low_rank(K, noise, rank, rng), rng)
    return approximate(method, trained, rank=rank, held_out=held_out, rng=rng)
