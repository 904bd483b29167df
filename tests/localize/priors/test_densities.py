"""Mixtures of normals against dense algebra, integrals over a grid, and the moments of draws."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from saccade.localize.priors.densities import (
    Blend,
    Block,
    Cells,
    Held,
    Inside,
    Normals,
    PlaceAndRest,
    fill,
    known_log_density,
)
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]


def covariance(rng: np.random.Generator, d: int) -> Array:
    A = rng.normal(size=(d, d + 2))
    return A @ A.T / d


def mixture(k: int = 3, d: int = 5, seed: int = 0) -> Normals:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(k))
    return Normals(weights, rng.normal(size=(k, d)), np.array([covariance(rng, d) for _ in range(k)]))


def dense_log_density(normals: Normals, u: Array) -> Array:
    parts = zip(normals.weights, normals.means, normals.covariances, strict=True)
    return np.log(sum(w * multivariate_normal(m, C).pdf(u) for w, m, C in parts))


def test_density_is_scipys() -> None:
    normals, u = mixture(), np.random.default_rng(1).normal(size=(20, 5))
    assert_close(normals.log_density(u), dense_log_density(normals, u))


@pytest.mark.parametrize("k", [1, 3])
def test_given_is_joint_over_marginal(k: int) -> None:
    """p(x₁ | x₂) = p(x₁, x₂) / p(x₂), for any x₁ and in any order of the places."""
    normals, rng = mixture(k), np.random.default_rng(2)
    places, wanted, values = np.array([3, 0]), np.array([4, 1, 2]), rng.normal(size=2)
    u = rng.normal(size=(15, 3))
    joint = np.zeros((15, 5))
    joint[:, places], joint[:, wanted] = values, u
    expected = dense_log_density(normals, joint) - dense_log_density(normals.part(places), values[None])
    assert_close(normals.given(places, values, wanted).log_density(u), expected)


def test_given_is_the_formula_with_an_inverse() -> None:
    normals, values = mixture(1), np.array([0.3, -0.7])
    C, mean = normals.covariances[0], normals.means[0]
    inverse = np.linalg.inv(C[:2, :2])
    found = normals.given(np.arange(2), values, np.arange(2, 5))
    assert_close(found.means[0], mean[2:] + C[2:, :2] @ inverse @ (values - mean[:2]))
    assert_close(found.covariances[0], C[2:, 2:] - C[2:, :2] @ inverse @ C[:2, 2:])
    assert found.weights.tolist() == [1.0]


def test_one_after_the_other_is_both_at_once() -> None:
    normals, values = mixture(3, 6), np.array([0.5, -0.2, 0.1, 0.9])
    both = normals.given(np.arange(4), values, np.array([4, 5]))
    first = normals.given(np.array([2, 3]), values[2:], np.array([0, 1, 4, 5]))
    second = first.given(np.array([0, 1]), values[:2], np.array([2, 3]))
    assert_close(second.weights, both.weights)
    assert_close(second.means, both.means)
    assert_close(second.covariances, both.covariances)


def test_responsibilities_far_out_do_not_vanish() -> None:
    normals = Normals(np.array([0.5, 0.5]), np.array([[0.0, 0.0], [1.0, 5.0]]), np.tile(np.eye(2), (2, 1, 1)))
    found = normals.given(np.array([0]), np.array([100.0]), np.array([1]))
    assert_close(found.weights.sum(), 1.0)
    assert_close(found.mean, [5.0])


def test_draws_have_the_moments() -> None:
    normals, n = mixture(3, 3), 200_000
    u = normals.draw(n, np.random.default_rng(3))
    error = np.sqrt(normals.covariance.diagonal() / n)
    assert (np.abs(u.mean(axis=0) - normals.mean) < 5.0 * error).all()
    np.testing.assert_allclose(np.cov(u.T), normals.covariance, atol=0.03)


def test_moments_are_those_of_a_sum_of_normals() -> None:
    normals = mixture(2, 2)
    (a, b), (m, k), (C, D) = normals.weights, normals.means, normals.covariances
    assert_close(normals.mean, a * m + b * k)
    second = a * (C + np.outer(m, m)) + b * (D + np.outer(k, k))
    assert_close(normals.covariance, second - np.outer(normals.mean, normals.mean))


def test_tail_is_the_share_of_draws_farther_out() -> None:
    normals = mixture(1, 4)
    u = normals.means[0] + 0.8 * np.linalg.cholesky(normals.covariances[0]).sum(axis=1)
    draws = normals.draw(100_000, np.random.default_rng(4))
    farther = (normals.squared_distances(draws)[:, 0] > normals.squared_distances(u[None])[0, 0]).mean()
    assert abs(normals.tail(u) - farther) < 0.01
    assert normals.tail(normals.means[0]) == 1.0
    assert normals.tail(normals.means[0] + 1e3) < 1e-12


def test_block() -> None:
    block = Block(np.array([0.0, -1.0]), np.array([2.0, 3.0]))
    assert_close(block.log_density(np.array([[1.0, 0.0], [2.5, 0.0], [1.0, -1.1]])), [-np.log(8.0), -np.inf, -np.inf])
    u = block.draw(5000, np.random.default_rng(0))
    assert np.isfinite(block.log_density(u)).all()
    np.testing.assert_allclose(u.mean(axis=0), [1.0, 1.0], atol=0.1)


def test_gaps_are_filled_with_conditional_means() -> None:
    normals, rng = mixture(1, 4), np.random.default_rng(5)
    mean, C = normals.means[0], normals.covariances[0]
    U = rng.normal(size=(5, 4))
    U[1, [0, 2]] = U[3, 3] = np.nan
    U[4] = np.nan
    filled, doubt = fill(U, mean, C)
    known = normals.given(np.array([1, 3]), U[1, [1, 3]], np.array([0, 2]))
    assert_close(filled[1, [0, 2]], known.means[0])
    assert_close(filled[4], mean)
    assert np.array_equal(filled[[0, 2]], U[[0, 2]])
    left = {tuple(rows): cov for rows, cov in doubt}
    assert_close(left[(1,)][np.ix_([0, 2], [0, 2])], known.covariances[0])
    assert not left[(1,)][1].any()
    assert_close(left[(4,)], C)
    found = known_log_density(U, mean, C)
    assert_close(found[0], multivariate_normal(mean, C).logpdf(U[0]))
    assert_close(found[1], multivariate_normal(mean[[1, 3]], C[np.ix_([1, 3], [1, 3])]).logpdf(U[1, [1, 3]]))
    assert found[4] == 0.0


def over_the_edge() -> dict[str, Any]:
    """Densities of four coordinates whose centre lies partly outside the unit square."""
    normals = mixture(2, 4)
    block = Block(np.array([-0.5, 0.2, -3.0, -1.0]), np.array([0.5, 1.7, 0.0, 1.0]))
    cells = PlaceAndRest(Cells(np.full((2, 3), 1.0 / 6.0)), normals.part(np.array([2, 3])))
    held = Held(normals.part(np.array([0, 1])), np.array([-2.0, 0.0]))
    kinds = {"Normals": normals, "Block": block, "PlaceAndRest": cells, "Held": held}
    return kinds | {"Blend": Blend(np.array([0.3, 0.7]), (normals, block))}


@pytest.mark.parametrize("kind", over_the_edge())
def test_inside_is_the_share_of_draws_in_the_unit_square(kind: str) -> None:
    density = over_the_edge()[kind]
    place = density.draw(100_000, np.random.default_rng(6))[:, :2]
    share = ((place >= 0.0) & (place <= 1.0)).all(axis=1).mean()
    assert density.inside() == pytest.approx(share, abs=0.008)
    assert (share < 0.9) == (kind != "PlaceAndRest")


def test_a_density_inside_the_picture_integrates_to_one() -> None:
    normals = mixture(3, 2)
    middles = (np.arange(200) + 0.5) / 200
    u = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
    inside = Inside.of(normals)
    assert np.exp(inside.log_density(u)).mean() == pytest.approx(1.0, abs=1e-4)
    assert np.isneginf(inside.log_density(u + 1.0)).all()
