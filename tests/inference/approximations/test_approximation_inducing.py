"""FITC, DTC, SoR and the subset of the data against their textbook formulas, written with inverses."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from saccade._core.errors import InvalidParameter
from saccade.inference.approximations.by_name import approximate
from saccade.inference.approximations.inducing import Inducing, Subset, choose_points, inducing_points
from saccade.kernels import RBF
from tests.inference.approximations.approximated import Case, alpha, cases, factorised, refitted, variance

Array = np.ndarray[Any, np.dtype[Any]]
FAMILY = ["fitc", "dtc", "sor"]
some = settings(max_examples=40, deadline=None)


def made(method: str, case: Case, inducing: Any = 0.5) -> Any:
    return approximate(method, case.trained, inducing=inducing, rng=np.random.default_rng(0))


def clear_points(case: Case) -> Array:
    """The points that `made` chooses; of no more interest where rounding decides whether one of them adds anything."""
    u = choose_points(0.5, case.n, np.random.default_rng(0))
    assume(clear(case, u))
    return u


def clear(case: Case, u: Array) -> bool:
    """Whether no point of these is determined by the others to some digits only."""
    values = np.linalg.eigvalsh(case.K[np.ix_(u, u)]) if u.size else np.zeros(1)
    return not ((values > 1e-15 * values[-1]) & (values < 1e-8 * values[-1])).any()


def textbook(
    method: str,
    K_uu: Array,  # (r, r)
    K_un: Array,  # (r, n)
    K_us: Array,  # (r, b)
    diag: Array,  # (n,)
    noise: Array,  # (n,)
    Y: Array,  # (n, m)
    prior: Array,  # (b,)
) -> tuple[Array, Array]:
    """Mean q*ᵀ(Q + Λ)⁻¹Y and variance k** − q*ᵀ(Q + Λ)⁻¹q*, q** in the place of k** for SoR."""
    inverse = np.linalg.pinv(K_uu, rcond=1e-11, hermitian=True)
    Q, q, q_new = K_un.T @ inverse @ K_un, K_un.T @ inverse @ K_us, np.einsum("ij,ij->j", K_us, inverse @ K_us)
    scale = noise + (np.maximum(diag - Q.diagonal(), 0.0) if method == "fitc" else 0.0)
    solved = np.linalg.solve(Q + np.diag(scale), np.hstack([Y, q]))
    m = Y.shape[1]
    return q.T @ solved[:, :m], (q_new if method == "sor" else prior) - np.einsum("ij,ij->j", q, solved[:, m:])


def by_columns(case: Case, formula: Any) -> tuple[Array, Array]:
    """(b, 2) and (b, 1) or (b, 2): the formula for every column of the noise."""
    found = [formula(column) for column in case.noise.T]
    means = found[0][0] if len(found) == 1 else np.column_stack([found[0][0][:, 0], found[1][0][:, 1]])
    return means, np.column_stack([v for _, v in found])


@pytest.mark.parametrize("method", FAMILY)
@some
@given(case=cases())
def test_mean_and_variance_are_the_textbooks(method: str, case: Case) -> None:
    found = made(method, case)
    assert isinstance(found, Inducing)
    u = clear_points(case)
    K_u = case.K[u]
    mean, wanted = by_columns(
        case,
        lambda noise: textbook(method, K_u[:, u], K_u, case.k_star[u], case.K.diagonal(), noise, case.Y, case.prior),
    )
    weights = found.weights(case.Y)
    assert not np.delete(weights, u, axis=0).any()
    np.testing.assert_allclose(case.k_star.T @ weights, mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        found.variance(found.supported(case.k_star), case.prior), np.maximum(wanted, 0.0), atol=1e-6
    )


def left_out_by_the_textbook(method: str, case: Case, u: Array, i: int) -> tuple[Array, Array]:
    """Mean and variance at example i, which is neither an example nor an inducing point."""
    points, rest = np.setdiff1d(u, [i]), case.without(i)
    others, K_u = np.delete(np.arange(case.n), i), case.K[points]
    blocks = K_u[:, points], K_u[:, others], K_u[:, [i]]
    return by_columns(rest, lambda noise: textbook(method, *blocks, rest.K.diagonal(), noise, rest.Y, rest.prior))


@pytest.mark.parametrize("method", ["dtc", "sor"])
@some
@given(case=cases())
def test_left_out_is_the_textbook_without_the_example_and_its_point(method: str, case: Case) -> None:
    found = made(method, case)
    u = clear_points(case)
    for i in u:
        assume(clear(case, np.setdiff1d(u, [i])))
    both = [left_out_by_the_textbook(method, case, u, i) for i in range(case.n)]
    got_mean, got = found.left_out(found.supported(case.K), case.K.diagonal(), np.arange(case.n), case.Y)
    np.testing.assert_allclose(got_mean, np.vstack([mean for mean, _ in both]), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got, np.maximum(np.vstack([v for _, v in both]), 0.0), atol=1e-6)
    assert found.comparable() is None


@some
@given(case=cases())
def test_fitc_without_an_example_that_is_no_point_is_the_textbook(case: Case) -> None:
    found = made("fitc", case)
    u = clear_points(case)
    others = np.setdiff1d(np.arange(case.n), u)
    got_mean, got = found.left_out(found.supported(case.K), case.K.diagonal(), np.arange(case.n), case.Y)
    for i in others:
        mean, wanted = left_out_by_the_textbook("fitc", case, u, i)
        np.testing.assert_allclose(got_mean[i], mean[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got[i], np.maximum(wanted[0], 0.0), atol=1e-6)


def test_fitc_compares_with_what_is_no_point_where_enough_is_left() -> None:
    K = RBF(1.0)(np.random.default_rng(0).random((20, 3)))
    case = Case(factorised(K, np.ones((20, 1))), K, np.ones((20, 1)), np.ones((20, 2)), K, K.diagonal())
    found = made("fitc", case, np.arange(15))
    assert np.array_equal(found.comparable(), np.arange(15, 20))
    assert made("fitc", case, np.arange(16)).comparable() is None


@pytest.mark.parametrize("method", ["fitc", "dtc", "sod"])
@some
@given(case=cases())
def test_exact_when_all_examples_are_inducing(method: str, case: Case) -> None:
    found = made(method, case, 1.0)
    np.testing.assert_allclose(found.variance(found.supported(case.k_star), case.prior), variance(case), atol=1e-6)
    exact = alpha(case)
    dropped = 1e-7 * np.abs(exact).max()  # a point is dropped whose own part of k(x, x) is below 1e-14
    mean = case.k_star.T @ found.weights(case.Y)
    np.testing.assert_allclose(mean, case.k_star.T @ exact, rtol=1e-5, atol=1e-5 + dropped)


@some
@given(case=cases(), data=st.data())
def test_the_subset_is_the_exact_process_of_the_subset(case: Case, data: st.DataObject) -> None:
    u = np.array(sorted(data.draw(st.sets(st.integers(0, case.n - 1), min_size=1))))
    found = made("sod", case, u)
    assert isinstance(found, Subset)
    K, noise = case.K[np.ix_(u, u)], case.noise[u]
    small = Case(factorised(K, noise), K, noise, case.Y[u], case.k_star[u], case.prior)
    np.testing.assert_allclose(found.variance(found.supported(case.k_star), case.prior), variance(small), atol=1e-6)
    np.testing.assert_allclose(found.weights(case.Y)[u], alpha(small), rtol=1e-6, atol=1e-6)
    mean, left = found.left_out(found.supported(case.K), case.K.diagonal(), np.arange(case.n), case.Y)
    means, lefts = refitted(
        small, lambda rest, i: variance(rest), lambda rest, i: (rest.k_star.T @ alpha(rest)).reshape(1, 2)
    )
    np.testing.assert_allclose(mean[u], means, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(left[u], lefts, atol=1e-6)
    others = np.setdiff1d(np.arange(case.n), u)
    plain = Case(small.trained, K, noise, small.Y, case.K[np.ix_(u, others)], case.K.diagonal()[others])
    np.testing.assert_allclose(left[others], variance(plain), atol=1e-6)
    np.testing.assert_allclose(mean[others], plain.k_star.T @ alpha(small), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", ["fitc", "dtc"])
def test_fitc_and_dtc_are_no_bounds_on_either_side(method: str) -> None:
    """One inducing point, many examples beside it: too sure at the point, too doubtful at the examples."""
    X = np.vstack([np.zeros((1, 1)), np.full((40, 1), 0.8)])
    kernel, noise, new = RBF(1.0), np.full((41, 1), 0.5), np.array([[0.0], [0.8]])
    case = Case(factorised(kernel(X), noise), kernel(X), noise, np.ones((41, 2)), kernel(X, new), np.ones(2))
    found = made(method, case, np.array([0]))
    got = found.variance(found.supported(case.k_star), case.prior)[:, 0]
    exact = variance(case)[:, 0]
    assert got[0] < 0.9 * exact[0]
    assert got[1] > 1.1 * exact[1]


@some
@given(case=cases())
def test_sor_is_below_the_exact_variance_also_with_one_left_out(case: Case) -> None:
    found = made("sor", case)
    assert (found.variance(found.supported(case.k_star), case.prior) <= variance(case) + 1e-7).all()
    _, exact = refitted(case, lambda rest, i: variance(rest), lambda rest, i: np.zeros(2))
    assert (
        found.left_out(found.supported(case.K), case.K.diagonal(), np.arange(case.n), case.Y)[1] <= exact + 1e-7
    ).all()


def test_points_that_others_determine_are_left_away() -> None:
    """Twelve equal examples and an empty one, without any jitter."""
    K = np.zeros((13, 13))
    K[:12, :12] = 2.0
    case = Case(factorised(K, np.full((13, 1), 0.1)), K, np.full((13, 1), 0.1), np.ones((13, 2)), K, K.diagonal())
    found = made("fitc", case, 1.0)
    assert found.points.size == 1
    np.testing.assert_allclose(found.variance(K, K.diagonal()), variance(case), atol=1e-12)
    empty = made("fitc", case, np.array([12]))
    np.testing.assert_allclose(empty.variance(K, K.diagonal())[:, 0], K.diagonal())
    assert not empty.weights(case.Y).any()


@pytest.mark.parametrize("wrong", [0.0, 1.1, -1, True, "all", np.array([13]), np.array([-1]), np.array([0.5]), []])
def test_wrong_inducing_points(wrong: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"`inducing` must be a share .* from 0 to 12.*The default is 0\.25"):
        choose_points(wrong, 13, np.random.default_rng(0))


def test_shares_and_given_points() -> None:
    rng = np.random.default_rng(0)
    assert choose_points(0.25, 100, rng).size == 25
    assert choose_points(1e-9, 100, rng).size == 1
    assert choose_points(1, 3, rng).tolist() == [0, 1, 2]
    assert choose_points(np.array([4, 1, 4]), 5, rng).tolist() == [1, 4]


def test_too_many_points_for_memory() -> None:
    K = np.eye(20)
    case = Case(factorised(K, np.ones((20, 1))), K, np.ones((20, 1)), np.ones((20, 2)), K, K.diagonal())
    with pytest.raises(InvalidParameter, match=r"10 inducing points of 20 examples .* such as inducing=0\.2"):
        inducing_points("fitc", case.trained, 0.5, np.random.default_rng(0), most=100)
