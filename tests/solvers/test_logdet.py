"""log |K + N| against the dense one: the estimate within its error bar, the bound never below."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from saccade.datasets.synthetic import histograms as synthetic
from saccade.kernels import HIK
from saccade.operators.base import Dense
from saccade.operators.codes import encode
from saccade.solvers.cg import solve_cg
from saccade.solvers.lanczos import lanczos
from saccade.solvers.logdet import bound_log_determinant, stochastic_log_determinant
from saccade.solvers.nystrom import build
from tests.operators.histograms import histograms


def problem(n: int, seed: int = 0):
    X, _ = synthetic(n, D=60, nonzeros=12, rng=np.random.default_rng(seed))
    X = X.multiply(np.random.default_rng(seed).gamma(2.0, size=(n, 1))).tocsr()
    kernel = HIK(scale=60.0)
    return kernel.operator(encode(X)), kernel(X)


def exact(K, noise) -> float:
    return np.linalg.slogdet(K + np.diag(noise))[1]


@pytest.mark.parametrize("level", [1.0, 0.1, 0.01])
def test_estimate_is_within_its_error_bar(level: float) -> None:
    operator, K = problem(400)
    noise = level * np.random.default_rng(1).uniform(0.5, 2.0, 400)
    truth = exact(K, noise)
    found = [stochastic_log_determinant(operator, noise, np.random.default_rng(seed)) for seed in range(6)]
    for value, error in found:
        assert abs(value - truth) < 4.0 * error + 1e-6 * abs(truth)
        assert error < 0.03 * abs(truth)
    spread = np.std([value for value, _ in found], ddof=1)
    assert spread < 3.0 * np.mean([error for _, error in found])  # the bar is not too short


def matrices(n: int):
    """Kernel matrices with spectra from narrow to eight decades wide."""
    rng, t = np.random.default_rng(0), np.linspace(0.0, 1.0, n)[:, None]
    yield HIK()(rng.gamma(0.3, 1.0, (n, 3)))
    yield HIK()(np.repeat(rng.gamma(0.5, 1.0, (n, 4)), 3, axis=0)[:n])
    yield np.exp(-8.0 * (t - t.T) ** 2)
    yield np.diag(10.0 ** -np.linspace(0.0, 8.0, n))


@pytest.mark.parametrize("n", [1, 2, 8, 20, 32, 33, 300])
@pytest.mark.parametrize("level", [0.1, 1e-3, 1e-6])
def test_the_error_covers_the_truth_also_where_lanczos_ends_too_soon(n: int, level: float) -> None:
    for K in matrices(n):
        noise = level * np.linspace(0.7, 1.4, n)
        truth = exact(K, noise)
        for seed in range(8):
            value, error = stochastic_log_determinant(Dense(K), noise, np.random.default_rng(seed))
            assert abs(value - truth) < 4.0 * error + 1e-6 * (1.0 + abs(truth))


@pytest.mark.parametrize("steps", [2, 5, 20])
def test_quadratures_are_bounds_of_the_logarithm(steps: int) -> None:
    for K in matrices(60):
        A, z = np.eye(60) + K / 1e-3, np.random.default_rng(0).standard_normal((60, 3))
        values, vectors = np.linalg.eigh(A)
        truth = np.square(vectors.T @ z).T @ np.log(np.maximum(values, 1.0))
        seen, slack = lanczos(lambda V, A=A: A @ V, z, steps), 1e-6 * truth
        assert (seen.with_node(1.0).quadratic_forms(np.log) <= truth + slack).all()
        assert (seen.quadratic_forms(np.log) >= truth - slack).all()


@settings(max_examples=40, deadline=None)
@given(X=histograms(), level=st.floats(1e-3, 10.0), leading=st.integers(1, 6))
def test_bound_is_one(X: np.ndarray, level: float, leading: int) -> None:
    operator, K = HIK(scale=1.0).operator(encode(X)), HIK(scale=1.0)(X)
    noise = level * np.linspace(0.5, 1.5, len(X))
    bound = bound_log_determinant(operator, noise, leading=leading)
    assert bound >= exact(K, noise) - 1e-6 * (1 + abs(bound))


@settings(max_examples=40, deadline=None)
@given(X=histograms(), level=st.floats(1e-2, 10.0))
def test_estimate_on_odd_data(X: np.ndarray, level: float) -> None:
    """Ties, empty rows, one example, one dimension: few examples leave nothing to chance."""
    operator, K = HIK(scale=1.0).operator(encode(X)), HIK(scale=1.0)(X)
    noise = np.full(len(X), level)
    value, error = stochastic_log_determinant(operator, noise, np.random.default_rng(0), steps=200)
    truth = exact(K, noise)
    assert abs(value - truth) < 5.0 * error + 1e-6 * (1 + abs(truth))


def test_bound_is_tight_where_two_eigenvalues_make_the_matrix() -> None:
    """One direction and the rest alike: the quadrature behind the bound has these two nodes."""
    X = np.ones((30, 1))
    operator = HIK(scale=1.0).operator(encode(X))
    noise = np.full(30, 0.5)
    found = bound_log_determinant(operator, noise, leading=30)
    assert found == pytest.approx(exact(np.ones((30, 30)), noise), rel=1e-3)


def test_lanczos_ends_where_the_space_does() -> None:
    A = np.diag([1.0, 2.0, 3.0, 4.0])
    Z = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    T = lanczos(lambda V: A @ V, Z, 10)
    assert T.steps.tolist() == [1, 2, 0]
    np.testing.assert_allclose(T.quadratic_forms(np.log), [0.0, np.log(2.0), 0.0], atol=1e-12)


@pytest.mark.parametrize("preconditioned", [False, True])
def test_conjugate_gradients_see_what_lanczos_sees(preconditioned: bool) -> None:
    """Quadratic forms of the logarithm from the numbers of CG, with and without a preconditioner."""
    operator, K = problem(80)
    noise = np.full(80, 0.3)
    M = build(operator, noise, np.arange(20)) if preconditioned else None
    B = np.random.default_rng(0).standard_normal((80, 3))
    found = solve_cg(operator, noise[:, None], B, tol=1e-8, precondition=M).seen.quadratic_forms(np.log)
    root = np.eye(80) if M is None else sqrtm(M(np.eye(80))).real
    values, vectors = np.linalg.eigh(root @ (K + np.diag(noise)) @ root)
    along = vectors.T @ (root @ B)
    np.testing.assert_allclose(found, (along**2 * np.log(values)[:, None]).sum(axis=0), rtol=1e-5)
