"""Rough steps of Laplace's method: what they leave is known, and the mode is that of factors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from saccade._core.arrays import Array
from saccade.inference.likelihoods.draft import Draft
from saccade.inference.likelihoods.laplace import laplace
from saccade.inference.likelihoods.newton import Labels, Means, newton_step
from saccade.inference.likelihoods.sites import Regression
from saccade.inference.solving.regression import Solution, Solving, solve
from saccade.kernels import HIK
from saccade.operators.codes import encode
from saccade.operators.intersection_base import Intersection
from tests.inference.likelihoods.textbook import answered, infer
from tests.tolerances import assert_close

N = 400


def problem(scale: float = 1.0) -> tuple[Intersection, Array, Array]:
    """Operator, dense matrix and labels of three classes; `scale` is that of the kernel."""
    X, y = load_digits(return_X_y=True)
    X = X[:N] / 16.0
    kernel = HIK(scale=HIK().resolved(X).scale * scale).resolved(X)
    return kernel.operator(encode(X)), kernel(X), np.where(y[:N, None] == np.arange(3), 1.0, -1.0)


@pytest.mark.parametrize("left", [1.0, 1e-2, 1e-9])
def test_the_residual_is_as_asked_and_the_mean_is_that_of_alpha(left: float) -> None:
    operator, K, Y = problem(4.0)
    noise = 10.0 ** np.random.default_rng(0).uniform(-1.0, 8.0, Y.shape)
    found = Draft(operator, 2.0, 1e-6, 1000).solve(noise, Y, 0.1 * Y / noise, left)
    assert_close(found.mean, K @ found.alpha, np.float32)  # noise of 1e8 takes eight digits
    residual = np.abs(Y - found.mean - noise * found.alpha).max(axis=0)
    np.testing.assert_allclose(found.residual, residual, rtol=1e-3, atol=1e-9)
    assert (residual <= max(left, 2e-6)).all()
    assert np.isnan(found.inverse_diagonal).all()


@pytest.mark.parametrize(("scale", "noise"), [(1.0, 0.1), (100.0, 0.1), (1.0, 1e-3)])
def test_the_mode_is_that_of_factors(scale: float, noise: float) -> None:
    operator, K, Y = problem(scale)
    unit = float(np.sqrt(scale))

    draft = Draft(operator, unit, 1e-6, 5000)

    def solved(asked: Regression) -> Solution:
        if asked.left is not None:
            return draft.solve(asked.noise, asked.targets, asked.guess, asked.left)
        return solve(operator, asked.noise, asked.targets, Solving("cg", tol=1e-6, start=asked.guess))

    sites, fast = answered(laplace(operator.diag(), Y, np.full((N, 1), noise), least=draft.least), solved)
    _, slow = infer(laplace, K, Y, noise)
    np.testing.assert_allclose(K @ fast.alpha, K @ slow.alpha, atol=1e-4 * unit)
    assert sites.converged
    assert len(sites.changes) <= 40
    assert sites.changes[-1] <= 3.0 * 1e-6 * unit / np.sqrt(noise)  # the last draft was not a rough one


def test_the_first_guess_knows_the_new_noise_of_far_examples() -> None:
    """α as it was misses targets whose noise grew; near the end it is the best guess, and stays as it is."""
    operator, _, Y = problem()
    draft = Draft(operator, 1.0, 1e-3, 1000)
    labels = Labels(Y, np.full_like(Y, 0.1), np.zeros_like(Y), np.ones((N, 1)), 1.1e8)
    means, seen = Means.start(labels), list[float]()

    def solved(asked: Regression) -> Solution:
        noise, targets, guess, _ = asked
        assert guess is not None
        f, alpha = means.f, means.alpha
        if means.moved.max() <= 0.1:
            np.testing.assert_array_equal(guess, alpha)
        elif means.moved.min() > 0.1:
            flat, steep = noise > 1e3, noise < 0.2
            missed = np.abs(targets - noise * alpha - f)
            assert (np.abs(targets - noise * guess - f)[flat] <= 0.02 * missed[flat] + 1e-9).all()
            assert (np.abs(guess - alpha)[steep] <= 0.1 * missed[steep]).all()
            seen.append(float(missed[flat].max(initial=0.0)))
        return draft.solve(noise, targets, guess, 0.01)

    while means.moved.max() > 0.01:
        answered(newton_step(labels, means, np.arange(3), None), solved)
    assert max(seen) > 10.0  # what α as it was would have begun with, where targets are near 1


def test_laplace_s_sites_tell_the_alpha_that_labels_ask_for() -> None:
    """(targets − f) / noise is the slope of log p(y | f), also where the noise is cut off and for several copies."""
    rng = np.random.default_rng(0)
    Y, f = rng.choice([-1.0, 1.0], (50, 2)), 3.0 * rng.standard_normal((50, 2))
    copies = rng.integers(1, 4, (50, 1)).astype(np.float64)
    labels = Labels(Y, np.full_like(Y, 0.3), np.zeros_like(Y), copies, 1e3)
    targets, noise = labels.sites(f)
    assert noise.max() == 1e3
    assert_close((targets - f) / noise, labels.pull(f))


def test_a_guess_that_is_right_is_the_end() -> None:
    """In whatever unit targets are."""
    operator, K, Y = problem()
    noise, unit = np.full(Y.shape, 0.5), 100.0
    alpha = np.linalg.solve(K + 0.5 * np.eye(N), unit * Y)
    draft = Draft(operator, unit, 1e-6, 1000)
    assert draft.solve(noise, unit * Y, alpha, 1e-3).iterations <= 1
    assert draft.solve(noise, unit * Y, None, 1e-3).iterations > 5
