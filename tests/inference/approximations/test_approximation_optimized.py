"""The optimised diagonal is below K̃⁻¹, leaves no more than row sums do, and about as little as can be."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from saccade.inference.approximations.by_name import approximate
from saccade.inference.approximations.optimized import STEPS, Optimized, _Path
from saccade.kernels import HIK, RBF, Linear
from saccade.solvers.cholesky import factorise
from tests.inference.approximations.approximated import Case, cases, factorised

Array = np.ndarray[Any, np.dtype[Any]]
few = settings(max_examples=15, deadline=None)


def optimised(K: Array, noise: Array, signed: bool = False) -> Optimized:
    found = approximate(
        "optimized-signed" if signed else "optimized", factorised(K, noise), rng=np.random.default_rng(0)
    )
    assert isinstance(found, Optimized)
    return found


def left(K: Array, noise: Array, inverse: Array) -> Array:
    """The eigenvalues of K̃⁻¹ − D⁻¹."""
    P = np.linalg.inv(K + np.diag(noise))
    return np.linalg.eigvalsh((P + P.T) / 2 - np.diag(inverse))


@pytest.mark.parametrize("signed", [False, True])
@few
@given(case=cases())
def test_feasible_and_never_worse_than_row_sums(signed: bool, case: Case) -> None:
    found = approximate("optimized-signed" if signed else "optimized", case.trained, rng=np.random.default_rng(0))
    assert isinstance(found, Optimized)
    assert signed or (found.inverse >= 0).all()
    for j, record in enumerate(found.searches):
        noise, inverse = case.noise[:, j], found.inverse[:, j]
        L = np.linalg.cholesky(case.K + np.diag(noise))  # K̃⁻¹ ⪰ D⁻¹ without an inverse: I ⪰ LᵀD⁻¹L
        assert np.linalg.eigvalsh((L.T * inverse) @ L)[-1] <= 1.0 + 1e-12
        values = left(case.K, noise, inverse)
        unit = left(case.K, noise, np.zeros(case.n))[-1]
        sums = left(case.K, noise, 1.0 / (case.K.sum(axis=1) + noise))
        assert values[-1] <= sums[-1] + 1e-9 * unit
        assert record.largest == pytest.approx(values[-1], abs=1e-9 * unit)
        assert record.largest_of_sums == pytest.approx(sums[-1], abs=1e-9 * unit)
        assert -1e-9 * unit <= record.gap <= 1e-3 * unit
        assert record.iterations <= STEPS


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("negative", [False, True])
def test_of_two_examples_no_pair_of_numbers_leaves_less(negative: bool, signed: bool) -> None:
    """Against all pairs on the edge of the constraint: for each first entry, the largest second one."""
    K = np.array([[1.0, -0.5 if negative else 0.5], [-0.5 if negative else 0.5, 0.6]])
    noise = np.array([[0.1], [0.4]])
    P = np.linalg.inv(K + np.diag(noise[:, 0]))
    first = np.linspace(-5.0 if signed else 0.0, P[0, 0], 4000, endpoint=False)
    second = P[1, 1] - P[0, 1] ** 2 / (P[0, 0] - first)
    pairs = np.column_stack([first, second])[(second >= 0) | signed]
    least = min(left(K, noise[:, 0], pair)[-1] for pair in pairs)
    (record,) = optimised(K, noise, signed).searches
    assert record.largest == pytest.approx(least, rel=1e-3)
    assert record.largest - record.gap <= least * (1 + 1e-9)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("kernel", "noise"), [(HIK(scale=1.0), 0.1), (RBF(0.3), 1e-3), (Linear(), 1.0)], ids=repr)
def test_a_general_solver_finds_the_same_optimum(kernel: Any, noise: float, signed: bool) -> None:
    """The paper's way: λ_max smoothed, a penalty beyond the constraint, and L-BFGS-B from one ε to the next."""
    K = kernel(np.random.default_rng(0).dirichlet(np.full(6, 0.5), 12))
    P = np.linalg.inv(K + noise * np.eye(12))
    P, unit = P / np.linalg.eigvalsh(P)[-1], float(np.linalg.eigvalsh(P)[-1])
    sums = 1.0 / (K.sum(axis=1) + noise) / unit

    def value(x: Array, epsilon: float) -> tuple[float, Array]:
        values, vectors = np.linalg.eigh(P - np.diag(sums * x))
        powers, beyond = softmax(values / epsilon), np.minimum(values, 0.0)
        found = epsilon * logsumexp(values / epsilon) + np.square(beyond).sum() / epsilon
        return float(found), -np.square(vectors) @ (powers + 2.0 * beyond / epsilon) * sums

    x, epsilon = np.full(12, 0.9), 0.1
    while epsilon > 1e-5:
        bounds = None if signed else [(0.0, None)] * 12
        x = minimize(value, x, (epsilon,), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500}).x
        epsilon *= 0.7
    (record,) = optimised(K, np.full((12, 1), noise), signed).searches
    assert record.largest / unit == pytest.approx(np.linalg.eigvalsh(P - np.diag(sums * x))[-1], abs=3e-4)
    assert record.gap <= 1e-4 * unit


