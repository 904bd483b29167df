import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from saccade.scores.accuracy import (
    FIRST_LOOK,
    WORSE,
    draws_to_show,
    error_spent,
    left_out_accuracy,
    looks_until,
    share_evidence,
    share_interval,
    share_sequence,
)


def schedule(most: int) -> list[int]:
    """By its definition: where the number of looks goes up."""
    return [n for n in range(1, most + 1) if looks_until(n) > looks_until(n - 1)]


def test_looks_are_a_quarter_apart() -> None:
    at = schedule(400)
    assert at == [1, 2, 4, 8, 16, 20, 25, 32, 40, 50, 63, 79, 99, 124, 155, 194, 243, 304, 380]
    assert looks_until(10**9) < 90


def test_error_is_shared_out_and_never_overspent() -> None:
    spent = np.array([error_spent(n) for n in schedule(10**5)])
    assert (np.diff(spent) > 0).all()
    assert spent[0] > 0
    assert error_spent(FIRST_LOOK - 1) == pytest.approx(0.2 * error_spent(FIRST_LOOK))  # looks that say little
    assert error_spent(10**15) < 1


@given(st.integers(1, 400), st.data(), st.floats(1e-6, 0.5))
def test_interval_is_clopper_and_pearsons(n: int, data: st.DataObject, error: float) -> None:
    right = data.draw(st.integers(0, n))
    low, high = share_interval(right, n, error)
    assert 0 <= low <= right / n <= high <= 1
    # The definition: at the end of the interval, so extreme a result has just the probability allowed.
    if right > 0:
        assert binom.sf(right - 1, n, low) == pytest.approx(0.8 * error, rel=1e-6)
    if right < n:
        assert binom.cdf(right, n, high) == pytest.approx(0.2 * error, rel=1e-6)
    assert share_interval(right, n, error / 2)[0] <= low
    assert share_interval(right, n, error / 2)[1] >= high


@pytest.mark.parametrize("n", [1, 2, 16, 63, 155])
@pytest.mark.parametrize("error", [0.05, 0.003])
def test_interval_misses_no_more_often_than_allowed(n: int, error: float) -> None:
    """Every outcome counted with its exact probability; the worst shares are next to the ends of intervals."""
    ends = np.array([share_interval(right, n, error) for right in range(n + 1)])
    shares = np.concatenate([np.linspace(0, 1, 401), (ends - 1e-9).ravel(), (ends + 1e-9).ravel()]).clip(0, 1)
    misses = (shares[:, None] < ends[:, 0]) | (shares[:, None] > ends[:, 1])
    chance = (misses * binom.pmf(np.arange(n + 1), n, shares[:, None])).sum(axis=1)
    assert chance.max() <= error * (1 + 1e-5)
    if n > 2:
        assert chance.max() > 0.8 * error  # and not much too wide


def test_ends_are_scipys_quantiles() -> None:
    low, high = share_interval(45, 50, 0.01)
    assert low == pytest.approx(beta.ppf(0.008, 45, 6))
    assert high == pytest.approx(beta.isf(0.002, 46, 5))


def test_examples_without_a_decision_for_every_class_do_not_count() -> None:
    decision = np.array([[0.9, -0.9, 0.0], [0.2, 0.5, -1.0], [np.nan, 0.5, -1.0], [np.nan, np.nan, np.nan]])
    label = np.array([0, 0, 1, 2])
    assert left_out_accuracy(decision, label, 0.1) == left_out_accuracy(decision[:2], label[:2], 0.1)
    assert left_out_accuracy(decision, label, 0.1)[0] == 0.5


@given(st.integers(1, 99), st.integers(0, 60), st.integers(0, 60), st.floats(0.0, 1.0))
def test_evidence_never_grows_on_average_where_the_claim_is_false(
    percent: int, right: int, wrong: int, p: float
) -> None:
    """Draw by draw, exactly: the definition of a test supermartingale, for better and for worse models."""
    share, n = percent / 100, right + wrong

    def grows(accuracy: float, *factors: tuple[float, ...]) -> float:
        after = [np.exp(share_evidence(right + good, n + 1, share, *factors)) for good in (0, 1)]
        return float(
            accuracy * after[1] + (1 - accuracy) * after[0] - np.exp(share_evidence(right, n, share, *factors))
        )

    slack = 1e-9 * np.exp(max(share_evidence(right, n, share), share_evidence(right, n, share, WORSE), 0.0))
    assert grows(share * p) <= slack
    assert abs(grows(share)) <= slack
    assert grows(share + (1 - share) * p, WORSE) <= slack
    assert grows((1 + share) / 2) > 0


@pytest.mark.parametrize(("accuracy", "target"), [(0.8, 0.8), (0.9, 0.9)])
def test_a_model_of_just_the_target_is_rarely_shown_to_be_better(accuracy: float, target: float) -> None:
    """Exact, over every number of audits up to 200: a stop at the first moment that the evidence is enough."""
    alive = np.ones(1)
    for n in range(1, 201):
        alive = np.convolve(alive, [1 - accuracy, accuracy])
        shown = [share_evidence(right, n, target) >= np.log(20) for right in range(n + 1)]
        alive[shown] = 0.0
    assert 0.02 < 1 - alive.sum() <= 0.05


@pytest.mark.parametrize("accuracy", [0.3, 0.8, 0.95])
def test_all_intervals_of_a_sequence_hold_together(accuracy: float) -> None:
    """Exact, over every number of draws up to 80."""
    alive = np.ones(1)
    for n in range(1, 81):
        alive = np.convolve(alive, [1 - accuracy, accuracy])
        some = np.flatnonzero(alive > 1e-5)
        ends = np.array([share_sequence(int(right), n, 0.1, 0.5) for right in some])
        alive[some[(ends[:, 0] > accuracy) | (ends[:, 1] < accuracy)]] = 0.0
    assert 0.005 < 1 - alive.sum() <= 0.1


def test_ends_of_a_sequence_are_where_the_evidence_is_enough() -> None:
    low, high = share_sequence(45, 50, 0.05, 0.8)
    assert share_evidence(45, 50, low) == pytest.approx(np.log(1 / 0.04))
    assert share_evidence(45, 50, high, WORSE) == pytest.approx(np.log(1 / 0.01))
    assert share_sequence(0, 0, 0.05, 0.8) == (0.0, 1.0)
    assert share_sequence(0, 9, 0.05, 0.8)[0] == 0.0
    assert share_sequence(9, 9, 0.05, 0.8)[1] == 1.0
    assert share_sequence(9999, 10_000, 0.05, 0.8)[1] <= 1.0


def test_draws_to_show_is_about_what_it_takes() -> None:
    """Against the mean of simulated tests of one alternative's size."""
    rng, taken = np.random.default_rng(0), []
    for _ in range(100):
        right, n = 0, 0
        while share_evidence(right, n, 0.8) < np.log(20):
            right, n = right + int(rng.random() < 0.95), n + 1
        taken.append(n)
    expected = draws_to_show(0, 0, 0.8, 0.05, 0.95)
    assert 0.8 * expected < np.mean(taken) < 1.5 * expected
    assert draws_to_show(0, 0, 0.8, 0.05, 0.8) == np.inf
    assert draws_to_show(30, 60, 0.8, 0.05) == np.inf
    assert draws_to_show(60, 60, 0.8, 0.05) == 0.0
