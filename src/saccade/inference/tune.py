"""Learning a kernel's parameters and the noise from the training examples alone (H §5.2, and what it left to do)."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from saccade._core.arrays import Array
from saccade._core.checks import check_choice, check_positive, is_number
from saccade._core.errors import InvalidParameter
from saccade.inference.evidence import EXACT_UP_TO
from saccade.inference.objective import FEW, Objective, Task
from saccade.inference.search import Search, Stop, Tuning
from saccade.kernels import Kernel

METHODS = ("gradient", "nelder-mead", "grid")
OBJECTIVES = ("evidence", "loo")
STRENGTHS = (100.0, 10.0, 1.0, 0.1)  # of the prior, tried from strong to weak
HELD_OUT = 0.2  # share of the examples that judge a strength
COARSE_FROM = 4 * EXACT_UP_TO  # examples from which a search begins on a sample
SAMPLE = 1024  # examples of that sample


class Tune(BaseEstimator):
    """How to learn what a kernel leaves open, for `GPClassifier(tune=...)`; a word there is short for
    its `method` or its `objective`.

    Everything that the kernel's transforms have is learned, and the noise, and the scale where it is "auto".

    Parameters
    ----------
    method : "gradient", "nelder-mead" or "grid"
        "gradient" climbs with L-BFGS-B, thousands of parameters at once; "nelder-mead" is the paper's search, on a
        bound of the evidence, for up to ten; "grid" tries seven values each of up to three, the scale left as it is.
    objective : "auto", "evidence" or "loo"
        The marginal likelihood of the labels, or the loss of the closed-form leave-one-out predictions: cross-entropy
        at the best temperature for classes, the Gaussian log density for regression. "auto" is "loo" for classes,
        whose labels ±1 are not what a Gaussian would say, and "evidence" for regression and for "nelder-mead".
    fixed : names of parameters to keep, such as ("noise", "scale", "power").
    prior : "auto", a number ≥ 0, or None
        How strongly log weights are held together and slopes of `Monotone` smooth. "auto" chooses by the loss on
        held-out examples, a fifth of up to 1,280, and learns on all examples after; None or 0 is no prior. For
        "gradient" alone.
    max_evaluations : int
        Evaluations of the objective on all examples at most; a grid has as many as it has points.
    tol : float
        The search ends when four evaluations together gained less than this, in nats an example.
    """

    def __init__(
        self,
        method: str = "gradient",
        objective: str = "auto",
        *,
        fixed: Any = (),
        prior: float | str | None = "auto",
        max_evaluations: int = 60,
        tol: float = 5e-4,
    ) -> None:
        self.method = method
        self.objective = objective
        self.fixed = fixed
        self.prior = prior
        self.max_evaluations = max_evaluations
        self.tol = tol

    def check(self) -> None:
        check_choice("method", self.method, METHODS)
        check_choice("objective", self.objective, ("auto", *OBJECTIVES))
        check_positive("max_evaluations", self.max_evaluations, "The default is 60.")
        check_positive("tol", self.tol, "The default is 5e-4.")
        if self.prior not in (None, "auto") and not (is_number(self.prior) and 0 <= self.prior < np.inf):
            raise InvalidParameter(f'`prior` must be "auto", a number ≥ 0 or None, got {self.prior!r}.')
        if not isinstance(self.fixed, list | tuple) or not all(isinstance(name, str) for name in self.fixed):
            raise InvalidParameter(f'`fixed` must be a list of names such as ("noise",), got {self.fixed!r}.')

    def settled(self, classes: bool) -> Tune:
        """The same with an objective."""
        if self.objective != "auto":
            return self
        loo = classes and self.method != "nelder-mead"
        return Tune(**{**self.get_params(), "objective": "loo" if loo else "evidence"})


def tune(task: Task, options: Tune) -> tuple[Kernel, float, Tuning]:
    """The kernel and the noise that are best for the task, and the record of the search.

    An interruption (Ctrl-C) ends the search; the best parameters so far are kept.
    """
    options.check()
    options = options.settled(classes=not task.loss_has_scale)
    record = Tuning(options.method, options.objective)
    objective = Objective(task, None, options.objective)
    free = _free(objective, task, options)
    search = Search(objective, free, record, limit=options.max_evaluations, tol=options.tol)
    if not search.free.any():
        raise InvalidParameter("There is nothing to tune: every parameter is `fixed`.")
    try:
        _run(search, task, options)
        record.stopped = "converged"
    except Stop as stop:
        record.stopped = str(stop)
    except KeyboardInterrupt:
        record.stopped = "interrupted"
        warnings.warn("Tuning was interrupted; the best parameters so far are kept.", UserWarning, stacklevel=2)
    _warn_of_bounds(objective, search)
    return objective.kernel(search.theta), objective.noise(search.theta), record


def _run(search: Search, task: Task, options: Tune) -> None:
    objective, theta = search.objective, search.start
    if options.method == "gradient":
        if options.prior is not None:
            apart = theta + search.free * np.arange(theta.size, dtype=np.float64)
            has_prior = objective.space.penalty(apart[:-1])[0] != objective.space.penalty(theta[:-1])[0]
            auto = options.prior == "auto"
            search.strength = (_choose_strength(task, options) if auto else float(options.prior)) if has_prior else 0.0
            search.record.prior = search.strength
        if objective.n > COARSE_FROM and search.free.sum() <= FEW:
            theta = _on_a_sample(search, task, options)
        search.gradient(theta)
        return
    evidence = options.objective == "evidence"
    value = objective.bound if evidence and options.method == "nelder-mead" else objective
    (search.nelder_mead if options.method == "nelder-mead" else search.grid)(theta, value)


def _free(objective: Objective, task: Task, options: Tune) -> Array:
    """Which coordinates may move."""
    names = np.array(objective.names)
    unknown = sorted(set(options.fixed) - set(names))
    if unknown:
        known = ", ".join(dict.fromkeys(names))
        raise InvalidParameter(f"`fixed` names {unknown[0]!r}, which this kernel does not have. It has: {known}.")
    kept = set(options.fixed)
    if options.method == "grid" or (options.objective == "loo" and not task.loss_has_scale):
        kept.add("scale")
    _, lower, upper, _ = objective.table.T
    free = ~np.isin(names, list(kept)) & (lower < upper)
    most = {"gradient": np.inf, "nelder-mead": 10, "grid": 3}[options.method]
    if free.sum() > most:
        raise InvalidParameter(
            f'tune="{options.method}" is for up to {most} parameters, got {free.sum()}. Use "gradient".'
        )
    return np.asarray(free)


def _on_a_sample(search: Search, task: Task, options: Tune) -> Array:
    """Coordinates that are best for a sample: a good place to start with all examples."""
    rows = np.sort(np.random.default_rng(task.seed).permutation(search.objective.n)[:SAMPLE])
    small = Objective(task, rows, options.objective)
    first = Search(small, search.free, search.record, limit=options.max_evaluations, tol=options.tol)
    search.began = first.began
    try:
        with suppress(Stop):
            first.gradient(small.table[:, 0])
    finally:
        search.start = first.theta  # what an interruption keeps
    return first.theta


def _choose_strength(task: Task, options: Tune) -> float:
    """The strength of the prior with the least loss on held-out examples; weaker ones start where stronger ended.

    A sample will do: how far weights lie apart is a matter of the features, not of the number of examples.
    """
    order = np.random.default_rng(task.seed).permutation(len(task.Y))[: int(SAMPLE / (1.0 - HELD_OUT))]
    held, kept = (np.sort(part) for part in np.split(order, [max(1, int(HELD_OUT * len(order)))]))
    if len(kept) < 2:
        return STRENGTHS[0]
    objective, whole = Objective(task, kept, options.objective), task.space(None)
    free = _free(objective, task, options)
    theta, best = objective.table[:, 0], (np.inf, STRENGTHS[0])
    for strength in STRENGTHS:
        record = Tuning(options.method, options.objective)
        how: dict[str, Any] = {"limit": 15, "tol": 4 * options.tol, "strength": strength, "what": "choosing a prior"}
        search = Search(objective, free, record, **how)
        with suppress(Stop):
            search.gradient(theta)
        theta = search.theta
        loss = _held_out_loss(objective, whole, theta, held)
        if loss >= best[0]:
            break
        best = loss, strength
    return best[1]


def _held_out_loss(objective: Objective, whole: Any, theta: Array, held: Array) -> float:
    kernel, noise = objective.kernel(theta), objective.noise(theta) * objective.shape
    alpha = objective.solved(kernel, objective.space.operator(kernel), noise)
    everywhere = np.zeros((len(objective.task.Y), alpha.shape[1]))
    everywhere[objective.rows] = alpha
    return objective.task.score(held, whole.operator(kernel).matmul(everywhere)[held])


def _warn_of_bounds(objective: Objective, search: Search) -> None:
    """Say which single parameters ended at the end of their range."""
    _, lower, upper, unit = objective.table.T
    stuck = search.free & (np.minimum(search.theta - lower, upper - search.theta) < 1e-3 * unit)
    single = [name for name, at in zip(objective.names, stuck, strict=True) if at and objective.names.count(name) == 1]
    if single:
        warnings.warn(
            f"Tuning ended at the bound of {', '.join(single)}: the examples do not say where to stop. "
            "More examples, or `fixed`, would help.",
            ConvergenceWarning,
            stacklevel=2,
        )
