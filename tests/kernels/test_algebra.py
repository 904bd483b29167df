"""c·k and k + k' of intersection kernels: exact, still one HIK, and as fast as one."""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits

from saccade import GPClassifier, GPRegressor, OneClassGP, Tune, load
from saccade.inference.tuning.evidence_slope import exact_evidence
from saccade.kernels import HIK, Exponential, Monotone, Power, Scaled, Sum, TransformSum, Weights
from saccade.kernels.intersection_gram import resolved_on_codes
from saccade.kernels.intersection_space import IntersectionSpace
from saccade.kernels.transform_sum import parts_of
from tests.operators.histograms import LAYOUTS, columns, encoded, histograms
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
D = 3
PARTS = [
    HIK(),
    HIK(scale=0.7),
    HIK(Power(0.5)),
    HIK(Power(2.0), scale=3.0),
    HIK(Exponential(-1.5)),
    HIK([Power(0.5), Weights([1.0, 0.0, 2.0])]),
    HIK(Weights([0.5, 2.0], blocks=[1, 2]), scale=0.2),
    HIK(Monotone([[0.2, 0.5], [0.1, 0.9], [0.3, 0.3]], [[1.0, 0.0], [2.0, 0.5], [0.3, 1.0]])),
    HIK(factor=4.0),
]
terms = st.lists(st.tuples(st.floats(0.01, 100.0), st.sampled_from(PARTS)), min_size=1, max_size=4)


def added(terms: list[tuple[float, HIK]]) -> HIK:
    kernel = reduce(lambda a, b: a + b, [c * k for c, k in terms])
    assert isinstance(kernel, HIK)
    return kernel


def dense_sum(terms: list[tuple[float, HIK]], X: Array, Z: Array, weight: Array | None = None) -> Array:
    """Each kernel settled alone, its matrix multiplied, and all of them added."""
    return np.asarray(sum(c * k.resolved(X, weight)(Z) for c, k in terms))


@settings(max_examples=60, deadline=None)
@given(terms=terms, X=histograms(dims=D), signed=st.booleans(), times=st.floats(0.01, 100.0))
def test_sums_and_multiples_are_those_of_dense_matrices(
    terms: list[tuple[float, HIK]], X: Array, signed: bool, times: float
) -> None:
    X = X - 0.25 * (X > 0) if signed else X
    weight, Z = np.linspace(0.5, 2.0, len(X)), np.vstack([X, 0.9 * X + 0.01])
    kernel = times * added(terms)
    for copies in (None, weight):
        resolved = kernel.resolved(X, copies)
        assert isinstance(resolved, HIK)
        expected = times * dense_sum(terms, X, Z, copies)
        size = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(resolved(Z), expected, rtol=1e-10, atol=1e-12 * size)
        np.testing.assert_allclose(resolved.diag(Z), np.diag(expected), rtol=1e-10, atol=1e-12 * size)
        again = clone(kernel).resolved(X, copies)
        np.testing.assert_array_equal(again(Z), resolved(Z))


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=25, deadline=None)
@given(terms=terms, X=histograms(dims=D))
def test_products_diagonal_and_tables_from_codes(layout: str, terms: list[tuple[float, HIK]], X: Array) -> None:
    kernel, codes, weight = added(terms), encoded(X, layout), np.linspace(0.5, 2.0, len(X))
    resolved = resolved_on_codes(kernel, HIK(scale=1.0).operator(codes), weight)[0]
    K, V = resolved.operator(codes), columns(len(X), 3)
    expected = dense_sum(terms, X, X, weight)
    size = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(K.matmul(V), expected @ V, rtol=1e-10, atol=1e-12 * size * len(X))
    np.testing.assert_allclose(K.diag(), np.diag(expected), rtol=1e-10, atol=1e-12 * size)
    Z = 0.9 * X + 0.01
    both = dense_sum(terms, X, np.vstack([Z, X]), weight)[: len(X), len(X) :]
    np.testing.assert_allclose(K.tables(V).walk(resolved.features(Z)), both @ V, rtol=1e-10, atol=1e-12 * size * len(X))


