"""How far it is from a call to the compiled loop: what a reader has to follow. CONTRIBUTING.md draws the chains."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import saccade
from saccade import GPClassifier
from saccade.datasets.synthetic import histograms
from saccade.operators import few_loops, loops, predict_loops

MOST = 10
ROOT = Path(saccade.__file__).parent
PRODUCTS = {None: ("sorted_product", "sorted_product_one"), 32: ("histogram", "cumulate", "look_up")}
Chain = list[str]


def chain() -> Chain:
    """The functions of saccade that are being called, the outermost first."""
    found: Chain = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            found.append(f"{path.relative_to(ROOT).as_posix()}:{frame.f_code.co_name}")
        frame = frame.f_back
    return found[::-1]


@pytest.fixture
def chains(monkeypatch: pytest.MonkeyPatch) -> list[Chain]:
    """Filled with the chain of each call of a loop by the main thread; the loops do their work as ever."""
    monkeypatch.setenv("SACCADE_NUM_THREADS", "2")  # the longer way, also on a machine with one core
    found: list[Chain] = []

    def recording(loop: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*arguments: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                found.append(chain())
            return loop(*arguments)

        return recorded

    for module, name in ((predict_loops, "interpolate"), (few_loops, "interpolate_few")):
        monkeypatch.setattr(module, name, recording(getattr(module, name)))
    for name in (*PRODUCTS[None], *PRODUCTS[32]):
        monkeypatch.setattr(loops, name, recording(getattr(loops, name)))
    return found


@pytest.mark.parametrize("levels", PRODUCTS)
def test_from_fit_and_predict_to_the_loop(levels: int | None, chains: list[Chain]) -> None:
    X, y = histograms(3000, D=60, nonzeros=10, rng=np.random.default_rng(0))
    model = GPClassifier(levels=levels, solver="cg").fit(X, y)
    solving = [c for c in chains if "inference/solving/regression.py:_iterate solvers/cg.py:solve_cg" in " ".join(c)]
    assert len(solving) >= model.n_iter_
    for found in solving:
        assert found[0] == "estimators/classifier.py:fit"
        assert len(found) <= MOST, found
    chains.clear()
    model.predict(X[:5])  # makes the tables first
    assert chains[-1][-2:] == ["operators/tables.py:_walk", "_core/threads.py:share_calls"]
    for found in chains:
        assert found[0] == "estimators/classifier.py:predict"
        assert len(found) <= MOST, found
