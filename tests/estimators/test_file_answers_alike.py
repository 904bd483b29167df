"""A loaded model answers as the saved one: parameters of NumPy, random states, learned noise, numbers set by hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saccade import GPClassifier, GPRegressor, OneClassGP, load
from saccade.kernels import HIK, RBF

RNG = np.random.default_rng(0)
X = RNG.gamma(0.5, 1.0, (90, 5))
Y = np.digitize(X[:, 0] + X[:, 1] + 0.3 * RNG.standard_normal(90), [0.4, 1.2])
T = X[:, 0] - X[:, 2] + 0.1 * RNG.standard_normal(90)
NEW = RNG.gamma(0.5, 1.0, (25, 5))


def state() -> Any:
    return np.random.RandomState(5)


def continued() -> GPClassifier:
    return GPClassifier(RBF(1.0)).fit(X[:60], Y[:60]).partial_fit(X[60:], Y[60:])


def sharpened(kernel: Any) -> GPClassifier:
    model = GPClassifier(kernel, noise=0.1).fit(X, Y)
    model.sharpness_ = 0.1
    return model


def raised(kernel: Any, examples: bool) -> OneClassGP:
    model = OneClassGP(kernel, approximation="lowrank" if not examples else "auto").fit(X)
    model.offset_ = float(np.quantile(model.normal_scores_, 0.6))
    return model


MODELS: dict[str, Callable[[], Any]] = {
    "rank of NumPy": lambda: GPClassifier(RBF(), noise=0.1, approximation="lowrank", variance_rank=np.int64(3)).fit(
        X, Y
    ),
    "noise of NumPy": lambda: GPClassifier(RBF(), noise=np.float32(0.5)).fit(X, Y),
    "flag of NumPy": lambda: GPClassifier(RBF(), noise=0.1, balanced=np.True_).fit(X, Y),
    "random state, fitc": lambda: GPClassifier(RBF(), noise=0.1, approximation="fitc", random_state=state()).fit(X, Y),
    "random state, one class": lambda: OneClassGP(RBF(), approximation="lowrank", random_state=state()).fit(X),
    "random state, sod": lambda: GPRegressor(RBF(), noise=0.1, approximation="sod", random_state=state()).fit(X, T),
    "generator": lambda: GPClassifier(
        RBF(), noise=0.1, approximation="lowrank", variance_rank=5, random_state=np.random.default_rng(3)
    ).fit(X, Y),
    "learned noise, more examples": continued,
    "sharpness by hand, rows": lambda: sharpened(RBF()),
    "sharpness by hand, tables": lambda: sharpened(HIK()),
    "threshold by hand, rows": lambda: raised(RBF(), True),
    "threshold by hand, tables": lambda: raised(HIK(), False),
}


def answers(model: Any) -> dict[str, Any]:
    names = ("predict_proba", "decision_function", "score_samples", "predict")
    return {name: np.asarray(getattr(model, name)(NEW)) for name in names if hasattr(model, name)}


@pytest.mark.parametrize("examples", [None, True])
@pytest.mark.parametrize("name", MODELS)
def test_the_file_answers_as_the_model(name: str, examples: bool | None, tmp_path: Path) -> None:
    model = MODELS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that rows are kept
        model.save(tmp_path / "a", examples=examples)
        again = load(tmp_path / "a")
        again.save(tmp_path / "b", examples=examples)
    for found in (again, load(tmp_path / "b")):
        for question, wanted in answers(model).items():
            np.testing.assert_allclose(answers(found)[question], wanted, rtol=1e-6, atol=1e-8, err_msg=question)


def test_a_threshold_by_hand_is_as_rare_in_a_file_whose_variance_is_another(tmp_path: Path) -> None:
    model = OneClassGP(HIK(), approximation="exact").fit(X)
    model.offset_ = float(np.quantile(model.normal_scores_, 0.6))
    model.save(tmp_path / "a")
    again = load(tmp_path / "a")
    rare = np.mean(again.normal_scores_ < again.offset_), np.mean(model.normal_scores_ < model.offset_)
    assert rare[0] == pytest.approx(rare[1], abs=0.03)


def test_a_forged_number_by_hand_is_refused(tmp_path: Path) -> None:
    from saccade._core import model_file
    from saccade._core.errors import ModelFileError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        GPClassifier(RBF(), noise=0.1).fit(X, Y).save(tmp_path / "a")
    header, tensors = model_file.read(tmp_path / "a")
    for forged in ({"noise_": 1.0}, {"sharpness_": "1"}, {"sharpness_": float("inf")}):
        model_file.write(tmp_path / "b", header | {"set": forged}, tensors)
        with pytest.raises(ModelFileError, match="set to"):
            load(tmp_path / "b")
