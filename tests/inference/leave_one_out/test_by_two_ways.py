"""Training examples left out by approximations: rounded rows, tables, copies and few columns at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.progress import listening
from saccade.inference.approximations.by_name import Approximating
from saccade.inference.approximations.low_rank import LowRank, low_ranks
from saccade.inference.likelihoods.infer import Solving
from saccade.inference.posterior.gp import GP
from saccade.kernels import HIK, RBF, Centred, Kernel, Linear
from saccade.operators.base import Dense
from tests.tolerances import assert_close

rng = np.random.default_rng(0)
N = 24
X = rng.gamma(0.7, 1.0, (N, 4))
Y = np.column_stack([np.sign(X[:, 0] - X[:, 1]), X[:, 2] - X[:, 3]])
NOISE, ROWS = np.full((N, 1), 0.1), np.array([0, 5, 11, 23])
KNOWN = Solving(leave_one_out=True)


def without(kernel: Kernel, i: int, some: Array | None = None) -> tuple[Array, Array]:
    """Mean and variance at example i, by dense algebra on the others, or on some of them."""
    rest = np.delete(np.arange(N), i) if some is None else np.setdiff1d(some, [i])
    k = kernel(X[rest], X[[i]])
    both = np.linalg.solve(kernel(X[rest]) + 0.1 * np.eye(rest.size), np.hstack([Y[rest], k]))
    return (k.T @ both[:, :2])[0], kernel.diag(X[[i]]) - (k.T @ both[:, 2:])[0]


def heard(gp: GP, mean_alone: bool = False) -> tuple[Any, list[float]]:
    """What is said of the rows, and the shares done that were reported on the way."""
    shares: list[float] = []
    with listening(lambda what, done: shares.append(done) if what == "leaving one out" else None):
        return (gp.left_out_mean if mean_alone else gp.left_out)(ROWS), shares


@pytest.mark.parametrize(("at_once", "steps"), [(1, 4), (N - 1, 4), (2 * N, 2), (10**6, 1)])
def test_some_columns_at_a_time(at_once: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a factor, columns of K are made; as many as fit, one at least."""
    gp = GP.fit(
        RBF(1.0).gram(X), Y, NOISE, solving=Solving("cg", tol=1e-11), approximation=Approximating(variance="exact")
    )
    monkeypatch.setattr(limits, "KERNEL_VALUES_AT_ONCE", at_once)
    (mean, variance), shares = heard(gp)
    assert shares[-steps:] == [(k + 1) / steps for k in range(steps)]
    for j, i in enumerate(ROWS):
        wanted = without(RBF(1.0), i)
        np.testing.assert_allclose(mean[j], wanted[0], atol=1e-7)
        np.testing.assert_allclose(variance[j], wanted[1], atol=1e-7)


def test_a_factor_takes_no_columns_at_all() -> None:
    gp = GP.fit(RBF(1.0).gram(X), Y, NOISE, solving=Solving("cholesky"), approximation=Approximating(variance="exact"))
    (mean, variance), shares = heard(gp)
    assert not shares
    for j, i in enumerate(ROWS):
        assert_close(mean[j], without(RBF(1.0), i)[0])
        assert_close(variance[j], without(RBF(1.0), i)[1])


@pytest.mark.parametrize("method", ["exact", "sod"])
@pytest.mark.parametrize("known", [False, True])
def test_the_mean_alone(method: Any, known: bool) -> None:
    """Known leave-one-out means are taken, and made where they are not known; of a subset, by the subset."""
    approximation = Approximating(method, "exact", inducing=np.arange(12))
    solving = Solving("cg", tol=1e-11, leave_one_out=False) if not known else KNOWN
    gp = GP.fit(RBF(1.0).gram(X), Y, NOISE, solving=solving, approximation=approximation)
    found = gp.left_out_mean(ROWS)
    for j, i in enumerate(ROWS):
        wanted = without(RBF(1.0), i, np.arange(12) if method == "sod" else None)[0]
        np.testing.assert_allclose(found[j], wanted, atol=1e-7)


