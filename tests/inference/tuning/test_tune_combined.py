"""Every transform inside every kernel that is made of others: tuning learns it, by the right derivatives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from saccade import GPClassifier, GPRegressor, Tune
from saccade.estimators.losses import ClassLosses, DensityLosses
from saccade.inference.tuning.objective import Objective, Task
from saccade.kernels import (
    HIK,
    RBF,
    Centred,
    Exponential,
    GeneralizedRBF,
    Kernel,
    Linear,
    Monotone,
    Power,
    Product,
    Scaled,
    Sum,
    TransformSum,
    Weights,
)

D = 3
TRANSFORMS: dict[str, Any] = {
    "power": Power(0.6),
    "exponential": Exponential(0.0),
    "weights": Weights([2, 0, 1]),
    "blocks": Weights(blocks=[1, 2]),
    "monotone": Monotone(pieces=2),
    "list of one": [Weights()],
    "chain": [Weights(blocks=[2, 1]), Exponential(-0.4), Monotone(pieces=2)],
    "sum": TransformSum([HIK(Weights()), HIK([Power(0.7), Weights(blocks=[1, 2])], factor=2.0)]),
    "chain to a sum": [Power(0.7), TransformSum([HIK(Weights()), HIK(scale=0.4)]), Monotone(pieces=2)],
}
COMBINED: dict[str, Any] = {
    "sum": lambda hik: RBF(1.0) + hik,
    "product": lambda hik: Product(hik, RBF(2.0)),
    "scaled": lambda hik: Scaled(hik, 0.5),
    "generalised": lambda hik: GeneralizedRBF(hik, 0.4),
    "centred": lambda hik: Centred(hik),
    "nested": lambda hik: 0.5 * Centred(Sum(GeneralizedRBF(hik), Linear())),
}
every_transform = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
every_combination = pytest.mark.parametrize("combined", COMBINED.values(), ids=COMBINED)


def examples(n: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.round(rng.gamma(1.0, 1.0, (n, D)), 1) * (rng.random((n, D)) < 0.8)
    target = X[:, 0] - np.sqrt(X[:, 1]) + 0.1 * rng.standard_normal(n)
    return X, target, np.digitize(target, np.quantile(target, [0.3, 0.6]))


def objectives(kernel: Kernel) -> list[Objective]:
    X, target, label = examples()
    weight = np.linspace(0.5, 2.0, len(X))
    Y = np.where(label[:, None] == np.arange(3), 1.0, -1.0)
    classes = Task(kernel, kernel.gram(X), Y, np.ones((len(X), 1)), 0.3, ClassLosses(label, None))
    numbers = Task(
        kernel,
        kernel.gram(X, weight=weight),
        target[:, None],
        1.0 / weight[:, None],
        0.3,
        DensityLosses.of(target[:, None], weight),
        weight,
    )
    return [Objective(task, kind) for task in (classes, numbers) for kind in ("evidence", "loo")]


@every_transform
@every_combination
def test_the_slope_is_that_of_differences(transform: Any, combined: Any) -> None:
    for objective in objectives(combined(HIK(transform))):
        start, lower, upper, _ = objective.table.T
        theta = start + 0.1 * (lower < upper) * np.cos(np.arange(start.size))
        found = objective(theta, strength=0.5)
        for k in range(2):  # along directions in which every coordinate has a say
            along = (lower < upper) * np.random.default_rng(k).standard_normal(start.size)
            ahead, behind = (objective(theta + step * along, strength=0.5).value for step in (1e-5, -1e-5))
            assert found.gradient @ along == pytest.approx((ahead - behind) / 2e-5, rel=1e-5, abs=1e-6)


@every_transform
@every_combination
def test_all_numbers_of_the_transforms_are_learned(transform: Any, combined: Any) -> None:
    """As many as the HIK alone has, once for each place where it stands; a weight of 0 stays 0."""
    X, _, _ = examples()
    alone, kernel = HIK(transform), combined(HIK(transform))
    own, space = alone.gram(X).space(alone).coordinates, kernel.gram(X).space(kernel).coordinates
    wanted = [name for name, row in zip(own.names, own.table, strict=True) if row[1] < row[2] and "scale" not in name]
    moving = [name for name, row in zip(space.names, space.table, strict=True) if row[1] < row[2]]
    found = [name for name in moving if name.rpartition("__")[2] in ("eta", "w", "slopes")]
    places = sum(isinstance(part, HIK) and part.transform is transform for part in kernel.get_params().values())
    assert len(found) == places * len(wanted) > 0


@every_transform
@every_combination
@pytest.mark.parametrize("kind", ["loo", "evidence"])
def test_tuning_ends_no_worse_than_it_began(transform: Any, combined: Any, kind: str) -> None:
    X, target, label = examples()
    tune = Tune(objective=kind, prior=0.0, max_evaluations=5)
    for model, y in ((GPClassifier, label), (GPRegressor, target)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = model(combined(HIK(transform)), noise=0.3, tune=tune, random_state=0).fit(X, y)
        assert fitted.tuning_.best.value < fitted.tuning_.evaluations[0].value
        assert len(fitted.predict(X)) == len(X)


def test_weights_inside_a_sum_find_the_features_that_matter() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((120, 6))
    model = GPRegressor(RBF(3.0) + HIK([Power(1.0), Weights()]), tune=Tune(prior=0.0), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, np.abs(X[:, 1] - 0.5) - np.abs(X[:, 4] - 0.5) + 0.01 * rng.standard_normal(120))
    w = model.kernel_.right.transform[1].w
    assert set(np.argsort(w)[-2:]) == {1, 4}
    assert w[[1, 4]].min() > 3.0 * np.delete(w, [1, 4]).max()


def test_a_prior_holds_weights_inside_a_sum_together() -> None:
    X, target, _ = examples(40)
    spread = []
    for strength in (0.0, 1e4):
        model = GPRegressor(RBF(3.0) + HIK(Weights()), tune=Tune(prior=strength, max_evaluations=20), random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spread.append(np.log(model.fit(X, target).kernel_.right.transform.w).std())
    assert spread[1] < 0.1 * spread[0]
