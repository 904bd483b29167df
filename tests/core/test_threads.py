"""Work shared out over threads: everything is done once, errors come home, and nothing hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade._core import threads
from saccade._core.errors import InvalidParameter
from saccade._core.threads import share, spans, thread_count

PATIENCE = 30.0  # seconds after which a thread counts as hanging


# ---------------------------------------------------------------- spans and numbers


@given(total=st.integers(0, 60), parts=st.integers(1, 70))
def test_spans_cover_everything_once_and_evenly(total: int, parts: int) -> None:
    runs = spans(total, parts)
    assert [i for first, last in runs for i in range(first, last)] == list(range(total))
    assert len(runs) == min(parts, total)
    lengths = [last - first for first, last in runs]
    assert not lengths or (min(lengths) >= 1 and max(lengths) - min(lengths) <= 1)


@pytest.mark.parametrize("wish", ["0", "-1", "two", "", "1.5", "²", "1e3"])
def test_a_bad_number_of_threads_is_named(wish: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_NUM_THREADS", wish)
    with pytest.raises(InvalidParameter, match=f"SACCADE_NUM_THREADS must be .* got '{wish}'. Unset it"):
        thread_count()


def test_the_number_of_threads_is_what_is_asked_for_or_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_NUM_THREADS", "7")
    assert thread_count() == 7
    monkeypatch.delenv("SACCADE_NUM_THREADS")
    assert 1 <= thread_count() <= (os.cpu_count() or 1)


# ---------------------------------------------------------------- sharing


@pytest.mark.parametrize("total", [0, 1, 2, 10])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_share_runs_every_span_in_its_own_thread(total: int, count: int) -> None:
    seen: dict[int, tuple[int, int, str]] = {}
    together = threading.Barrier(min(total, count) or 1)  # passes only if all run at once

    def work(thread: int, first: int, last: int) -> None:
        together.wait(PATIENCE)
        seen[thread] = first, last, threading.current_thread().name

    assert share(work, total, count) == len(spans(total, count))
    assert [seen[k][:2] for k in range(len(seen))] == spans(total, count)
    assert len({name for _, _, name in seen.values()}) == len(seen)
    assert all(name.startswith("saccade") == (k > 0) for k, (_, _, name) in seen.items())


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_comes_home_after_all_have_stopped(failing: int) -> None:
    finished: list[int] = []

    def work(thread: int, first: int, last: int) -> None:
        if thread == failing:
            raise KeyError("lost")
        time.sleep(0.05)
        finished.append(thread)

    with pytest.raises(KeyError, match="lost"):
        share(work, 3, 3)
    assert sorted(finished) == [k for k in range(3) if k != failing]
    assert share(lambda *_: None, 3, 3) == 3  # and the threads serve on


def test_the_threads_are_kept() -> None:
    """Starting one costs as much as a small product."""
    seen: set[threading.Thread] = set()
    for _ in range(5):
        share(lambda *_: seen.add(threading.current_thread()), 2, 2)
    assert len(seen) == 2


def test_two_callers_share_the_same_threads() -> None:
    results: list[int] = []

    def sums() -> None:
        for _ in range(50):
            parts = [0, 0, 0]

            def work(thread: int, first: int, last: int, parts: list[int] = parts) -> None:
                parts[thread] = sum(range(first, last))

            share(work, 100, 3)
            results.append(sum(parts))

    callers = [threading.Thread(target=sums, daemon=True) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(PATIENCE)
    assert results == [sum(range(100))] * 100


NESTED = """
from saccade._core.threads import share

done = []

def inner(thread, first, last):
    done.extend(range(first, last))

def outer(thread, first, last):
    for _ in range(first, last):
        share(inner, 6, 2)

share(outer, 4, 2)
assert sorted(done) == sorted([*range(6)] * 4)
"""


def test_work_may_share_out_again() -> None:
    """In a process of its own: threads that wait for each other would keep this one from ending."""
    subprocess.run([sys.executable, "-c", NESTED], check=True, timeout=PATIENCE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_starts_its_own_threads() -> None:
    together = threading.Barrier(3)
    share(lambda *_: together.wait(PATIENCE) and None, 3, 3)  # every thread of the pool has started
    assert len(threads._helpers) >= 2
    child = os.fork()
    if child == 0:  # no pytest in here: only an exit status goes home
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(int(PATIENCE))  # ends a child that hangs
            seen: list[int] = []
            share(lambda thread, first, last: seen.append(last - first), 9, 3)
            code = 0 if seen == [3, 3, 3] else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert share(lambda *_: None, 3, 3) == 3


@pytest.mark.parametrize("where", ["begin", "end"])
def test_an_interrupt_at_any_line_neither_hangs_nor_loses_work(where: str) -> None:
    """KeyboardInterrupt may arrive between any two lines of the caller: here at each of them in turn."""
    code = getattr(threads._Helper, where).__code__
    seen = np.zeros(8, int)

    def work(_: int, first: int, last: int) -> None:
        time.sleep(0.002)
        seen[first:last] += 1

    interrupted, line = 0, 0
    while True:
        left = line

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal left
            if frame.f_code is code and event == "line":
                left -= 1
                if left == -1:
                    raise KeyboardInterrupt
            return trace

        seen[:] = 0
        sys.settrace(trace)
        try:
            share(work, 8, 2)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(None)
        share(work, 8, 2)  # waits for a helper that nobody waited for
        seen[:] = 0
        share(work, 8, 2)  # and all goes on
        np.testing.assert_array_equal(seen, np.ones(8))
        if left >= 0:
            break
        line += 1
    assert interrupted > 3
