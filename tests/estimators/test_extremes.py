"""Numbers at the ends of float64: the right answer or an error that says how to scale, never inf, NaN or "normal"."""

import warnings
from typing import Any

import numpy as np
import pytest

from saccade import SVDD, GPClassifier, GPRegressor, OneClassGP
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels import HIK, RBF, Centred, Chi2, GeneralizedRBF, Laplacian, Linear, Power
from tests.tolerances import assert_close

Array = np.ndarray[Any, np.dtype[Any]]
rng = np.random.default_rng(0)
X = rng.random((40, 5))
Y = (X[:, 0] > X[:, 1]).astype(int)
KERNELS = [
    *(HIK(), HIK(scale=1.0), HIK(Power(2.0)), Linear(), RBF(), Laplacian(), Chi2(), Centred(HIK()), Centred(Linear())),
    *(GeneralizedRBF(HIK(), "auto"), GeneralizedRBF(Linear(), "auto"), HIK(scale=1.0) + Linear(), 1e6 * Linear()),
]
HUGE = [1e100, 1e155, 1e200, 1e300, 1e308]


def answers(model: Any, Z: Array) -> list[Array]:
    if isinstance(model, SVDD):
        return [model.score_samples(Z)]
    mean, variance = model.latent_mean_and_variance(Z)
    return [mean, variance, model.predict_proba(Z), model.novelty(Z)]


