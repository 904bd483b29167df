"""Kernel matrices of another engine below the estimators; test_gram.py has the suite that they pass."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from saccade import SVDD, GPClassifier, GPRegressor, OneClassGP
from saccade.active import ActiveLearner
from saccade.active.pool import pool_gram
from saccade.datasets.synthetic import histograms
from saccade.kernels import HIK, RBF, Centred, Linear, Power
from saccade.kernels.dense_gram import DenseGram, StreamedGram
from saccade.kernels.engines import MEMORY
from tests.kernels.disk_engine import DiskEngine, is_mapped

X, Y = histograms(300, D=30, nonzeros=8, rng=np.random.default_rng(0))
NEW = histograms(20, D=30, nonzeros=8, rng=np.random.default_rng(1))[0]
MODELS: dict[str, Any] = {
    "exact": lambda: GPClassifier(noise=0.1),
    "32 levels": lambda: GPClassifier(noise=0.1, levels=32, solver="cg", tol=1e-9),
    "any kernel": lambda: GPClassifier(RBF(1.0), noise=0.1),
    "tuned": lambda: GPClassifier(HIK(Power(1.0)), tune="loo", levels=32),
    "regression": lambda: GPRegressor(noise=0.1, levels=16),
    "one class": lambda: OneClassGP(noise=0.1, levels=16),
    "ball": lambda: SVDD(levels=16),
}


def on_disk(model: Any, folder: Path) -> Any:
    model.engine = DiskEngine(folder)
    return model


@pytest.mark.filterwarnings("ignore:Tuning ended")
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_estimators_fit_on_disk_as_in_memory(make: Any, tmp_path: Path) -> None:
    here, there = make().fit(X, Y), on_disk(make(), tmp_path).fit(X, Y)
    ask = "decision_function" if hasattr(here, "decision_function") else "predict"
    np.testing.assert_allclose(getattr(there, ask)(NEW), getattr(here, ask)(NEW), rtol=1e-6, atol=1e-6)


def test_codes_stay_in_files(tmp_path: Path) -> None:
    model = on_disk(GPClassifier(noise=0.1, levels=32), tmp_path).fit(X[:200], Y[:200])
    assert is_mapped(model.gp_.gram.codes.codes)
    model.partial_fit(X[200:], Y[200:])
    assert is_mapped(model.gp_.gram.codes.codes)
    whole = GPClassifier(noise=0.1, levels=32).fit(X[:200], Y[:200]).partial_fit(X[200:], Y[200:])
    np.testing.assert_allclose(model.predict_proba(NEW), whole.predict_proba(NEW), rtol=1e-6, atol=1e-6)


def test_rows_stay_in_files(tmp_path: Path) -> None:
    model = on_disk(GPClassifier(RBF(1.0), noise=0.1), tmp_path).fit(X, Y)
    assert is_mapped(model.gp_.gram.all_rows())


@pytest.mark.parametrize("make", [GPClassifier, GPRegressor, OneClassGP, SVDD])
def test_a_clone_keeps_the_engine(make: Any, tmp_path: Path) -> None:
    model = on_disk(make(levels=16), tmp_path)
    copy = clone(model)
    assert copy.engine is model.engine
    assert copy.get_params() == model.get_params()
    assert clone(make()).engine is MEMORY


def test_the_pool_of_a_learner_stays_in_files(tmp_path: Path) -> None:
    model = GPClassifier(HIK(), noise=0.1, levels=16)
    here, there = (ActiveLearner(X, clf, random_state=0) for clf in (model, on_disk(clone(model), tmp_path)))
    assert is_mapped(there.field.gram.codes.codes)
    assert not is_mapped(here.field.gram.codes.codes)
    for learner in (here, there):
        rows = learner.ask(20)
        learner.tell(rows, Y[rows])
    np.testing.assert_allclose(there.field.mean, here.field.mean, rtol=1e-9, atol=1e-12)


def test_a_small_pool_of_exact_rows_is_made_by_the_engine_too(tmp_path: Path) -> None:
    gram = pool_gram(RBF(1.0), X, None, "quantile", DiskEngine(tmp_path))
    assert is_mapped(gram.all_rows())


def test_memory_holds_the_matrix_or_streams_it_from_rows_of_its_own() -> None:
    rows, copies = np.random.default_rng(0).random((6, 3)), np.array([1, 3, 1, 2, 1, 1])
    for held, kind in ((True, DenseGram), (False, StreamedGram)):
        mine = rows.copy()
        gram = RBF(1.0).gram(mine, held=held)
        assert type(gram) is kind
        mine[:] = 0.0
        np.testing.assert_allclose(gram.columns(np.arange(6)), RBF(1.0)(rows))
        assert gram.all_rows().dtype == np.float64
        assert RBF(1.0).gram(rows.astype(np.float32), held=held).all_rows().dtype == np.float64
        weighed = Centred(Linear()).gram(rows, weight=copies.astype(float), held=held)  # the centre counts copies
        every = np.repeat(np.arange(6), copies)
        first = np.searchsorted(every, np.arange(6))
        repeated = Centred(Linear()).gram(rows[every], held=held).columns(first)[first]
        np.testing.assert_allclose(weighed.columns(np.arange(6)), repeated, atol=1e-12)
