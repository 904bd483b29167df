"""The evidence of fitted models against the formula written out."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits

from saccade import GPClassifier, GPRegressor, load
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels import HIK, RBF, Power

X, y = load_digits(return_X_y=True)
X, y = X[:300] / 16.0, y[:300]


def written_out(model, Y, noise) -> float:
    K = model.kernel_(X)
    return sum(multivariate_normal.logpdf(t, cov=K + np.diag(n)) for t, n in zip(Y.T, noise.T, strict=True))


@pytest.mark.parametrize("kernel", [HIK(), HIK(Power(0.5)), RBF(3.0)])
def test_exact_is_the_formula(kernel) -> None:
    model = GPClassifier(kernel, noise=0.2).fit(X, y)
    Y = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    found = model.log_marginal_likelihood()
    assert (found.method, found.error) == ("exact", 0.0)
    assert found.value == pytest.approx(written_out(model, Y, np.full((300, 10), 0.2)), rel=1e-8)


def test_balanced_noise_has_a_determinant_for_each_class() -> None:
    model = GPClassifier(balanced=True, noise=0.2).fit(X, y)
    Y = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    share = (Y > 0).mean(axis=0)
    noise = 0.4 * np.where(Y > 0, share, 1 - share)
    assert model.log_marginal_likelihood().value == pytest.approx(written_out(model, Y, noise), rel=1e-8)


def test_a_regressor_has_the_evidence_of_scaled_targets() -> None:
    model = GPRegressor(noise=0.3).fit(X, y)
    t = ((y - y.mean()) / y.std())[:, None]
    assert model.log_marginal_likelihood().value == pytest.approx(
        written_out(model, t, np.full((300, 1), 0.3)), rel=1e-8
    )


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