def finite_or_refused(work: Any) -> list[Array] | None:
    """The answers, all finite; None where the input was refused. No warning of overflow in either case."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            found: list[Array] = work()
        except InvalidInput as error:
            assert "Scale" in str(error) or "divide the data" in str(error) or "Raise `noise`" in str(error)  # noqa: PT017
            return None
    assert all(np.isfinite(answer).all() for answer in found)
    return found


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("inference", ["regression", "laplace", "ep"])
def test_training_on_huge_values(kernel: Any, inference: str) -> None:
    for factor in HUGE:
        finite_or_refused(lambda Z=factor * X: answers(GPClassifier(kernel, inference=inference).fit(Z, Y), Z))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_huge_values_are_never_like_the_known(kernel: Any) -> None:
    """An intersection kernel grows with its values, and others fall to 0: what is far larger than all known is new."""
    models = [GPClassifier(kernel, random_state=0).fit(X, Y), OneClassGP(kernel, random_state=0).fit(X)]
    for model in (*models, SVDD(kernel).fit(X)):
        for factor in HUGE:
            found = finite_or_refused(lambda Z=factor * X[:4], model=model: answers(model, Z))
            if found is None or isinstance(kernel, Centred):
                continue
            if isinstance(model, SVDD):
                assert (found[0] < model.offset_).all()
            else:
                assert (found[-1] > 0.9).all()


def test_hik_at_the_end_of_float64() -> None:
    """Variance was inf there and novelty 0.095."""
    model = GPClassifier(HIK(scale=1.0)).fit(X, Y)
    for ask in (model.novelty, model.predict_proba, model.latent_mean_and_variance):
        with pytest.raises(InvalidInput, match=r"below 1e\+150, got .*Scale the features"):
            ask(1e308 * X)
    assert GPClassifier().fit(1e300 * X, Y).predict_proba(1e300 * X) == pytest.approx(
        GPClassifier().fit(X, Y).predict_proba(X)
    )


@pytest.mark.parametrize("inference", ["regression", "laplace", "ep"])
def test_linear_at_1e200(inference: str) -> None:
    with pytest.raises(InvalidInput, match="Scale the features"):
        GPClassifier(Linear(), inference=inference).fit(1e200 * X, Y)
    model = GPClassifier(Linear(), inference=inference).fit(X, Y)
    with pytest.raises(InvalidInput, match="Scale the features"):
        model.predict_proba(1e200 * X)


@pytest.mark.parametrize("tune", [None, "nelder-mead"])
def test_huge_noise(tune: str | None) -> None:
    with pytest.raises(InvalidParameter, match=r"at most 1e\+150, got 1e\+300"):
        GPClassifier(noise=1e300, tune=tune).fit(X, Y)
    model = GPClassifier(noise=1e150, tune=tune).fit(X, Y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_python_numbers_of_any_size() -> None:
    large = np.full((40, 2), 10**400, object)
    with pytest.raises(InvalidInput, match="too large for float64"):
        GPClassifier().fit(large, Y)
    with pytest.raises(InvalidInput, match="too large for float64"):
        OneClassGP().fit(X[:, :2]).score_samples(large)
    with pytest.raises(InvalidInput, match="too large for float64"):
        GPRegressor().fit(X, large[:, 0])
    with pytest.raises(InvalidInput, match="too large for float64"):
        GPRegressor().fit(X, Y, sample_weight=large[:, 0])


@pytest.mark.parametrize("weight", [1e200, 1e-200])
def test_weights_out_of_range(weight: float) -> None:
    with pytest.raises(InvalidInput, match="Divide it by its mean"):
        GPClassifier().fit(X, Y, sample_weight=np.full(40, weight))


def test_svdd_on_denormals() -> None:
    with pytest.raises(InvalidInput, match="too small for float64"):
        SVDD(HIK(scale=1.0)).fit(1e-320 * X)
    SVDD(HIK(scale=1.0)).fit(np.zeros((5, 2)))  # nothing but zeros is one point


@pytest.mark.parametrize("factor", [1e-270, 1e-150, 1e-100, 1e100, 1e140])
@pytest.mark.parametrize("kernel", [HIK(scale=1.0), Linear()], ids=repr)
def test_svdd_does_not_depend_on_the_unit(factor: float, kernel: Any) -> None:
    """The choice of a step took cubes of kernel values, which left float64; training then never ended."""
    unit = factor if isinstance(kernel, HIK) else np.sqrt(factor)
    model, plain = SVDD(kernel, nu=0.2).fit(unit * X), SVDD(kernel, nu=0.2).fit(X)
    assert model.converged_
    assert model.radius_**2 / factor == pytest.approx(plain.radius_**2, rel=1e-5)
    np.testing.assert_array_equal(model.predict(unit * X), plain.predict(X))


# --- words and masks that would be taken for something else --------


@pytest.mark.parametrize("value", ["no", "False", 0, 1, None, np.array([True])], ids=repr)
def test_balanced_is_true_or_false(value: Any) -> None:
    with pytest.raises(InvalidParameter, match="`balanced` must be True or False"):
        GPClassifier(balanced=value).fit(X, Y)


def test_balanced_may_be_a_numpy_bool() -> None:
    model = GPClassifier(balanced=np.bool_(True)).fit(X, Y)
    assert_close(model.decision_function(X), GPClassifier(balanced=True).fit(X, Y).decision_function(X))


def test_masked_values_are_refused() -> None:
    masked = np.ma.masked_less(X, 0.1)
    model, detector = GPClassifier().fit(X, Y), OneClassGP().fit(X)
    uses = [
        lambda: GPClassifier().fit(masked, Y),
        lambda: GPClassifier().fit(X, np.ma.masked_equal(Y, 1)),
        lambda: GPClassifier().fit(X, Y, sample_weight=masked[:, 0]),
        lambda: GPClassifier().fit(X, Y).partial_fit(masked, Y),
        lambda: GPRegressor().fit(X, masked[:, 0]),
        lambda: SVDD().fit(masked),
        lambda: model.predict(masked),
        lambda: model.novelty(masked),
        lambda: detector.score_samples(masked),
        lambda: HIK()(masked),
    ]
    for use in uses:
        with pytest.raises(InvalidInput, match=r"masked values.*filled\(0\)"):
            use()


def test_an_array_with_nothing_masked_is_taken() -> None:
    whole = np.ma.masked_array(X, np.zeros_like(X, bool))
    assert_close(GPClassifier().fit(whole, Y).predict_proba(whole), GPClassifier().fit(X, Y).predict_proba(X))
