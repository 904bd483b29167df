"""Whether labels are solved for by a Cholesky factor or by conjugate gradients, and when a factor is made later."""

from typing import Annotated

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade.inference.solving.regression import Solver, keeps_factors
from saccade.operators.base import Operator

ITERATIONS = (
    20.0  # of conjugate gradients where the noise is a tenth of k(x, x); they grow with the root of k over noise
)
TENTH = 0.1


def labels_by(
    solver: Solver,
    K: Operator,
    noise: Annotated[Array, "n, 1 | n, m"],
    columns: int,  # of labels
) -> Solver:
    """What "auto" stands for with labels: "cg" where it is so much quicker that an estimated leave-one-out is worth it.

    Never where the matrix is there, where columns have noise of their own, or for many columns: an estimated diagonal
    of the inverse then moves decisions (docs/decisions/040).
    """
    n, quiet = K.shape[0], float(noise.min(initial=np.inf))
    few = noise.shape[1] == 1 and columns <= limits.ESTIMATED_COLUMNS
    if solver != "auto" or K.in_memory or not few or n <= limits.SOLVE_EACH_UP_TO:
        return solver
    factor = limits.PAIR_NS * n * K.work / 2.0 + limits.CUBE_NS * float(n) ** 3
    steps = ITERATIONS * max(1.0, np.sqrt(TENTH * float(K.diag().mean()) / max(quiet, 1e-300)))
    product = limits.PRODUCT_NS * K.work * (1.0 + columns / 4.0)
    return "cg" if limits.EXACT_IS_WORTH * (limits.ITERATED_NS + steps * product) < factor else solver


def factor_when_asked(solver: Solver, K: Operator, noise: Array) -> bool:
    """Whether questions about the exact posterior make a factor, though the labels were iterated."""
    return solver == "auto" and K.shape[0] <= limits.FACTOR_UP_TO and keeps_factors(K, noise)
