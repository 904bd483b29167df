"""OpenCV, imported where it is needed; it works in the thread that calls it and in no other.

Saccade shares pictures out over threads itself. OpenCV would start a thread per core inside each of ours, also for
n_jobs=1, and its pool of threads does not survive a fork.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

_lock = Lock()
_inside = 0
_usual = 1


@contextmanager
def opencv() -> Iterator[Any]:
    """The module cv2, which starts no threads within the block.

    The setting holds for the whole process, so blocks are counted, and the last one restores it.
    """
    global _inside, _usual
    cv2 = _cv2()
    with _lock:
        if not _inside:
            _usual = cv2.getNumThreads()
            cv2.setNumThreads(1)
        _inside += 1
    try:
        yield cv2
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                cv2.setNumThreads(_usual)


def _cv2() -> Any:
    """The module, or an error that names the extra."""
    try:
        import cv2
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "SIFT and PHOG need OpenCV: pip install 'saccade[pictures]'", name=error.name
        ) from None
    return cv2
