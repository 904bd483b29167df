"""Files are whole or not there: with a full disk, after kill −9, and under any umask."""

import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from saccade import GPClassifier
from saccade._core import atomic
from saccade._core.atomic import replacing
from saccade._core.errors import ModelFileError
from saccade.localize import Localizer

WRITER = """
import sys, pathlib
from saccade._core.atomic import replacing
with replacing(pathlib.Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Within the block no file grows beyond so many bytes: writing fails as on a full disk, with another number."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def writing(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process in the middle of writing."""
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        yield process


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_bytes(b"before")
    with full_disk(1000), pytest.raises(OSError, match="File too large") as caught, replacing(path) as file:
        file.write(bytes(100_000))
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["answers.csv"]


def test_a_model_on_a_full_disk(tmp_path: Path) -> None:
    X = np.random.default_rng(0).random((40, 20))
    model = GPClassifier().fit(X, X[:, 0] > 0.5)
    model.save(tmp_path / "m.saccade")  # so that loops are compiled
    (tmp_path / "m.saccade").unlink()
    with full_disk(1000), pytest.raises(ModelFileError, match=r"m\.saccade: File too large"):
        model.save(tmp_path / "m.saccade")
    assert not os.listdir(tmp_path)


def test_a_search_on_a_full_disk(tmp_path: Path) -> None:
    Localizer((100, 100)).run(lambda boxes: boxes[:, 0] / 100.0, looks=4, batch=2)  # so that loops are compiled
    search = Localizer((100, 100), random_state=0)
    with full_disk(100), pytest.raises(OSError, match=r"state\.json"):
        search.run(lambda boxes: boxes[:, 0] / 100.0, looks=4, batch=2, state=tmp_path / "state.json")
    assert search.looks == 2  # they are not lost
    assert not os.listdir(tmp_path)


def test_an_error_of_the_block_keeps_its_own_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "a"):
        (tmp_path / "b").read_bytes()
    assert caught.value.filename == str(tmp_path / "b")


def test_a_missing_folder_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "no" / "a.csv"):
        pass
    assert caught.value.filename == str(tmp_path / "no" / "a.csv")


def test_what_kill_9_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "model.saccade"
    with writing(path) as process:
        os.kill(process.pid, signal.SIGKILL)
    assert [name for name in os.listdir(tmp_path) if name.endswith(".part")]
    (tmp_path / "model.saccade.my.part").write_bytes(b"somebody's own")
    with replacing(path) as file:
        file.write(b"whole")
    assert sorted(os.listdir(tmp_path)) == ["model.saccade", "model.saccade.my.part"]


def test_what_another_process_is_writing_stays(tmp_path: Path) -> None:
    path = tmp_path / "model.saccade"
    with writing(path) as process:
        with replacing(path) as file:
            file.write(b"ours")
        assert path.read_bytes() == b"ours"
        _, _ = process.communicate("")
        assert process.returncode == 0
    assert path.read_bytes() == b"half"
    assert os.listdir(tmp_path) == ["model.saccade"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o000])
def test_the_umask_counts(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        with replacing(tmp_path / "a") as file:
            file.write(b"a")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask


def test_the_umask_is_never_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to the process: a file that another thread makes meanwhile would be open to everybody."""
    seen: list[int] = []
    monkeypatch.setattr(os, "umask", lambda mask: seen.append(mask) or 0)
    with replacing(tmp_path / "a") as file:
        file.write(b"a")
    assert not seen


def test_many_threads_write_one_file(tmp_path: Path) -> None:
    def write(number: int) -> None:
        for _ in range(20):
            with replacing(tmp_path / "a") as file:
                file.write(bytes([number]) * 5000)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    content = (tmp_path / "a").read_bytes()
    assert content == content[:1] * 5000
    assert os.listdir(tmp_path) == ["a"]


def test_without_locks_the_remains_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: nothing is removed that another process may be writing."""
    monkeypatch.setattr(atomic, "fcntl", None)
    remains = tmp_path / "a.0123456789abcdef.part"
    remains.write_bytes(b"half")
    with replacing(tmp_path / "a") as file:
        file.write(b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"
    assert remains.exists()
