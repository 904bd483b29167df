"""What a user says to tuning, and what comes back: options, and the record of a search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from sklearn.base import BaseEstimator

from saccade._core import limits
from saccade._core.checks import as_floats, check_choice, check_positive, is_number, shown
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.inference.tuning.objective import ObjectiveKind

SearchMethod = Literal["gradient", "nelder-mead", "grid"]
METHODS: tuple[SearchMethod, ...] = get_args(SearchMethod)
OBJECTIVES: tuple[ObjectiveKind, ...] = get_args(ObjectiveKind)
PLAIN = ("exponential",)  # names of parameters that are searched as they are; all others by their logarithm


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of the objective, as `Tuning.evaluations` lists them."""

    parameters: dict[str, Any]
    value: float  # to be made small: nats per example, with the penalty of the prior
    error: float  # standard error of the value, 0 where nothing is random
    seconds: float  # since tuning began
    examples: int


@dataclass
class Tuning:
    """The record of a search: how it was done, why it stopped, and every evaluation."""

    method: SearchMethod
    objective: ObjectiveKind
    prior: float = 0.0
    stopped: str = ""
    evaluations: list[Evaluation] = field(default_factory=list)

    @property
    def best(self) -> Evaluation:
        """The evaluation on the most examples with the least value."""
        if not self.evaluations:
            raise InvalidInput("Tuning was interrupted before anything was evaluated. Fit again.")
        most = max(e.examples for e in self.evaluations)
        return min((e for e in self.evaluations if e.examples == most), key=lambda e: e.value)


