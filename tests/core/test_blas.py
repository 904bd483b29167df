"""One thread a product within the block, and the process's own number after it."""

import sys
from types import ModuleType

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from saccade._core import blas
from saccade._core.blas import one_blas_thread
from saccade.features.lazy import stream


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
