"""Learning a kernel's parameters and the noise from the training examples alone (H §5.2, and what it left to do)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Annotated, Any

import numpy as np
from scipy.optimize import minimize

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.blas import one_blas_thread
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade._core.progress import report
from saccade.inference.tuning.bounds import warn_of_bounds
from saccade.inference.tuning.objective import FEW, Objective, Task, Value
from saccade.inference.tuning.options import Evaluation, Tune, Tuning
from saccade.kernels.gram import Gram

FIRST_STEP = 0.5  # of the coordinate that changes most, in typical steps
PATIENCE = 4  # evaluations that together must gain something ...
SAMPLE_PATIENCE = 2  # ... on a sample, which only has to lead near
GRID = 7  # values of each coordinate
MOST = {"gradient": np.inf, "nelder-mead": 10, "grid": 3}  # coordinates that may move
STRENGTHS = (100.0, 10.0, 1.0, 0.1)  # of the prior, tried from strong to weak
HELD_OUT = 0.2  # share of the examples that judge a strength


class Stop(Exception):
    """Raised to end a search; says why."""


class Search:
    """Counts, records and guards the evaluations of one objective; keeps the best."""

    def __init__(
        self,
        objective: Objective,
        free: Annotated[Array, "p"],  # which coordinates may move
        record: Tuning,
        *,
        limit: int,
        tol: float,
        strength: float = 0.0,
        what: str = "tuning",
    ) -> None:
        self.objective, self.free, self.record, self.strength = objective, free, record, strength
        self.limit, self.tol, self.what = limit, tol, what
        self.function: Callable[[Array], Value] = objective
        self.patience, self.factor = 0, 1.0  # 0: for ever; 0: what scales the first slope to `FIRST_STEP`
        self.start = objective.table[:, 0].copy()
        self.unit = objective.table[free, 3]
        self.best: tuple[float, Array] | None = None
        self.count, self.trail, self.began = 0, list[float](), time.perf_counter()

    @property
    def theta(self) -> Array:
        """The best coordinates so far."""
        return self.start if self.best is None else self.best[1]

    def at(self, u: Array) -> Array:
        """All coordinates, from the free ones in units of their typical steps."""
        theta = self.start.copy()
        theta[self.free] = u * self.unit
        return theta

    def begin(self, theta: Array) -> Array:
        """Start from these coordinates; returns the free ones in units of their typical steps."""
        self.start = theta.copy()
        lower, upper = self.objective.table[self.free, 1:3].T
        return np.asarray(np.clip(theta[self.free], lower, upper) / self.unit)

    def bounds(self) -> Array:
        return np.asarray(self.objective.table[self.free, 1:3] / self.unit[:, None])

    def evaluate(self, u: Array) -> tuple[float, Array]:
        """Value and slope in u, times `factor`."""
        if self.count >= self.limit:
            raise Stop("evaluations")
        theta = self.at(u)
        self.count += 1
        try:
            found = self.function(theta)
        except InvalidInput:  # a kernel beyond the range of float64; an error only where there is no other yet
            if self.best is None:
                raise
            found = Value(self.best[0] + 1e3, 0.0, np.zeros_like(theta))
        else:
            self._keep(theta, found)
        self._stop_if_idle()
        slope = found.gradient[self.free] * self.unit
        self.factor = self.factor or FIRST_STEP / max(float(np.abs(slope).max()), 1e-300)
        return self.factor * found.value, self.factor * slope

    def _keep(self, theta: Array, found: Value) -> None:
        if self.best is None or found.value < self.best[0]:
            self.best = found.value, theta
        parameters = {**self.objective.space.parameters(theta[:-1]), "noise": self.objective.noise(theta)}
        seconds = time.perf_counter() - self.began
        self.record.evaluations.append(Evaluation(parameters, found.value, found.error, seconds, self.objective.n))
        report(self.what, self.count / self.limit)

    def _stop_if_idle(self) -> None:
        """Stop when a few evaluations gained next to nothing: a line search on an estimate may never end."""
        assert self.best is not None
        self.trail.append(self.best[0])
        if 0 < self.patience < len(self.trail) and self.trail[-1 - self.patience] - self.trail[-1] < self.tol:
            raise Stop("converged")

    def gradient(self, theta: Array, patience: int = PATIENCE) -> None:
        """L-BFGS-B from these coordinates. Its first step is the gradient itself, so that is scaled to `FIRST_STEP`."""
        self.function, self.patience, self.factor = partial(self.objective, strength=self.strength), patience, 0.0
        minimize(self.evaluate, self.begin(theta), jac=True, method="L-BFGS-B", bounds=self.bounds())

    def nelder_mead(self, theta: Array, function: Callable[[Array], Value]) -> None:
        """The simplex search from these coordinates."""
        self.function = function
        u, span = self.begin(theta), self.bounds()
        away = np.where(u + 0.5 <= span[:, 1], 0.5, -0.5)  # clipping would move a corner beyond a bound onto another
        corners = np.clip(np.vstack([u, u + np.diag(away)]), span[:, 0], span[:, 1])
        minimize(
            lambda u: self.evaluate(u)[0],
            u,
            method="Nelder-Mead",
            bounds=span,
            options={"xatol": 0.01, "fatol": self.tol, "initial_simplex": corners},
        )

    def grid(self, theta: Array, listed: Mapping[str, Sequence[Any]] | None) -> None:
        """Every combination of the listed values, or of values spread evenly between the bounds."""
        self.begin(theta)
        if listed is None:
            axes = [np.linspace(lower, upper, GRID) for lower, upper in self.bounds()]
            points = [np.array(point) for point in product(*axes)]
        else:
            names = np.array(self.objective.names)[self.free]
            points = list(_combinations(names, self.unit, listed, self.objective.plain))
        self.limit, refused = len(points), None
        for point in points:
            try:
                self.evaluate(point)
            except InvalidInput as error:
                refused = error
        if self.best is None and refused is not None:
            raise refused


def tune(task: Task, options: Tune) -> tuple[Gram, float, Tuning]:
    """The kernel matrix and the noise that are best for the task, and the record of the search.

    An interruption (Ctrl-C) ends the search; the best parameters so far are kept.
    """
    options.check()
    record = Tuning(options.method, options.kind(classes=not task.losses.has_scale))
    objective = Objective(task, record.objective)
    free = _free(objective, options)
    if not free.any():
        raise InvalidParameter("There is nothing to tune: every parameter is `fixed`.")
    search = Search(objective, free, record, limit=options.max_evaluations, tol=options.tol)
    try:
        if options.method == "nelder-mead":
            search.nelder_mead(search.start, objective.bound if record.objective == "evidence" else objective)
        elif options.method == "grid":
            search.grid(search.start, options.grid)
        else:
            record.prior = search.strength = _strength(search, options)
            search.gradient(_on_samples(search, options))
        record.stopped = "converged"
    except Stop as stop:
        record.stopped = str(stop)
    except KeyboardInterrupt:
        record.stopped = "interrupted"
        warnings.warn("Tuning was interrupted; the best parameters so far are kept.", UserWarning, stacklevel=2)
    if options.grid is None:  # a list of values has no bounds
        warn_of_bounds(objective, search.theta, search.free)
    best = objective.space.kernel(search.theta[:-1])
    return task.gram.with_kernel(best, task.weight), objective.noise(search.theta), record


def _strength(search: Search, options: Tune) -> float:
    """The strength of the prior; 0 where none is wanted, or what may move has none."""
    theta, penalty = search.start, search.objective.space.penalty
    apart = theta + search.free * np.arange(theta.size, dtype=np.float64)
    if options.prior is None or penalty(apart[:-1])[0] == penalty(theta[:-1])[0]:
        return 0.0
    return _choose_strength(search.objective, options) if options.prior == "auto" else float(options.prior)


def _combinations(
    names: Annotated[Array, "p"],
    unit: Annotated[Array, "p"],
    listed: Mapping[str, Sequence[Any]],
    plain: Sequence[str],  # names of those that are no logarithms
) -> Iterator[Annotated[Array, "p"]]:
    """Free coordinates in units of their typical steps, for every combination of the listed values."""
    for values in product(*listed.values()):
        point = np.empty(names.size)
        for name, value in zip(listed, values, strict=True):
            own, numbers = names == name, np.asarray(value, np.float64)
            if numbers.ndim and numbers.shape != (own.sum(),):
                raise InvalidParameter(f"`grid` must have {own.sum()} numbers in each {name!r}, got {value!r}.")
            point[own] = numbers if name in plain else np.log(numbers)
        yield point / unit


def _free(objective: Objective, options: Tune) -> Array:
    """Which coordinates may move."""
    names = np.array(objective.names)
    for what, named in (("fixed", set(options.fixed)), ("grid", set(options.grid or ()))):
        unknown = sorted(named - set(names))
        if unknown:
            known = ", ".join(dict.fromkeys(names))
            raise InvalidParameter(f"`{what}` names {unknown[0]!r}, which this kernel does not have. It has: {known}.")
    if options.grid is not None:
        return np.asarray(np.isin(names, list(options.grid)))
    kept = set(options.fixed)
    if options.method == "grid" or (objective.kind == "loo" and not objective.task.losses.has_scale):
        kept.add("scale")
    _, lower, upper, _ = objective.table.T
    free = ~np.isin(names, list(kept)) & (lower < upper)
    if free.sum() > MOST[options.method]:
        raise InvalidParameter(
            f'tune="{options.method}" is for up to {MOST[options.method]} parameters, got {free.sum()}. Use "gradient".'
        )
    return np.asarray(free)


def _on_samples(search: Search, options: Tune) -> Array:
    """Coordinates that are best for ever larger samples: a good place to start with all examples, where these are many.

    Evidence takes the last sample alone. With fewer examples than features it explains labels without noise, and larger
    samples do not find the way back.
    """
    sizes = limits.TUNE_SAMPLES[-1:] if search.objective.kind == "evidence" else limits.TUNE_SAMPLES
    task, theta = search.objective.task, search.start
    if search.objective.n <= limits.TUNE_SAMPLE_ABOVE or search.free.sum() > FEW:
        return theta
    order = np.random.default_rng(task.seed).permutation(search.objective.n)[: max(limits.TUNE_SAMPLES)]
    rows = np.sort(order)
    whole = task.subset(rows)  # smaller samples are parts of it: to look for the rows takes longer than all the rest
    for size in sizes:
        part = whole.subset(np.searchsorted(rows, np.sort(order[:size]))) if size < rows.size else whole
        small = Objective(part, search.objective.kind)
        first = Search(small, search.free, search.record, limit=options.max_evaluations, tol=options.tol)
        first.began = search.began
        try:
            with suppress(Stop), one_blas_thread():  # for matrices so small, a second one waits more than it works
                first.gradient(theta, SAMPLE_PATIENCE)
        finally:
            search.start = theta = first.theta  # what an interruption keeps
    return theta


def _choose_strength(objective: Objective, options: Tune) -> float:
    """The strength of the prior with the least loss on held-out examples; weaker ones start where stronger ended.

    A sample is enough: how far weights lie apart depends on the features, not on the number of examples.
    """
    most = int(limits.TUNE_SAMPLES[-1] / (1.0 - HELD_OUT))
    order = np.random.default_rng(objective.task.seed).permutation(objective.n)[:most]
    rows = np.sort(order)
    held = np.isin(rows, order[: max(1, int(HELD_OUT * len(order)))])
    if np.count_nonzero(~held) < 2:
        return STRENGTHS[0]
    sample = objective.task.subset(rows)
    small = Objective(sample.subset(np.flatnonzero(~held)), objective.kind)
    losses = sample.losses.subset(np.flatnonzero(held))
    free, record = _free(small, options), Tuning(options.method, small.kind)  # this record is not kept
    theta, best = small.table[:, 0], (np.inf, STRENGTHS[0])
    for strength in STRENGTHS:
        search = Search(small, free, record, limit=15, tol=4 * options.tol, strength=strength, what="choosing a prior")
        with suppress(Stop):
            search.gradient(theta)
        theta = search.theta
        K, _, alpha = small.solved(theta)
        everywhere = np.zeros((rows.size, alpha.shape[1]))
        everywhere[~held] = alpha
        loss = losses.score(sample.gram.with_kernel(K.kernel).matmul(everywhere)[held])
        if loss >= best[0]:
            break
        best = loss, strength
    return best[1]
