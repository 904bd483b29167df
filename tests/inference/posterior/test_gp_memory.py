"""A dense kernel matrix is made once, and nothing holds it beside its factor."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from saccade import GPClassifier, GPRegressor, OneClassGP
from saccade._core.arrays import Array
from saccade.kernels import RBF

N = 1500
MODELS = {
    "classifier": GPClassifier,
    "regressor": GPRegressor,
    "one class": OneClassGP,
    "laplace": lambda kernel: GPClassifier(kernel, inference="laplace"),
}
QUESTIONS = ("predict", "latent_mean_and_variance", "novelty", "score_samples")


class Counted(RBF):
    """Notes how many rows it was asked for."""

    asked: list[tuple[int, int]] = []  # noqa: RUF012  # shared: estimators clone their kernel

    def __call__(self, X: Any, Z: Any = None) -> Array:
        self.asked.append((X.shape[0], X.shape[0] if Z is None else Z.shape[0]))
        return super().__call__(X, Z)


@pytest.fixture
def asked() -> Iterator[list[tuple[int, int]]]:
    Counted.asked.clear()
    yield Counted.asked
    Counted.asked.clear()


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def data(n: int) -> tuple[Array, Array]:
    X = np.random.default_rng(0).standard_normal((n, 5))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("name", ["classifier", "regressor", "one class"])
def test_the_kernel_matrix_is_made_once(name: str, asked: list[tuple[int, int]]) -> None:
    """Kernel values between training examples: one matrix for fit and every question after it."""
    X, y = data(300)
    model = MODELS[name](Counted(2.0)).fit(X, y)
    new = X[:7] + 0.1
    answers = [getattr(model, question)(new) for question in QUESTIONS if hasattr(model, question)]
    assert len(answers) >= 2
    model.log_marginal_likelihood()
    between = [pair for pair in asked if 7 not in pair]
    assert between == [(300, 300)]
    assert all(pair == (300, 7) for pair in asked if pair not in between)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.usefixtures("traced")
def test_only_the_factor_stays(name: str) -> None:
    X, y = data(N)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    model = MODELS[name](RBF(2.0)).fit(X, y)
    new = X[:7] + 0.1
    for question in (None, *QUESTIONS):
        if question is not None and hasattr(model, question):
            getattr(model, question)(new)
        gc.collect()
        held = (tracemalloc.get_traced_memory()[0] - before) / (8 * N * N)
        assert 1.0 <= held < 1.1, question  # in units of an n × n matrix
