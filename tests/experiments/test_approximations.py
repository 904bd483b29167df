"""The tasks of A Table 2: nothing is both learned and tested, and what is a bound stays one."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture
def table2(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module("approximations_table2")


def collection(table2: Any, own_test_part: bool) -> Any:
    """Three classes of forty, each with its own few words."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 40)
    X = rng.gamma(0.3, size=(120, 12)) + 2.0 * np.repeat(np.eye(3), 4, axis=1)[np.repeat(np.arange(3), 40)]
    trains = np.tile(np.arange(40) < 24, 3) if own_test_part else np.ones(120, bool)
    tests = ~trains if own_test_part else trains
    return table2.Collection(sp.csr_matrix(X / X.sum(axis=1, keepdims=True)), y, trains, tests)


@pytest.mark.parametrize("own_test_part", [False, True])
def test_tasks_are_honest(table2: Any, own_test_part: bool) -> None:
    data = collection(table2, own_test_part)
    found = list(table2.tasks(data, "b", 3))
    assert len(found) == 3
    size, tested, members = (12, 48, 16) if own_test_part else (20, 100, 20)
    for blocks in found:
        assert blocks.K.shape == (size, size)
        assert blocks.k_star.shape == (size, tested)
        assert blocks.normal.sum() == members
        np.testing.assert_allclose(np.diag(blocks.K), 1.0)
        assert (blocks.k_star < 1.0 - 1e-9).all()  # a training example among the tested ones would have 1
    assert not np.array_equal(found[0].K, found[1].K)


def test_every_method_finds_the_class_and_bounds_hold(table2: Any) -> None:
    blocks = next(table2.tasks(collection(table2, False), "a", 1))
    found = table2.scores(blocks)
    assert set(found) == set(table2.METHODS)
    aucs = table2.auc(blocks.normal, np.stack([found[name] for name in table2.METHODS], axis=1))
    assert aucs.min() > 0.9
    for name in ("FA-Var", "OA-Var"):  # they explain less, so their variance is above
        assert (found[name] <= found["exact-Var"] + 1e-10).all()


def test_summary_counts_classes_that_are_far_from_exact(table2: Any) -> None:
    aucs = {name: [0.9, 0.8, 0.7] for name in table2.METHODS} | {"FA-Var": [0.9, 0.79, 0.696]}
    found = table2.summary(aucs)
    assert found["FA less exact, points of the median"] == {"Var": -1.0, "Mean": 0.0}
    assert found["classes where FA is more than 0.5 from exact"] == {"Var": 1, "Mean": 0}
    assert found["FA less exact, largest difference of a class"]["Var"] == 1.0
