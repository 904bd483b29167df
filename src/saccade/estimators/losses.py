"""How tuning judges predictions: cross-entropy for classes, the density of the targets for numbers."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from saccade._core.arrays import Array
from saccade.scores.probability import cross_entropy, example_costs


@dataclass(frozen=True)
class ClassLosses:
    """Cross-entropy at the best temperature. An example with a weight is left out with all its copies."""

    label: Annotated[Array, "n"]
    weight: Annotated[Array, "n"] | None
    has_scale: ClassVar[bool] = False

    def subset(self, rows: Array) -> Self:
        return type(self)(self.label[rows], None if self.weight is None else self.weight[rows])

    def left_out(self, mean: Array, variance: Array) -> tuple[float, Array, Array]:
        value, slope = cross_entropy(mean, self.label, self.weight)
        return len(mean) * value, len(mean) * slope, np.zeros_like(variance)

    def costs(self, mean: Array) -> Annotated[Array, "n"]:
        """What each example costs, for a choice between few candidates."""
        return example_costs(mean, self.label, self.weight)

    def score(self, mean: Array) -> float:
        return cross_entropy(mean, self.label, self.weight)[0]


@dataclass(frozen=True)
class DensityLosses:
    """−log N(y; mean, variance) for leave-one-out predictions; the mean squared error for others."""

    Y: Annotated[Array, "n, m"]
    weight: Annotated[Array, "n, 1"]  # 1 on average
    has_scale: ClassVar[bool] = True

    @classmethod
    def of(cls, Y: Array, weight: Array | None) -> Self:
        return cls(Y, np.ones((len(Y), 1)) if weight is None else (weight / weight.mean())[:, None])

    def subset(self, rows: Array) -> Self:
        return type(self)(self.Y[rows], self.weight[rows])

    def left_out(self, mean: Array, variance: Array) -> tuple[float, Array, Array]:
        off, w = self.Y - mean, self.weight
        value = 0.5 * w * (np.log(2.0 * np.pi * variance) + off**2 / variance)
        by_variance = 0.5 * w * (1.0 / variance - off**2 / variance**2)
        if variance.shape[1] == 1:
            by_variance = by_variance.sum(axis=1, keepdims=True)
        return float(value.sum()), -w * off / variance, by_variance

    def score(self, mean: Array) -> float:
        return float((self.weight * np.square(self.Y - mean)).mean())
