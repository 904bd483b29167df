"""The random histograms: form, distribution and independence of the threads."""

from __future__ import annotations

import numpy as np
import pytest

from saccade._core.errors import InvalidParameter
from saccade.datasets import synthetic
from saccade.datasets.synthetic import histograms


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_form(dtype: type) -> None:
    X, y = histograms(500, 60, 12, rng=np.random.default_rng(0), dtype=dtype)
    assert X.shape == (500, 60)
    assert X.dtype == dtype
    assert (np.diff(X.indptr) == 12).all()
    assert X.has_canonical_format  # distinct dimensions, ascending
    assert (X.data > 0).all()
    np.testing.assert_allclose(np.asarray(X.sum(axis=1)), 1.0, rtol=1e-6)
    assert set(np.unique(y)) == {0, 1}


def test_threads_and_chunks_leave_the_result_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("SACCADE_NUM_THREADS", threads)
        results.append(histograms(200, 40, 5, rng=np.random.default_rng(3), at_once=1000))
    assert (results[0][0] != results[1][0]).nnz == 0
    np.testing.assert_array_equal(results[0][1], results[1][1])
    X = results[0][0].toarray()
    assert np.unique(X, axis=0).shape[0] == 200  # no chunk repeats another


def test_frequencies_are_those_of_draws_without_replacement() -> None:
    rates = np.array([[0.5, 0.3, 0.15, 0.05]])
    rng = np.random.default_rng(0)
    rows = synthetic._distinct_dimensions(rates, np.zeros(40_000, np.int64), 2, rng)
    found = np.bincount(rows.ravel(), minlength=4) / 40_000
    p = rates[0]
    expected = p + [sum(p[j] * p[i] / (1 - p[j]) for j in range(4) if j != i) for i in range(4)]
    np.testing.assert_allclose(found, expected, atol=0.015)


def test_classes_differ_in_their_dimensions() -> None:
    X, y = histograms(20_000, 50, 5, rng=np.random.default_rng(0))
    frequency = np.array([np.asarray((X[y == c] > 0).mean(axis=0)).ravel() for c in (0, 1)])
    np.testing.assert_allclose(frequency.sum(axis=1), 5.0)
    assert np.abs(frequency[0] - frequency[1]).mean() > 0.01  # sampling alone: about 0.003
    assert frequency.min() > 0.85 * 0.9 * 5 / 50  # the uniform part reaches every dimension


def test_positives() -> None:
    _, y = histograms(1099, 20, 4, rng=np.random.default_rng(0), positives=100)
    assert y.sum() == 100
    assert y[:100].sum() < 50


def test_every_dimension() -> None:
    X, _ = histograms(3, 4, 4, rng=np.random.default_rng(0))
    assert X.nnz == 12


def test_out_of_range() -> None:
    with pytest.raises(InvalidParameter, match="`nonzeros` must be from 1 to D = 5, got 6"):
        histograms(3, 5, 6, rng=np.random.default_rng(0))
    with pytest.raises(InvalidParameter, match="`positives` must be from 0 to n = 3, got 4"):
        histograms(3, 5, 2, rng=np.random.default_rng(0), positives=4)
