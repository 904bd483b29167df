"""Rows with other columns than those of training are refused by every question, and change nothing."""

from typing import Any

import numpy as np
import pytest

from saccade import GPClassifier, GPRegressor, OneClassGP
from saccade.estimators.svdd import SVDD

X = np.random.default_rng(0).random((40, 4))
MODELS = {
    "GPClassifier": GPClassifier().fit(X, (X[:, 0] > X[:, 1]).astype(int)),
    "GPRegressor": GPRegressor().fit(X, X[:, 0] - X[:, 1]),
    "OneClassGP": OneClassGP(measure="mean", scale=None).fit(X),
    "SVDD": SVDD().fit(X),
}
QUESTIONS = (
    "predict", "predict_proba", "decision_function", "latent_mean_and_variance", "novelty", "score_samples", "sample_y",
    "sample_prior", "explain",
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "question"), [(kind, name) for kind in MODELS for name in QUESTIONS if hasattr(MODELS[kind], name)]
)
@pytest.mark.parametrize("width", [3, 5])
def test_other_columns_are_refused(kind: str, question: str, width: int) -> None:
    model: Any = MODELS[kind]
    before = model.predict(X)
    with pytest.raises(ValueError, match=f"{width} features, but {kind} is expecting 4"):
        getattr(model, question)(np.ones((2, width)))
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict(X), before)
