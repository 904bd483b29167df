"""Numbers as the targets of a process: less their prior mean, over their scale, equal rows joined."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.fields import Numbers, flag
from saccade.estimators.losses import DensityLosses
from saccade.estimators.part import Part, part_record
from saccade.estimators.prior_mean import MeanOption, check_mean, check_targets, offset_and_scale, values_at
from saccade.estimators.repeats import Looks, join, unseen
from saccade.estimators.targets import Targets, joined_weight, over_copies
from saccade.inference.likelihoods.prior_mean import PriorMean


@dataclass(frozen=True, eq=False)
class TargetUnits(Part):
    """The units of the targets: what is subtracted from them, and what the rest is divided by.

    >>> units = TargetUnits(np.array([10.0]), np.array([2.0]), flat=True)
    >>> units(np.zeros((2, 3))), units.values(np.array([[5.0], [6.0]]))
    (array([[5.],
           [5.]]), array([10., 12.]))
    """

    offset: Annotated[Array, "m"]
    scale: Annotated[Array, "m"]
    flat: bool  # whether y was (n,): predictions are then (n,) too
    function: Callable[[Any], Any] | None = None  # the prior mean where it is one of X; the offset is 0 then
    in_header = True

    def __post_init__(self) -> None:
        if (self.scale <= 0).any() or (self.flat and self.offset.size > 1):
            raise ValueError("offset and scale of the targets do not fit together")

    @classmethod
    def before_fit(cls, X: Any, mean: MeanOption) -> Self:
        """Those of a prior without examples: nothing is normalised."""
        function = check_mean(mean)
        m = 1 if function is None else values_at(function, X).shape[1]
        return cls(*offset_and_scale(np.zeros((1, m)), None, None, mean, False), m == 1, function)

    def __call__(self, X: Any) -> Annotated[Array, "n, m"]:
        """The mean before any example, in units of the process."""
        found = self.prior_mean(X) / self.scale
        return np.asarray(found if found.ndim == 2 else found[None].repeat(X.shape[0], axis=0))

    def prior_mean(self, X: Any) -> Annotated[Array, "n, m"]:  # or (m,) where it is the same everywhere
        """The mean before any example, in units of the targets."""
        return self.offset if self.function is None else values_at(self.function, X, self.offset.size)

    def values(self, found: Array) -> Array:
        """What the process says, (n, m) or (n, m, draws), in units of the targets."""
        return self.squeezed(found * (self.scale if found.ndim == 2 else self.scale[:, None]))

    def to_state(self) -> dict[str, Any]:
        """The fields as values for JSON; an error where the prior mean is a function."""
        self.check_savable()
        return super().to_state()

    def check_savable(self) -> None:
        """An error where the prior mean is a function."""
        if self.function is not None:
            raise InvalidParameter(
                "A model whose `mean` is a function cannot be saved: a file holds no code. Fit a model without it to "
                "y - mean(X), save that, and add mean(X) to its predictions."
            )

    def squeezed(self, found: Array) -> Array:
        """Without the axis of the targets (the second), where y had none."""
        return np.asarray(found[:, 0] if self.flat else found)


class Normalising(NamedTuple):
    """The parameters of `GPRegressor` that offset and scale come from."""

    mean: MeanOption
    normalize: bool

    def units(
        self,
        y: Annotated[Array, "n | n, m"],
        prior: Annotated[Array, "n, m"] | None,
        weight: Annotated[Array, "n"] | None,
        apart: Annotated[Array, "n, m"] | None,
        function: Callable[[Any], Any] | None,
    ) -> TargetUnits:
        Y = y.reshape(len(y), -1)
        Y = Y if prior is None else Y - prior
        return TargetUnits(*offset_and_scale(Y, weight, apart, self.mean, self.normalize), y.ndim == 1, function)


@dataclass(frozen=True, eq=False)
class NumberTargets(Targets):
    """Targets of a regression.

    >>> how = Normalising(mean=None, normalize=True)
    >>> targets = NumberTargets.of(Looks(np.zeros((2, 1)), np.array([1.0, 3.0])), how)
    >>> targets.left()[:, 0]
    array([-1.,  1.])
    """

    y: Annotated[Array, "n | n, m"]  # in their own units; of equal rows that were joined, the mean
    units: TargetUnits
    weight: Annotated[Array, "n"] | None = None  # how many looks each row stands for
    apart: Annotated[Array, "n, m"] | None = None  # Σ (y − ȳ)² of equal rows that were joined
    prior: Annotated[Array, "n, m"] | None = None  # the prior mean at the rows, where it is a function
    keys: list[bytes] | None = None  # digests of the rows, where `noise` is 0 and a row counts once

    @classmethod
    def of(cls, looks: Looks, how: Normalising, keys: list[bytes] | None = None) -> Self:
        """Of rows with their targets."""
        function = check_mean(how.mean)
        prior = None if function is None else values_at(function, looks.X, looks.y[0].size)
        units = how.units(looks.y, prior, looks.weight, looks.scatter, function)
        return cls(looks.y, units, looks.weight, looks.scatter, prior, keys)

    def grown(self, X: Any, y: Array, weight: Array | None, how: Normalising, exact: bool) -> tuple[Any, Self]:
        """With further rows, all of them or, if targets are `exact`, those not seen yet; returns these rows too."""
        if y.shape[1:] != self.y.shape[1:]:
            raise InvalidInput(f"`y` must have {self.y[0].size} target(s) as in the first call, got shape {y.shape}.")
        function = self.units.function
        if check_mean(how.mean) != function:
            raise InvalidParameter("A function as `mean` must stay as in the first call. Call fit instead.")
        if (self.keys is not None) != exact:
            raise InvalidParameter("`noise` cannot change from or to 0 between calls of partial_fit. Call fit instead.")
        looks, keys = Looks(X, check_targets(y), weight), None
        if self.keys is not None:
            looks, keys = unseen(X, looks.y, self.keys, self.y)
        n, b = len(self.y), len(looks.y)
        joined, every = joined_weight(self.weight, n, looks.weight, b), np.concatenate([self.y, looks.y])
        apart, prior = self.apart, self.prior
        if apart is not None:
            apart = np.vstack([apart, np.zeros((b, apart.shape[1]))])
        if prior is not None and function is not None:
            prior = np.vstack([prior, values_at(function, looks.X, self.units.offset.size)])
        units = how.units(every, prior, joined, apart, function)
        return looks.X, type(self)(every, units, joined, apart, prior, keys)

    def carried(self, alpha: Array, before: TargetUnits) -> Annotated[Array, "n, m"]:
        """An older solution in the units of these targets, zero for what is new: where the solver starts."""
        new = len(self.y) - len(alpha)
        return np.vstack([alpha * (before.scale / self.units.scale), np.zeros((new, alpha.shape[1]))])

    def columns(self) -> Annotated[Array, "n, m"]:
        return np.asarray(self.y.reshape(len(self.y), -1) / self.units.scale)

    def prior_mean(self) -> PriorMean:
        values = np.broadcast_to(self.units.offset, (len(self.y), self.units.offset.size))
        return PriorMean(self.units, (values if self.prior is None else self.prior) / self.units.scale)

    def left(self) -> Annotated[Array, "n, m"]:
        """The targets less the prior mean: what is learned."""
        return np.asarray(self.columns() - self.prior_mean().values)

    def noise_diagonal(self, noise: float) -> Annotated[Array, "n, 1"]:
        return over_copies(noise, len(self.y), self.weight)

    def losses(self) -> DensityLosses:
        return DensityLosses.of(self.left(), self.weight)

    def scatter(self) -> Array | None:
        return None if self.apart is None else self.apart / self.units.scale**2

    @property
    def count(self) -> float:
        """The number of looks."""
        return float(len(self.y) if self.weight is None else self.weight.sum())

    def to_state(self) -> dict[str, Array | None]:
        self.units.check_savable()
        return {"y": self.y, "weight": self.weight, "apart": self.apart}

    @classmethod
    def from_state(cls, X: Any, state: dict[str, Array], how: Normalising, exact: bool) -> Self:
        y = state["y"]
        keys = unseen(X, y, [], y[:0])[1] if exact else None
        return cls.of(Looks(X, y, state.get("weight"), state.get("apart")), how, keys)


def looks_at(X: Any, y: Array, weight: Array | None, joins: bool, exact: bool) -> tuple[Looks, list[bytes] | None]:
    """The rows to learn from, each once where that changes nothing, and their keys if targets are `exact`."""
    y = check_targets(y)
    if exact:
        return unseen(X, y, [], y[:0])
    return join(X, y, weight) if joins else Looks(X, y, weight), None


TargetUnits.record = part_record(TargetUnits, {"offset": Numbers("m"), "scale": Numbers("m"), "flat": flag()})
