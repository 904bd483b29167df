"""The choice of kernel and noise: costs are those of dense algebra, and few examples leave the defaults."""

import numpy as np
import pytest

from saccade._core.arrays import Array
from saccade.estimators.losses import ClassLosses
from saccade.inference.tuning.choice import ERRORS, NOISE, NOISES, Candidate, JudgedOn, _costs, _largest, best_candidate
from saccade.kernels import HIK, RBF
from tests.tolerances import assert_close


def left_out(K: Array, Y: Array, noise: float, copies: Array) -> Array:
    """The mean at each example from all others, one copy of it removed, by a solve for each."""
    found = np.empty_like(Y)
    for i in range(len(Y)):
        kept = copies - (np.arange(len(Y)) == i)
        rows = np.repeat(np.arange(len(Y)), kept)
        found[i] = K[i, rows] @ np.linalg.solve(K[np.ix_(rows, rows)] + noise * np.eye(len(rows)), Y[rows])
    return found


@pytest.mark.parametrize("weighted", [False, True])
def test_costs_are_those_of_leaving_each_example_out(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.random((12, 3)), rng.choice([-1.0, 1.0], (12, 2))
    copies = rng.integers(1, 4, 12) if weighted else np.ones(12, np.int64)
    K = RBF(0.4)(X)
    for column in range(2):
        weight = copies.astype(float) if weighted else None
        examples = JudgedOn(Y, weight, lambda mean, column=column: mean[:, column])  # type: ignore[misc]
        for noise in NOISES:
            assert_close(_costs(K, examples, noise), left_out(K, Y, noise, copies)[:, column])


def counted(per_class: int, words: int, seed: int) -> tuple[Array, Array]:
    """Histograms of few words each: what an example says of its class is mostly chance."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(100, 0.3), 5)
    label = np.repeat(np.arange(5), per_class)
    return np.array([rng.multinomial(words, topics[c]) for c in label], float), label


def chosen(X: Array, label: Array) -> float:
    kernel, losses = HIK().resolved(X), ClassLosses(label, None)
    Y = np.where(label[:, None] == np.arange(label.max() + 1), 1.0, -1.0)
    return best_candidate([Candidate(kernel, kernel(X))], JudgedOn(Y, None, losses.costs), NOISES, NOISE).noise


def test_noisy_counts_want_more_noise_and_few_of_them_the_default() -> None:
    assert chosen(*counted(40, 4, seed=0)) > NOISE
    few = [chosen(*counted(2, 40, seed)) for seed in range(10)]
    assert few.count(NOISE) >= 8


def test_the_default_stays_where_no_label_has_to_do_with_the_rows() -> None:
    rng = np.random.default_rng(1)
    X = rng.random((30, 4))
    found = [chosen(X, rng.permutation(np.arange(30) % 2)) for _ in range(10)]
    assert found.count(NOISE) >= 6


def test_a_better_kernel_is_found_and_a_worse_one_is_not() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(-1.0, 1.0, (150, 2))
    label = (X[:, 0] * X[:, 1] > 0).astype(np.int64)  # no sum over the columns can tell
    Y = np.where(label == 1, 1.0, -1.0)[:, None]
    examples = JudgedOn(Y, None, ClassLosses(label, None).costs)
    additive, local = (Candidate(kernel, kernel(X)) for kernel in (HIK().resolved(X), RBF(0.5)))
    for candidates in ([additive, local], [local, additive]):
        assert best_candidate(candidates, examples, NOISES, NOISE).kernel is local.kernel


def test_a_gain_must_exceed_chance_and_the_prior() -> None:
    """Costs as they are told: the candidate gains 1 nat for all, or 40 for one of 40 examples and nothing else."""
    rng = np.random.default_rng(3)
    X, Y = rng.random((40, 2)), rng.choice([-1.0, 1.0], (40, 1))
    kernel = RBF(1.0)
    for told, chance in ((np.ones(40), 0.0), (40.0 * (np.arange(40) == 0), np.sqrt(39.0 / 40.0))):
        costs = iter([told, np.zeros(40)])
        examples = JudgedOn(Y, None, lambda mean, costs=costs: next(costs))  # type: ignore[misc]
        found = best_candidate([Candidate(kernel, kernel(X))], examples, (0.3,), NOISE)
        assert found.noise == 0.3
        assert_close(found.gain, 1.0 - ERRORS * chance - np.log(3.0) ** 2 / 40)


@pytest.mark.parametrize("best", NOISES)
@pytest.mark.parametrize("first", NOISES)
def test_four_noises_of_seven_find_the_largest_gain(best: float, first: float) -> None:
    """Wherever it is and wherever the search begins, as long as gains rise before it and fall after it."""
    asked = []

    def gain(noise: float) -> float:
        asked.append(noise)
        return -float(abs(np.log(noise / best)))

    assert _largest(gain, NOISES, first, gain(first))[0] == best
    assert len(asked) <= (4 if first == NOISE else 5)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("per_class", "words"), [(40, 4), (60, 12), (30, 60)])
def test_the_choice_is_that_of_all_noises(per_class: int, words: int, seed: int) -> None:
    """One after the other, each alone against the default: the largest gain is that of the noise which is chosen."""
    X, label = counted(per_class, words, seed)
    kernel, losses = HIK().resolved(X), ClassLosses(label, None)
    Y = np.where(label[:, None] == np.arange(label.max() + 1), 1.0, -1.0)
    examples, candidate = JudgedOn(Y, None, losses.costs), Candidate(kernel, kernel(X))
    alone = [best_candidate([candidate], examples, (noise,), NOISE) for noise in NOISES]
    assert chosen(X, label) == max(alone, key=lambda found: found.gain).noise


def test_too_little_noise_for_float64_is_not_chosen() -> None:
    """The matrix is not positive definite up to 0.3: nothing is known there, and the next noise is tried."""
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 20)
    K = (
        np.where(label[:, None] == label, 1.0, 0.0)
        + 0.1 * np.eye(40)
        - 0.45 * np.outer(*2 * [rng.permutation(40) == 0])
    )
    K[np.diag_indices(40)] -= 0.5
    Y = np.where(label == 1, 1.0, -1.0)[:, None]
    examples = JudgedOn(Y, None, ClassLosses(label, None).costs)
    assert best_candidate([Candidate(RBF(1.0), K)], examples, NOISES, NOISE).noise >= 1.0
