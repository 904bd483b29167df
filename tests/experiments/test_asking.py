"""The harness of the experiments on asking: its quick model is GPClassifier, its quick BADGE the package's."""

import importlib
from typing import Any

import numpy as np
import pytest

from saccade import GPClassifier
from saccade._core.arrays import Array
from saccade.active import query
from saccade.kernels import HIK
from tests.experiments.test_scripts import FOLDERS, ROOT
from tests.tolerances import assert_close


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Any:
    for folder in FOLDERS:
        monkeypatch.syspath_prepend(str(ROOT / folder))
    return importlib.import_module


def histograms(n: int, classes: int) -> tuple[Array, Array]:
    """Rows with a part of their class and much of their own."""
    rng = np.random.default_rng(classes)
    y = rng.integers(0, classes, n)
    return (rng.gamma(0.7, size=(classes, 12))[y] + rng.gamma(0.5, size=(n, 12))).astype(np.float32), y


@pytest.mark.parametrize("classes", [2, 5])
def test_dense_model_is_the_classifier(modules: Any, classes: int) -> None:
    X, y = histograms(90, classes)
    K = HIK(scale=1.0)(X)
    model = GPClassifier(variance=None, random_state=0).fit(X[:40], y[:40])
    dense = modules("ask_campaign").DenseGP(K[:40, :40], y[:40])
    mean = dense.scale * K[40:, :40] @ dense.alpha
    assert_close(np.squeeze(mean), model.decision_function(X[40:]))
    assert_close(dense.probabilities(K[40:, :40]), model.predict_proba(X[40:]), np.float32)  # a search settles them
    np.testing.assert_array_equal(dense.predict(K[40:, :40]), model.predict(X[40:]))


def test_badge_asks_as_the_package_does(modules: Any) -> None:
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import Badge
    from skactiveml.utils import check_random_state

    X, y = histograms(90, 4)
    known = np.where(np.arange(90) < 20, y, np.nan)
    model = SklearnClassifier(
        GPClassifier(variance=None, random_state=0), classes=np.arange(4), missing_label=np.nan
    ).fit(X, known)
    theirs = Badge(random_state=3).query(X, known, clf=model, fit_clf=False, batch_size=8)
    rng = check_random_state(3, 70 + 1)  # the package multiplies its seed by 1 + the rows without label
    found = modules("ask_rivals").gradient_seeds(model.predict_proba(X[20:]), X[20:], 8, rng)
    assert np.add(found, 20).tolist() == list(theirs)


def test_labels_to_a_goal(modules: Any) -> None:
    labels_to = modules("ask_campaign").labels_to
    assert labels_to([0.2, 0.4, 0.8], 25, 0.6) == pytest.approx(62.5)
    assert labels_to([0.2, 0.4], 25, 0.1) == 25.0
    assert labels_to([0.2, 0.4], 25, 0.5) == np.inf


def test_halves_share_no_row_and_have_all_classes(modules: Any) -> None:
    half, y = modules("ask_data").half, np.repeat([0, 1, 2], [5, 8, 31])
    development, report = half(y, "development"), half(y, "report")
    assert sorted([*development, *report]) == list(range(len(y)))
    assert set(y[development]) == set(y[report]) == {0, 1, 2}


def test_questions_of_kapoor_are_those_of_the_library(modules: Any) -> None:
    """One for a class against the rest (Fig. 4), and one for each of several classes (Fig. 6)."""
    kapoor, fig6 = modules("ask_kapoor"), modules("ask_kapoor_fig6")
    X, y = histograms(80, 3)
    K = HIK(scale=1.0)(X)
    K /= np.diagonal(K).mean()
    known, left = np.arange(15), np.arange(15, 80)
    model = GPClassifier(noise=kapoor.NOISE)
    positive = np.where(y == 1, 1.0, -1.0)
    detector = kapoor.Detector(K[:15, :15], positive[:15, None])
    doubt = detector.doubt(K[15:, :15], np.diagonal(K)[15:])[:, 0]
    labels = np.where(np.arange(80) < 15, positive, np.nan)
    asked, worth = query(X, labels, model, strategy="uncertainty", return_utilities=True)
    assert asked == left[doubt.argmin()]
    assert_close(1.0 / (1.0 + doubt), worth[0, 15:], np.float32)  # the noise is small, and K nearly singular
    round_ = query(X, np.where(np.arange(80) < 15, y, np.nan), model, strategy="one-a-class", batch_size=3, joint=False)
    assert fig6.one_a_class(K, y, known, 3) == round_.tolist()


def test_no_ratio_where_a_goal_is_not_reached(modules: Any) -> None:
    """Labels over infinity would be 0, the best ratio of all."""
    low_budget = modules("ask_low_budget")
    good, bad, full = np.array([[0.5, 1.0]] * 3), np.array([[0.1, 0.2]] * 3), np.ones(3)
    assert low_budget.ratio(good, bad, full, 0.9)["ratio"] is None
    assert low_budget.ratio(good, good, full, 0.9) == {"ratio": 1.0, "interval": [1.0, 1.0]}
    once = np.vstack([bad[:2], [[0.1, 5.0]]])  # on average it arrives, in some draws it does not
    assert low_budget.ratio(good, once, full, 0.9)["interval"] is None