@pytest.mark.parametrize("method", ["exact", "sod"])
def test_the_mean_alone_moves_the_centre(method: Any) -> None:
    gp = GP.fit(
        Centred(Linear()).gram(X),
        Y,
        NOISE,
        solving=KNOWN,
        approximation=Approximating(method, "exact", inducing=np.arange(12)),
    )
    found = gp.left_out_mean(ROWS)
    assert_close(gp.left_out(ROWS)[0], found)
    for j, i in enumerate(ROWS):
        rest = np.delete(np.arange(N), i)
        approximation = Approximating(method, "exact", inducing=np.flatnonzero(rest < 12))
        alone = GP.fit(Centred(Linear()).gram(X[rest]), Y[rest], NOISE[rest], approximation=approximation)
        np.testing.assert_allclose(found[[j]], alone.mean(X[[i]]), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("method", ["exact", "lowrank"])
def test_rounded_rows_are_judged_as_new_ones_are(method: Any) -> None:
    """By the rounded rows alone, and what the rows as they came change about mean and variance is added."""
    rounded = HIK(scale=0.3).gram(X, levels=6)
    gp = GP.fit(rounded, Y, NOISE, solving=KNOWN, approximation=Approximating(variance=method, rank=8, compares=False))
    plain = GP.fit(HIK(scale=0.3).gram(rounded.all_rows()), Y, NOISE, solving=KNOWN, approximation=gp.approximation)
    shift = gp.mean(X[ROWS]) - rounded.matmul(gp.solution.alpha)[ROWS]
    assert np.abs(shift).max() > 1e-3
    mean, variance = gp.left_out(ROWS, X[ROWS])
    alone, rest = plain.left_out(ROWS)
    assert_close(mean, alone + shift)
    assert_close(gp.left_out_mean(ROWS, X[ROWS]), mean)
    moved = rest + gp.variance(X[ROWS]) - plain.variance(rounded.all_rows()[ROWS])
    assert np.abs(moved - rest).max() > 1e-4
    assert_close(variance, np.clip(moved, 0.0, HIK(scale=0.3).diag(X[ROWS])[:, None]))
    for found, wanted in zip(gp.left_out(ROWS), (mean, variance), strict=True):  # the rows are kept as they came
        assert_close(found, wanted)
    assert_close(gp.left_out_mean(ROWS), mean)


def test_quantised_tables_move_the_mean() -> None:
    gp = GP.fit(HIK(scale=0.3).gram(X), Y, NOISE, solving=KNOWN, approximation=Approximating(variance="exact"))
    coarse = gp.quantized(8)
    moved = coarse.mean(X[ROWS]) - gp.mean(X[ROWS])
    assert np.abs(moved).max() > 1e-3
    assert_close(coarse.left_out(ROWS)[0], gp.left_out(ROWS)[0] + moved)
    assert_close(coarse.left_out_mean(ROWS), gp.left_out_mean(ROWS) + moved)


@pytest.mark.parametrize("method", ["exact", "sod", "fitc", "lowrank", "diagonal"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_one_of_several_copies_is_left_out(method: Any, outputs: int) -> None:
    """A weight of w is w equal rows, of which one goes; each output may have a noise of its own."""
    weight, noise = np.ones(N), np.tile([0.1, 0.3], (N, 1))[:, :outputs]
    weight[ROWS[1:]] = 2.0, 3.0, 2.0
    copies = np.repeat(np.arange(N), weight.astype(int))
    points = np.array([0, 3, 5, 8, 11, 14, 17, 20])
    every = np.flatnonzero(np.isin(copies, points))
    found = [
        GP.fit(
            RBF(1.0).gram(X),
            Y,
            noise / weight[:, None],
            weight=weight,
            approximation=Approximating(method, method, inducing=points),
        ),
        GP.fit(
            RBF(1.0).gram(X[copies]),
            Y[copies],
            noise[copies],
            approximation=Approximating(method, method, inducing=every),
        ),
    ]
    first = np.searchsorted(copies, ROWS)
    for one, other in zip(found[0].left_out(ROWS), found[1].left_out(first), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


def test_many_are_left_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEFT_OUT_TOGETHER", 5)
    gp = GP.fit(Centred(Linear()).gram(X), Y, NOISE, approximation=Approximating("sod", "sod", inducing=np.arange(12)))
    groups = np.array_split(gp.solving.rng().permutation(N), 5)
    (mean, variance), shares = heard(gp)
    assert shares[-5:] == [0.2, 0.4, 0.6, 0.8, 1.0]
    for j, i in enumerate(ROWS):
        group = next(some for some in groups if i in some)
        rest = np.setdiff1d(np.arange(N), group)
        approximation = Approximating("sod", "sod", inducing=np.flatnonzero(rest < 12))
        alone = GP.fit(
            Centred(Linear()).gram(X[rest]), Y[rest], NOISE[rest], approximation=approximation
        ).mean_and_variance(X[[i]])
        np.testing.assert_allclose(mean[[j]], alone[0], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(variance[[j]], alone[1], rtol=1e-8, atol=1e-9)


def test_the_variance_alone_is_that_of_new_examples() -> None:
    exact = GP.fit(RBF(1.0).gram(X), Y, NOISE, solving=KNOWN, approximation=Approximating(variance="exact"))
    known = exact.leave_one_out()[1]
    rows, variance = exact.left_out_variance(known, 5)
    assert rows.size == N  # nothing is sampled where all is known
    np.testing.assert_array_equal(variance, known)
    other = exact.with_variance("fitc")
    for given in (None, known):
        rows, variance = other.left_out_variance(given, 5)
        assert rows.size == 5
        assert (np.diff(rows) > 0).all()
        assert_close(variance, other.left_out(rows)[1])
        assert np.abs(variance - known[rows]).max() > 1e-6


def test_comparable_are_those_that_every_approximation_can_leave_out() -> None:
    points = np.array([1, 4, 6, 9])
    others = np.delete(np.arange(N), points)
    for method, wanted in (("fitc", others), ("exact", np.arange(N)), ("sod", np.arange(N))):
        for variance in ("exact", None):
            gp = GP.fit(RBF(1.0).gram(X), Y, NOISE, approximation=Approximating(method, variance, inducing=points))
            np.testing.assert_array_equal(gp.comparable(), wanted)
            np.testing.assert_array_equal(gp.comparable(100), wanted)
            some = gp.comparable(15)
            assert some.size == np.unique(some).size == 15
            assert np.isin(some, wanted).all()


@pytest.mark.parametrize("weighed", [False, True])
def test_a_low_rank_holds_some_out_with_all_their_copies(weighed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HELD_OUT_FROM", N)
    weight = 1.0 + (np.arange(N) % 3) if weighed else None
    noise = NOISE if weight is None else NOISE / weight[:, None]
    approximation = Approximating("lowrank", "lowrank", rank=5)
    gp = GP.fit(RBF(1.0).gram(X), Y, noise, weight=weight, approximation=approximation)
    rows = gp.comparable()
    assert 0 < rows.size < N
    mean, variance = gp.left_out(rows)
    assert_close(mean, gp.mean(X[rows]))  # they are new to it anyway
    assert_close(variance, gp.variance(X[rows]))


def test_a_low_rank_of_few_examples_is_made_again_without_each() -> None:
    K, approximation = RBF(1.0)(X), Approximating("lowrank", "lowrank", rank=5)
    gp = GP.fit(RBF(1.0).gram(X), Y, NOISE, approximation=approximation)
    mean, variance = gp.left_out(ROWS)
    for j, i in enumerate(ROWS):
        rest = np.delete(np.arange(N), i)
        low = low_ranks(Dense(K[np.ix_(rest, rest)]), NOISE[rest], 5, np.random.default_rng(0))[0]
        np.testing.assert_allclose(mean[j], (K[rest, i] @ low.weights(Y[rest])), atol=1e-8)
        np.testing.assert_allclose(variance[j], low.variance(K[rest, i, None], K[i, i, None])[0], atol=1e-8)
        assert variance[j, 0] >= without(RBF(1.0), i)[1][0] - 1e-9


def test_a_centre_moves_in_closed_form_where_all_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example goes alone then, however few fits there may be."""
    monkeypatch.setattr(limits, "LEFT_OUT_TOGETHER", 3)
    gp = GP.fit(Centred(Linear()).gram(X), Y, NOISE, solving=KNOWN, approximation=Approximating(variance="exact"))
    for found, wanted in zip(gp.left_out(ROWS), gp.leave_one_out(), strict=True):
        np.testing.assert_allclose(found, wanted[ROWS], rtol=1e-8, atol=1e-9)


def test_a_low_rank_of_many_examples_that_holds_none_out_drops_rows_of_its_directions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "HELD_OUT_FROM", N)
    gp = GP.fit(RBF(1.0).gram(X), Y, NOISE, approximation=Approximating("lowrank", "lowrank", rank=5, compares=False))
    low, K = gp.inverse.variance, RBF(1.0)(X)
    assert isinstance(low, LowRank)
    for found, wanted in zip(gp.left_out(ROWS), low.left_out(K[:, ROWS], K.diagonal()[ROWS], ROWS, Y), strict=True):
        assert_close(found, wanted)
    monkeypatch.setattr(limits, "HELD_OUT_FROM", N + 1)
    assert np.abs(gp.left_out(ROWS)[1] - low.left_out(K[:, ROWS], K.diagonal()[ROWS], ROWS, Y)[1]).max() > 1e-6
