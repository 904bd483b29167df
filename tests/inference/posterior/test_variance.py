"""Every method explains at most what dense algebra does, for any data, kernel and noise."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade._core import limits
from saccade._core.errors import InvalidInput
from saccade.inference.approximations.base import RegularizedSystem, VarianceApproximation
from saccade.inference.approximations.by_name import VARIANCES, Approximating, resolve_method
from saccade.inference.approximations.eigenvalue_bounds import Fine
from saccade.inference.approximations.exact import Exact
from saccade.inference.approximations.low_rank import LowRank, hold_out, low_rank, low_ranks
from saccade.kernels import HIK, RBF, Exponential, Linear, Power, Weights
from saccade.operators.base import Dense
from saccade.operators.norms import norm_tables
from saccade.solvers.cholesky import factorise
from tests.operators.histograms import LAYOUTS, encoded, histograms, sparse_rows

Array = np.ndarray[Any, np.dtype[Any]]
# The others are no bounds, or may explain less than nothing.
NAMED = [method for method in VARIANCES if method not in ("fitc", "dtc", "sor", "parzen", "optimized-signed")]
KERNELS = [HIK(scale=1.0), HIK([Power(0.5), Weights([1.0, 0.0, 3.0])], scale=2.0), HIK(Exponential(2.0), scale=1.0)]


def explainer(method: Any, trained: RegularizedSystem, rank: int, rng: np.random.Generator) -> VarianceApproximation:
    return Approximating(rank=rank).ready(method, trained, None, rng)


many = settings(max_examples=30, deadline=None)


def exact(K: Array, noise: Array, k_star: Array) -> Array:
    """k*ᵀ(K + N)⁻¹k*, a column of the noise each."""
    solved = [np.linalg.solve(K + np.diag(column), k_star) for column in noise.T]
    return np.column_stack([(k_star * x).sum(axis=0) for x in solved])


def noises(n: int, level: float, columns: int) -> Array:
    spread = np.random.default_rng(0).uniform(0.5, 2.0, (n, columns))
    return np.asarray(level * (spread if columns > 1 else np.ones((n, 1))))


def assert_below(found: Array, wanted: Array, K: Array) -> None:
    assert (found <= wanted + 1e-9 * (1.0 + np.abs(K).max(initial=0.0))).all()
    assert (found >= 0).all()


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@many
@given(data=st.data(), level=st.floats(1e-3, 10.0), columns=st.integers(1, 3), rank=st.sampled_from([1, 4, 9]))
def test_explains_no_more_than_everything_does(
    method: str, kernel: HIK, data: st.DataObject, level: float, columns: int, rank: int
) -> None:
    """With ties, empty rows, equal rows, one example, more directions than examples, and a noise for each output."""
    X, new = data.draw(histograms(dims=3)), data.draw(histograms(dims=3, top=1.5))
    layout = data.draw(st.sampled_from(LAYOUTS))
    operator = kernel.operator(encoded(X, layout))
    K, k_star, noise = kernel(X), kernel(X, new), noises(len(X), level, columns)
    trained = RegularizedSystem(operator, noise, (), 1e-8, 200)
    made = explainer(method, trained, rank, np.random.default_rng(0))
    found = made.explained(made.supported(k_star))
    assert_below(found, exact(K, noise, k_star), K)


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("kernel", [RBF(0.5), Linear(), HIK(scale=1.0) + RBF(2.0)], ids=str)
@settings(max_examples=25, deadline=None)
@given(data=st.data(), level=st.floats(1e-3, 10.0), columns=st.integers(1, 3))
def test_so_for_other_kernels(method: str, kernel: Any, data: st.DataObject, level: float, columns: int) -> None:
    """Also where kernel values are negative, which the diagonal approximation refuses."""
    X, new = data.draw(histograms(dims=2)) - 0.5, data.draw(histograms(dims=2, top=1.5)) - 0.5
    K, k_star, noise = kernel(X), kernel(X, new), noises(len(X), level, columns)
    trained = RegularizedSystem(Dense(K), noise, tuple(factorise(K, column) for column in noise.T), 1e-8, 200)
    if method == "diagonal" and K.min() < 0:
        with pytest.raises(InvalidInput, match="needs kernel values ≥ 0"):
            explainer(method, trained, 3, np.random.default_rng(0))
        return
    made = explainer(method, trained, 3, np.random.default_rng(0))
    found = made.explained(made.supported(k_star))
    assert_below(found, exact(K, noise, k_star), K)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@many
@given(data=st.data(), level=st.floats(1e-3, 10.0), columns=st.integers(1, 3), nodes=st.integers(2, 9))
def test_tables_explain_no_more(kernel: HIK, data: st.DataObject, level: float, columns: int, nodes: int) -> None:
    """Tables of few nodes too, between the nodes and beyond the last one."""
    X, new = data.draw(histograms(dims=3)), data.draw(histograms(dims=3, top=1.5))
    operator = kernel.operator(encoded(X, data.draw(st.sampled_from(LAYOUTS))))
    K, k_star, noise = kernel(X), kernel(X, new), noises(len(X), level, columns)
    wanted = exact(K, noise, k_star).min(axis=1)
    W = low_rank(operator, noise, 5, np.random.default_rng(0)).W
    features = kernel.features(new)
    from_all = np.square(W.T @ k_star).sum(axis=0)
    assert_below(norm_tables(operator, W, nodes).squared_norms(features), np.minimum(wanted, from_all), K)


def problem(n: int = 150) -> tuple[Array, Array, Any, Array]:
    X = sparse_rows(n + 40, 12)
    kernel = HIK().resolved(X[:n])
    operator = kernel.operator(encoded(X[:n], "sorted"))
    return kernel(X[:n]), kernel(X[:n], X[n:]), operator, np.full((n, 1), 0.05)


def explained_by(method: str, rank: int = 64) -> Array:
    _, k_star, operator, noise = problem()
    trained = RegularizedSystem(operator, noise, (), 1e-9, 500)
    return explainer(method, trained, rank, np.random.default_rng(0)).explained(k_star)[:, 0]


def test_the_exact_one_is_exact_and_more_directions_explain_more() -> None:
    K, k_star, _, noise = problem()
    wanted = exact(K, noise, k_star)[:, 0]
    np.testing.assert_allclose(explained_by("exact"), wanted, rtol=1e-7, atol=1e-9)
    shares = [explained_by("lowrank", rank).mean() / wanted.mean() for rank in (1, 8, 40, 150)]
    assert shares == sorted(shares)
    assert shares[0] < 0.9
    assert shares[-1] == pytest.approx(1.0, abs=1e-6)


def test_a_few_very_noisy_examples_do_not_spoil_the_low_rank() -> None:
    K, k_star, operator, _ = problem()
    noise = 10.0 ** np.random.default_rng(0).uniform(-5.0, 3.0, (len(K), 1))
    found = explainer(
        "lowrank", RegularizedSystem(operator, noise, (), 1e-9, 500), 60, np.random.default_rng(0)
    ).explained(k_star)
    wanted = exact(K, noise, k_star)
    assert_below(found, wanted, K)
    assert found.mean() > 0.85 * wanted.mean()


def test_fine_is_above_its_low_rank_and_close_with_half_of_all_directions() -> None:
    K, k_star, operator, noise = problem()
    wanted = exact(K, noise, k_star)[:, 0]
    for rank in (4, 30):
        assert (explained_by("fine", rank) >= explained_by("lowrank", rank)).all()
    assert (wanted - explained_by("fine", 75)).mean() < 0.3 * (wanted - explained_by("lowrank", 75)).mean()
    method = explainer("fine", RegularizedSystem(operator, noise, (), 1e-9, 500), 30, np.random.default_rng(0))
    assert isinstance(method, Fine)
    P = np.eye(len(K)) - method.low.Q @ method.low.Q.T
    largest = np.linalg.eigvalsh(P @ (K + np.diag(noise[:, 0])) @ P)[-1]
    assert largest <= method.tau <= 1.1 * largest


def test_diagonal_is_the_papers_formula() -> None:
    K, k_star, _, noise = problem()
    expected = (k_star**2 / (K.sum(axis=1) + noise[:, 0])[:, None]).sum(axis=0)  # A (12)
    np.testing.assert_allclose(explained_by("diagonal"), expected, rtol=1e-12)


def test_covariances_match_dense_algebra_by_factor_and_by_iteration() -> None:
    K, k_star, operator, noise = problem()
    noise = np.hstack([noise, 3.0 * noise])
    wanted = [k_star.T @ np.linalg.solve(K + np.diag(column), k_star) for column in noise.T]
    for factors in ((), tuple(factorise(K, column) for column in noise.T)):
        found = Exact(RegularizedSystem(operator, noise, factors, 1e-9, 500)).covariances(k_star)
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)


def test_an_unfinished_solve_still_gives_a_bound() -> None:
    """Few iterations explain less, never more."""
    K, k_star, operator, noise = problem()
    wanted = exact(K, noise, k_star)
    for max_iter in (1, 3, 8):
        found = Exact(RegularizedSystem(operator, noise, (), 1e-9, max_iter)).explained(k_star)
        assert (found <= wanted + 1e-9).all()


def test_scales_that_float64_barely_holds() -> None:
    """A kernel of 1e12 with noise 1e-6: rounding alone must not explain more than there is."""
    X = np.vstack([sparse_rows(30, 4)] * 2) * 1e12
    operator, noise = HIK(scale=1.0).operator(encoded(X, "sorted")), np.full((60, 1), 1e-6)
    low = low_rank(operator, noise, 60, np.random.default_rng(0))
    assert isinstance(low, LowRank)
    K = HIK(scale=1.0)(X)
    assert (low.explained(K)[:, 0] <= K.diagonal() * (1 + 1e-9)).all()


def test_auto_picks_by_size_and_kernel() -> None:
    assert resolve_method("auto", True, 100, 1) == "exact"
    assert resolve_method("auto", True, 100, 0) == "lowrank"
    assert resolve_method("auto", True, 5000, 1) == "lowrank"
    assert resolve_method("auto", False, 20_000, 0) == "exact"
    assert [resolve_method(method, True, 9, 1) for method in ("fine", "sod")] == ["fine", "sod"]


def test_low_ranks_of_several_noises_share_only_work() -> None:
    """Each is that of its noise alone, W is 0 where it must be, and the noise tells which examples count."""
    K, k_star, operator, _ = problem()
    rng, held_out = np.random.default_rng(1), np.array([3, 77])
    noise = np.hstack([10.0 ** rng.uniform(-5.0, 3.0, (len(K), 2)), np.full((len(K), 1), 0.05)])
    found = low_ranks(operator, noise, 30, np.random.default_rng(0), held_out)
    for j, part in enumerate(found):
        alone = low_rank(operator, noise[:, [j]], 30, np.random.default_rng(0), held_out)
        np.testing.assert_array_equal(part.W, alone.W)
        assert not part.W[held_out].any()
        inner = part.W.T @ (K + np.diag(noise[:, j])) @ part.W
        np.testing.assert_allclose(inner, np.eye(30), atol=1e-9)
        wanted = exact(K, noise[:, [j]], k_star)
        assert_below(part.explained(k_star), wanted, K)
        assert part.explained(k_star).mean() > 0.9 * wanted.mean()


def test_every_variance_lies_between_zero_and_the_prior() -> None:
    """Also where an approximation explains less than nothing, or more than there is."""
    K, k_star, operator, _ = problem()
    trained = RegularizedSystem(operator, np.full((len(K), 1), 1e-3), (), 1e-6, 1000)
    explained = []
    for method in VARIANCES:
        known = explainer(method, trained, 20, np.random.default_rng(0))
        for k, prior in ((k_star, np.full(k_star.shape[1], 0.3 * K.diagonal().mean())), (-K, K.diagonal())):
            k = known.supported(k)
            variance = known.variance(k, prior)
            assert (variance >= 0.0).all()
            assert (variance <= prior[:, None]).all()
            explained.append(known.explained(k) - np.array([[0.0, 1.0]]) * prior[:, None])
    assert min(less[:, 0].min() for less in explained) < 0.0
    assert max(more[:, 1].max() for more in explained) > 0.0


def test_no_example_is_held_out_where_directions_span_all() -> None:
    rng = np.random.default_rng(0)
    n = limits.HELD_OUT_FROM
    assert hold_out(np.arange(n), n, n, rng).size == hold_out(np.arange(n), n, n + 1, rng).size == 0
    assert 0 < hold_out(np.arange(n), n, n - 1, rng).size < n
    assert hold_out(np.arange(n - 1), n - 1, n - 2, rng).size == 0  # of few, directions are made again without each
