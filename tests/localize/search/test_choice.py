"""Batches against the same choice made in the plainest way."""

from typing import Any

import numpy as np
import pytest

from saccade.localize.search.asking import choose_boxes
from saccade.scores.acquisition import expected_improvement, probability_of_improvement


def setting(seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(0.0, 1.0, (40, 25)), rng.uniform(0.01, 0.3, (40, 25)), rng.normal(0.5, 0.3, 25)


@pytest.mark.parametrize(("policy", "score"), [("ei", expected_improvement), ("pi", probability_of_improvement)])
def test_a_batch_by_improvement_is_the_greedy_one(policy: Any, score: Any) -> None:
    for seed in range(5):
        mean, variance, best = setting(seed)
        found = choose_boxes(policy, mean, variance, best, 8, 0.05, 0.01, np.random.default_rng(0))
        taken: list[int] = []
        for _ in range(8):
            value = score(mean, variance, best, 0.05).mean(axis=1)
            value[taken] = -np.inf
            taken.append(int(value.argmax()))
            best = np.maximum(best, mean[taken[-1]])
        np.testing.assert_array_equal(found, taken)


@pytest.mark.parametrize("policy", ["ucb", "variance"])
def test_a_batch_by_moments_is_conditioned_on_what_it_has(policy: Any) -> None:
    mean, variance, best = setting()
    found = choose_boxes(policy, mean, variance, best, 6, 0.0, 0.01, np.random.default_rng(0))
    C = np.cov(mean, bias=True) + np.diag(variance.mean(axis=1))
    taken: list[int] = []
    for _ in range(6):
        left = C.diagonal() - (
            np.einsum(
                "ij,ji->i",
                C[:, taken],
                np.linalg.solve(C[np.ix_(taken, taken)] + 0.01 * np.eye(len(taken)), C[taken]),
            )
            if taken
            else 0.0
        )
        value = np.array(left) if policy == "variance" else mean.mean(axis=1) + 2.0 * np.sqrt(left)
        value[taken] = -np.inf
        taken.append(int(value.argmax()))
    np.testing.assert_array_equal(found, taken)


def test_two_equal_candidates_are_not_both_chosen_first() -> None:
    mean = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.9]])
    found = choose_boxes("ei", mean, np.full((3, 2), 1e-6), np.zeros(2), 2, 0.0, 0.0, np.random.default_rng(0))
    np.testing.assert_array_equal(found, [0, 2])


def test_thompson_looks_where_a_drawn_hypothesis_is_highest() -> None:
    mean = np.eye(6)
    found = choose_boxes("thompson", mean, np.zeros((6, 6)), np.zeros(6), 4, 0.0, 0.0, np.random.default_rng(0))
    assert len(set(found)) == 4


def test_no_more_than_there_are() -> None:
    mean, variance, best = setting()
    for policy in ("ei", "pi", "ucb", "variance", "thompson"):
        found = choose_boxes(policy, mean[:3], variance[:3], best, 10, 0.0, 0.1, np.random.default_rng(0))  # type: ignore[arg-type]
        assert sorted(found) == [0, 1, 2]
