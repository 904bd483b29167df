"""Normals from few rows: shrinkage against rows really left out, EM against what it must find."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from saccade.localize.priors.learn_normals import (
    SHRINKAGES,
    choose_shrinkage,
    learn_normals,
    left_out_log_densities,
    shrunk,
)
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
SPREAD = np.array([0.5, 1.0, 0.3])
APART = np.array([8.0, -6.0, 0.0])


def rows(n: int, seed: int = 0, share: float = 0.9) -> Array:
    """Three coordinates, the first two alike to a degree."""
    z = np.random.default_rng(seed).normal(size=(n, 3))
    return np.column_stack([z[:, 0], share * z[:, 0] + np.sqrt(1 - share**2) * z[:, 1], 3.0 * z[:, 2] + 2.0])


def left_out_score(U: Array, shrinkage: float, D: Array) -> float:
    """Each row under the covariance of the others, one by one."""
    total = 0.0
    for i in range(len(U)):
        others = np.delete(U, i, axis=0)
        S = np.cov(others.T, bias=True)
        C = (1.0 - shrinkage) * S + shrinkage * np.diag(D)
        total += multivariate_normal(others.mean(axis=0), C).logpdf(U[i]) / len(U)
    return total


@pytest.mark.parametrize(("n", "share"), [(4, 0.9), (7, 0.0), (12, 0.9), (60, 0.99)])
def test_shrinkage_is_the_best_for_left_out_rows(n: int, share: float) -> None:
    U = rows(n, share=share)
    D = (n * U.var(axis=0) + SPREAD) / (n + 1)
    scores = np.array([left_out_score(U, shrinkage, D) for shrinkage in SHRINKAGES])
    np.testing.assert_allclose(left_out_log_densities(U, SPREAD), scores, rtol=1e-9)
    assert choose_shrinkage(U, SPREAD) == SHRINKAGES[scores.argmax()]


def test_shrinkage_fades_with_rows() -> None:
    assert choose_shrinkage(rows(1), SPREAD) == choose_shrinkage(rows(2), SPREAD) == 1.0
    assert choose_shrinkage(1e-3 * rows(2), SPREAD) == 1.0
    few, many = choose_shrinkage(rows(6), SPREAD), choose_shrinkage(rows(500), SPREAD)
    assert many < 0.05 < few


def test_without_gaps_a_normal_is_one_formula() -> None:
    U = rows(30)
    found, shrinkage = learn_normals(U, 1, SPREAD)
    S = np.cov(U.T, bias=True)
    D = (30 * S.diagonal() + SPREAD) / 31
    C = (1 - shrinkage) * S + shrinkage * np.diag(D)
    correlation = C / np.sqrt(np.outer(C.diagonal(), C.diagonal()))
    assert_close(found.means[0], U.mean(axis=0))
    assert_close(found.covariances[0], (1 + 1 / 30) * correlation * np.sqrt(np.outer(D, D)))


@pytest.mark.parametrize("U", [rows(1), np.tile(rows(1), (5, 1)), rows(3)[:, [0, 0, 2]], rows(400)[:, [1, 1, 1]]])
def test_singular_covariances_become_definite(U: Array) -> None:
    found, _ = learn_normals(U, 1, SPREAD)
    np.linalg.cholesky(found.covariances[0])
    assert np.isfinite(found.log_density(U)).all()
    assert np.linalg.cond(found.covariances[0]) < 1e6


def test_one_row_gives_the_broad_variances() -> None:
    found, shrinkage = learn_normals(rows(1), 1, SPREAD)
    assert shrinkage == 1.0
    assert_close(found.covariances[0], 2.0 * np.diag(SPREAD / 2.0))
    assert_close(shrunk(np.eye(3), 3.0, 1.0, SPREAD), np.diag((3.0 + SPREAD) / 4.0))


def test_gaps_cost_precision_and_bring_no_bias() -> None:
    """Gaps in the second column where the first is large: the mean of the rest is far off, EM is not."""
    U = rows(4000, share=0.6)
    U[U[:, 0] > 0.5, 1] = np.nan
    found, _ = learn_normals(U, 1, SPREAD)
    assert np.nanmean(U[:, 1]) < -0.2
    np.testing.assert_allclose(found.means[0], [0.0, 0.0, 2.0], atol=0.15)
    np.testing.assert_allclose(found.covariances[0][:2, :2], [[1.0, 0.6], [0.6, 1.0]], atol=0.1)


def test_a_mixture_finds_its_parts() -> None:
    U = np.vstack([rows(300), rows(100, seed=1) + APART])
    found, _ = learn_normals(U, 2, SPREAD)
    order = np.argsort(-found.weights)
    np.testing.assert_allclose(found.weights[order], [0.75, 0.25], atol=0.01)
    np.testing.assert_allclose(found.means[order], [U[:300].mean(axis=0), U[300:].mean(axis=0)], atol=0.01)
    assert_close(found.mean, U.mean(axis=0))


def test_a_component_of_few_rows_is_shrunk_more() -> None:
    parts = [rows(300), rows(12, seed=1) + 5.0 * APART]
    found, shrinkage = learn_normals(np.vstack(parts), 2, SPREAD)
    for place, part in zip(np.argsort(-found.weights), parts, strict=True):
        n, S = len(part), np.cov(part.T, bias=True)
        own = shrinkage * 312 / (shrinkage * 312 + (1 - shrinkage) * n)
        expected = (1 + 1 / n) * shrunk(S, n, own, SPREAD)
        np.testing.assert_allclose(found.covariances[place], expected, rtol=1e-6, atol=1e-9)


def test_a_mixture_with_gaps_keeps_its_parts() -> None:
    U = np.vstack([rows(300), rows(100, seed=1) + APART])
    U[::3, 1] = np.nan
    U[1::5, 2] = np.nan
    found, _ = learn_normals(U, 2, SPREAD)
    order = np.argsort(-found.weights)
    np.testing.assert_allclose(found.means[order][:, :2], [[0, 0], [8, -6]], atol=0.6)


def test_a_mixture_of_equal_rows_does_not_break() -> None:
    U = np.vstack([np.tile(rows(1), (6, 1)), rows(1, seed=3)])
    found, _ = learn_normals(U, 2, SPREAD)
    assert np.isfinite(found.log_density(U)).all()
    np.linalg.cholesky(found.covariances)
