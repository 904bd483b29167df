"""Derivatives of evidence and leave-one-out loss against differences of the dense formula, estimates against both."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits

from saccade._core import limits
from saccade.inference.tuning.evidence_slope import exact_evidence, stochastic_evidence
from saccade.inference.tuning.loo_slope import StochasticLOO, exact_loo
from saccade.inference.tuning.objective import TOL_CORRECTED
from saccade.kernels import HIK, RBF, Exponential, GeneralizedRBF, Matern, Monotone, Power, Weights
from saccade.kernels.intersection_space import IntersectionSpace
from saccade.scores.probability import cross_entropy

X, y = load_digits(return_X_y=True)
X = X / 16.0
KERNELS = [
    HIK(),
    HIK(Power(0.7)),
    HIK(Exponential(0.0)),
    HIK([Power(0.8), Weights()]),
    HIK(Weights(blocks=[30, 34]), scale=0.1),
    HIK(Monotone(pieces=3)),
    HIK(Monotone(pieces=5, shared=True)),
    2.0 * HIK(Power(0.7)),
    HIK(Power(0.7)) + 2.0 * HIK([Exponential(1.0), Weights()]),
    RBF(2.0, 0.5),
    GeneralizedRBF(HIK(scale=0.1), 0.4),
    Matern(np.linspace(1.0, 3.0, 64)) * GeneralizedRBF(HIK(Power(0.7)), "auto"),
]


def setting(kernel, n: int, per_class: bool):
    rng = np.random.default_rng(0)
    Y = np.where(y[:n, None] == np.arange(10), 1.0, -1.0)
    noise = rng.uniform(0.1, 0.4, (n, 10 if per_class else 1))
    gram = kernel.gram(X[:n])
    space = gram.space(kernel) if n <= 300 else IntersectionSpace(kernel, gram)  # sorted columns, and blocks of codes
    theta = space.coordinates.table[:, 0]
    theta = theta + 0.1 * rng.standard_normal(theta.size)
    return space, theta, Y, noise


def loss_of(n: int):
    def loss(mean, variance):
        value, slope = cross_entropy(mean, y[:n])
        return n * value, n * slope, np.zeros_like(variance)

    return loss


def squares_of(Y):
    def loss(mean, variance):  # the Gaussian log density, which has a say in the variance too
        off = Y - mean
        by = 0.5 * (1.0 / variance - off**2 / variance**2)
        return (
            float(0.5 * (np.log(variance) + off**2 / variance).sum()),
            -off / variance,
            by if variance.shape[1] > 1 else by.sum(axis=1, keepdims=True),
        )

    return loss


def check(judge, space, theta, noise, rel: float = 1e-4) -> None:
    """Coordinates, at most five of them, and the noise as a whole, by differences."""

    def at(theta, noise):
        K = space.gram(theta)
        return judge(K, noise), K

    judged, K = at(theta, noise)
    gradient = space.pull(theta, K, judged.by_kernel)
    size = np.abs(gradient).max(initial=1.0)
    for k in np.random.default_rng(1).permutation(theta.size)[:5]:
        nudge = 1e-4 * np.eye(theta.size)[k]
        change = (at(theta + nudge, noise)[0].value - at(theta - nudge, noise)[0].value) / 2e-4
        assert gradient[k] == pytest.approx(change, rel=rel, abs=rel * size)
    change = (at(theta, noise * 1.0001)[0].value - at(theta, noise * 0.9999)[0].value) / 2e-4
    assert (judged.by_noise * noise).sum() == pytest.approx(change, rel=rel, abs=rel * size)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("per_class", [False, True])
def test_exact_evidence(kernel, per_class: bool) -> None:
    space, theta, Y, noise = setting(kernel, 100, per_class)
    check(lambda K, N: exact_evidence(K, N, Y), space, theta, noise)
    written = space.kernel(theta)(X[:100])
    wide = np.broadcast_to(noise, Y.shape)
    truth = sum(multivariate_normal.logpdf(t, cov=written + np.diag(v)) for t, v in zip(Y.T, wide.T, strict=True))
    assert exact_evidence(space.gram(theta), noise, Y).value == pytest.approx(-truth, rel=1e-9)


@pytest.mark.parametrize("kernel", KERNELS[1:6:2] + KERNELS[-1:], ids=repr)
@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("kind", ["classes", "density"])
def test_exact_leave_one_out(kernel, per_class: bool, kind: str) -> None:
    space, theta, Y, noise = setting(kernel, 100, per_class)
    loss = loss_of(100) if kind == "classes" else squares_of(Y)
    check(lambda K, N: exact_loo(K, N, Y, loss), space, theta, noise)


def options(**more):
    return {"start": None, "max_iter": 3000, "seed": 3, **more}


@pytest.mark.parametrize("per_class", [False, True])
def test_estimated_leave_one_out_has_its_own_derivative(per_class: bool) -> None:
    """The derivative is that of the estimate, to the last digit that the solver finds: no noise between the two."""
    space, theta, Y, noise = setting(HIK(Power(0.7)), 500, per_class)
    estimate = StochasticLOO(16, seed=3)  # enough that none is below its lower bound, which the kernel moves
    precise = {"max_iter": 3000, "tol": 1e-9}

    def judge(K, noise):
        return estimate(K, noise, Y, loss_of(500), **precise)

    check(judge, space, theta, noise)
    K = space.gram(theta)
    exact = exact_loo(K, noise, Y, loss_of(500))
    found = StochasticLOO(1000, seed=4)(K, noise, Y, loss_of(500), **precise)
    assert 0.0 < found.error < 0.03 * exact.value
    assert abs(found.value - exact.value) < 4.0 * found.error
    truth, estimated = (space.pull(theta, K, judged.by_kernel) for judged in (exact, found))
    assert estimated[0] == pytest.approx(truth[0], abs=0.1 * np.abs(truth).max())


@pytest.mark.parametrize("noise", ["0.3", "0.03", "0.01", "balanced"])
def test_estimated_leave_one_out_is_right_on_average_and_knows_its_error(noise: str) -> None:
    """Put into the loss as they are, noisy estimates make it a third too large at 0.03."""
    space, theta, Y, _ = setting(HIK(), 600, False)
    K = space.gram(theta)
    own = Y > 0
    N = (
        0.2 * np.where(own, own.mean(axis=0), 1.0 - own.mean(axis=0))
        if noise == "balanced"
        else np.full((600, 1), noise)
    )
    N = N.astype(float)
    exact = exact_loo(K, N, Y, loss_of(600))
    options = {"max_iter": 3000, "tol": 1e-4}
    found = [StochasticLOO(24, seed)(K, N, Y, loss_of(600), **options) for seed in range(8)]
    off, error = np.array([f.value - exact.value for f in found]), np.array([f.error for f in found])
    assert abs(off.mean()) < 2.0 * error.mean() / np.sqrt(8) + 0.02 * exact.value
    assert np.sqrt(np.square(off / error).mean()) < 1.7
    assert error.mean() < 0.2 * exact.value
    slope = float((exact.by_noise * N).sum())
    assert np.mean([(f.by_noise * N).sum() for f in found]) == pytest.approx(slope, abs=0.1 * exact.value)


@pytest.mark.parametrize(("noise", "unit"), [(0.1, 1.0), (30.0, 1.0), (1000.0, 1.0), (0.1, 100.0)])
@pytest.mark.parametrize("per_class", [False, True])
def test_solutions_need_not_be_exact_for_the_loss_to_be(noise: float, unit: float, per_class: bool) -> None:
    """What they leave is known, and what it does to the loss too; means are small where the noise is large."""
    space, theta, Y, shape = setting(HIK(Power(0.7)), 500, per_class)
    K, N, Y = space.gram(theta), noise * shape / 0.25, unit * Y
    exact, loose = (
        StochasticLOO(24, seed=3)(K, N, Y, loss_of(500), tol=tol, max_iter=3000) for tol in (1e-9, TOL_CORRECTED)
    )
    off = np.abs((loose.alpha - exact.alpha) * N).max()  # about that of the means
    spread = (Y - exact.alpha * N).std(axis=0).mean()
    assert 1e-4 * spread < off < 10.0 * TOL_CORRECTED * spread
    if noise > 100.0:
        return
    assert loose.value / 500 == pytest.approx(exact.value / 500, abs=3e-5)
    slopes = [space.pull(theta, K, found.by_kernel)[0] / 500 for found in (exact, loose)]
    assert slopes[1] == pytest.approx(slopes[0], abs=5e-4)
    by_noise = [float((found.by_noise * N).sum()) / 500 for found in (exact, loose)]
    assert by_noise[1] == pytest.approx(by_noise[0], abs=5e-4)


def test_the_last_solutions_are_where_the_next_begin() -> None:
    """A nearby kernel takes fewer products than the first."""
    space, theta, Y, noise = setting(HIK(Power(0.7)), 900, False)
    estimate = StochasticLOO(8, seed=3)

    def products(theta, noise) -> int:
        K, widths = space.gram(theta), []
        product = K.matmul
        K._operator.matmul = lambda V: widths.append(V.shape[1]) or product(V)
        estimate(K, noise, Y, loss_of(900), tol=1e-6, max_iter=3000)
        return len(widths)

    first = products(theta, noise)
    assert products(theta + 1e-3, 1.001 * noise) < 0.8 * first
    assert products(theta + 1e-3, 2.0 * noise) < first


def test_two_threads_make_the_two_losses_that_one_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    space, theta, Y, noise = setting(HIK(Power(0.7)), 300, False)
    monkeypatch.setenv("SACCADE_NUM_THREADS", "2")
    found = []
    for apart in (0, 10**9):
        monkeypatch.setattr(limits, "LOSSES_APART", apart)
        K = space.gram(theta)
        found.append(StochasticLOO(7, seed=3)(K, noise, Y, loss_of(300), tol=1e-3, max_iter=300))
    assert found[0].value == found[1].value
    np.testing.assert_array_equal(found[0].by_noise, found[1].by_noise)


def test_a_kernel_beyond_float64_leaves_nothing_behind() -> None:
    space, theta, Y, noise = setting(HIK(Power(0.7)), 300, False)
    estimate, options = StochasticLOO(8, seed=3), {"tol": 1e-3, "max_iter": 50}
    K = space.gram(theta)
    before = estimate(K, noise, Y, loss_of(300), **options).value
    broken = space.gram(theta)
    broken._operator.matmul = lambda V: np.full_like(V, np.nan)
    with np.errstate(all="ignore"):
        assert np.isnan(estimate(broken, noise, Y, loss_of(300), **options).value)
    assert estimate(K, noise, Y, loss_of(300), **options).value == pytest.approx(before, rel=1e-3)


def test_as_many_probes_as_the_error_asks_for() -> None:
    """Six beside ten targets fill the lanes of two vectors; 24 at most."""
    space, theta, Y, noise = setting(HIK(Power(0.7)), 400, False)
    K, options = space.gram(theta), {"tol": 1e-4, "max_iter": 3000}

    def judged(most: int, wanted: float):
        estimate = StochasticLOO(most, seed=3, wanted=wanted)
        first, second = (estimate(K, noise, Y, loss_of(400), **options) for _ in range(2))
        count = first.by_kernel.left.shape[1] - 10
        assert second.by_kernel.left.shape[1] - 10 == count  # all kernels have the probes of the first
        return count, first

    assert [judged(24, wanted)[0] for wanted in (0.0, 1e-9, np.inf)] == [24, 24, 6]
    few = [StochasticLOO(24, seed, wanted=np.inf)(K, noise, Y, loss_of(400), **options) for seed in range(8)]
    spread = float(np.std([found.value for found in few]))
    count, found = judged(1000, 0.3 * spread)
    assert 6 / 0.3**2 * 0.3 < count < 1000
    assert found.error < 0.6 * spread


@pytest.mark.parametrize("noise", [1.0, 0.1])
@pytest.mark.parametrize("per_class", [False, True])
def test_estimated_evidence_is_near_the_exact(noise: float, per_class: bool) -> None:
    space, theta, Y, shape = setting(HIK([Power(0.7), Weights()]), 1500, per_class)
    Y, N = (Y, noise * shape / 0.25) if not per_class else (Y[:, :3], noise * shape[:, :3] / 0.25)
    K = space.gram(theta)
    exact = exact_evidence(K, N, Y)
    found = stochastic_evidence(K, N, Y, **options(tol=1e-3, probes=24))
    assert found.error > 0
    assert abs(found.value - exact.value) < 4.0 * found.error
    assert abs(found.value - exact.value) < 0.02 * abs(exact.value)
    truth, estimate = (space.pull(theta, K, j.by_kernel) for j in (exact, found))
    trace = 0.5 * Y.shape[1] * 1500  # what the two parts that cancel are like
    assert estimate[0] == pytest.approx(truth[0], abs=0.02 * trace)
    assert estimate[-1] == pytest.approx(truth[-1], abs=0.02 * trace)
    assert (found.by_noise * N).sum() == pytest.approx((exact.by_noise * N).sum(), abs=0.02 * trace)
    assert np.corrcoef(truth[1:-1], estimate[1:-1])[0, 1] > 0.9
    np.testing.assert_allclose(found.alpha, exact.alpha, atol=0.05)


def test_estimated_slope_is_right_on_average() -> None:
    """Over many probes the estimate of every weight's derivative becomes the exact one."""
    space, theta, Y, noise = setting(HIK(Weights()), 300, False)
    K = space.gram(theta)
    truth = space.pull(theta, K, exact_evidence(K, noise, Y).by_kernel)
    slope = stochastic_evidence(K, noise, Y, **options(tol=1e-6, probes=3000)).by_kernel
    estimate = space.pull(theta, K, slope)
    assert np.abs(estimate - truth).max() < 0.05 * np.abs(truth).max()


@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_seven_probes_are_enough_for_few_coordinates(noise: float) -> None:
    """Leading directions far above the rest, as all pictures have; and scale and noise together are known exactly."""
    rng = np.random.default_rng(0)
    Z = rng.random((900, 12)) + 2.0 * rng.random((900, 1))
    Y = np.where(Z[:, :1] > Z[:, 1:2], 1.0, -1.0)
    space = IntersectionSpace(HIK(Power(0.8)), HIK(Power(0.8)).gram(Z, levels=64))
    theta = space.coordinates.table[:, 0]
    K, N = space.gram(theta), np.full((900, 1), noise)
    truth = space.pull(theta, K, exact_evidence(K, N, Y).by_kernel)
    for seed in range(3):
        found = stochastic_evidence(K, N, Y, **options(tol=1e-4, probes=7, seed=seed))
        gradient = space.pull(theta, K, found.by_kernel)
        np.testing.assert_allclose(gradient, truth, atol=0.01 * 900)
        both = gradient[-1] + float((found.by_noise * N).sum())
        assert both == pytest.approx(0.5 * 900 - 0.5 * float((Y * found.alpha).sum()), rel=0.01)
