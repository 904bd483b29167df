"""A warning for each parameter that ended at the least or the most it may be."""

import warnings
from typing import Annotated, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from saccade._core.arrays import Array
from saccade.inference.tuning.objective import Objective

AT_BOUND = {  # what it means
    ("power", "least"): "Only whether a feature is there seems to count, not how much of it: 0 and 1 as features, or "
    "HIK(Power(0.25)), serve about as well. ",
    ("noise", "most"): "The features seem to tell nothing of the labels: check that rows and labels belong together. ",
    (
        "noise",
        "least",
    ): "The labels seem to be free of noise; repeated rows, one in training and one new, look so too. ",
}


def warn_of_bounds(
    objective: Objective,
    theta: Annotated[Array, "p"],  # where the search ended
    free: Annotated[Array, "p"],  # which coordinates could move
) -> None:
    """Warn of single parameters that ended at a bound, and say what to do."""
    for k in np.flatnonzero(free):
        name, (_, lower, upper, unit) = objective.names[k], objective.table[k]
        at_least, at_most = theta[k] - lower < 1e-3 * unit, upper - theta[k] < 1e-3 * unit
        if objective.names.count(name) > 1 or not (at_least or at_most):
            continue
        value = theta[k] if name in objective.plain else np.exp(theta[k])
        side: Literal["least", "most"] = "least" if at_least else "most"
        warnings.warn(
            f"Tuning ended at the bound of {name}: {value:.3g}, the {side} it may be. The examples do not say where to "
            f"stop. {AT_BOUND.get((name, side), '')}Keep the model as it is, or set {name} yourself, name it in "
            f'Tune(fixed=("{name}",)), and compare the leave-one-out loss; more examples would help.',
            ConvergenceWarning,
            stacklevel=3,
        )
