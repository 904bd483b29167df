import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from saccade.scores.accuracy import FIRST_LOOK, error_spent, left_out_accuracy, looks_until, share_interval


def schedule(most: int) -> list[int]:
    """By its definition: where the number of looks goes up."""
    return [n for n in range(1, most + 1) if looks_until(n) > looks_until(n - 1)]


def test_looks_are_a_quarter_apart() -> None:
    at = schedule(400)
    assert at == [16, 20, 25, 32, 40, 50, 63, 79, 99, 124, 155, 194, 243, 304, 380]
    assert looks_until(10**9) < 90


def test_error_is_shared_out_and_never_overspent() -> None:
    spent = np.array([error_spent(n) for n in schedule(10**5)])
    assert (np.diff(spent) > 0).all()
    assert spent[0] > 0
    assert error_spent(FIRST_LOOK - 1) == 0
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
