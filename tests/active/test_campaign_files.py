"""Campaigns in files: a saved one goes on where it was; another pool, another model and forged files are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from saccade import GPClassifier
from saccade._core import limits, model_file
from saccade._core.errors import InvalidInput, ModelFileError
from saccade.active import ActiveLearner
from saccade.kernels import RBF
from tests.active.test_learner import DIGITS, TRUTH, X, assert_same, campaign, y


def test_a_saved_campaign_asks_the_same(tmp_path: Path) -> None:
    learner = campaign(rounds=4, k=15, costs=np.linspace(1.0, 2.0, 300), strategy="uncertainty")
    learner.tell([3, 4], [None, 8])
    learner.save(tmp_path / "c.saccade")
    again = ActiveLearner.load(tmp_path / "c.saccade", X)
    assert_same(again, learner)
    for one in (again, learner):
        rows = one.ask(9)
        one.tell(rows, y[rows])
    assert_same(again, learner)
    for one in (again, learner):
        one.undo()
        one.undo()
    assert_same(again, learner)


def test_answers_taken_back_before_saving(tmp_path: Path) -> None:
    """What is forgotten and observed again comes last in the posterior, and not in the answers."""
    learner = campaign()
    known = [row for row in learner.labels if not learner.is_audit(row)]
    learner.tell(known[:2], [None, None])
    learner.undo()
    learner.save(tmp_path / "c.saccade")
    assert_same(ActiveLearner.load(tmp_path / "c.saccade", X), learner)


def test_parameters_in_a_file(tmp_path: Path) -> None:
    learner = campaign(model=GPClassifier(noise=np.float32(0.5), levels=np.int64(16)))
    learner.save(tmp_path / "c.saccade")
    again = ActiveLearner.load(tmp_path / "c.saccade", X)
    assert (again.given.noise, again.given.levels) == (0.5, 16)
    assert_same(again, learner)
    with pytest.raises(ModelFileError, match="not those of its answers with this model"):
        ActiveLearner.load(tmp_path / "c.saccade", X, GPClassifier(noise=7.0, levels=16))
    model = GPClassifier(random_state=np.random.RandomState(1))
    campaign(model=model).save(tmp_path / "d.saccade")
    with pytest.raises(ModelFileError, match=r"cannot keep .*random_state.* Pass model="):
        ActiveLearner.load(tmp_path / "d.saccade", X)
    assert ActiveLearner.load(tmp_path / "d.saccade", X, model).labels


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        (None, "seed", -1),
        (None, "seed", 1e300),
        (None, "history", [[[999], [1]]]),
        (None, "history", [[[1], [[1]]]]),
        (None, "strategy", "novel"),
        ("audit", "rows", [10**9]),
        ("audit", "rows", list(range(300))),
        ("model", "parameters", {"noise": 5.0}),
        ("model", "parameters", {"evil": 1}),
        ("tensors", "variance", -1.0),
        ("tensors", "variance", 1e300),
        ("tensors", "variance", 5.0),  # more than before any label
        ("tensors", "variance", np.float32),
        ("tensors", "mean", 0.0),
    ],
)
def test_a_forged_file_is_refused(tmp_path: Path, part: str | None, name: str, value: Any) -> None:
    """A file whose digest is right, and whose content is not."""
    learner = ActiveLearner(X, audit=0.0)
    learner.tell([0, 1], [0, 1])
    learner.save(tmp_path / "c.saccade")
    header, tensors = model_file.read(tmp_path / "c.saccade")
    if part == "tensors":
        tensors[name] = tensors[name].astype(value) if value is np.float32 else np.full_like(tensors[name], value)
    else:
        (header if part is None else header[part])[name] = value
    model_file.write(tmp_path / "c.saccade", header, tensors)
    with pytest.raises(ModelFileError):
        ActiveLearner.load(tmp_path / "c.saccade", X)


def test_a_campaign_from_products(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a large pool: no kernel matrix is held."""
    small = campaign()
    monkeypatch.setattr(limits, "POOL_DENSE_UP_TO", 10)
    large = campaign()
    assert_same(large, small)
    monkeypatch.setattr(limits, "POOL_EXACT_NUMBERS", 10)
    assert campaign().model.score(X, y) > 0.6
    large.save(tmp_path / "c.saccade")
    assert_same(ActiveLearner.load(tmp_path / "c.saccade", X), large)


