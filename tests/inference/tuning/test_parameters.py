"""What of a kernel is learned: every positive number that may be a fraction, and no weight of zero."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from saccade import GPClassifier, Tune
from saccade.kernels import HIK, RBF, GeneralizedRBF, Laplacian, Matern, Monotone, Power, Weights
from saccade.kernels.slope import MatrixSlope
from saccade.kernels.space import Space

rng = np.random.default_rng(0)
X = rng.random((40, 3))
y = (X[:, 0] > X[:, 1]).astype(int)


def fitted(kernel: Any, tune: Tune) -> GPClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GPClassifier(kernel, tune=tune).fit(X, y)


def space_of(kernel: Any, weight: Any = None) -> Space:
    return kernel.gram(X, weight=weight).space(kernel, weight)


def names_of(kernel: Any) -> list[str]:
    return space_of(kernel).coordinates.names


@pytest.mark.parametrize(
    ("whole", "fraction"),
    [
        (RBF(2), RBF(2.0)),
        (RBF(np.array([1, 2, 3])), RBF(np.array([1.0, 2.0, 3.0]))),
        (RBF([1, 2, 3]), RBF(np.array([1.0, 2.0, 3.0]))),
        (3 * RBF(2, amplitude=1), 3.0 * RBF(2.0, amplitude=1.0)),
        (GeneralizedRBF(HIK(scale=2), beta=1), GeneralizedRBF(HIK(scale=2.0), beta=1.0)),
    ],
    ids=repr,
)
def test_whole_numbers_are_learned_as_fractions_are(whole: Any, fraction: Any) -> None:
    tune = Tune(max_evaluations=5)
    one, other = fitted(whole, tune), fitted(fraction, tune)
    assert names_of(whole) == names_of(fraction)
    assert one.tuning_.best.value == other.tuning_.best.value
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_counts_are_not_learned() -> None:
    kernel = GeneralizedRBF(HIK(Monotone(pieces=4), scale=1.0), 1.0)
    assert set(names_of(kernel)) == {"base__scale", "base__transform__slopes", "beta"}
    blocks = GeneralizedRBF(HIK(Weights([1.0, 2.0], blocks=[2, 1]), scale=1.0), 1.0)
    assert "base__transform__blocks" not in names_of(blocks)


def test_choices_are_not_learned() -> None:
    """The smoothness of Matérn has three values; knots are places, and must ascend."""
    assert names_of(Matern(2.0, 2.5)) == ["amplitude", "length_scale"]
    knots = GeneralizedRBF(HIK(Monotone([[0.5, 1.0]], [[1.0, 2.0]]), scale=1.0), 1.0)
    names = ["base__scale", "base__transform__slopes", "base__transform__slopes", "beta"]
    assert names_of(knots) == names


def test_factors_and_parts_of_sums_are_learned_inside_dense_kernels() -> None:
    kernel = RBF() + 2.0 * (HIK(Power(0.5)) + HIK(scale=0.3))
    names = [name.removeprefix("right__") for name in names_of(kernel)]
    assert names == [
        "left__amplitude",
        "left__length_scale",
        "factor",
        "scale",
        "transform__part0__transform__eta",
        "transform__part1__scale",
    ]


class Lifted(Laplacian):
    """A user's own kernel, with a gradient for one of its two parameters."""

    def __init__(self, gamma: float = 1.0, amplitude: float = 1.0) -> None:
        super().__init__(gamma)
        self.amplitude = amplitude

    def __call__(self, X: Any, Z: Any = None) -> Any:
        return self.amplitude * super().__call__(X, Z)

    def gradient(self, X: Any, A: Any, weight: Any = None) -> Any:
        return {"amplitude": (A * self(X)).sum()}


def test_pull_is_the_derivative_and_takes_differences_for_what_a_gradient_leaves_out() -> None:
    A = rng.standard_normal((40, 40))
    for kernel in (Lifted(0.7), Matern(np.array([0.5, 1.0, 2.0])) + 2.0 * HIK(Power(0.5))):
        space = space_of(kernel, rng.uniform(0.5, 2.0, 40))
        theta = space.coordinates.table[:, 0] + 0.1
        found = space.pull(theta, space.gram(theta), MatrixSlope(A))
        for k, name in enumerate(space.coordinates.names):
            nudge = 1e-5 * np.eye(theta.size)[k]
            change = (A * (space.kernel(theta + nudge)(X) - space.kernel(theta - nudge)(X))).sum() / 2e-5
            assert found[k] == pytest.approx(change, rel=1e-5, abs=1e-6), name


@pytest.mark.parametrize("method", ["gradient", "nelder-mead", "grid"])
def test_a_weight_of_zero_stays_zero(method: str) -> None:
    """Also where the other weights move, as if the dimension were not there."""
    tune = Tune(method, "evidence", fixed=("noise",), max_evaluations=12, prior=0.1)
    whole = fitted(HIK(Weights([1.0, 0.0, 0.5]), scale=1.0), tune)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        without = GPClassifier(HIK(Weights([1.0, 0.5]), scale=1.0), tune=tune).fit(X[:, [0, 2]], y)
    w = np.asarray(whole.kernel_.transforms()[0].w)
    assert w[1] == 0.0
    assert w[0] != 1.0
    np.testing.assert_allclose(w[[0, 2]], without.kernel_.transforms()[0].w, rtol=1e-6)
    np.testing.assert_allclose(whole.tuning_.best.value, without.tuning_.best.value, rtol=1e-9)
