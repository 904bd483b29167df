"""What a label is worth, against what happens when it is there: dense algebra with and without it."""

from typing import Any

import numpy as np
import pytest

from saccade.scores import query
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
NOISE = 0.2


@pytest.fixture
def C() -> Array:
    """A posterior covariance of seven rows."""
    A = np.random.default_rng(0).random((7, 9))
    return A @ A.T / 9


def after(C: Array, j: int) -> Array:
    """The covariance once row j is observed."""
    return C - np.outer(C[:, j], C[j]) / (C[j, j] + NOISE)


def test_sigma_optimality_is_the_variance_of_the_sum_that_a_label_removes(C: Array) -> None:
    found = query.sigma_optimality(C.sum(axis=1), C.diagonal(), NOISE)
    assert_close(found, [C.sum() - after(C, j).sum() for j in range(7)])


def test_variance_reduction_is_the_sum_of_variances_that_a_label_removes(C: Array) -> None:
    found = query.variance_reduction(np.square(C).sum(axis=1), C.diagonal(), NOISE)
    assert_close(found, [np.trace(C) - np.trace(after(C, j)) for j in range(7)])


def test_information_gain_is_the_mean_mutual_information_of_two_labels(C: Array) -> None:
    noisy = C + NOISE * np.eye(7)
    targets = np.array([0, 3, 5])
    found = query.information_gain(C[:, targets], C.diagonal(), C.diagonal()[targets], NOISE)
    for j in (1, 2, 4, 6):
        pairs = [noisy[np.ix_([j, t], [j, t])] for t in targets]
        told = [0.5 * np.log(pair[0, 0] * pair[1, 1] / np.linalg.det(pair)) for pair in pairs]
        assert_close(found[j], np.mean(told))


def test_output_change_is_the_expected_move_of_all_outputs(C: Array) -> None:
    rng = np.random.default_rng(1)
    mean, p = rng.normal(size=(7, 3)), rng.dirichlet(np.ones(3), 7)
    found = query.output_change(C, C.diagonal(), NOISE, mean, p)
    for j in range(7):
        total = 0.0
        for label in range(3):
            y = np.where(np.arange(3) == label, 1.0, -1.0)
            moved = np.outer(C[:, j], (y - mean[j]) / (C[j, j] + NOISE))
            total += p[j, label] * np.abs(moved).sum(axis=1).mean()
        assert_close(found[j], total)


def test_the_criteria_of_kapoor_rank_as_printed() -> None:
    mean = np.array([-0.9, 0.1, 0.4, -0.3])
    both, variance = np.column_stack([-mean, mean]), np.array([0.1, 0.0, 3.0, 0.2])
    assert query.margin(both).argmax() == np.abs(mean).argmin() == 1
    ratio = np.abs(mean) / np.sqrt(variance + NOISE)
    assert_close(np.argsort(-query.uncertainty(both, variance, NOISE)), np.argsort(ratio))
    assert_close(np.argsort(-query.class_uncertainty(both, variance, NOISE)[:, 0]), np.argsort(ratio))
    assert query.uncertainty(both, variance, NOISE).argmax() == 1
    assert query.uncertainty(both, np.array([0.1, 0.0, 9.0, 0.2]), NOISE).argmax() == 2


def test_doubt_about_probabilities() -> None:
    p = np.array([[0.4, 0.35, 0.25], [0.9, 0.05, 0.05], [1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0]])
    assert_close(query.least_margin(p), [0.95, 0.15, 1.0, 0.0])
    assert_close(query.entropy(p)[2:], [np.log(3.0), 0.0])
    assert query.least_margin(np.ones((2, 1))).tolist() == [1.0, 1.0]


def test_targets_that_move_up_and_down_both_count() -> None:
    """Covariances of both signs: outputs change at each target, and do not cancel."""
    mean, probability = np.zeros((2, 2)), np.full((2, 2), 0.5)
    covariance = np.array([[0.4, -0.4], [0.1, 0.1]])
    found = query.output_change(covariance, np.ones(2), 0.5, mean, probability)
    assert found[0] == pytest.approx(4 * found[1])
    assert found[1] == pytest.approx(2 * 0.1 / 1.5)


def test_a_target_that_is_the_candidate_itself_without_noise() -> None:
    """c² is σ²σ² but for rounding, and may be more: the information stays finite."""
    covariance, variance = np.array([[1.0 + 1e-12]]), np.ones(1)
    assert np.isfinite(query.information_gain(covariance, variance, variance, 0.0)).all()


def test_a_tie_between_classes_has_the_largest_score_and_it_is_one() -> None:
    mean, variance = np.array([[0.4, 0.4, -1.0], [0.9, 0.1, -1.0]]), np.array([0.05, 0.05])
    assert_close(query.margin(mean), [1.0, 1.0 / 1.4])
    assert_close(query.uncertainty(mean, variance, NOISE), [1.0, 1.0 / 1.8])
    assert_close(query.class_uncertainty(np.zeros((2, 3)), variance, NOISE), np.ones((2, 3)))
