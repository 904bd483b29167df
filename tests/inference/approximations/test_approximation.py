"""Every approximation against dense algebra: weights, bounds where there are some, and leaving out by leaving out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from saccade._core import limits
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.inference.approximations.by_name import APPROXIMATIONS, Approximation, RegularizedSystem, approximate
from saccade.inference.approximations.diagonal import Diagonal
from saccade.inference.approximations.low_rank import LowRank
from saccade.kernels import RBF, Linear
from saccade.kernels.dense_gram import StreamedGram
from saccade.operators.base import Dense
from tests.inference.approximations.approximated import Case, alpha, cases, factorised, iterated, refitted, variance

Array = np.ndarray[Any, np.dtype[Any]]
BOUNDS = ["diagonal", "optimized", "lowrank", "sod"]  # and "optimized-signed", but not with one left out
some = settings(max_examples=40, deadline=None)
few = settings(max_examples=15, deadline=None)


def made(method: str, case: Case, rank: int = 3) -> Approximation:
    return approximate(method, case.trained, rank=rank, inducing=0.5, rng=np.random.default_rng(0))


def slack(case: Case) -> float:
    return 1e-8 * (1.0 + float(case.K.max(initial=0.0)))


def all_left_out(found: Approximation, case: Case) -> tuple[Array, Array]:
    return found.left_out(found.supported(case.K), case.K.diagonal(), np.arange(case.n), case.Y)


@pytest.mark.parametrize("method", APPROXIMATIONS)
@some
@given(case=cases())
def test_variance_is_from_zero_to_the_prior_and_shapes_hold(method: str, case: Case) -> None:
    found = made(method, case)
    for values, prior in (
        (found.variance(found.supported(case.k_star), case.prior), case.prior),
        (all_left_out(found, case)[1], case.K.diagonal()),
    ):
        assert values.shape in {(len(prior), 1), (len(prior), case.noise.shape[1])}
        assert (values >= 0).all()
        assert (values <= prior[:, None]).all()
    assert found.weights(case.Y).shape == all_left_out(found, case)[0].shape == case.Y.shape
    if method != "sor":  # whose prior is not k**
        explained = np.clip(found.explained(found.supported(case.k_star)), 0.0, case.prior[:, None])
        np.testing.assert_allclose(
            found.variance(found.supported(case.k_star), case.prior), case.prior[:, None] - explained, atol=slack(case)
        )


@pytest.mark.parametrize("method", [*BOUNDS, "optimized-signed"])
@few
@given(case=cases())
def test_bounds_are_above_the_exact_variance(method: str, case: Case) -> None:
    found = made(method, case)
    assert (found.variance(found.supported(case.k_star), case.prior) >= variance(case) - slack(case)).all()


@pytest.mark.parametrize("method", BOUNDS)
@few
@given(case=cases())
def test_bounds_are_above_the_exact_variance_also_with_one_left_out(method: str, case: Case) -> None:
    """Optimised: D is kept, and the bound stands, as a part of D − K̃ ⪰ 0 is ⪰ 0."""
    found = made(method, case)
    _, exact = refitted(case, lambda rest, i: variance(rest), lambda rest, i: np.zeros(2))
    assert (all_left_out(found, case)[1] >= exact - slack(case)).all()


@some
@given(case=cases())
def test_exact_is_dense_algebra_by_factor_and_by_iteration(case: Case) -> None:
    found = made("exact", case)
    np.testing.assert_allclose(
        found.variance(found.supported(case.k_star), case.prior), variance(case), atol=slack(case)
    )
    np.testing.assert_allclose(found.weights(case.Y), alpha(case), rtol=1e-6, atol=1e-5)
    mean, left = refitted(
        case, lambda rest, i: variance(rest), lambda rest, i: (rest.k_star.T @ alpha(rest)).reshape(1, 2)
    )
    np.testing.assert_allclose(all_left_out(found, case)[0], mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(all_left_out(found, case)[1], left, atol=1e-6)


@pytest.mark.parametrize("loudness", [1e3, 1e9, 1e14])
def test_very_noisy_examples_left_out(loudness: float) -> None:
    """Sites of Laplace and EP that say nothing: 1/d − N would be rounding alone, and so would y − α/d."""
    case = drawn()
    noise = case.noise[:, :1].copy()
    noise[::2] *= loudness
    Y = case.Y * np.sqrt(noise)
    case = case._replace(noise=noise, Y=Y, trained=factorised(case.K, noise))
    mean, left = refitted(
        case, lambda rest, i: variance(rest), lambda rest, i: (rest.k_star.T @ alpha(rest)).reshape(1, 2)
    )
    for trained in (case.trained, iterated(case.trained.K, noise)):
        got_mean, got = all_left_out(made("exact", case._replace(trained=trained)), case)
        np.testing.assert_allclose(got, left, rtol=1e-7)
        np.testing.assert_allclose(got_mean, mean, rtol=1e-4, atol=1e-6)


def test_an_unfinished_solve_leaves_out_with_a_bound_that_falls() -> None:
    case = drawn()
    exact = all_left_out(made("exact", case), case)[1]
    means = []
    for max_iter in (1, 3, 6, 10):
        trained = RegularizedSystem(case.trained.K, case.noise, (), 1e-9, max_iter)
        found = all_left_out(made("exact", case._replace(trained=trained)), case)[1]
        assert (found >= exact - 1e-9).all()
        means.append(found.mean())
    assert means == sorted(means, reverse=True)
    assert means[-1] < 1.01 * exact.mean()


@pytest.mark.parametrize("method", ["diagonal", "parzen"])
@some
@given(case=cases())
def test_diagonals_left_out_are_diagonals_fitted_again(method: str, case: Case) -> None:
    def mean_of(rest: Case, i: int) -> Array:
        return rest.k_star.T @ made(method, rest).weights(rest.Y) if rest.n else np.zeros((1, 2))

    def variance_of(rest: Case, i: int) -> Array:
        return made(method, rest).variance(rest.k_star, rest.prior) if rest.n else rest.prior[:, None]

    mean, left = refitted(case, variance_of, mean_of)
    found = all_left_out(made(method, case), case)
    np.testing.assert_allclose(found[0], mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[1], np.broadcast_to(left, found[1].shape), atol=slack(case))


@some
@given(case=cases())
def test_diagonal_weights(case: Case) -> None:
    """A (13), and O §3.1."""
    np.testing.assert_allclose(
        made("diagonal", case).weights(case.Y), case.Y / (case.K.sum(axis=1)[:, None] + case.noise), rtol=1e-9
    )
    np.testing.assert_allclose(made("parzen", case).weights(case.Y), case.Y / case.n)


@pytest.mark.parametrize("rank", [1, 3, 99])
@some
@given(case=cases())
def test_low_rank_is_its_formula_and_left_out_with_a_row_of_w_dropped(rank: int, case: Case) -> None:
    found = made("lowrank", case, rank)
    assert isinstance(found, LowRank)
    W, noise = found.W, case.noise.max(axis=1)
    np.testing.assert_allclose(found.weights(case.Y), W @ W.T @ case.Y, rtol=1e-9, atol=1e-9)

    def inner(rest: Case, i: int) -> tuple[Array, Array]:
        rows = np.delete(W, i, axis=0)
        return rows, rows.T @ (rest.K + np.diag(np.delete(noise, i))) @ rows

    def solved(rest: Case, i: int, right: Array) -> Array:
        """k₋ᵀW₋(W₋ᵀK̃₋W₋)⁺W₋ᵀ right."""
        rows, A = inner(rest, i)
        return np.asarray(rest.k_star.T @ rows @ np.linalg.pinv(A, rcond=1e-9, hermitian=True) @ rows.T @ right)

    mean, left = refitted(
        case, lambda rest, i: rest.prior - solved(rest, i, rest.k_star), lambda rest, i: solved(rest, i, rest.Y)
    )
    # a direction that lives on one example but for rounding may count or not when that example goes
    eigenvalues = [np.linalg.eigvalsh(inner(case.without(i), i)[1]) for i in range(case.n)]
    clear = np.array([some[0] > 1e-7 * max(some[-1], 1.0) for some in eigenvalues])  # with all examples, each is 1
    clear |= rank >= case.n
    got_mean, got = all_left_out(found, case)
    np.testing.assert_allclose(got_mean[clear], mean[clear], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got[clear], np.maximum(left, 0.0)[clear], atol=1e-6)


@some
@given(case=cases())
def test_all_directions_leave_out_as_the_exact_process_does(case: Case) -> None:
    shared = case._replace(noise=case.noise[:, :1], trained=factorised(case.K, case.noise[:, :1]))
    exact, low = all_left_out(made("exact", shared), shared), all_left_out(made("lowrank", shared, 99), shared)
    np.testing.assert_allclose(low[0], exact[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(low[1], exact[1], atol=1e-6)


@pytest.mark.parametrize("method", APPROXIMATIONS)
def test_leaving_out_some_is_leaving_out_those_among_all(method: str) -> None:
    case = drawn()
    found, rows = made(method, case), np.array([7, 2, 2, 30])
    mean, left = all_left_out(found, case)
    some_mean, some_left = found.left_out(found.supported(case.K[:, rows]), case.K.diagonal()[rows], rows, case.Y)
    np.testing.assert_allclose(some_mean, mean[rows], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(some_left, left[rows], rtol=1e-9, atol=1e-12)


def drawn(n: int = 40, b: int = 10) -> Case:
    rng = np.random.default_rng(0)
    X, kernel = rng.random((n + b, 4)), RBF(0.6)
    K, noise = kernel(X[:n]), rng.uniform(0.05, 0.2, (n, 2))
    return Case(factorised(K, noise), K, noise, rng.standard_normal((n, 2)), kernel(X[:n], X[n:]), np.ones(b))


def test_many_kernel_values_go_through_the_compiled_loop_alike() -> None:
    rng = np.random.default_rng(0)
    D = Diagonal(rng.random((30, 1)))
    k_star = rng.random((limits.COMPILED_SQUARES_FROM // 30 + 700, 30)).T  # not C-contiguous
    assert k_star.size >= limits.COMPILED_SQUARES_FROM
    np.testing.assert_allclose(D.explained(k_star), np.square(k_star).T @ D.inverse, rtol=1e-12)
    two = Diagonal(np.hstack([D.inverse, 2.0 * D.inverse]))
    np.testing.assert_allclose(two.explained(k_star)[:, :1], D.explained(k_star), rtol=1e-12)


@pytest.mark.parametrize("streamed", [False, True])
def test_diagonal_refuses_negative_kernel_values_and_says_what_else(streamed: bool) -> None:
    X = np.array([[1.0, 0.5], [-0.74, 0.0], [0.1, 0.1]])
    K = StreamedGram(Linear(), X) if streamed else Dense(Linear()(X))
    with pytest.raises(InvalidInput, match=r'≥ 0, got -0\.74 .*"lowrank" or "exact".*HIK or RBF'):
        approximate("diagonal", iterated(K, np.ones((3, 1))), rng=np.random.default_rng(0))
    for method in ("optimized", "lowrank", "fitc", "sod"):
        found = approximate(method, iterated(K, np.ones((3, 1))), rng=np.random.default_rng(0))
        assert np.isfinite(found.explained(found.supported(Linear()(X)))).all()


def test_diagonal_takes_rounding_below_zero_for_zero() -> None:
    K = np.eye(2) + np.array([[0.0, -1e-17], [-1e-17, 0.0]])
    assert approximate("diagonal", iterated(Dense(K), np.ones((2, 1))), rng=np.random.default_rng(0))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InvalidParameter, match="'exact', 'lowrank', 'diagonal', 'optimized', 'optimized-signed'"):
        approximate("nystrom", drawn().trained, rng=np.random.default_rng(0))
