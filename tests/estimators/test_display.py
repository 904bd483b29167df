"""Displays draw what the model says."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import saccade
from saccade._core.errors import InvalidInput, InvalidParameter
from saccade.kernels import HIK, Weights

mpl.use("Agg")
X, y = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def model() -> saccade.GPClassifier:
    frame = pd.DataFrame(X, columns=["sepal length", "sepal width", "petal length", "petal width"])
    tune = saccade.Tune(max_evaluations=6, prior=1.0)
    return saccade.GPClassifier(HIK(Weights()), tune=tune, random_state=0).fit(frame, y)


def test_relevance_has_a_bar_a_feature(model: saccade.GPClassifier) -> None:
    display = saccade.RelevanceDisplay.from_estimator(model, top=3)
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert widths == pytest.approx(100 * np.sort(model.feature_relevance_)[::-1][:3])
    best = model.feature_names_in_[model.feature_relevance_.argmax()]
    assert display.ax_.get_yticklabels()[0].get_text() == best
    with pytest.raises(InvalidParameter, match="top"):
        saccade.RelevanceDisplay.from_estimator(model, top=0)


def test_tuning_has_a_dot_an_evaluation(model: saccade.GPClassifier) -> None:
    display = saccade.TuningDisplay.from_estimator(model)
    best = display.ax_.lines[-1].get_ydata()
    assert best.size == len(model.tuning_.evaluations)
    assert best[-1] == pytest.approx(model.tuning_.best.value)
    with pytest.raises(InvalidInput, match="tune"):
        saccade.TuningDisplay.from_estimator(saccade.GPClassifier().fit(X, y))


def test_twenty_features_and_two_axes_unless_told_otherwise() -> None:
    rows = np.random.default_rng(0).random((60, 30))
    model = saccade.GPClassifier(HIK()).fit(rows, (rows[:, 0] > rows[:, 1]).astype(int))
    one, other = saccade.RelevanceDisplay.from_estimator(model), saccade.RelevanceDisplay(model.feature_relevance_)
    assert len(one.ax_.patches) == len(other.plot().ax_.patches) == 20
    shown = [one.ax_.spines[side].get_visible() for side in ("left", "bottom", "top", "right")]
    assert shown == [True, True, False, False]
