"""Sharpness, probabilities and calibration error as pure functions."""

import numpy as np
import pytest

from saccade.scores.probability import expected_calibration_error, fit_sharpness, probabilities


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
