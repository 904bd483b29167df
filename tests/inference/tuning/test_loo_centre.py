"""Tuning by leave-one-out with centred kernels: the loss against models that are fitted again without each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saccade.estimators.losses import ClassLosses, DensityLosses
from saccade.inference.posterior.gp import GP
from saccade.inference.tuning.objective import Objective, Task
from saccade.kernels import HIK, RBF, Centred, Kernel, Linear, Power

Array = np.ndarray[Any, np.dtype[Any]]
CENTRED: list[Kernel] = [
    Centred(Linear()),
    Centred(HIK(Power(0.6), scale=1.0)),
    2.0 * Centred(RBF(3.0)),
    Centred(Linear()) + RBF(3.0),
    0.5 * (Centred(RBF(3.0)) + 0.3 * HIK(Power(0.6), scale=1.0)) + Centred(Linear()),
    Centred(Centred(Linear()) + RBF(3.0)),
]
SHAPES = [(12, 30), (30, 4), (2, 3)]
every_kernel = pytest.mark.parametrize("kernel", CENTRED, ids=repr)
every_shape = pytest.mark.parametrize(("n", "d"), SHAPES)


def tasks(kernel: Kernel, n: int, d: int) -> list[Task]:
    """Classes; numbers with weights; and classes with a noise for each."""
    rng = np.random.default_rng(n)
    X = abs(rng.normal(size=(n, d)))
    target = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(n)
    label = (target > np.median(target)).astype(int) + (target > target.max() - 0.3)
    weight = np.linspace(0.5, 2.0, n)
    Y = np.where(label[:, None] == np.arange(3), 1.0, -1.0)
    classes = ClassLosses(label, None)
    numbers = DensityLosses.of(target[:, None], weight)
    gram, weighted = kernel.gram(X), kernel.gram(X, weight=weight)
    return [
        Task(kernel, gram, Y, np.ones((n, 1)), 0.05, classes),
        Task(kernel, weighted, target[:, None], 1.0 / weight[:, None], 0.05, numbers, weight),
        Task(kernel, gram, Y, rng.uniform(0.5, 2.0, (n, 3)), 0.05, classes),
    ]


@every_kernel
@every_shape
def test_as_models_without_the_row(kernel: Kernel, n: int, d: int) -> None:
    for task in tasks(kernel, n, d):
        X, noise = task.gram.all_rows(), task.noise * task.shape
        mean, variance = np.empty_like(task.Y), np.empty_like(noise)
        for i in range(n):
            rest = np.delete(np.arange(n), i)
            weight = None if task.weight is None else task.weight[rest]
            alone = GP.fit(kernel.gram(X[rest], weight=weight), task.Y[rest], noise[rest], weight=weight)
            mean[[i]], variance[[i]] = alone.mean_and_variance(X[[i]])
        wanted = task.losses.left_out(mean, variance + noise)[0] / n
        objective = Objective(task, "loo")
        assert objective(objective.table[:, 0]).value == pytest.approx(wanted, rel=1e-8, abs=1e-9)


@every_kernel
@pytest.mark.parametrize(("n", "d"), SHAPES[:2])
def test_the_slope_is_that_of_differences(kernel: Kernel, n: int, d: int) -> None:
    for task in tasks(kernel, n, d):
        objective = Objective(task, "loo")
        theta = objective.table[:, 0] + 0.1 * np.cos(np.arange(len(objective.names)))
        found = objective(theta)
        for k in range(theta.size):
            nudge = 1e-5 * np.eye(theta.size)[k]
            change = (objective(theta + nudge).value - objective(theta - nudge).value) / 2e-5
            assert found.gradient[k] == pytest.approx(change, rel=1e-5, abs=1e-7)
