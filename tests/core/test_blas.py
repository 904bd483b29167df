"""One thread a product within the block, and the process's own number after it."""

import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import saccade
from saccade._core import blas, limits
from saccade._core.blas import blas_threads_for, one_blas_thread
from saccade.features.lazy import stream
from saccade.kernels import HIK, RBF


def blas_threads() -> set[int]:
    """Of every BLAS that is loaded; some builds of OpenCV bring one that has one thread whatever is said."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blocks_that_overlap_leave_the_setting_as_it_was() -> None:
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        assert 3 in before
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        assert blas_threads() == {1}
        first.__exit__(None, None, None)  # not the last that came in
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


def test_an_error_in_the_block_leaves_the_setting_as_it_was() -> None:
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        with pytest.raises(ValueError, match="matmul"), one_blas_thread():
            np.ones((2, 3)) @ np.ones((2, 3))
        assert blas_threads() == before


def test_libraries_are_looked_for_again_after_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    with one_blas_thread():
        pass
    known = blas._controller()
    assert blas._controller() is known
    monkeypatch.setitem(sys.modules, "a_module_with_a_blas_of_its_own", ModuleType("a_module"))
    assert blas._controller() is not known


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_stream_works_with_one_blas_thread(n_jobs: int) -> None:
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        assert list(stream(lambda _: blas_threads(), range(5), n_jobs)) == [{1}] * 5
        left = stream(lambda _: 0, range(50), n_jobs)
        next(left)
        left.close()
        assert blas_threads() == before


def test_large_matrices_have_the_threads_that_are_set() -> None:
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        with blas_threads_for(limits.ONE_BLAS_THREAD_UP_TO + 1):
            assert blas_threads() == before
        with blas_threads_for(limits.ONE_BLAS_THREAD_UP_TO):
            assert blas_threads() == {1}
        assert blas_threads() == before


ALGEBRA = {
    "saccade.solvers.cholesky": {"factorise", "solve", "inverse_diagonal", "inverse", "grown"},
    "saccade.inference.solving.conditional": {"_half_norms"},
    "saccade.inference.approximations.low_rank": {"_leading", "_explaining"},
    "numpy.linalg._linalg": {"qr", "eigh"},
}


def test_algebra_of_few_rows_has_one_thread(tmp_path: Path) -> None:
    """Else threads of BLAS spin between small products: they took half the time of the README example."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:240], y[:240]
    threads = defaultdict[str, set[int]](set)
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers

    def look(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_name
        if event == "call" and name in ALGEBRA.get(frame.f_globals.get("__name__", ""), ()):
            threads[name].update(library.num_threads for library in libraries)

    with threadpool_limits(3, user_api="blas"):
        sys.setprofile(look)
        try:
            model = saccade.GPClassifier(HIK(scale=0.01)).fit(X[:200], y[:200])
            model.novelty(X[200:])
            model.save(tmp_path / "digits.saccade")
            gp = model.gp_
            replace(gp, solution=replace(gp.solution, factors=())).evidence()  # as where labels were iterated
            model.partial_fit(X[200:], y[200:])
            saccade.GPClassifier("auto").fit(X[:100], y[:100])
            saccade.OneClassGP(RBF()).fit(X[y == 3]).predict(X)
        finally:
            sys.setprofile(None)
    assert threads == {name: {1} for names in ALGEBRA.values() for name in names}