@settings(max_examples=25, deadline=None)
@given(terms=terms, seed=st.integers(0, 1000))
def test_evidence_and_its_derivative_by_every_coordinate(terms: list[tuple[float, HIK]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, Y, weight = rng.random((20, D)).round(2), rng.standard_normal((20, 1)), rng.uniform(0.5, 2.0, 20)
    kernel, noise = added(terms), np.full((20, 1), 0.3)
    space = IntersectionSpace(kernel, kernel.gram(X, weight=weight), weight)
    start = space.coordinates.table[:, 0]
    assert len(space.coordinates.names) == start.size

    def evidence(theta: Array) -> float:
        return float(exact_evidence(space.gram(theta), noise, Y).value)

    K = space.kernel(start)(X)
    np.testing.assert_allclose(K, dense_sum(terms, X, X, weight), rtol=1e-10, atol=1e-12)
    inside = rng.uniform(-0.2, 0.2, start.size) * (space.coordinates.table[:, 1] < space.coordinates.table[:, 2])
    theta = start + inside
    operator = space.gram(theta)
    found = space.pull(theta, operator, exact_evidence(operator, noise, Y).by_kernel)
    for k in np.flatnonzero(inside):
        nudge = 1e-5 * np.eye(theta.size)[k]
        change = (evidence(theta + nudge) - evidence(theta - nudge)) / 2e-5
        assert found[k] == pytest.approx(change, rel=1e-5, abs=1e-5)


def test_sums_flatten_and_factors_multiply() -> None:
    a, b, c = HIK(Power(0.5)), HIK(scale=2.0), 3.0 * HIK(Exponential(1.0))
    for kernel in ((a + b) + c, a + (b + c)):
        assert isinstance(kernel, HIK)
        assert isinstance(kernel.transform, TransformSum)
        assert [repr(part) for part in kernel.transform.parts] == [repr(a), repr(b), repr(c)]
    twice = 2.0 * (a + c) + b
    assert [part.factor for part in twice.transform.parts] == [2.0, 6.0, None]
    assert repr(2.0 * (3.0 * HIK())) == repr(HIK(factor=6.0))
    assert repr(np.float64(2.0) * HIK()) == repr(HIK() * 2)
    nested = HIK((a + b).transform) + c  # "auto" over a sum is no sum of its parts
    assert len(nested.transform.parts) == 2
    X = np.random.default_rng(0).random((6, D))
    whole = Sum(a, b).resolved(X)
    expected = whole(X) / whole.diag(X).mean() + c.resolved(X)(X)
    assert_close(nested.resolved(X)(X), expected)


def test_what_came_before_a_sum_counts_for_its_parts() -> None:
    X = np.random.default_rng(0).random((6, D))
    first = Weights([3.0, 0.5, 1.0])
    kernel = HIK([first, TransformSum([HIK(), 2.0 * HIK(Power(0.5))])], scale=1.0)
    assert_close(kernel.resolved(X)(X), dense_sum([(1.0, HIK(first)), (2.0, HIK([first, Power(0.5)]))], X, X))


def test_parameters_of_parts_are_found_and_set() -> None:
    kernel = HIK(Power(0.5)) + 2.0 * HIK(Exponential(1.0))
    names = kernel.get_params()
    assert names["transform__part0__transform__eta"] == 0.5
    assert names["transform__part1__factor"] == 2.0
    twin = clone(kernel).set_params(transform__part0__transform__eta=0.7)
    assert twin.transform.parts[0].transform.eta == 0.7
    assert kernel.transform.parts[0].transform.eta == 0.5


def test_constructors_stay_dense_and_agree() -> None:
    X = np.random.default_rng(0).random((8, D))
    left, right = HIK(Power(0.5)), HIK(scale=0.3)
    assert_close(Sum(left, right).resolved(X)(X), (left + right).resolved(X)(X))
    assert_close(Scaled(left, 3.0).resolved(X)(X), (3.0 * left).resolved(X)(X))


# ---------------------------------------------------------------- estimators


DIGITS, LABEL = load_digits(return_X_y=True)
DIGITS, LABEL = DIGITS[:200] / 16.0, LABEL[:200]
FAST = [2.0 * HIK(), HIK(Power(0.5)) + 2.0 * HIK(Exponential(1.0)), 0.5 * (HIK(Weights(np.ones(64))) + HIK(scale=0.1))]


@pytest.mark.parametrize("kernel", FAST, ids=lambda kernel: repr(kernel)[:60])
@pytest.mark.parametrize("levels", [None, 16])
def test_models_have_tables_and_are_saved(kernel: HIK, levels: int | None, tmp_path: Path) -> None:
    new = DIGITS[100:] + 0.01
    for estimator, target in (
        (GPClassifier(kernel, levels=levels, random_state=0), LABEL[:100]),
        (GPRegressor(kernel, levels=levels, random_state=0), LABEL[:100].astype(float)),
    ):
        model = estimator.fit(DIGITS[:100], target)
        assert isinstance(model.kernel_, HIK)
        assert model.tables_ is not None
        model.save(tmp_path / "m")
        np.testing.assert_array_equal(load(tmp_path / "m").predict(new), model.predict(new))
    detector = OneClassGP(kernel, measure="mean", random_state=0).fit(DIGITS[:100])
    detector.save(tmp_path / "m")
    assert_close(load(tmp_path / "m").score_samples(new), detector.score_samples(new))


@pytest.mark.parametrize("kernel", FAST, ids=lambda kernel: repr(kernel)[:60])
def test_models_are_those_of_dense_kernels(kernel: HIK) -> None:
    """Sum and Scaled by their constructors are the dense judges."""
    dense = Scaled(reduce(Sum, parts_of(kernel)), 1.0)
    model = GPClassifier(variance="exact", random_state=0)
    fast, slow = (clone(model).set_params(kernel=k).fit(DIGITS[:100], LABEL[:100]) for k in (kernel, dense))
    assert slow.tables_ is None
    for one, other in zip(*(m.latent_mean_and_variance(DIGITS[100:]) for m in (fast, slow)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    assert fast.log_marginal_likelihood().value == pytest.approx(slow.log_marginal_likelihood().value, rel=1e-10)


def test_a_multiple_of_kernel_and_noise_changes_no_mean() -> None:
    one, two = (
        GPClassifier(c * HIK(), noise=0.1 * c, random_state=0).fit(DIGITS[:100], LABEL[:100]) for c in (1.0, 2.0)
    )
    assert two.kernel_.scale == pytest.approx(2.0 * one.kernel_.scale, rel=1e-12)
    np.testing.assert_allclose(one.decision_function(DIGITS), two.decision_function(DIGITS), rtol=1e-8, atol=1e-10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_tuning_a_sum_finds_the_part_that_matters() -> None:
    """One part sees what makes the target, the other does not; `fixed` keeps both."""
    rng = np.random.default_rng(0)
    X = rng.random((120, 2))
    y = np.sin(6.0 * X[:, 0])
    kernel = HIK(Weights([1.0, 0.0])) + HIK(Weights([0.0, 1.0]))
    tune = Tune(objective="evidence", fixed=("weights",), prior=None)
    model = GPRegressor(kernel, tune=tune, random_state=0).fit(X, y)
    scales = [part.check_scale() for part in model.kernel_.transform.parts]
    assert scales[0] > 10.0 * scales[1]
    kept = GPRegressor(kernel, tune=Tune(fixed=("weights", "part_scale"), prior=None), random_state=0).fit(X, y)
    expected = kernel.resolved(X)
    assert_close(kept.kernel_(X), expected(X))
    assert model.tuning_.best.value < kept.tuning_.best.value


def test_example_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text("utf-8")
    (code,) = re.findall(r"## Building kernels\n```python\n(.*?)```", guide, re.S)
    monkeypatch.chdir(tmp_path)
    names = {"X": DIGITS[:40], "y": LABEL[:40]}
    exec(compile(code, "guide.md", "exec"), names)
    assert isinstance(names["words"], HIK)
    assert isinstance(names["smooth"], Sum)
    assert isinstance(load("words.saccade").kernel_, HIK)
