"""The evidence of fitted models against the formula written out."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as rbf

from saccade import GPClassifier, GPRegressor, Tune, load
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels import HIK, RBF, Power

X, y = load_digits(return_X_y=True)
X, y = X[:300] / 16.0, y[:300]


def to_dense(model, Y, noise) -> float:
    K = model.kernel_(X)
    return sum(multivariate_normal.logpdf(t, cov=K + np.diag(n)) for t, n in zip(Y.T, noise.T, strict=True))


@pytest.mark.parametrize("kernel", [HIK(), HIK(Power(0.5)), RBF(3.0)])
def test_exact_is_the_formula(kernel) -> None:
    model = GPClassifier(kernel, noise=0.2).fit(X, y)
    Y = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    found = model.log_marginal_likelihood()
    assert (found.method, found.error) == ("exact", 0.0)
    assert found.value == pytest.approx(to_dense(model, Y, np.full((300, 10), 0.2)), rel=1e-8)


def test_balanced_noise_has_a_determinant_for_each_class() -> None:
    model = GPClassifier(balanced=True, noise=0.2).fit(X, y)
    Y = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    share = (Y > 0).mean(axis=0)
    noise = 0.4 * np.where(Y > 0, share, 1 - share)
    assert model.log_marginal_likelihood().value == pytest.approx(to_dense(model, Y, noise), rel=1e-8)


def test_a_regressor_has_the_evidence_of_the_targets_as_they_are() -> None:
    """In their units: normalised, log p is that of the normalised targets less log of the deviation for each."""
    Y = np.column_stack([y, 30.0 * y + 7.0])
    model = GPRegressor(noise=0.3).fit(X, Y)
    T = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    jacobian = 300 * np.log(Y.std(axis=0)).sum()
    assert model.log_marginal_likelihood().value == pytest.approx(
        to_dense(model, T, np.full((300, 2), 0.3)) - jacobian, rel=1e-8
    )
    plain = GPRegressor(noise=0.3, normalize_y=False).fit(X, Y)
    assert plain.log_marginal_likelihood().value == pytest.approx(
        to_dense(plain, Y.astype(float), np.full((300, 2), 0.3)), rel=1e-8
    )


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("unit", [1.0, 1e-3, 50.0])
def test_evidence_is_that_of_scikit_learn(normalize_y: bool, unit: float) -> None:
    """Whose log marginal likelihood is that of the normalised targets: less log of the deviation for each of them."""
    t = unit * (np.sin(X[:60, 20] / 4.0) + 3.0)
    ours = GPRegressor(RBF(2.0), noise=0.2, normalize_y=normalize_y).fit(X[:60], t)
    theirs = GaussianProcessRegressor(rbf.RBF(2.0), alpha=0.2, optimizer=None, normalize_y=normalize_y).fit(X[:60], t)
    expected = theirs.log_marginal_likelihood_value_ - (60 * np.log(t.std()) if normalize_y else 0.0)
    assert ours.log_marginal_likelihood().value == pytest.approx(expected, rel=1e-9)
    new = X[60:70]
    for one, other in zip(ours.predict(new, return_std=True), theirs.predict(new, return_std=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9 * unit)


@pytest.mark.parametrize("normalize_y", [False, True])
def test_the_record_of_a_search_is_in_units_of_the_targets(normalize_y: bool) -> None:
    T = 40.0 * np.column_stack([np.sin(X[:60, 20] / 4.0), X[:60, 21]])
    tune = Tune(max_evaluations=4, fixed=("length_scale",))
    model = GPRegressor(RBF(2.0), normalize_y=normalize_y, tune=tune).fit(X[:60], T)
    assert model.tuning_.best.value == pytest.approx(-model.log_marginal_likelihood().value / 60, rel=1e-9)


def test_evidence_tells_models_with_and_without_normalised_targets_apart() -> None:
    """The same process written in two ways has one evidence, also with weights."""
    t = 5.0 * np.sin(X[:60, 20] / 4.0)
    weight = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    t -= np.average(t, weights=weight)
    variance = np.average(t**2, weights=weight)
    scaled = GPRegressor(RBF(2.0), noise=0.2).fit(X[:60], t, sample_weight=weight)
    plain = GPRegressor(RBF(2.0, amplitude=variance), noise=0.2 * variance, normalize_y=False)
    plain.fit(X[:60], t, sample_weight=weight)
    np.testing.assert_allclose(plain.predict(X[60:70]), scaled.predict(X[60:70]), rtol=1e-9, atol=1e-9)
    assert plain.log_marginal_likelihood().value == pytest.approx(scaled.log_marginal_likelihood().value, rel=1e-9)


@pytest.mark.parametrize("balanced", [False, True])
def test_the_estimate_says_how_far_it_may_be_off_and_the_bound_is_one(balanced: bool) -> None:
    model = GPClassifier(noise=0.2, balanced=balanced, random_state=0).fit(X, y)
    truth = model.log_marginal_likelihood("exact").value
    found = model.log_marginal_likelihood("stochastic")
    assert abs(found.value - truth) < 4.0 * found.error
    assert found.error < 0.02 * abs(truth)
    assert model.log_marginal_likelihood("bound").value <= truth  # |K̃| is bounded above, the evidence below


def test_better_noise_has_better_evidence() -> None:
    values = [GPClassifier(noise=noise).fit(X, y).log_marginal_likelihood().value for noise in (1e-3, 0.1, 1e3)]
    assert values[1] > max(values[0], values[2])


def test_bad_requests_are_explained(tmp_path) -> None:
    model = GPClassifier().fit(X, y)
    with pytest.raises(InvalidParameter, match="method"):
        model.log_marginal_likelihood("guess")
    model.save(tmp_path / "m.saccade")
    with pytest.raises(InvalidInput, match="loaded"):
        load(tmp_path / "m.saccade").log_marginal_likelihood()
