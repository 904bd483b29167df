"""Rows that were looked at more than once, and looks without noise, against dense algebra of all looks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from saccade import GPRegressor, Tune
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.estimators.losses import DensityLosses
from saccade.estimators.repeats import join, row_keys
from saccade.inference.tuning.objective import Objective, Task
from saccade.kernels import HIK, RBF, Matern
from saccade.solvers import cholesky
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
rng = np.random.default_rng(5)
PLACES, NEW = rng.random((12, 3)), rng.random((6, 3))
X = PLACES[rng.integers(0, 12, 40)]
y = np.sin(4.0 * X[:, 0]) + 0.3 * rng.standard_normal(40)
DISTINCT = len(np.unique(X, axis=0))
kernels = pytest.mark.parametrize("kernel", [RBF([0.4, 0.5, 0.9]), Matern(0.5, nu=2.5), HIK(scale=0.5)], ids=repr)


def dense(kernel: Any, X: Array, y: Array, noise: float) -> tuple[Array, Array, float]:
    """Mean, covariance and evidence with a row for every look."""
    K, k = kernel(X) + noise * np.eye(len(X)), kernel(X, NEW)
    covariance = kernel(NEW) - k.T @ np.linalg.solve(K, k)
    return k.T @ np.linalg.solve(K, y), covariance, float(multivariate_normal.logpdf(y, np.zeros(len(y)), K))


@kernels
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_joined_looks_say_what_all_of_them_say(kernel: Any, kind: Any) -> None:
    mean, covariance, evidence = dense(kernel, X, y, 0.09)
    model = GPRegressor(kernel, noise=0.09, normalize_y=False).fit(kind(X), y)
    assert model.gp_.gram.shape[0] == DISTINCT < 40
    assert_close(model.predict(NEW), mean)
    np.testing.assert_allclose(model.predict(NEW, return_cov=True)[1], covariance, atol=1e-10)
    assert model.log_marginal_likelihood().value == pytest.approx(evidence, rel=1e-10)


@given(st.integers(0, 2**31), st.integers(1, 3), st.booleans())
def test_joining_any_rows_changes_nothing(seed: int, outputs: int, normalize: bool) -> None:
    """Whole and broken weights, one and many targets; without joining is with a variance of another name."""
    draw = np.random.default_rng(seed)
    rows = draw.integers(0, 3, (int(draw.integers(1, 25)), 2)).astype(float)  # ties, zeros, empty rows
    Y = draw.standard_normal((len(rows), outputs))
    weight = draw.uniform(0.1, 3.0, len(rows)) if seed % 2 else None
    how: dict[str, Any] = {"kernel": RBF(1.3), "noise": 0.2, "normalize_y": normalize}
    joined, apart = (GPRegressor(**how, variance=v).fit(rows, Y, weight) for v in ("exact", "lowrank"))
    assert joined.gp_.gram.shape[0] == len(np.unique(rows, axis=0))
    assert apart.gp_.gram.shape[0] == len(rows)
    np.testing.assert_allclose(joined.predict(NEW[:, :2]), apart.predict(NEW[:, :2]), rtol=1e-8, atol=1e-8)
    found, wanted = (m.log_marginal_likelihood().value for m in (joined, apart))
    assert found == pytest.approx(wanted, rel=1e-8, abs=1e-8)


@kernels
def test_further_looks_at_known_places_are_appended(kernel: Any) -> None:
    mean, covariance, evidence = dense(kernel, X, y, 0.09)
    model = GPRegressor(kernel, noise=0.09, normalize_y=False)
    for first in range(0, 40, 10):
        model.partial_fit(X[first : first + 10], y[first : first + 10])
    assert_close(model.predict(NEW), mean)
    np.testing.assert_allclose(model.predict(NEW, return_cov=True)[1], covariance, atol=1e-10)
    assert model.log_marginal_likelihood().value == pytest.approx(evidence, rel=1e-10)


@pytest.mark.parametrize("kernel", [RBF([0.4, 0.5, 0.9], 1.3), Matern([0.4, 0.5, 0.9], 1.5, 0.7)], ids=repr)
def test_evidence_of_joined_looks_has_the_gradient_of_its_differences(kernel: Any) -> None:
    """A length scale per dimension, amplitude and noise; and the value is that of all looks."""
    looks = join(X, y[:, None], None)
    assert looks.weight is not None
    shape, losses = 1.0 / looks.weight[:, None], DensityLosses.of(looks.y, looks.weight)
    task = Task(kernel, kernel.gram(looks.X), looks.y, shape, 0.09, losses, looks.weight, scatter=looks.scatter)
    objective = Objective(task, "evidence")
    assert objective.names.count("length_scale") == 3
    theta = objective.table[:, 0] + 0.1
    found = objective(theta)
    truth = dense(objective.space.kernel(theta[:-1]), X, y, objective.noise(theta))[2]
    assert found.value == pytest.approx(-truth / 40, rel=1e-10)
    for k, step in enumerate(1e-5 * np.eye(theta.size)):
        change = (objective(theta + step).value - objective(theta - step).value) / 2e-5
        assert found.gradient[k] == pytest.approx(change, rel=1e-5, abs=1e-7), objective.names[k]
    alone = Objective(replace(task, weight=None, scatter=None), "evidence")  # the means of the looks, and no more
    of_copies = 40 * found.value - DISTINCT * alone(theta).value
    assert 40 * objective.bound(theta).value == pytest.approx(DISTINCT * alone.bound(theta).value + of_copies, rel=1e-9)
    some = np.arange(0, DISTINCT, 2)
    part = Objective(task.subset(some), "evidence")(theta).value
    own = (X[:, None] == looks.X[some]).all(axis=2).any(axis=1)
    truth = dense(objective.space.kernel(theta[:-1]), X[own], y[own], objective.noise(theta))[2]
    assert part == pytest.approx(-truth / own.sum(), rel=1e-10)


def test_tuning_sees_every_look() -> None:
    tune = Tune(tol=1e-10)
    joined, apart = (GPRegressor(RBF(0.5), tune=tune, variance=v).fit(X, y) for v in ("exact", "lowrank"))
    first, wanted = joined.tuning_.evaluations[0].value, apart.tuning_.evaluations[0].value
    assert first == pytest.approx(wanted, rel=1e-9)
    assert joined.tuning_.best.value == pytest.approx(apart.tuning_.best.value, rel=1e-6)
    assert joined.noise_ == pytest.approx(apart.noise_, rel=1e-3)
    one_by_one = GPRegressor(RBF(0.5), tune="loo").fit(X, y)
    assert one_by_one.gp_.gram.shape[0] == 40


@kernels
def test_looks_without_noise_are_interpolated(kernel: Any) -> None:
    exact = np.sin(4.0 * PLACES[:, 0])
    model = GPRegressor(kernel, noise=0.0).fit(PLACES, exact)
    mean, std = model.predict(PLACES, return_std=True)
    np.testing.assert_allclose(mean, exact, atol=1e-9)
    assert np.square(std).max() < 1e-12
    unit, k = exact.std(), kernel(PLACES, NEW)
    wanted = exact.mean() + k.T @ np.linalg.solve(kernel(PLACES), exact - exact.mean())
    np.testing.assert_allclose(model.predict(NEW), wanted, rtol=1e-8)
    left = kernel.diag(NEW) - np.einsum("ij,ij->j", k, np.linalg.solve(kernel(PLACES), k))
    np.testing.assert_allclose(model.predict(NEW, return_std=True)[1], unit * np.sqrt(left), rtol=1e-6)
    evidence = multivariate_normal.logpdf(exact, np.full(12, exact.mean()), unit**2 * kernel(PLACES))
    assert model.log_marginal_likelihood().value == pytest.approx(evidence, rel=1e-8)


def second(rows: Array) -> Array:
    assert len(rows) > 0
    return np.asarray(rows[:, 1])


def test_repeated_exact_looks_count_once_or_are_an_error_that_says_both() -> None:
    rows, exact = np.vstack([PLACES, PLACES[:3]]), np.sin(4.0 * np.append(PLACES[:, 0], PLACES[:3, 0]))
    once = GPRegressor(RBF(0.5), noise=0.0).fit(PLACES, exact[:12])
    sloping = GPRegressor(RBF(0.5), noise=0.0, mean=second).fit(PLACES, exact[:12])
    nudged = exact + np.append(np.zeros(12), 1e-15)[np.minimum(np.arange(15), 12)]  # rounding of a judge
    assert_close(GPRegressor(RBF(0.5), noise=0.0).fit(rows, nudged).predict(NEW), once.predict(NEW))
    parts = (
        GPRegressor(RBF(0.5), noise=0.0, mean=second)
        .partial_fit(PLACES[:7], exact[:7])
        .partial_fit(rows[5:], exact[5:])
    )
    assert_close(parts.predict(NEW), sloping.predict(NEW))
    assert_close(parts.partial_fit(rows[:2], exact[:2]).predict(NEW), sloping.predict(NEW))
    exact[13] = 7.5
    with pytest.raises(InvalidInput, match=r"`noise` is 0, but rows 1 and 13 of `X` are equal, .* and 7\.5"):
        GPRegressor(RBF(0.5), noise=0.0).fit(rows, exact)
    with pytest.raises(InvalidInput, match=rf"row 0 of `X` was in an earlier call, .*: {exact[1]} and 7\.5"):
        parts.partial_fit(PLACES[1:2], [7.5])
    assert_close(parts.predict(NEW), sloping.predict(NEW))


def test_no_jitter_is_added_in_secret() -> None:
    """Beyond what float64 can hold, an error names a noise that is enough."""
    rows = np.linspace(0.0, 1.0, 60)[:, None]
    with pytest.raises(InvalidInput, match=r"with noise 0 is not positive definite .* Raise `noise` to 1e-12 or more"):
        GPRegressor(RBF(10.0), noise=0.0).fit(rows, rows[:, 0])


@pytest.mark.parametrize("changes", [{"solver": "cg"}, {"approximation": "fitc"}, {"variance": "diagonal"}], ids=str)
def test_no_noise_takes_a_factor(changes: dict[str, Any]) -> None:
    (name, value), *_ = changes.items()
    with pytest.raises(InvalidParameter, match=f"`noise` is 0, which takes {name}='auto' or .*, got '{value}'"):
        GPRegressor(HIK(), noise=0.0, **changes).fit(PLACES, PLACES[:, 0])


def test_many_exact_looks_take_a_factor_too() -> None:
    """Beyond 2,048 examples "auto" would be conjugate gradients, which do not end without noise."""
    rows = np.random.default_rng(0).permutation(2100)[:, None] / 2100.0 + 0.1
    model = GPRegressor(HIK(scale=1.0), noise=0.0, variance=None).fit(rows, np.sin(9.0 * rows[:, 0]))
    np.testing.assert_allclose(model.predict(rows), np.sin(9.0 * rows[:, 0]), atol=1e-8)
    with pytest.raises(InvalidInput, match="`noise` is 0, which tunes up to 2048 examples of this kernel, got 2100"):
        model.set_params(tune="gradient").fit(rows, rows[:, 0])


def test_noise_cannot_come_or_go_with_further_examples() -> None:
    for before, after in ((0.0, 0.1), (0.1, 0.0)):
        model = GPRegressor(RBF(0.5), noise=before).fit(PLACES, PLACES[:, 0])
        with pytest.raises(InvalidParameter, match="cannot change from or to 0"):
            model.set_params(noise=after).partial_fit(NEW, NEW[:, 0])


def test_a_model_without_noise_is_tuned_and_saved(tmp_path: Any) -> None:
    from saccade import load

    exact = np.sin(4.0 * PLACES[:, 0])
    model = GPRegressor(RBF(0.2), noise=0.0, tune=Tune()).fit(PLACES, exact)
    assert model.noise_ == 0.0
    assert model.kernel_.length_scale > 0.2
    assert model.tuning_.best.value == pytest.approx(-model.log_marginal_likelihood().value / 12, rel=1e-6)
    np.testing.assert_allclose(model.predict(PLACES), exact, atol=1e-6)
    words = GPRegressor(HIK(scale=1.0), noise=0.0).fit(PLACES, exact)
    words.save(tmp_path / "m.saccade")
    np.testing.assert_array_equal(load(tmp_path / "m.saccade").predict(NEW), words.predict(NEW))


@kernels
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_further_rows_grow_the_factor_and_nothing_is_factorised_anew(
    kernel: Any, noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rng.random((60, 3))
    target = np.column_stack([np.sin(4.0 * rows[:, 0]), rows[:, 1]])
    model = GPRegressor(kernel, noise=noise).fit(rows[:30], target[:30])
    sizes, plain = [], cholesky.dpotrf
    monkeypatch.setattr(cholesky, "dpotrf", lambda A, **more: (sizes.append(len(A)), plain(A, **more))[1])
    for first in range(30, 60, 6):
        model.partial_fit(rows[first : first + 6], target[first : first + 6])
    assert sizes == [6] * 5
    whole = GPRegressor(kernel, noise=noise).fit(rows, target)
    assert sizes[5:] == [60]
    for found, wanted in zip(model.predict(NEW, return_std=True), whole.predict(NEW, return_std=True), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-10 if noise else 1e-7)


def test_keys_of_rows() -> None:
    dense = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [1.0, 1e-300]])
    keys = row_keys(dense)
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    stored = sp.csr_matrix((np.array([0.0, 1.0, 1.0]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert len(set(row_keys(stored))) == 1  # a zero that is stored
    assert row_keys(dense.astype(np.float32))[:3] == keys[:3]