def test_a_file_has_the_numbers_of_the_posterior(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the start, the variance of a large pool is a bound; the file has it as it was, step by step."""
    learner = campaign()
    learner.save(tmp_path / "c.saccade")
    for name, value in (("OBSERVED_ONE_BY_ONE", 5), ("FIELD_NUMBERS", 0), ("FIELD_DIRECTIONS", 3)):
        monkeypatch.setattr(limits, name, value)
    assert_same(ActiveLearner.load(tmp_path / "c.saccade", X), learner)


def test_a_pool_that_grew(tmp_path: Path) -> None:
    learner = campaign()
    learner.save(tmp_path / "c.saccade")
    again = ActiveLearner.load(tmp_path / "c.saccade", DIGITS[:400])
    assert again.labels == learner.labels
    assert again.ask(300).max() >= 300  # new rows are asked too


def test_costs_of_new_rows_are_the_median(tmp_path: Path) -> None:
    campaign(costs=np.r_[np.full(100, 1.0), np.full(200, 5.0)]).save(tmp_path / "c.saccade")
    again = ActiveLearner.load(tmp_path / "c.saccade", DIGITS[:310])
    assert again.costs is not None
    assert again.costs[[0, 100, 300, 309]].tolist() == [1.0, 5.0, 5.0, 5.0]


def test_a_pool_that_grew_by_new_classes_is_audited_anew(tmp_path: Path) -> None:
    """The rule said stop for five classes. It says so again only when the model is good at all ten."""
    order = np.argsort(TRUTH >= 5, kind="stable")[600:1200]  # 300 rows of the first five classes, 300 of the others
    pool, truth = DIGITS[order], TRUTH[order]
    learner = ActiveLearner(pool[:300], audit=0.3, random_state=0)
    while not learner.should_stop(0.7):
        rows = learner.ask(20)
        learner.tell(rows, truth[rows])
    learner.save(tmp_path / "c.saccade")
    again = ActiveLearner.load(tmp_path / "c.saccade", pool)
    assert (again.model.predict(pool) == truth).mean() < 0.6
    assert not again.should_stop(0.7)
    assert (again.audit.rows >= 300).sum() == 90  # three tenths of the new rows
    assert np.isnan(again.accuracy().estimate) or again.accuracy().high > 0.5
    first, asked = again.is_audit(np.arange(600)), list[int]()
    while not again.should_stop(0.7):
        rows = again.ask(20)
        asked += rows.tolist()
        again.tell(rows, truth[rows])
    assert (again.model.predict(pool) == truth).mean() > 0.7
    assert np.isin(asked, again.audit.rows).mean() < 0.5
    assert (first == again.is_audit(np.arange(600))).all()
    seen = again.audit.in_turn(np.fromiter(again.labels, int))[: again.accuracy().audited]
    assert again.accuracy().estimate == (again.model.predict(pool[seen]) == truth[seen]).mean()
    again.save(tmp_path / "d.saccade")
    assert_same(ActiveLearner.load(tmp_path / "d.saccade", pool), again)


def test_answers_from_before_the_pool_grew_count_in_their_turn(tmp_path: Path) -> None:
    """A few more rows of one kind: the next look comes at once, at rows up to the first new one."""
    learner = ActiveLearner(DIGITS[:300], audit=0.3, random_state=0)
    rows = np.arange(300)
    learner.tell(rows, TRUTH[rows])
    learner.save(tmp_path / "c.saccade")
    again = ActiveLearner.load(tmp_path / "c.saccade", DIGITS[:303])
    (new,) = np.flatnonzero(again.audit.rows >= 300)
    assert again.accuracy().audited == (new if new >= 16 else 0)
    assert again.accuracy().labels == 210
    again.tell([300, 301, 302], TRUTH[[300, 301, 302]])
    assert again.accuracy().audited == 91
    assert again.accuracy().curve[0].audited <= 91


def test_another_pool_is_refused(tmp_path: Path) -> None:
    campaign().save(tmp_path / "c.saccade")
    changed = X.copy()
    changed[17, 3] += 1.0
    for other in (changed, X[:200], X[::-1], X[:, :30]):
        with pytest.raises(InvalidInput, match="belongs to another pool"):
            ActiveLearner.load(tmp_path / "c.saccade", other)
    assert ActiveLearner.load(tmp_path / "c.saccade", sp.csr_matrix(X)).labels  # the same numbers, held otherwise


def test_other_files_are_refused(tmp_path: Path) -> None:
    GPClassifier().fit(X, y).save(tmp_path / "m.saccade")
    with pytest.raises(
        ModelFileError, match="is 'GPClassifier' of version 1, and ActiveLearner of version 1 is needed"
    ):
        ActiveLearner.load(tmp_path / "m.saccade", X)
    (tmp_path / "t.saccade").write_bytes(b"nothing")
    with pytest.raises(ModelFileError, match="not a model file"):
        ActiveLearner.load(tmp_path / "t.saccade", X)
    campaign().save(tmp_path / "c.saccade")
    whole = (tmp_path / "c.saccade").read_bytes()
    (tmp_path / "c.saccade").write_bytes(whole[:-9] + b"123456789")
    with pytest.raises(ModelFileError, match="was changed after"):
        ActiveLearner.load(tmp_path / "c.saccade", X)


def test_a_kernel_that_a_file_cannot_keep(tmp_path: Path) -> None:
    model = GPClassifier(RBF(20.0))
    learner = campaign(model=model)
    learner.save(tmp_path / "c.saccade")
    with pytest.raises(ModelFileError, match="Pass model="):
        ActiveLearner.load(tmp_path / "c.saccade", X)
    assert_same(ActiveLearner.load(tmp_path / "c.saccade", X, model), learner)


def test_rows_like_no_other_come_back(tmp_path: Path) -> None:
    """A row of zeros has no variance, and a row apart from all others as much as before any answer."""
    pool = np.zeros((40, 70))
    pool[:38, :64] = X[:38]
    pool[39, 64:] = 5.0
    learner = ActiveLearner(pool, GPClassifier(), audit=0.0, random_state=0)
    learner.save(tmp_path / "before.saccade")
    assert_same(ActiveLearner.load(tmp_path / "before.saccade", pool), learner)
    learner.tell([0, 1, 38], [0, 1, 1])
    learner.save(tmp_path / "c.saccade")
    again = ActiveLearner.load(tmp_path / "c.saccade", pool)
    assert_same(again, learner)
    assert again.field.variance[38] == 0.0
    assert again.field.variance[39] == again.field.prior[39]


@pytest.mark.parametrize(
    ("name", "value"), [("variance", -0.1), ("variance", 1e3), ("variance", np.nan), ("mean", 9.0)]
)
def test_one_forged_number_is_enough(tmp_path: Path, name: str, value: float) -> None:
    campaign().save(tmp_path / "c.saccade")
    header, tensors = model_file.read(tmp_path / "c.saccade")
    tensors[name] = tensors[name].copy()
    tensors[name].flat[7] = value
    model_file.write(tmp_path / "c.saccade", header, tensors)
    with pytest.raises(ModelFileError):
        ActiveLearner.load(tmp_path / "c.saccade", X)
