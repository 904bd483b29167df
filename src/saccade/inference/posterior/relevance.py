"""Which features move the answer of an additive model f(x) = Σ_d f_d(x_d)."""

from typing import Annotated

import numpy as np

from saccade._core.arrays import Array
from saccade.kernels.gram import Gram, TabledGram
from saccade.operators.codes import level_dims

ROUNDING = 1e-12  # of f_d: smaller differences are left to the processor


def deviations(
    gram: Gram,
    alpha: Annotated[Array, "n, m"],  # f is Σ_i α_i k(x_i, ·)
    weight: Annotated[Array, "n"] | None,  # of the training examples; None for ones
) -> Annotated[Array, "features"]:
    """The standard deviation of f_d over the training examples; of several outputs the root of the sum of squares.

    f_d is 0 at a zero, and an example has a positive or a negative part, not both. So the levels of both parts, and a
    zero for every other example, are all values that f_d takes.
    """
    if not isinstance(gram, TabledGram):
        raise AttributeError(
            "feature_relevance_ needs a fitted HIK model with its training examples, and other kernels are no sums "
            "over features. sklearn.inspection.permutation_importance serves any model."
        )
    tables, weight = gram.tables(alpha), np.ones(gram.shape[0]) if weight is None else weight
    counts, features = gram.level_counts(weight), gram.width
    dims, total = level_dims(tables.level_starts) % features, float(weight.sum())
    zeros, squares, sizes = total - np.bincount(dims, counts, features), np.zeros(features), np.zeros(features)
    for values in tables.T.T:
        mean = np.bincount(dims, counts * values, features) / total
        squares += np.bincount(dims, counts * np.square(values - mean[dims]), features) + zeros * mean**2
        sizes += np.bincount(dims, counts * np.square(values), features)
    squares[squares <= ROUNDING**2 * sizes] = 0.0  # a feature that is the same for all examples
    return np.asarray(np.sqrt(squares / total))
