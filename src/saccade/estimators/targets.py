"""What a fit learns from: labels as columns of ±1, or members of one class; number_targets.py is for numbers."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol, Self

import numpy as np

from saccade._core.arrays import Array
from saccade._core.checks import check_weight
from saccade._core.errors import InvalidInput
from saccade.estimators.losses import ClassLosses, DensityLosses
from saccade.inference.likelihoods.prior_mean import PriorMean
from saccade.inference.tuning.objective import Losses
from saccade.scores.probability import class_means


class Targets(Protocol):
    """What `Settings.learn` takes beside the rows of X; by default without a prior mean, and nothing was joined."""

    @property
    def weight(self) -> Annotated[Array, "n"] | None:
        """How many equal copies each example stands for; None for one each."""

    def columns(self) -> Annotated[Array, "n, m"]:
        """What the process learns, one column per output."""

    def prior_mean(self) -> PriorMean | None:
        """The mean of the process before any example; None: 0."""
        return None

    def noise_diagonal(self, noise: float) -> Annotated[Array, "n, 1 | n, m"]:
        """The noise of each example with all its copies."""

    def losses(self) -> Losses:
        """How leave-one-out and held-out predictions are judged."""

    def scatter(self) -> Annotated[Array, "n, m"] | None:
        """Σ (y − ȳ)² of examples that were joined to one with target ȳ; None where there are none."""
        return None

    def to_state(self) -> dict[str, Array | None]:
        """What a file with the training rows keeps beside them, (n, …) each."""


@dataclass(frozen=True, eq=False)
class ClassTargets(Targets):
    """Labels of two or more classes: one column of ±1 per class, one column for two classes.

    >>> targets = ClassTargets.of(np.array(["b", "a", "b"]))
    >>> targets.columns()[:, 0], targets.noise_diagonal(0.1)[:, 0]
    (array([ 1., -1.,  1.]), array([0.1, 0.1, 0.1]))
    """

    classes: Annotated[Array, "M"]  # the labels, ascending
    label: Annotated[Array, "n"]  # numbers of classes
    weight: Annotated[Array, "n"] | None = None  # how many equal copies each example stands for
    balanced: bool = False  # whether both sides of each column have the same total weight

    @classmethod
    def of(cls, y: Array, weight: Array | None = None, classes: Any = None, balanced: bool = False) -> Self:
        """Labels as they came; `classes` may name some that have no example yet."""
        found = np.unique(y if classes is None else classes)
        unknown = np.setdiff1d(y, found)
        if unknown.size:
            raise InvalidInput(f"`y` has the label {unknown.tolist()[0]!r}, which is not among `classes`.")
        if found.size < 2:
            raise InvalidInput(
                f"`y` must have at least two classes, got 1 class: {found.tolist()}. Add examples of another class."
            )
        return cls(found, np.searchsorted(found, y), weight, balanced)

    def grown(self, y: Array, weight: Array | None, classes: Array, balanced: bool) -> Self:
        """With further labels, and classes if there are new ones."""
        if (classes.dtype.kind in "US") != (self.classes.dtype.kind in "US"):
            raise InvalidInput(
                f"Labels must stay of one kind: {self.classes.tolist()[:3]} and then {classes.tolist()[:3]}."
            )
        every = np.unique(np.concatenate([self.classes, classes]))
        moved = np.searchsorted(every, self.classes)
        label = np.concatenate([moved[self.label], np.searchsorted(every, y)])
        joined = joined_weight(self.weight, self.label.size, weight, y.size)
        return replace(self, classes=every, label=label, weight=joined, balanced=balanced)

    def carried(
        self,
        alpha: Annotated[Array, "n, m"],  # the solution of the first n examples
        classes: Annotated[Array, "M"],  # those that it knows
    ) -> Array:
        """An older solution in the shape of these targets, zero for what is new: where the solver starts."""
        start = np.zeros((self.label.size, self.outputs))
        if classes.size == self.classes.size:
            start[: len(alpha)] = alpha
        else:
            start[: len(alpha), np.searchsorted(self.classes, classes)] = class_means(alpha)
        return start

    @property
    def outputs(self) -> int:
        return outputs_of(self.classes)

    def columns(self) -> Annotated[Array, "n, 1 | n, M"]:
        if self.outputs == 1:
            return np.where(self.label == 1, 1.0, -1.0)[:, None]
        return np.where(self.label[:, None] == np.arange(self.classes.size), 1.0, -1.0)

    def noise_diagonal(self, noise: float) -> Annotated[Array, "n, 1 | n, M"]:
        found = over_copies(noise, self.label.size, self.weight)
        if not self.balanced:
            return found
        # H §3: N_ii = 2σ² |{j : y_j = y_i}| / n, with y the ±1 labels of each column
        Y = self.columns()
        positive = np.average(Y > 0, axis=0, weights=self.weight)
        return found * 2.0 * np.where(Y > 0, positive, 1.0 - positive)

    def losses(self) -> ClassLosses:
        return ClassLosses(self.label, self.weight)

    def to_state(self) -> dict[str, Array | None]:
        """What a file with the training rows keeps beside them and the classes."""
        return {"y": self.label, "weight": self.weight}

    @classmethod
    def from_state(cls, state: dict[str, Array], classes: Array, balanced: bool) -> Self:
        """From checked arrays of a file; a ValueError where labels are none of the classes."""
        label = state["y"]
        if label.ndim != 1 or not 0 <= label.min() <= label.max() < classes.size:
            raise ValueError("labels beyond the classes")
        return cls(classes, label, state.get("weight"), balanced)


@dataclass(frozen=True)
class MemberTargets(Targets):
    """Examples of one class: 1 each."""

    count: int
    weight: None = None

    def columns(self) -> Annotated[Array, "n, 1"]:
        return np.ones((self.count, 1))

    def noise_diagonal(self, noise: float) -> Annotated[Array, "n, 1"]:
        return over_copies(noise, self.count, None)

    def losses(self) -> DensityLosses:
        return DensityLosses.of(self.columns(), None)

    def to_state(self) -> dict[str, Array | None]:
        return {}


def outputs_of(classes: Array) -> int:
    """The number of columns for these classes."""
    return 1 if classes.size == 2 else int(classes.size)


def over_copies(noise: float, n: int, weight: Array | None) -> Annotated[Array, "n, 1"]:
    """The noise of each example: w copies together have a w-th of it."""
    found = np.full((n, 1), noise)
    return found if weight is None else found / weight[:, None]


def joined_weight(before: Array | None, old: int, weight: Array | None, new: int) -> Array | None:
    """The weights of `old` examples and of `new` ones; None stands for ones."""
    if before is None and weight is None:
        return None
    return np.append(np.ones(old) if before is None else before, np.ones(new) if weight is None else weight)


def weighed(X: Any, y: Array, sample_weight: Any) -> tuple[Any, Array, Array | None]:
    """The examples that count, and their checked weights."""
    weight = check_weight(sample_weight, X)
    if weight is None or weight.all():
        return X, y, weight
    return X[weight > 0], y[weight > 0], weight[weight > 0]
