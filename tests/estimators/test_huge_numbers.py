"""Numbers that float64 cannot hold, and what `random_state` may be: one clear sentence, or an answer."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from saccade import SVDD, GPClassifier, GPRegressor, OneClassGP, Tune
from saccade._core.errors import InvalidParameter
from saccade.features import BagOfWords, DescriptorPCA
from saccade.kernels import (
    HIK,
    RBF,
    Centred,
    Chi2,
    Exponential,
    GeneralizedRBF,
    Laplacian,
    Linear,
    Matern,
    Monotone,
    Power,
    Weights,
)
from saccade.localize import Localizer

HUGE: list[Any] = [10**400, -(10**400), Fraction(10**400, 3), 10**5000]
rng = np.random.default_rng(0)
X = rng.random((30, 3))
y = (X[:, 0] > X[:, 1]).astype(int)
every = pytest.mark.parametrize("huge", HUGE, ids=["10**400", "-10**400", "fraction", "10**5000"])


def refused(make: Any) -> None:
    with pytest.raises(InvalidParameter) as caught:
        make()
    assert str(caught.value).startswith("`")
    assert " must " in str(caught.value)
    assert len(str(caught.value)) < 400


@every
@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        *[(GPClassifier, name) for name in ("noise", "tol", "max_iter", "levels", "variance_rank", "random_state")],
        *[(GPRegressor, name) for name in ("noise", "tol", "mean", "random_state")],
        *[(OneClassGP, name) for name in ("noise", "contamination", "trim", "random_state")],
        *[(SVDD, name) for name in ("nu", "tol", "max_iter")],
    ],
)
def test_a_parameter_of_an_estimator(estimator: Any, name: str, huge: Any) -> None:
    refused(lambda: estimator(**{name: huge}).fit(X, y))


@every
@pytest.mark.parametrize(
    "make",
    [
        RBF,
        lambda v: RBF(1.0, v),
        lambda v: RBF([1.0, v, 2.0]),
        Matern,
        Laplacian,
        Chi2,
        lambda v: GeneralizedRBF(HIK(), v),
        lambda v: HIK(scale=v),
        lambda v: HIK(factor=v),
        lambda v: HIK(Power(v)),
        lambda v: HIK(Exponential(v)),
        lambda v: HIK(Weights([1.0, v, 2.0])),
        lambda v: HIK(Monotone([[1.0, v]])),
        lambda v: HIK(Monotone([[1.0, 2.0]], [[1.0, v]])),
        lambda v: Centred(RBF(v)) + Linear(),
    ],
)
def test_a_parameter_of_a_kernel(make: Any, huge: Any) -> None:
    refused(lambda: GPClassifier(make(huge)).fit(X, y))


@pytest.mark.parametrize("kernel", [HIK(), RBF(), HIK() + RBF()], ids=repr)
def test_a_factor(kernel: Any) -> None:
    refused(lambda: GPClassifier(10**400 * kernel).fit(X, y))


@every
@pytest.mark.parametrize(
    "make",
    [
        lambda v: Tune(prior=v),
        lambda v: Tune(tol=v),
        lambda v: Tune(max_evaluations=v),
        lambda v: Tune("grid", grid={"noise": [0.1, v]}),
    ],
)
def test_an_option_of_tuning(make: Any, huge: Any) -> None:
    refused(lambda: GPClassifier(tune=make(huge)).fit(X, y))


def models(state: Any) -> list[np.ndarray]:
    """Answers that depend on the random numbers inside."""
    levels = {"levels": 4, "random_state": state}
    return [
        GPClassifier(solver="cg", random_state=state).fit(X, y).leave_one_out_decision_,
        GPRegressor(solver="cg", random_state=state).fit(X, X[:, 0]).predict(X),
        OneClassGP(**levels).fit(X).score_samples(X),
        GPRegressor().fit(X, X[:, 0]).sample_y(X[:3], 2, random_state=state),
        np.array(Localizer((64, 48), random_state=state).ask(3)),
    ]


def test_a_generator_is_a_random_state_everywhere() -> None:
    for one, other in zip(models(np.random.default_rng(3)), models(np.random.default_rng(3)), strict=True):
        np.testing.assert_array_equal(one, other)
    moved = np.random.default_rng(3)
    first, second = (GPRegressor().fit(X, y).sample_y(X[:3], 2, random_state=moved) for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_generator_in_transformers() -> None:
    descriptors = [rng.random((40, 6)) for _ in range(4)]
    for make in (BagOfWords, DescriptorPCA):
        number = 5 if make is BagOfWords else 2
        found = []
        for _ in range(2):
            out = make(number, random_state=np.random.default_rng(3)).fit(descriptors).transform(descriptors)
            found.append(np.concatenate(list(out)) if make is DescriptorPCA else out.toarray())
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("state", ["seed", 1.5, -1, [1, 2, "x"], object()])
def test_what_is_no_random_state(state: Any) -> None:
    for make in (GPClassifier, GPRegressor, OneClassGP):
        with pytest.raises(InvalidParameter, match="`random_state` must be None, a whole number"):
            make(random_state=state).fit(X, y)
