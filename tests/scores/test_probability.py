"""Sharpness, probabilities and calibration error as pure functions."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from saccade.scores.probability import (
    cross_entropy,
    example_costs,
    expected_calibration_error,
    fit_sharpness,
    probabilities,
)
from tests.tolerances import assert_close


@pytest.mark.parametrize("classes", [2, 5])
def test_sharpness_is_recovered_from_samples(classes: int) -> None:
    rng = np.random.default_rng(0)
    mean = rng.standard_normal((20_000, 1 if classes == 2 else classes))
    P = probabilities(mean, 2.5)
    label = (P.cumsum(axis=1) > rng.random((len(P), 1))).argmax(axis=1)
    assert fit_sharpness(mean, label) == pytest.approx(2.5, rel=0.05)
    assert expected_calibration_error(P, label) < 0.01
    assert expected_calibration_error(probabilities(mean, 20.0), label) > 0.05


def test_perfect_separation_stays_finite_and_grows_with_evidence() -> None:
    few, many = (fit_sharpness(np.repeat([[1.0], [-1.0]], n, axis=0), np.repeat([1, 0], n)) for n in (5, 500))
    assert 1.0 < few < many < 10.0


def test_weights_count_as_copies() -> None:
    rng = np.random.default_rng(1)
    mean, label = rng.standard_normal((50, 3)), rng.integers(0, 3, 50)
    weight = rng.integers(1, 4, 50)
    weighed = fit_sharpness(mean, label, weight.astype(float))
    assert weighed == pytest.approx(fit_sharpness(np.repeat(mean, weight, axis=0), np.repeat(label, weight)))


def test_calibration_error_by_hand() -> None:
    P = np.array([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7], [0.45, 0.55]])
    assert expected_calibration_error(P, np.array([0, 1, 1, 0]), bins=10) == pytest.approx(
        (abs(1.8 - 1) + abs(0.7 - 1) + abs(0.55 - 0)) / 4
    )


def test_probabilities_of_means_of_any_size() -> None:
    mean = np.array([[900.0, 899.0, -5.0], [-2000.0, -2001.0, -2001.5], [0.0, 0.3, 0.1]])
    assert_close(probabilities(mean, 1.0), softmax(mean, axis=1))
    assert_close(
        probabilities(mean[:, :1], 2.0), softmax(np.column_stack([-2.0 * mean[:, 0], 2.0 * mean[:, 0]]), axis=1)
    )


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_slope_of_the_cross_entropy_is_that_of_differences(outputs: int, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(30, outputs))
    label = (mean[:, 0] + rng.normal(size=30) > 0).astype(int) if outputs == 1 else mean.argmax(axis=1)
    label[:4] = (label[:4] + 1) % max(outputs, 2)
    weight = rng.uniform(0.5, 3.0, 30) if weighted else None
    slope = cross_entropy(mean, label, weight)[1]
    for i, j in ((0, 0), (7, outputs - 1), (29, 0)):
        step = np.zeros_like(mean)
        step[i, j] = 1e-4
        up, down = (cross_entropy(mean + sign * step, label, weight)[0] for sign in (1.0, -1.0))
        assert slope[i, j] == pytest.approx((up - down) / 2e-4, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("outputs", [1, 4])
def test_costs_of_examples_are_the_cross_entropy_and_one_where_the_class_is_wrong(outputs: int) -> None:
    rng = np.random.default_rng(1)
    mean, M = rng.normal(size=(40, outputs)), max(outputs, 2)
    every = np.hstack([-mean, mean]) if outputs == 1 else mean
    label = every.argmax(axis=1)
    label[:6] = (label[:6] + 1) % M
    log_p = log_softmax(fit_sharpness(mean, label) * every, axis=1)
    own = log_p[np.arange(40), label]
    nats = -(1.0 - 1.0 / 42.0) * own - (log_p.sum(axis=1) - own) / 42.0 / (M - 1)
    assert_close(example_costs(mean, label), nats + (np.arange(40) < 6))
    assert cross_entropy(mean, label)[0] == pytest.approx(nats.mean())
