"""What a classifier does with nothing set, and with kernel="auto": it learns what is safe, and says what."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import saccade
from saccade import GPClassifier
from saccade._core import limits
from saccade._core.errors import InvalidParameter
from saccade._core.progress import listening
from saccade.active import query
from saccade.estimators.automatic import Automatic
from saccade.estimators.losses import DensityLosses
from saccade.kernels import HIK, RBF, GeneralizedRBF, Power

X, y = load_digits(return_X_y=True)
X, y, Z, t = X[:300], y[:300], X[300:800], y[300:800]


def noisy(n: int, seed: int) -> tuple[Any, Any]:
    """Counts of four words: much noise, and 100 columns."""
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(0).dirichlet(np.full(100, 0.3), 5)
    label = np.arange(n) % 5
    return np.array([rng.multinomial(4, topics[c]) for c in label], float), label


def test_with_nothing_set_the_noise_is_learned() -> None:
    A, label = noisy(400, 1)
    model = GPClassifier().fit(A, label)
    assert model.get_params()["noise"] == "auto"
    assert clone(model).noise == "auto"
    assert model.noise_ > 0.1
    assert model.tuning_ is None
    B, truth = noisy(500, 2)
    fixed = GPClassifier(noise=0.1).fit(A, label)
    assert fixed.noise_ == 0.1
    assert model.score(B, truth) >= fixed.score(B, truth)
    same = GPClassifier(noise=model.noise_).fit(A, label)
    np.testing.assert_array_equal(same.decision_function(B), model.decision_function(B))
    learned = model.noise_
    assert model.partial_fit(B[:20], truth[:20]).noise_ == learned
    assert fixed.set_params(noise=0.2).partial_fit(B[:20], truth[:20]).noise_ == 0.2


@pytest.mark.parametrize(
    "parameters", [{"balanced": True}, {"inference": "laplace"}, {"approximation": "sod"}, {"noise": 0.2}], ids=str
)
def test_the_noise_stays_where_the_search_does_not_suit(parameters: dict[str, Any]) -> None:
    model = GPClassifier(**parameters).fit(*noisy(120, 1))
    assert model.noise_ == parameters.get("noise", 0.1)


def test_few_examples_keep_the_default() -> None:
    A, label = noisy(limits.CHOICE_FROM - 1, 1)
    assert GPClassifier().fit(A, label).noise_ == 0.1
    kernel = GPClassifier("auto").fit(A, label).kernel_
    assert isinstance(kernel, GeneralizedRBF)


def test_a_sample_tells_the_noise_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "NOISE_EXAMPLES", 200)
    assert GPClassifier(levels=64).fit(*noisy(600, 1)).noise_ > 0.1


def test_the_kernel_is_chosen_and_learned_values_are_kept() -> None:
    model = GPClassifier("auto").fit(X, y)
    assert model.kernel == "auto"
    assert isinstance(model.kernel_, RBF)
    assert model.score(Z, t) > GPClassifier().fit(X, y).score(Z, t) + 0.02
    given = GPClassifier(model.kernel_, noise=model.noise_).fit(X, y)
    np.testing.assert_allclose(model.decision_function(Z), given.decision_function(Z), atol=1e-9)
    kernel, noise = model.kernel_, model.noise_
    model.partial_fit(Z[:100], t[:100])
    assert model.kernel_ == kernel
    assert model.noise_ == noise
    given.partial_fit(Z[:100], t[:100])
    np.testing.assert_allclose(model.decision_function(Z), given.decision_function(Z), atol=1e-9)


def test_columns_of_a_table_need_no_scaling() -> None:
    A, label = load_breast_cancer(return_X_y=True)
    raw = GPClassifier("auto").fit(A[:200], label[:200])
    assert raw.score(A[200:], label[200:]) > 0.95
    units = 10.0 ** np.arange(-6, 9)[np.arange(30) % 15]
    other = GPClassifier("auto").fit(A[:200] * units, label[:200])
    np.testing.assert_allclose(
        raw.predict_proba(A[200:]), other.predict_proba(A[200:] * units), atol=1e-5
    )  # the columns as they are never win here


def test_sparse_rows_weights_pipelines_and_a_given_noise() -> None:
    dense = GPClassifier("auto", noise=0.3).fit(X, y)
    assert dense.noise_ == 0.3
    sparse = GPClassifier("auto", noise=0.3).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.decision_function(Z), dense.decision_function(Z), atol=1e-7)
    weighed = GPClassifier("auto").fit(X, y, sample_weight=np.where(np.arange(300) < 150, 2.0, 1.0))
    copies = GPClassifier("auto").fit(np.vstack([X, X[:150]]), np.append(y, y[:150]))
    np.testing.assert_allclose(weighed.predict_proba(Z), copies.predict_proba(Z), atol=1e-6)
    assert make_pipeline(MinMaxScaler(), GPClassifier("auto")).fit(X, y).score(Z, t) > 0.8


def test_many_examples_have_hik(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(limits, "AUTO_KERNEL_UP_TO", 200)
    model = GPClassifier("auto").fit(X, y)
    assert isinstance(model.kernel_, HIK)
    model.save(tmp_path / "model.saccade")
    loaded = saccade.load(tmp_path / "model.saccade")
    assert loaded.noise == "auto"
    assert loaded.noise_ == model.noise_
    np.testing.assert_array_equal(loaded.predict(Z), model.predict(Z))


def test_a_saved_model_knows_what_it_learned(tmp_path: Path) -> None:
    A, label = noisy(200, 1)
    model = GPClassifier().fit(A, label)
    model.save(tmp_path / "model.saccade")
    loaded = saccade.load(tmp_path / "model.saccade")
    assert loaded.noise_ == model.noise_ > 0.1
    np.testing.assert_allclose(loaded.predict_proba(A), model.predict_proba(A), atol=1e-9)


def test_auto_and_tune_exclude_each_other() -> None:
    with pytest.raises(InvalidParameter, match=r'`kernel` is "auto".*Leave `tune` out'):
        GPClassifier("auto", tune="loo").fit(X, y)
    assert GPClassifier(HIK(Power(1.0)), tune="loo").fit(X[:60], y[:60]).tuning_ is not None


@pytest.mark.parametrize("parameters", [{"kernel": "rbf"}, {"noise": "low"}], ids=str)
def test_other_words_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="must be"):
        GPClassifier(**parameters).fit(X, y)


def test_asking_takes_the_kernel_of_the_labels_there_are() -> None:
    labels = np.where(np.arange(300) < 60, y.astype(float), np.nan)
    assert len(query(X, labels, GPClassifier("auto"), batch_size=3)) == 3


def test_the_limits_of_a_choice_belong_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stretches of three along a line: a smaller noise and another kernel win, as soon as there are enough examples."""
    for count, noise, kind in ((limits.CHOICE_FROM - 1, 0.1, GeneralizedRBF), (limits.CHOICE_FROM, 0.01, RBF)):
        x = np.linspace(0.0, 1.0, count)
        assert GPClassifier(RBF(0.2)).fit(x[:, None], np.arange(count) // 3 % 2).noise_ == noise
        both = GPClassifier("auto").fit(0.05 + 0.9 * np.column_stack([x, 1.0 - x]), np.arange(count) // 2 % 2)
        assert isinstance(both.kernel_, kind)
        assert both.noise_ == noise
    monkeypatch.setattr(limits, "AUTO_KERNEL_UP_TO", 300)
    assert not isinstance(GPClassifier("auto").fit(X, y).kernel_, HIK)
    assert isinstance(GPClassifier("auto").fit(np.vstack([X, Z[:1]]), np.append(y, t[:1])).kernel_, HIK)


def test_numbers_and_members_choose_nothing() -> None:
    assert Automatic() == (False, False, False)
    values = X[:, :1] - X[:, 1:2]
    found = Automatic(True, True, True).choose(X, RBF(4.0).gram(X), values, DensityLosses.of(values, None), 0.25, 0)
    assert found == (None, 0.25)


def test_what_is_chosen_is_reported_before_it_is_done() -> None:
    for kernel, what in (("auto", "choosing the kernel"), (None, "choosing the noise")):
        heard: list[tuple[str, float]] = []
        with listening(lambda what, done, heard=heard: heard.append((what, done))):
            GPClassifier(kernel).fit(X[:60], y[:60])
        assert [done for said, done in heard if said == what][:1] == [0.0]
