"""Measures by their formulas, p-values below all known scores, and quantiles that stand for all scores."""

import numpy as np
import pytest
from scipy.stats import norm

from saccade.scores.novelty import MEASURES, Measure, fisher_product, lowest_membership, membership, p_values, quantiles

MEAN, VARIANCE, NOISE = np.array([0.9, 0.2, -0.4]), np.array([0.1, 0.5, 2.0]), 0.3


def test_measures_are_their_formulas() -> None:
    wide = np.sqrt(VARIANCE + NOISE)
    np.testing.assert_array_equal(membership("mean", MEAN, None, NOISE), MEAN)
    np.testing.assert_array_equal(membership("variance", None, VARIANCE, NOISE), -VARIANCE)
    np.testing.assert_allclose(membership("ratio", MEAN, VARIANCE, NOISE), MEAN / np.sqrt(VARIANCE))
    np.testing.assert_allclose(membership("probability", MEAN, VARIANCE, NOISE), norm.logpdf(1.0, MEAN, wide))
    np.testing.assert_allclose(membership("probability", MEAN, VARIANCE, NOISE, sign=True), norm.logcdf(MEAN / wide))


def test_the_ratio_of_a_variance_that_is_rounding() -> None:
    """It counts as 1e-12 of k(x, x), which is 1 unless told otherwise; without a feature there is no ratio."""
    mean, nothing = np.array([0.5]), np.zeros(1)
    np.testing.assert_allclose(membership("ratio", mean, nothing, NOISE), 0.5e6)
    np.testing.assert_allclose(membership("ratio", mean, nothing, NOISE, prior=np.array([4.0])), 0.25e6)
    assert membership("ratio", mean, nothing, NOISE, prior=nothing) == 0.0


@pytest.mark.parametrize("measure", MEASURES)
def test_the_lowest_measure_is_a_rounding_below(measure: Measure) -> None:
    found = lowest_membership(measure, MEAN, VARIANCE, np.full(3, 2.0), NOISE)
    exact = membership(measure, MEAN, VARIANCE, NOISE)
    assert (found < exact).all()
    np.testing.assert_allclose(found, exact, rtol=1e-10)


def test_below_all_known_scores_the_middle_one_is_the_unit() -> None:
    normal = np.array([1.0, 1.5, 2.0, 4.0, 6.0, 9.0, 9.5])  # the middle is 3 above the lowest
    new = np.array([0.7, -2.0, -50.0])
    expected = 1.0 / (1.0 + np.log1p((1.0 - new) / 3.0)) / 8.0
    np.testing.assert_allclose(p_values(new, normal), expected)


def test_so_many_scores_are_their_own_quantiles() -> None:
    scores = np.random.default_rng(0).permutation(501.0 + np.arange(501))
    np.testing.assert_array_equal(quantiles(scores), np.sort(scores))


@pytest.mark.parametrize("n", [1, 3, 50, 2004, 5000])
def test_each_score_counts_as_often_as_any_other(n: int) -> None:
    found = quantiles(np.random.default_rng(n).permutation(np.arange(float(n))))
    assert found.shape == (501,)
    assert (found[0], found[-1]) == (0.0, n - 1.0)
    counts = np.histogram(found, np.linspace(-0.5, n - 0.5, min(n, 50) + 1))[0]
    assert counts.min() >= 501 // min(n, 50) - 1
    assert counts.max() <= 501 // min(n, 50) + 2


def test_rounding_is_relative_to_what_is_rounded() -> None:
    """1e-12 of the mean, or of a label where that is larger; 1e-12 of k(x, x) for the variance."""
    mean, variance, prior = np.array([1000.0, -1000.0, 0.1]), np.array([0.1, 0.2, 0.3]), np.array([2.0, 0.5, 1.0])
    fall = mean - lowest_membership("mean", mean, variance, prior, NOISE)
    np.testing.assert_allclose(fall, [1e-9, 1e-9, 1e-12], rtol=1e-3)
    fall = -variance - lowest_membership("variance", mean, variance, prior, NOISE)
    np.testing.assert_allclose(fall, 1e-12 * prior, rtol=1e-3)


def test_the_product_of_two_p_values_with_weights() -> None:
    one, other = np.array([0.5, 0.2]), np.array([0.1, 0.7])
    np.testing.assert_allclose(fisher_product(one, other), one * other)
    np.testing.assert_allclose(fisher_product(one, other, 0.25), one**1.5 * other**0.5)
    np.testing.assert_allclose(fisher_product(one, other, 0.0), one**2)
