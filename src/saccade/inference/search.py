"""The searches behind `tune`: each counts, records and guards its evaluations, and keeps the best."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize

from saccade._core.arrays import Array
from saccade._core.checks import is_number
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.inference.objective import Objective, Value
from saccade.kernels import HIK, Kernel

FIRST_STEP = 0.5  # of the coordinate that changes most, in typical steps
PATIENCE = 4  # evaluations that may gain nothing
GRID = 7  # values of each coordinate


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of the objective."""

    parameters: dict[str, Any]
    value: float  # to be made small: nats an example, the prior's penalty included
    error: float  # standard error of the value, 0 where nothing is random
    seconds: float  # since tuning began
    examples: int


@dataclass
class Tuning:
    """What was learned and every step on the way there."""

    method: str
    objective: str
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


class Stop(Exception):
    """The search has had enough."""


class Search:
    """Counts, records and guards the evaluations of one objective; keeps the best."""

    def __init__(
        self,
        objective: Objective,
        free: Array,  # (p,): which coordinates may move
        record: Tuning,
        *,
        limit: int,
        tol: float,
        strength: float = 0.0,
        what: str = "tuning",
    ) -> None:
        self.objective, self.free, self.record, self.strength = objective, free, record, strength
        self.limit, self.tol, self.what = limit, tol, what
        self.start = objective.table[:, 0].copy()
        self.unit = objective.table[free, 3]
        self.best: tuple[float, Array] | None = None
        self.count, self.trail, self.began = 0, list[float](), time.perf_counter()

    @property
    def theta(self) -> Array:
        """The best coordinates so far."""
        return self.start if self.best is None else self.best[1]

    def at(self, u: Array) -> Array:
        """All coordinates, for free ones in their typical steps."""
        theta = self.start.copy()
        theta[self.free] = u * self.unit
        return theta

    def begin(self, theta: Array) -> Array:
        """Where to start from, in steps."""
        self.start = theta.copy()
        lower, upper = self.objective.table[self.free, 1:3].T
        return np.asarray(np.clip(theta[self.free], lower, upper) / self.unit)

    def bounds(self) -> Array:
        return np.asarray(self.objective.table[self.free, 1:3] / self.unit[:, None])

    def evaluate(self, u: Array, function: Callable[[Array], Value]) -> Value:
        if self.count >= self.limit:
            raise Stop("evaluations")
        theta = self.at(u)
        self.count += 1
        try:
            found = function(theta)
        except InvalidInput:  # a kernel out of float64's range: no place to be, once there is another
            if self.best is None:
                raise
            return Value(self.best[0] + 1e3, 0.0, np.zeros_like(theta))
        if self.best is None or found.value < self.best[0]:
            self.best = found.value, theta
        self._note(theta, found)
        report(self.what, self.count / self.limit)
        return found

    def _stop_if_idle(self) -> None:
        """Enough when a few evaluations in a row gained next to nothing: a line search on an estimate may never end."""
        assert self.best is not None
        self.trail.append(self.best[0])
        if len(self.trail) > PATIENCE and self.trail[-1 - PATIENCE] - self.trail[-1] < self.tol:
            raise Stop("converged")

    def _note(self, theta: Array, found: Value) -> None:
        kernel = self.objective.kernel(theta)
        parameters = {**_named(kernel), "noise": self.objective.noise(theta)}
        seconds = time.perf_counter() - self.began
        self.record.evaluations.append(Evaluation(parameters, found.value, found.error, seconds, self.objective.n))

    def gradient(self, theta: Array) -> None:
        """L-BFGS-B from these coordinates. Its first step is the gradient itself, which is given a sensible length."""
        factor = 0.0

        def function(u: Array) -> tuple[float, Array]:
            nonlocal factor
            found = self.evaluate(u, lambda theta: self.objective(theta, self.strength))
            self._stop_if_idle()
            slope = found.gradient[self.free] * self.unit
            factor = factor or FIRST_STEP / max(float(np.abs(slope).max()), 1e-300)
            return factor * found.value, factor * slope

        minimize(function, self.begin(theta), jac=True, method="L-BFGS-B", bounds=self.bounds())

    def nelder_mead(self, theta: Array, function: Callable[[Array], Value]) -> None:
        """The simplex search from these coordinates."""
        u, span = self.begin(theta), self.bounds()
        away = np.where(u + 0.5 <= span[:, 1], 0.5, -0.5)  # a corner beyond a bound would fall onto another
        corners = np.clip(np.vstack([u, u + np.diag(away)]), span[:, 0], span[:, 1])
        minimize(
            lambda u: self.evaluate(u, function).value,
            u,
            method="Nelder-Mead",
            bounds=span,
            options={"xatol": 0.01, "fatol": self.tol, "initial_simplex": corners},
        )

    def grid(self, theta: Array, function: Callable[[Array], Value]) -> None:
        """Every combination of values spread evenly between the bounds."""
        self.begin(theta)
        axes = [np.linspace(lower, upper, GRID) for lower, upper in self.bounds()]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        self.limit = len(points)
        for u in points:
            self.evaluate(u, function)


def _named(kernel: Kernel) -> dict[str, Any]:
    """The parameters of a kernel that a record keeps, by the names that `fixed` knows."""
    if not isinstance(kernel, HIK):
        return {k: v for k, v in kernel.get_params().items() if is_number(v) or isinstance(v, np.ndarray)}
    learned = {type(t).__name__.lower(): getattr(t, t.learned) for t in kernel.transforms()}
    return {"scale": kernel.scale} | learned
