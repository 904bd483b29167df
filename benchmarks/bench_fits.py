"""Whole fits, calibration included: timed in turns with one thread and with all of them, beside the unit.

Fits with a noise that is given show the solver, and fits with nothing set are what users run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import measure
import numpy as np

from saccade._core.arrays import Array
from saccade._core.threads import thread_count
from saccade.datasets.synthetic import histograms

DIMENSIONS, CLASSES = 1000, 10


class Case(NamedTuple):
    """What is fitted, and how often."""

    name: str
    rows: int
    nonzeros: int
    classes: int
    options: dict[str, Any]  # of GPClassifier
    rounds: int = 5


def cases(full: bool, scale: int = 1) -> list[Case]:
    """The fits of the goals; `scale` divides all numbers of examples."""
    from saccade.kernels import HIK, Power

    exact = {"noise": 0.01, "solver": "cg"}
    found = [
        Case("exact, to 1e-6", 10_000, 200, 2, exact | {"tol": 1e-6}, 15),
        Case("exact, to 1e-2", 10_000, 200, 2, exact | {"tol": 1e-2}, 15),
        Case("exact, noise 0.1, to 1e-2", 50_050, 200, 2, {"noise": 0.1, "tol": 1e-2, "solver": "cg"}),
        Case("nothing set", 2_048, 200, 2, {}),
        Case("nothing set", 10_000, 200, 2, {}),
        Case("nothing set, ten classes", 10_000, 200, CLASSES, {}, 3),
        Case("Laplace, ten classes", 12_000, 200, CLASSES, {"inference": "laplace"}, 3),
    ]
    if full:
        power = HIK(Power(1.0))
        found.append(Case("tuned: exponent and noise", 50_050, 200, 2, {"kernel": power, "tune": "gradient"}, 1))
        binned = {"noise": 0.1, "tol": 1e-2, "levels": 255, "solver": "cg"}
        found.append(Case("255 levels, noise 0.1, to 1e-2", 1_000_000, 100, 2, binned, 1))
    return [case._replace(rows=case.rows // scale) for case in found]


def data(case: Case) -> tuple[Any, Array]:
    """Synthetic histograms; more than two classes are the largest of as many random sums of features."""
    dtype = np.float32 if case.rows >= 500_000 else np.float64
    X, y = histograms(case.rows, DIMENSIONS, case.nonzeros, rng=np.random.default_rng(0), dtype=dtype)
    if case.classes == 2:
        return X, y
    sums = X @ np.random.default_rng(1).standard_normal((DIMENSIONS, case.classes))
    return X, np.asarray(((sums - sums.mean(axis=0)) / sums.std(axis=0)).argmax(axis=1))


def fit_times(case: Case) -> dict[str, Any]:
    """One row of the table: units, seconds, the gain of the second thread, and the time outside the products."""
    from saccade import GPClassifier

    X, y = data(case)
    model, every = GPClassifier(random_state=0, **case.options), thread_count()
    some = np.concatenate([np.flatnonzero(y == label)[:300] for label in np.unique(y)])
    model.fit(X[some], y[some])  # compile
    times: dict[str, list[float]] = {"unit": [], "one": [], "all": [], "products": []}
    for _ in range(case.rounds):
        times["unit"].append(measure.unit(X))
        for name, threads in (("one", 1), ("all", every)):
            with with_threads(threads), in_products() as products:
                times[name].append(measure.seconds(lambda: model.fit(X, y), 1, warm_up=False))
        times["products"].append(sum(products))
    assert model.residual_ <= model.tol, f"{case.name}: {model.residual_}"
    unit, one, whole, inside = (np.array(times[name]) for name in ("unit", "one", "all", "products"))
    return {
        "fit": case.name,
        "n": case.rows,
        "iterations": model.n_iter_,
        "units": spread(whole / unit),
        "seconds": spread(whole),
        "one thread, units": spread(one / unit),
        "threads": every,
        "gain of the threads": spread(one / whole),
        "outside the products": spread(1.0 - inside / whole),
        "residual": model.residual_,
        "leave-one-out error": model.leave_one_out_error_,
    }


def spread(values: Array) -> dict[str, float]:
    """Median and range."""
    return {"median": float(np.median(values)), "least": float(values.min()), "most": float(values.max())}


@contextmanager
def with_threads(count: int) -> Iterator[None]:
    """Within the block saccade uses so many threads."""
    before = os.environ.get("SACCADE_NUM_THREADS")
    os.environ["SACCADE_NUM_THREADS"] = str(count)
    try:
        yield
    finally:
        del os.environ["SACCADE_NUM_THREADS"]
        if before is not None:
            os.environ["SACCADE_NUM_THREADS"] = before


@contextmanager
def in_products() -> Iterator[list[float]]:
    """The seconds of every product of an intersection kernel within the block."""
    from saccade.operators.binned_intersection import BinnedIntersection
    from saccade.operators.sorted_intersection import SortedIntersection

    found: list[float] = []
    kinds: tuple[Any, ...] = (SortedIntersection, BinnedIntersection)

    def timed(product: Callable[[Any, Array], Array]) -> Callable[[Any, Array], Array]:
        def work(self: Any, V: Array) -> Array:
            start = time.perf_counter()
            out = product(self, V)
            found.append(time.perf_counter() - start)
            return out

        return work

    before = [kind.matmul for kind in kinds]
    try:
        for kind, product in zip(kinds, before, strict=True):
            kind.matmul = timed(product)
        yield found
    finally:
        for kind, product in zip(kinds, before, strict=True):
            kind.matmul = product
