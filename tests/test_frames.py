"""How far it is from a call to the compiled loop or LAPACK, which a reader has to follow. CONTRIBUTING.md draws it.

`pytest -s tests/test_frames.py` prints the deepest chain of every call.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import saccade
from saccade import SVDD, GPClassifier, GPRegressor, OneClassGP
from saccade.datasets.synthetic import histograms
from saccade.kernels import HIK, RBF, Centred, Linear, Power
from saccade.operators import encode_loops, few_loops, gradient_loops, loops, predict_loops, table_loops, vector_loops

MOST = 11
SOLVING = 9  # of conjugate gradients, where most of the time goes
ROOT = str(Path(saccade.__file__).parent)
LAPACK = tuple(str(Path(module.__file__).parent) for module in (scipy.linalg, np.linalg))
LOOPS = (encode_loops, few_loops, gradient_loops, loops, predict_loops, table_loops, vector_loops)
Chain = list[str]

X, Y = histograms(160, D=30, nonzeros=10, rng=np.random.default_rng(0))
NEW = X[:5]
ROWS = X.toarray()
MODELS: dict[str, Callable[[], Any]] = {
    "classifier": lambda: GPClassifier(),
    "classifier, Cholesky": lambda: GPClassifier(solver="cholesky", variance="exact"),
    "classifier, conjugate gradients": lambda: GPClassifier(solver="cg"),
    "classifier, 32 levels": lambda: GPClassifier(solver="cg", levels=32),
    "classifier, Laplace": lambda: GPClassifier(inference="laplace"),
    "classifier, Laplace by cg": lambda: GPClassifier(inference="laplace", solver="cg"),
    "classifier, EP": lambda: GPClassifier(inference="ep"),
    "classifier, tuned": lambda: GPClassifier(HIK(Power(1.0)), tune="loo"),
    "classifier, tuned by evidence": lambda: GPClassifier(HIK(Power(1.0)), tune="evidence", solver="cg"),
    "classifier, automatic kernel": lambda: GPClassifier("auto"),
    "classifier, any kernel": lambda: GPClassifier(RBF(1.0)),
    "classifier, sum of kernels": lambda: GPClassifier(RBF(1.0) + HIK()),
    "regressor": lambda: GPRegressor(),
    "regressor, conjugate gradients": lambda: GPRegressor(solver="cg"),
    "regressor, any kernel": lambda: GPRegressor(RBF(1.0)),
    "one class": lambda: OneClassGP(),
    "one class, Laplace": lambda: OneClassGP(inference="laplace"),
    "one class, centred": lambda: OneClassGP(Centred(Linear())),
    "one class, optimized": lambda: OneClassGP(approximation="optimized"),
    "ball": lambda: SVDD(),
}
QUESTIONS = ("predict", "predict_proba", "decision_function", "novelty", "score_samples", "latent_mean_and_variance")


def chain(frame: FrameType | None) -> Chain:
    """The functions of saccade that are being called, the outermost first."""
    found: Chain = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(ROOT):
            path = Path(frame.f_code.co_filename).relative_to(ROOT)
            found.append(f"{path.as_posix()}:{frame.f_code.co_name}")
        frame = frame.f_back
    return found[::-1]


class Chains:
    """The chains of the calls of compiled loops and LAPACK by the main thread, each once."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.found: dict[tuple[str, ...], None] = {}
        for module in LOOPS:
            for name, loop in vars(module).items():
                if hasattr(loop, "py_func") and not name.startswith("_"):  # those with "_" are parts of compiled loops
                    patch.setattr(module, name, self._recording(loop))

    def _recording(self, loop: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*arguments: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                self.found.setdefault(tuple(chain(sys._getframe(1))))
            return loop(*arguments)

        return recorded

    @contextmanager
    def of(self, name: str) -> Iterator[list[Chain]]:
        """Those of one call."""
        self.found.clear()
        found: list[Chain] = []
        sys.setprofile(self._profile)
        try:
            yield found
        finally:
            sys.setprofile(None)
            found += sorted(map(list, self.found), key=len)
            if found:
                print(f"\n{len(found[-1]):3d}  {name}: {' → '.join(found[-1])}", end="")

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_back is not None:
            here, before = frame.f_code.co_filename, frame.f_back.f_code.co_filename
            if here.startswith(LAPACK) and before.startswith(ROOT):
                self.found.setdefault(tuple(chain(frame)))


@pytest.fixture
def chains(monkeypatch: pytest.MonkeyPatch) -> Chains:
    """Loops do their work as ever; two threads take the longer way, also on a machine with one core."""
    monkeypatch.setenv("SACCADE_NUM_THREADS", "2")
    return Chains(monkeypatch)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_every_chain_is_short(name: str, chains: Chains) -> None:
    model, rows = MODELS[name](), ROWS if "centred" in name else X
    with chains.of(f"{name}.fit") as found:
        model.fit(rows[:150], Y[:150])
    every = [*found]
    if hasattr(model, "partial_fit"):
        with chains.of(f"{name}.partial_fit") as found:
            model.partial_fit(rows[150:], Y[150:])
        every += found
    for question in QUESTIONS:
        if hasattr(model, question):
            with chains.of(f"{name}.{question}") as found:
                getattr(model, question)(rows[:5])
            every += found
    assert every  # loops were seen
    for one in every:
        assert len(one) <= MOST, one


@pytest.mark.parametrize("levels", [None, 32])
def test_from_fit_to_the_product(levels: int | None, chains: Chains) -> None:
    model = GPClassifier(levels=levels, solver="cg")
    with chains.of("fit") as found:
        model.fit(X, Y)
    solving = [c for c in found if "inference/solving/regression.py:solve solvers/cg.py:solve_cg" in " ".join(c)]
    assert solving
    for one in solving:
        assert one[0] == "estimators/classifier.py:fit"
        assert len(one) <= SOLVING, one
