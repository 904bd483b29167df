"""OpenCV stays in the thread that calls it, and the caller's own setting comes back."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import cv2
import pytest

from saccade.features.opencv import opencv


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = cv2.getNumThreads()
    cv2.setNumThreads(3)
    yield
    cv2.setNumThreads(before)


def test_one_thread_within_and_the_setting_of_before_after(three_threads: None) -> None:
    with opencv() as module:
        assert module is cv2
        with opencv():
            assert cv2.getNumThreads() == 1
        assert cv2.getNumThreads() == 1
    assert cv2.getNumThreads() == 3


def test_the_setting_comes_back_after_an_error(three_threads: None) -> None:
    with pytest.raises(cv2.error), opencv():
        cv2.resize(None, (1, 1))
    assert cv2.getNumThreads() == 3


def test_the_last_of_several_threads_brings_the_setting_back(three_threads: None) -> None:
    together = Barrier(4)

    def work(_: int) -> int:
        with opencv():
            together.wait(timeout=60)
            return int(cv2.getNumThreads())

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [1] * 4
    assert cv2.getNumThreads() == 3


def test_without_opencv_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'saccade\[pictures\]'"), opencv():
        pass
