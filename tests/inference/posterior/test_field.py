"""The posterior of a pool, step by step, against dense algebra on the whole matrix at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from saccade._core import limits
from saccade.inference.posterior.pool import PoolPosterior
from saccade.inference.posterior.sketch import Sketch, signs
from saccade.kernels import HIK, RBF
from saccade.kernels.dense_gram import DenseGram
from saccade.kernels.gram import Gram
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
N, NOISE = 40, 0.1
GRAMS: dict[str, Callable[[Array], Gram]] = {
    "dense": lambda X: DenseGram(HIK().resolved(X), X),
    "any kernel, streamed": lambda X: RBF(0.7).gram(X, held=False),
    "exact codes": lambda X: HIK().gram(X),
    "eight levels": lambda X: HIK().gram(X, levels=8),
    "eight levels, sparse": lambda X: HIK().gram(X * (X > 0.8), levels=8),
}
every = pytest.mark.parametrize("make", GRAMS.values(), ids=GRAMS)


def pool(make: Callable[[Array], Gram], n: int = N) -> Gram:
    return make(np.random.default_rng(0).random((n, 6)))


def labels(count: int, columns: int = 3) -> Array:
    return np.where(np.random.default_rng(1).integers(columns, size=count)[:, None] == np.arange(columns), 1.0, -1.0)


def assert_posterior(field: PoolPosterior, rows: Array, Y: Array) -> None:
    """All that a field knows, from one inverse."""
    K = field.gram.kernel(field.gram.all_rows())
    inverse = np.linalg.inv(K[np.ix_(rows, rows)] + NOISE * np.eye(rows.size))
    C = K - K[:, rows] @ inverse @ K[rows]
    np.testing.assert_array_equal(field.rows, rows)
    assert_close(field.alpha, inverse @ Y)
    assert_close(field.inverse_diagonal, inverse.diagonal())
    assert_close(field.mean, K[:, rows] @ inverse @ Y)
    assert_close(field.variance, C.diagonal())
    some, others = np.array([3, 0, 17]), np.array([N - 1, 5])
    assert_close(field.covariance(some, others), C[np.ix_(some, others)])
    w = np.random.default_rng(2).random((len(K), 2))
    assert_close(field.sketch.sums / len(K), C.sum(axis=1) / len(K))
    assert_close(field.sketch.squares / len(K), np.square(C).sum(axis=1) / len(K))  # a group for each row
    assert_close(field.sketch.rows(some)[:, 0] / len(K), C[some].sum(axis=1) / len(K))
    largest = (K @ w).max()  # what cancels
    assert_close(field.weighed_covariance(w) / largest, C @ w / largest)


@every
def test_every_step_is_the_posterior_from_the_start(make: Callable[[Array], Gram]) -> None:
    field, Y = PoolPosterior.unobserved(pool(make), NOISE), labels(9)
    rows = np.array([7, 3, 39, 0, 12, 5, 30, 22, 11])
    field = field.observing(rows[:1], Y[:1])
    assert_posterior(field, rows[:1], Y[:1])
    field = field.observing(rows[1:4], Y[:4]).observing(rows[4:], Y)
    assert_posterior(field, rows, Y)
    assert_posterior(field.forgetting(np.array([7, 8])), rows[:7], Y[:7])
    kept = np.array([0, 2, 3, 5, 6, 7, 8])
    assert_posterior(field.forgetting(np.array([1, 4])), rows[kept], Y[kept])
    assert_posterior(
        field.forgetting(np.array([4, 1])).observing(rows[[1]], Y[[*kept, 1]]), rows[[*kept, 1]], Y[[*kept, 1]]
    )
    assert_posterior(field, rows, Y)  # it is as it was


@every
def test_no_variance_exceeds_the_prior_once_rows_are_forgotten(make: Callable[[Array], Gram]) -> None:
    """Not even by rounding: with nothing observed, it is the prior again."""
    for seed in range(20):
        rows = np.random.default_rng(seed).permutation(N)[:8]
        field = PoolPosterior.unobserved(pool(make), NOISE).observing(rows, labels(8))
        for _ in range(8):
            field = field.forgetting(np.array([field.rows.size - 1]))
            assert (field.variance <= field.prior).all()
        assert_close(field.variance, field.prior)


@every
def test_targets_may_change_and_gain_columns(make: Callable[[Array], Gram]) -> None:
    rows, Y, more = np.array([7, 3, 39, 0]), labels(4), labels(6, 4)
    field = PoolPosterior.unobserved(pool(make), NOISE).observing(rows, Y)
    assert_posterior(field.retargeted(-Y), rows, -Y)
    grown = field.observing(np.array([20, 21]), more)
    assert_posterior(grown, np.append(rows, [20, 21]), more)
    alone = field.observing(np.zeros(0, np.int64), -2.0 * Y)
    assert_posterior(alone, rows, -2.0 * Y)  # without a further row


@every
def test_many_rows_at_once(make: Callable[[Array], Gram], monkeypatch: pytest.MonkeyPatch) -> None:
    rows, Y = np.random.default_rng(3).permutation(N)[:12], labels(12)
    field = PoolPosterior.unobserved(pool(make), NOISE).observing(rows[:2], Y[:2])
    monkeypatch.setattr(limits, "OBSERVED_ONE_BY_ONE", 5)
    assert_posterior(field.observing(rows[2:], Y), rows, Y)
    monkeypatch.setattr(limits, "FIELD_NUMBERS", 0)
    monkeypatch.setattr(limits, "FIELD_DIRECTIONS", 4)
    bounded = field.observing(rows[2:], Y)
    exact = PoolPosterior.unobserved(field.gram, NOISE).observing(rows[:5], Y[:5]).observing(rows[5:9], Y[:9])
    exact = exact.observing(rows[9:], Y)
    assert (bounded.variance >= exact.variance - 1e-9).all()
    assert (bounded.variance <= field.gram.diag() + 1e-9).all()
    assert bounded.variance.sum() < 0.9 * field.gram.diag().sum()
    assert_close(bounded.mean, exact.mean)


@every
def test_leaving_one_out(make: Callable[[Array], Gram]) -> None:
    rows, Y = np.array([7, 3, 39, 0, 11]), labels(5)
    field = PoolPosterior.unobserved(pool(make), NOISE).observing(rows, Y)
    for k in range(5):
        others = np.delete(np.arange(5), k)
        without = PoolPosterior.unobserved(field.gram, NOISE).observing(rows[others], Y[others])
        assert_close(field.leave_one_out()[k], without.mean[rows[k]])


def test_a_sketch_is_exact_with_a_group_for_each_target_and_right_on_average() -> None:
    C = np.cov(np.random.default_rng(0).random((60, 90)))
    targets = np.array([4, 8, 15, 16, 23, 42])
    found = C @ signs(60, targets)
    assert_close(found[:, 0], C[:, targets].sum(axis=1))
    assert_close(np.square(found[:, 1:]).sum(axis=1), np.square(C[:, targets]).sum(axis=1))
    few = Sketch.of(C @ signs(60, most=20)).squares
    assert few.mean() == pytest.approx(np.square(C).sum(axis=1).mean(), rel=0.2)


def test_three_hundred_steps_stay_exact() -> None:
    X = np.random.default_rng(0).random((350, 6))
    gram, rows, Y = HIK().gram(X), np.random.default_rng(4).permutation(350)[:300], labels(300)
    field = PoolPosterior.unobserved(gram, NOISE)
    for k in range(300):
        field = field.observing(rows[k : k + 1], Y[: k + 1])
    assert_posterior(field, rows, Y)


@every
def test_beyond_a_factor(make: Callable[[Array], Gram], monkeypatch: pytest.MonkeyPatch) -> None:
    """Conjugate gradients in place of a factor: the same but for their tolerance."""
    rows, Y = np.random.default_rng(3).permutation(N)[:14], labels(14)
    exact = PoolPosterior.unobserved(pool(make), NOISE).observing(rows[:12], Y[:12])
    small = exact.observing(rows[12:], Y)
    monkeypatch.setattr(limits, "OBSERVED_FACTOR_UP_TO", 8)
    field = PoolPosterior.unobserved(pool(make), NOISE).observing(rows[:5], Y[:5])
    for k in range(5, 14):
        field = field.observing(rows[k : k + 1], Y[: k + 1])
    steps = [
        (field, small),
        (field.forgetting(np.array([12, 13])), exact),
        (field.retargeted(-Y), small.retargeted(-Y)),
    ]
    shorter = np.arange(6, 14)
    steps.append((field.forgetting(shorter), small.forgetting(shorter)))
    for found, expected in steps:
        assert_close(found.mean, expected.mean, np.float32)
        assert_close(found.variance, expected.variance, np.float32)
        assert_close(found.leave_one_out(), expected.leave_one_out(), np.float32)
        assert_close(
            found.covariance(np.arange(3), np.arange(4)), expected.covariance(np.arange(3), np.arange(4)), np.float32
        )
    monkeypatch.setattr(limits, "OBSERVED_ONE_BY_ONE", 3)
    many = PoolPosterior.unobserved(pool(make), NOISE).observing(rows, Y)
    assert_close(many.mean, small.mean, np.float32)
    assert_close(many.inverse_diagonal, small.inverse_diagonal, np.float32)  # few enough for a solve each
