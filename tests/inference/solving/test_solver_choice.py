"""Labels are iterated where that is far quicker; every question that needs a factor gets one, and its exact answer."""

from __future__ import annotations

import numpy as np
import pytest

from saccade import GPClassifier
from saccade._core.arrays import Array
from saccade.datasets.synthetic import histograms
from saccade.inference.posterior.gp import GP
from saccade.inference.solving.solver_choice import labels_by
from saccade.kernels import HIK, RBF
from saccade.kernels.gram import Gram
from tests.tolerances import assert_close


def gram(n: int, nonzeros: int = 30) -> Gram:
    return HIK().gram(histograms(n, 200, nonzeros, rng=np.random.default_rng(0))[0])


def noise(n: int, value: float = 0.1) -> Array:
    return np.full((n, 1), value)


def test_many_rows_are_iterated_and_few_are_not() -> None:
    assert labels_by("auto", gram(300), noise(300), 1) == "auto"
    assert labels_by("auto", gram(1900), noise(1900), 1) == "cg"
    choices = [labels_by("auto", gram(n), noise(n), 1) for n in range(400, 2048, 200)]
    assert choices == sorted(choices)  # "auto" up to some n, "cg" from there on


def test_what_makes_iterating_slow_or_its_estimates_poor_takes_a_factor() -> None:
    K, n = gram(1900), 1900
    assert labels_by("auto", K, noise(n, 1e-8), 1) == "auto"
    assert labels_by("auto", K, noise(n), 30) == "auto"
    assert labels_by("auto", K, np.full((n, 2), 0.1), 2) == "auto"
    assert labels_by("cholesky", K, noise(n), 1) == "cholesky"
    assert labels_by("auto", RBF(1.0).gram(np.random.default_rng(0).random((n, 2))), noise(n), 1) == "auto"


def test_units_do_not_choose_the_solver() -> None:
    """A kernel that is c times as large has the same choice with noise that is c times as large."""
    X = histograms(1900, 200, 30, rng=np.random.default_rng(0))[0]
    for c in (1e-4, 1.0, 1e4):
        K = HIK(scale=c).gram(X)
        assert [labels_by("auto", K, noise(1900, c * own), 1) for own in (1e-3, 1e-4)] == ["cg", "auto"]


@pytest.fixture(scope="module")
def both() -> tuple[GPClassifier, GPClassifier, Array]:
    """Iterated by default, and with a factor; new rows."""
    X, y = histograms(1840, 200, 30, rng=np.random.default_rng(0))
    model, exact = (
        GPClassifier(noise=0.1, solver=s, random_state=0).fit(X[:1800], y[:1800]) for s in ("auto", "cholesky")
    )
    return model, exact, X[1800:]


def test_exact_questions_make_the_factor(both: tuple[GPClassifier, GPClassifier, Array]) -> None:
    model, exact, X = both
    gp, judge = model.gp_, exact.gp_
    assert isinstance(gp, GP)
    assert isinstance(judge, GP)
    assert not gp.solution.factors
    assert judge.solution.factors
    assert gp.variance_method == judge.variance_method == "exact"
    assert_close(gp.variance(X), judge.variance(X))
    assert_close(gp.covariance(X)[0], judge.covariance(X)[0])
    assert gp.evidence().value == pytest.approx(judge.evidence().value, rel=1e-9)
    rows = np.arange(0, 1800, 40)
    for found, truth in zip(gp.left_out(rows), judge.left_out(rows), strict=True):
        assert_close(found, truth)


def test_answers_about_classes_are_the_same(both: tuple[GPClassifier, GPClassifier, Array]) -> None:
    """Up to `tol`, and for probabilities up to the stated error of leave-one-out."""
    model, exact, X = both
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=5 * model.tol)
    assert 0.0 < model.leave_one_out_error_ < 0.1
    assert model.sharpness_ == pytest.approx(exact.sharpness_, rel=0.1)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=0.02)
    np.testing.assert_allclose(model.novelty(X), exact.novelty(X), atol=0.02)


def test_tables_of_a_low_rank_make_no_factor(both: tuple[GPClassifier, GPClassifier, Array]) -> None:
    """Saving takes the tables alone."""
    gp = both[0].gp_
    assert isinstance(gp, GP)
    tables = gp.with_variance("lowrank")
    tables.prepare()
    assert "factors" not in vars(tables.inverse)
