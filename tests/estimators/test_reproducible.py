"""Two equal fits give equal answers, whatever `random_state` is; None means the same random numbers at every fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saccade import GPClassifier, GPRegressor, OneClassGP, Tune

rng = np.random.default_rng(0)
X, new = rng.random((400, 5)), rng.random((30, 5)) * 1.3
y = (X[:, 0] > X[:, 1]).astype(int)


@pytest.mark.parametrize("random_state", [None, 3])
@pytest.mark.parametrize(
    "model",
    [
        GPClassifier(solver="cg", variance="lowrank", variance_rank=8, tune=Tune(max_evaluations=4)),
        GPClassifier(inference="laplace", solver="cg", variance="fine", variance_rank=8),
        OneClassGP(approximation="lowrank", variance_rank=8),
        OneClassGP(approximation="fitc", inducing=0.1),
    ],
    ids=repr,
)
def test_equal_fits_give_equal_answers(model: Any, random_state: int | None) -> None:
    model.set_params(random_state=random_state)
    answers = []
    for _ in range(2):
        np.random.default_rng().random()  # numbers drawn elsewhere change nothing
        np.random.rand()  # noqa: NPY002
        fitted = model.fit(X, y)
        found = [*fitted.latent_mean_and_variance(new), fitted.log_marginal_likelihood("stochastic").value]
        if model.inference == "regression":
            found.append(fitted.novelty(new))
        answers.append(found)
    for one, other in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, other)


def test_seeds_still_differ_and_draws_are_random() -> None:
    low = [
        OneClassGP(approximation="fitc", inducing=0.1, random_state=seed).fit(X).score_samples(new) for seed in (1, 2)
    ]
    assert not np.array_equal(*low)
    model = GPRegressor().fit(X, y)
    assert not np.array_equal(model.sample_y(new), model.sample_y(new))
    np.testing.assert_array_equal(model.sample_y(new, random_state=1), model.sample_y(new, random_state=1))
