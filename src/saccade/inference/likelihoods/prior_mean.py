"""The mean of a process before any example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from saccade._core.arrays import Array

Mean = Callable[[Any], Array]  # rows (b, d) -> (b, m)


@dataclass(frozen=True, eq=False)
class PriorMean:
    """m(x) for any rows, and its values at the training rows: the process learns what targets have beside it.

    Values are kept because rows that are rounded to levels are not there any more as they came.
    """

    function: Mean
    values: Annotated[Array, "n, m"]

    def __call__(self, X: Any) -> Array:
        return self.function(X)

    def appended(self, X: Annotated[Any, "b, d"]) -> PriorMean:
        """With the values at further rows."""
        return PriorMean(self.function, np.vstack([self.values, self.function(X)]))


def plus(mean: Mean | None, X: Annotated[Any, "b, d"], learned: Annotated[Array, "b, m | b, m, count"]) -> Array:
    """What was learned, on top of the prior mean."""
    if mean is None:
        return learned
    before = mean(X)
    return np.asarray(learned + (before[:, :, None] if learned.ndim == 3 else before))


def plus_values(
    mean: PriorMean | None,
    rows: Array | slice,  # of training examples
    learned: Annotated[Array, "b, m"],
) -> Annotated[Array, "b, m"]:
    """What was learned about training examples, on top of the prior mean."""
    return learned if mean is None else np.asarray(learned + mean.values[rows])