class Tune(BaseEstimator):
    """How to learn the parameters of a kernel and the noise: ``GPClassifier(tune=Tune(...))``.

    The search learns everything that the transforms of an `HIK` have, its scale where that is "auto", every positive
    number of another kernel, and the noise. A word in the place of a `Tune`, such as ``tune="loo"``, is its `method` or
    its `objective`; a dict, such as ``tune={"length_scale": [0.5, 1.0], "noise": [0.01, 0.1]}``, is its `grid`.

    Parameters
    ----------
    method : {"gradient", "nelder-mead", "grid"}, default "gradient"
        "gradient" is L-BFGS-B, for thousands of parameters at once. "nelder-mead" is the paper's search, on a bound of
        the evidence, for up to ten. "grid" tries every combination of the values in `grid`; without these, seven values
        of each of up to three parameters, and leaves the scale as it is.
    objective : {"auto", "evidence", "loo"}, default "auto"
        "evidence" is the marginal likelihood of the labels. "loo" is the loss of the closed-form leave-one-out
        predictions: cross-entropy at the best temperature for classes, the Gaussian log density for regression. A
        `Centred` kernel is centred again without each example, but not inside a product (its loss is then too small, by
        0.06 nats of 0.64 with 20 examples, 0.004 with 150). "auto" is "loo" for classes, because labels ±1 are not
        Gaussian, and "evidence" for regression and "nelder-mead".
    fixed : sequence of str, default ()
        Names of parameters that stay as they are, such as ``("noise", "scale", "power")``.
    grid : dict of str to sequence of float, default None
        For "grid": the values to try of each parameter, by its name; all others stay as they are. A value of a
        parameter with many numbers, such as a `length_scale` per dimension, is a number for all of them, or one for
        each. The `scale` of an `HIK` is relative to what "auto" stands for.
    prior : "auto", float ≥ 0 or None, default "auto"
        The strength of the prior that holds log weights together and slopes of `Monotone` smooth, for "gradient" alone.
        "auto" chooses it by the loss on held-out examples, a fifth of up to 1,280; then all examples are learned from.
        None or 0 is no prior.
    max_evaluations : int, default 60
        The most evaluations of the objective on all examples; a grid has as many as it has points.
    tol : float, default 5e-4
        The search ends when four evaluations together gained less than this, in nats per example.

    Examples
    --------
    >>> from saccade import GPClassifier
    >>> from saccade.kernels import HIK, Power
    >>> X = np.linspace(0.0, 1.0, 20)[:, None] ** [1.0, 3.0]
    >>> model = GPClassifier(HIK(Power(1.0)), tune=Tune(objective="evidence", fixed=("noise",)))
    >>> model = model.fit(X, X[:, 0] > 0.5)
    >>> model.tuning_.best.value < model.tuning_.evaluations[0].value
    True
    >>> sorted(model.tuning_.best.parameters)
    ['noise', 'power', 'scale']
    """

    def __init__(
        self,
        method: SearchMethod = "gradient",
        objective: ObjectiveKind | Literal["auto"] = "auto",
        *,
        fixed: Sequence[str] = (),
        grid: Mapping[str, Sequence[Any]] | None = None,
        prior: float | Literal["auto"] | None = "auto",
        max_evaluations: int = 60,
        tol: float = 5e-4,
    ) -> None:
        self.method = method
        self.objective = objective
        self.fixed = fixed
        self.grid = grid
        self.prior = prior
        self.max_evaluations = max_evaluations
        self.tol = tol

    def check(self) -> None:
        """Raise an InvalidParameter that names the first option with a wrong value."""
        check_choice("method", self.method, METHODS)
        check_choice("objective", self.objective, ("auto", *OBJECTIVES))
        check_positive("max_evaluations", self.max_evaluations, "The default is 60.")
        check_positive("tol", self.tol, "The default is 5e-4.")
        if self.prior not in (None, "auto") and not (is_number(self.prior) and 0 <= float(self.prior) < np.inf):
            raise InvalidParameter(f'`prior` must be "auto", a number ≥ 0 or None, got {shown(self.prior)}.')
        if not isinstance(self.fixed, list | tuple) or not all(isinstance(name, str) for name in self.fixed):
            raise InvalidParameter(f'`fixed` must be a list of names such as ("noise",), got {self.fixed!r}.')
        if self.grid is not None:
            self._check_grid(self.grid)

    def _check_grid(self, grid: object) -> None:
        if self.method != "grid":
            raise InvalidParameter(f'`grid` is for method="grid", got method={self.method!r}.')
        if not isinstance(grid, Mapping) or not grid:
            raise InvalidParameter(f'`grid` must be a dict such as {{"noise": [0.01, 0.1]}}, got {grid!r}.')
        for name, values in grid.items():
            if not _are_listed(name, values):
                raise InvalidParameter(
                    f"`grid` must have a list of positive numbers for {name!r}, got {shown(values)}."
                )
        twice = sorted(set(grid) & set(self.fixed))
        if twice:
            raise InvalidParameter(f"`grid` and `fixed` both name {twice[0]!r}. Name it once.")
        points = math.prod(len(values) for values in grid.values())
        if points > limits.GRID_POINTS:
            raise InvalidParameter(f"`grid` must have up to {limits.GRID_POINTS} combinations, got {points}.")

    def kind(self, classes: bool) -> ObjectiveKind:
        """The objective that is made small, also where it is "auto".

        Parameters
        ----------
        classes : bool
            Whether labels are classes and not numbers.

        Returns
        -------
        str
            "evidence" or "loo".
        """
        if self.objective != "auto":
            return self.objective
        return "loo" if classes and self.method != "nelder-mead" else "evidence"


def _are_listed(name: str, values: object) -> bool:
    """Whether this is a list, not an empty one, of what a grid may have."""
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str) or len(values) == 0:
        return False
    return all(_is_listed(name, value) for value in values)


def _is_listed(name: str, value: object) -> bool:
    """Whether a grid may have this value: finite numbers, and positive ones unless they are searched as they are."""
    try:
        numbers = as_floats(value)
    except (TypeError, ValueError):
        return False
    return bool(numbers.size) and bool(np.isfinite(numbers).all() and (name in PLAIN or (numbers > 0).all()))


def check_tune(tune: Any) -> Tune | None:
    """The options behind the parameter `tune`, and `--tune`: None, a method, an objective, a grid or a Tune."""
    if tune is None:
        return None
    if isinstance(tune, dict):
        tune = Tune("grid", grid=tune)
    if isinstance(tune, str):
        check_choice("tune", tune, (None, *METHODS, *OBJECTIVES))
        return Tune(tune) if tune in METHODS else Tune(objective=tune)  # type: ignore[arg-type]
    if not isinstance(tune, Tune):
        raise InvalidParameter(
            f'`tune` must be None, a word such as "gradient" or "loo", a dict of values to try, or a Tune(...), '
            f"got {tune!r}."
        )
    tune.check()
    return tune
