"""The optimised diagonal is below K̃⁻¹, leaves no more than row sums do, and about as little as can be."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.inference.approximation import approximate
from saccade.inference.optimized import Optimized, _Surrogate
from saccade.kernels import HIK, RBF
from tests.inference.approximated import Case, cases, factorised

Array = np.ndarray[Any, np.dtype[Any]]
few = settings(max_examples=15, deadline=None)


def optimised(K: Array, noise: Array) -> Optimized:
    found = approximate("optimized", factorised(K, noise), rng=np.random.default_rng(0))
    assert isinstance(found, Optimized)
    return found


def left(K: Array, noise: Array, inverse: Array) -> Array:
    """The eigenvalues of K̃⁻¹ − D⁻¹."""
    P = np.linalg.inv(K + np.diag(noise))
    return np.linalg.eigvalsh((P + P.T) / 2 - np.diag(inverse))


@few
@given(case=cases())
def test_feasible_and_never_worse_than_row_sums(case: Case) -> None:
    found = approximate("optimized", case.trained, rng=np.random.default_rng(0))
    assert isinstance(found, Optimized)
    assert (found.inverse >= 0).all()
    for j, record in enumerate(found.searches):
        noise, inverse = case.noise[:, j], found.inverse[:, j]
        root = np.sqrt(inverse)  # D ⪰ K̃ without an inverse
        assert np.linalg.eigvalsh(root[:, None] * (case.K + np.diag(noise)) * root)[-1] <= 1.0 + 1e-12
        values = left(case.K, noise, inverse)
        unit = left(case.K, noise, np.zeros(case.n))[-1]
        sums = left(case.K, noise, 1.0 / (case.K.sum(axis=1) + noise))
        assert values[-1] <= sums[-1] + 1e-9 * unit
        assert record.largest == pytest.approx(values[-1], abs=1e-9 * unit)
        assert record.largest_of_sums == pytest.approx(sums[-1], abs=1e-9 * unit)
        assert 0 < record.epsilon <= 1
        assert record.iterations >= 0


@pytest.mark.parametrize("negative", [False, True])
def test_of_two_examples_no_pair_of_numbers_leaves_less(negative: bool) -> None:
    """Against all pairs on the edge of the constraint: for each first entry, the largest second one."""
    K = np.array([[1.0, -0.5 if negative else 0.5], [-0.5 if negative else 0.5, 0.6]])
    noise = np.array([[0.1], [0.4]])
    P = np.linalg.inv(K + np.diag(noise[:, 0]))
    first = np.linspace(0.0, P[0, 0], 2000, endpoint=False)
    second = P[1, 1] - P[0, 1] ** 2 / (P[0, 0] - first)
    pairs = np.column_stack([first, second])[second >= 0]
    least = min(left(K, noise[:, 0], pair)[-1] for pair in pairs)
    (record,) = optimised(K, noise).searches
    assert record.largest == pytest.approx(least, rel=1e-3)


def test_leaves_clearly_less_than_row_sums_where_there_is_room() -> None:
    """And a dual certificate says that nothing feasible leaves much less."""
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.full(30, 0.5), 40)
    K, noise = HIK(scale=1.0)(X), np.full((40, 1), 0.1)
    found = optimised(K, noise)
    (record,) = found.searches
    top = left(K, noise[:, 0], np.zeros(40))[-1]
    assert top - record.largest > 1.5 * (top - record.largest_of_sums)
    assert record.epsilon < 0.02
    # with V, W ⪰ 0, tr V = 1 and diag V ≤ diag W: λ_max ≥ tr V(P − D⁻¹) ≥ tr (V − W)P + tr W(P − D⁻¹) ≥ tr (V − W)P
    P = np.linalg.inv(K + np.diag(noise[:, 0]))
    values, vectors = np.linalg.eigh(P - np.diag(found.inverse[:, 0]))
    sharp = 3e-4 * top
    V = _weighted(vectors, np.exp((values - values[-1]) / sharp))
    W = _weighted(vectors, 1.0 / np.maximum(values, 1e-3 * sharp))
    W *= (V.diagonal() / W.diagonal()).max()
    least = np.trace((V - W) @ P)
    assert least <= record.largest <= least + 0.05 * (top - record.largest)


def _weighted(vectors: Array, weights: Array) -> Array:
    return np.asarray((vectors * (weights / weights.sum())) @ vectors.T)


@few
@given(seed=st.integers(0, 999), epsilon=st.sampled_from([1.0, 0.1, 0.01]))
def test_slope_of_the_surrogate(seed: int, epsilon: float) -> None:
    """Also beyond the constraint."""
    rng = np.random.default_rng(seed)
    K = RBF(0.5)(rng.random((6, 2))) + 0.1 * np.eye(6)
    P = np.linalg.inv(K)
    surrogate = _Surrogate((P + P.T) / 2, 1.0 / K.sum(axis=1), float(np.linalg.eigvalsh(P)[-1]))
    x, step = rng.uniform(0.0, 1.5, 6), 1e-6
    _, slope = surrogate._value(x, epsilon)
    ahead, behind = (np.array([surrogate._value(x + s * e, epsilon)[0] for e in np.eye(6)]) for s in (step, -step))
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=2e-4, atol=1e-6 * np.abs(slope).max())


def test_a_record_for_each_noise_and_nothing_to_do_for_independent_examples() -> None:
    K, noise = np.diag([1.0, 2.0, 0.0]), np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 3.0]])
    found = optimised(K, noise)
    np.testing.assert_allclose(found.inverse, 1.0 / (K.diagonal()[:, None] + noise), rtol=1e-12)
    assert [record.iterations for record in found.searches] == [0, 0]
