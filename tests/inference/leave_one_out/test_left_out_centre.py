"""Leaving one out with centred kernels: against models that are fitted again without the example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saccade import GPClassifier
from saccade.inference.approximations.by_name import Approximating
from saccade.inference.posterior.gp import GP
from saccade.inference.solving.regression import Solving
from saccade.kernels import HIK, RBF, Centred, GeneralizedRBF, Kernel, Linear

Array = np.ndarray[Any, np.dtype[Any]]
CENTRED: list[Kernel] = [
    Centred(Linear()),
    Centred(HIK(scale=1.0)),
    2.0 * Centred(RBF(3.0)),
    Centred(Linear()) + RBF(3.0),
    0.5 * Centred(Linear()) + (Centred(RBF(3.0)) + HIK(scale=1.0)),
    Centred(Centred(Linear()) + RBF(3.0)),
    Centred(Linear()) * RBF(5.0),
    GeneralizedRBF(Centred(Linear()), 0.2),
]
SHAPES = [(12, 30), (30, 4), (2, 3)]


def problem(n: int, d: int, m: int = 2) -> tuple[Array, Array]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d))
    return X, np.column_stack([np.sign(X[:, 0] + 0.1), X[:, 1]])[:, :m]


def fitted(kernel: Kernel, X: Array, Y: Array, noise: Array, weight: Array | None = None) -> GP:
    return GP.fit(kernel.gram(X, weight=weight), Y, noise, weight=weight, solving=Solving(leave_one_out=True))


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("kernel", CENTRED, ids=str)
def test_as_models_without_the_example(kernel: Kernel, n: int, d: int) -> None:
    X, Y = problem(n, d)
    noise = np.full((n, 1), 0.05)
    gp = fitted(kernel, X, Y, noise)
    for mean, variance in (gp.leave_one_out(), gp.left_out(np.arange(n))):
        for i in range(n):
            rest = np.delete(np.arange(n), i)
            alone = fitted(kernel, X[rest], Y[rest], noise[rest]).mean_and_variance(X[[i]])
            np.testing.assert_allclose(mean[[i]], alone[0], rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(variance[[i]], alone[1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kernel", [Centred(Linear()), Centred(Linear()) + RBF(3.0)], ids=str)
def test_one_of_several_copies(kernel: Kernel) -> None:
    """A weight of w is w equal rows, of which one is left out; each output may have a noise of its own."""
    X, Y = problem(8, 20)
    weight, noise = np.array([1.0, 3, 2, 1, 1, 2, 1, 1]), np.tile([0.05, 0.2], (8, 1))
    mean, variance = fitted(kernel, X, Y, noise / weight[:, None], weight).leave_one_out()
    copies = np.repeat(np.arange(8), weight.astype(int))
    each = fitted(kernel, X[copies], Y[copies], noise[copies]).leave_one_out()
    np.testing.assert_allclose(mean[copies], each[0], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(variance[copies], each[1], rtol=1e-8, atol=1e-9)


def test_other_approximations_are_fitted_again() -> None:
    X, Y = problem(20, 40, 1)
    kernel, noise = Centred(Linear()), np.full((20, 1), 0.05)
    gp = GP.fit(kernel.gram(X), Y, noise, approximation=Approximating("sod", "sod", inducing=np.arange(10)))
    mean, variance = gp.left_out(np.arange(20))
    for i in (3, 15):
        rest = np.delete(np.arange(20), i)
        points = np.flatnonzero(rest < 10)
        alone = GP.fit(
            kernel.gram(X[rest]), Y[rest], noise[rest], approximation=Approximating("sod", "sod", inducing=points)
        )
        np.testing.assert_allclose(mean[[i]], alone.mean(X[[i]]), rtol=1e-8)
        np.testing.assert_allclose(variance[[i]], alone.variance(X[[i]]), rtol=1e-8)


def test_probabilities_of_noise_are_not_sure() -> None:
    """Labels at random, fewer rows than features: the centre gave each row's own label away."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 400)) / 20.0, np.arange(60) % 2
    model = GPClassifier(Centred(Linear()), noise=0.01).fit(X, y)
    assert (model.leave_one_out_proba_.argmax(axis=1) == y).mean() < 0.75