def test_leaves_clearly_less_than_row_sums_where_there_is_room() -> None:
    """Signed entries, as A (6) is printed, leave still less; and the dual bound is close to both."""
    K, noise = HIK(scale=1.0)(np.random.default_rng(0).dirichlet(np.full(30, 0.5), 40)), np.full((40, 1), 0.1)
    top = left(K, noise[:, 0], np.zeros(40))[-1]
    gains = []
    for signed in (False, True):
        found = optimised(K, noise, signed)
        (record,) = found.searches
        gains.append(top - record.largest)
        assert record.gap <= 1e-3 * gains[-1]
        assert (found.inverse < 0).any() == signed
    assert gains[0] > 1.5 * (top - record.largest_of_sums)
    assert gains[1] > 1.3 * gains[0]


@few
@given(seed=st.integers(0, 999), positive=st.booleans())
def test_newton_step(seed: int, positive: bool) -> None:
    """Slope and Hessian of the barrier against differences."""
    rng = np.random.default_rng(seed)
    K = RBF(0.5)(rng.random((5, 2)))
    path = _Path(factorise(K, np.full(5, 0.1)), 1.0 / (K.sum(axis=1) + 0.1), positive, np.ones(5), np.full(5, 10.0))
    at, s, h = np.append(rng.uniform(0.2, 0.9, 5), 1.2), 7.0, 1e-5

    def value(z: Array) -> float:
        point = path._at(z[:-1], z[-1])
        assert point is not None
        return s * z[-1] + point.barrier

    def slope_at(z: Array) -> Array:
        point = path._at(z[:-1], z[-1])
        assert point is not None
        return path._newton(point, z[:-1], s)[0]

    point = path._at(at[:-1], at[-1])
    assert point is not None
    slope, step = path._newton(point, at[:-1], s)
    steps = h * np.eye(6)
    near = [(value(at + e) - value(at - e)) / (2 * h) for e in steps]
    np.testing.assert_allclose(slope, near, rtol=1e-5, atol=1e-5)
    H = np.array([(slope_at(at + e) - slope_at(at - e)) / (2 * h) for e in steps])
    np.testing.assert_allclose(H @ step, -slope, rtol=1e-4, atol=1e-4)


def test_a_record_for_each_noise_and_nothing_to_do_for_independent_examples() -> None:
    K, noise = np.diag([1.0, 2.0, 0.0]), np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 3.0]])
    found = optimised(K, noise)
    np.testing.assert_allclose(found.inverse, 1.0 / (K.diagonal()[:, None] + noise), rtol=1e-12)
    assert [record.iterations for record in found.searches] == [0, 0]
