"""scikit-learn's own checks, over every estimator and several ways to use it."""

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from saccade import GPClassifier, GPRegressor, OneClassGP, Tune
from saccade.kernels import HIK, RBF, GeneralizedRBF, Power

ESTIMATORS = [
    GPClassifier(),
    GPClassifier("auto"),
    GPClassifier(solver="cg", tol=1e-9),
    GPClassifier(levels=255, balanced=True),
    GPClassifier(RBF(length_scale=3.0)),
    GPClassifier(HIK(Power(1.0)), tune=Tune(objective="evidence", max_evaluations=3)),
    GPClassifier(inference="laplace"),
    GPClassifier(inference="ep"),
    GPRegressor(),
    GPRegressor(HIK(Power(0.5)), solver="cg", tol=1e-9),
    OneClassGP(),
    OneClassGP(GeneralizedRBF(HIK(), "auto"), inference="laplace", measure="probability"),
    OneClassGP(approximation="lowrank", measure="ratio"),
    OneClassGP(RBF(3.0), approximation="diagonal", measure="mean"),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)
