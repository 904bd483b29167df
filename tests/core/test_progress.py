"""Reports reach the listener of their own thread, and nobody else."""

from __future__ import annotations

import threading

import pytest

from saccade._core.progress import listening, report


def test_nobody_listens_and_nothing_happens(capsys: pytest.CaptureFixture[str]) -> None:
    report("solving", 0.5)
    assert capsys.readouterr() == ("", "")


def test_a_listener_hears_what_is_reported_in_its_block() -> None:
    heard: list[tuple[str, float]] = []
    with listening(lambda what, done: heard.append((what, done))):
        report("solving", 0.25)
        report("tuning", 1.0)
    report("solving", 0.75)
    assert heard == [("solving", 0.25), ("tuning", 1.0)]


def test_the_share_done_stays_between_0_and_1() -> None:
    heard: list[float] = []
    with listening(lambda _, done: heard.append(done)):
        for done in (-0.5, 0.0, 0.5, 1.0, 1.5):
            report("solving", done)
    assert heard == [0.0, 0.0, 0.5, 1.0, 1.0]


def test_the_inner_listener_hears_and_the_outer_one_again_afterwards() -> None:
    outer: list[str] = []
    inner: list[str] = []
    with listening(lambda what, _: outer.append(what)):
        with listening(lambda what, _: inner.append(what)):
            report("inside", 0.0)
        report("outside", 0.0)
    assert (outer, inner) == (["outside"], ["inside"])


def test_an_error_in_the_block_ends_the_listening() -> None:
    heard: list[str] = []
    with pytest.raises(KeyError), listening(lambda what, _: heard.append(what)):
        raise KeyError("lost")
    report("solving", 0.5)
    assert heard == []


def test_another_thread_is_not_heard() -> None:
    heard: list[str] = []
    with listening(lambda what, _: heard.append(what)):
        thread = threading.Thread(target=report, args=("elsewhere", 0.5))
        thread.start()
        thread.join()
    assert heard == []
