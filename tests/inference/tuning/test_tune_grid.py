"""A grid of listed values: every combination is tried, by evidence against dense algebra, and the best one is kept."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone

from saccade import GPClassifier, GPRegressor, Tune
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels import HIK, RBF, Exponential, Matern, Power

Array = np.ndarray[Any, np.dtype[Any]]
rng = np.random.default_rng(2)
X = rng.random((30, 2))
y = np.sin(6.0 * X[:, 0]) + 0.2 * rng.standard_normal(30)
LENGTHS, NOISES = [0.05, 0.2, 0.8, 3.0], [1e-3, 3e-2, 1.0]


def test_the_grid_of_the_slides() -> None:
    """S §7: amplitude and length scale of the squared exponential by exhaustive search, with the noise."""
    values = {"length_scale": LENGTHS, "amplitude": [0.3, 1.0], "noise": NOISES}
    model = GPRegressor(RBF(17.0), noise=0.5, normalize_y=False, tune=values).fit(X, y)
    tried = list(product(*values.values()))
    found = {tuple(e.parameters[name] for name in values): -30 * e.value for e in model.tuning_.evaluations}
    assert len(found) == len(tried)
    truth = {}
    for length, amplitude, noise in tried:
        K = RBF(length, amplitude)(X) + noise * np.eye(30)
        truth[length, amplitude, noise] = multivariate_normal.logpdf(y, np.zeros(30), K)
    np.testing.assert_allclose(np.array(list(found)), tried, rtol=1e-12)
    np.testing.assert_allclose(list(found.values()), list(truth.values()), rtol=1e-8)
    length, amplitude, noise = max(truth, key=lambda key: truth[key])
    assert (model.kernel_.length_scale, model.kernel_.amplitude) == pytest.approx((length, amplitude))
    assert model.noise_ == pytest.approx(noise)
    assert (model.tuning_.method, model.tuning_.objective, model.tuning_.stopped) == ("grid", "evidence", "converged")
    assert model.log_marginal_likelihood().value == pytest.approx(max(truth.values()), rel=1e-8)


@pytest.mark.parametrize("kernel", [RBF([1.0, 1.0]), Matern([1.0, 1.0], nu=2.5)], ids=["RBF", "Matern"])
def test_a_value_is_for_all_dimensions_or_one_for_each(kernel: Any) -> None:
    model = GPRegressor(kernel, noise=0.05, tune={"length_scale": [0.2, [0.2, 5.0], np.array([5.0, 0.2])]}).fit(X, y)
    assert len(model.tuning_.evaluations) == 3
    np.testing.assert_allclose(model.kernel_.length_scale, [0.2, 5.0])  # the second feature says nothing
    assert (model.noise_, model.kernel_.amplitude) == pytest.approx((0.05, 1.0))
    with pytest.raises(InvalidParameter, match="must have 2 numbers in each 'length_scale', got"):
        GPRegressor(kernel, tune={"length_scale": [[1.0, 2.0, 3.0]]}).fit(X, y)


def test_transforms_of_a_histogram_kernel_and_classes() -> None:
    model = GPClassifier(HIK(Power(1.0)), tune={"power": [0.3, 1.0, 3.0], "noise": [0.1]}).fit(X, y > 0)
    assert model.tuning_.objective == "loo"
    assert [e.parameters["power"] for e in model.tuning_.evaluations] == pytest.approx([0.3, 1.0, 3.0])
    bent = GPRegressor(HIK(Exponential(0.0)), tune={"exponential": [-2.0, 0.0, 2.0]}).fit(X, y)
    assert [e.parameters["exponential"] for e in bent.tuning_.evaluations] == pytest.approx([-2.0, 0.0, 2.0])


def test_a_dict_is_short_for_a_tune_with_it() -> None:
    values = {"noise": NOISES}
    short, whole = (
        clone(GPRegressor(RBF(0.3), tune=t)).fit(X, y) for t in (values, Tune("grid", grid=values, max_evaluations=1))
    )
    assert len(whole.tuning_.evaluations) == 3  # as many as there are values
    np.testing.assert_array_equal(short.predict(X), whole.predict(X))
    left_out = GPRegressor(RBF(0.3), tune=Tune("grid", "loo", grid=values)).fit(X, y)
    assert left_out.tuning_.objective == "loo"


def test_what_float64_cannot_hold_is_passed_over() -> None:
    model = GPRegressor(RBF(0.3), noise=0.0, tune={"length_scale": [1e6, 0.2, 1e5]}).fit(X, y)
    assert model.kernel_.length_scale == pytest.approx(0.2)
    assert len(model.tuning_.evaluations) == 1
    with pytest.raises(InvalidInput, match="not positive definite"):
        GPRegressor(RBF(0.3), noise=0.0, tune={"length_scale": [1e6, 1e5]}).fit(X, y)


@pytest.mark.parametrize(
    ("tune", "words"),
    [
        ({}, "`grid` must be a dict such as"),
        ({"noise": []}, "a list of positive numbers for 'noise', got"),
        ({"noise": 0.1}, "a list of positive numbers for 'noise', got 0.1"),
        ({"noise": "0.1"}, "for 'noise', got '0.1'"),
        ({"noise": [0.1, 0.0]}, "a list of positive numbers"),
        ({"noise": [0.1, np.nan]}, "a list of positive numbers"),
        ({"noise": [[0.1, 0.2]]}, "must have 1 numbers in each 'noise'"),
        ({"gamma": [1.0]}, "`grid` names 'gamma', .* It has: amplitude, length_scale, noise"),
        (Tune(grid={"noise": [0.1]}), "`grid` is for method=\"grid\", got method='gradient'"),
        (Tune("grid", grid={"noise": [0.1]}, fixed=("noise",)), "both name 'noise'"),
        ({"noise": [0.1] * 101, "amplitude": [1.0] * 100}, "up to 10000 combinations, got 10100"),
    ],
)
def test_a_bad_grid_is_explained(tune: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        GPRegressor(RBF(0.3), tune=tune).fit(X, y)
