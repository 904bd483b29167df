"""OpenCV, imported where it is needed; it works in the thread that calls it and in no other.

Saccade shares pictures out over threads itself. OpenCV would start a thread per core inside each of ours, also for
n_jobs=1, and its pool of threads does not survive a fork.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from saccade.features.process_setting import ProcessSetting


@contextmanager
def opencv() -> Iterator[Any]:
    """The module cv2, which starts no threads within the block."""
    cv2 = _cv2()
    with _single_thread():
        yield cv2


def _one_thread() -> Callable[[], None]:
    cv2 = _cv2()
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    return lambda: cv2.setNumThreads(before)


_single_thread = ProcessSetting(_one_thread)


def _cv2() -> Any:
    try:
        import cv2
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "SIFT and PHOG need OpenCV: pip install 'saccade[pictures]'", name=error.name
        ) from None
    return cv2
