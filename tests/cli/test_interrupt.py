"""Ctrl-C, at work and while the file is written: status 130, one word, nothing left behind."""

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def can_be_interrupted() -> None:
    """Whoever started the tests in the background may have switched it off."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def long_work(tmp_path: Path) -> list[str]:
    """A fit that takes minutes: almost no noise, and a thousand iterations."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(12_000, 300)).astype(np.float32)
    np.savez(tmp_path / "a.npz", X=X, y=rng.integers(0, 8, len(X)))
    return [sys.executable, "-m", "saccade", "fit", "a.npz", "m.saccade", "--noise", "1e-9"]


def test_during_a_long_fit(long_work: list[str], tmp_path: Path) -> None:
    """On a terminal, where a bar appears after a second; then it is stopped."""
    main, other = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
    process = subprocess.Popen(
        long_work, stdout=other, stderr=other, cwd=tmp_path, env=environment, preexec_fn=can_be_interrupted
    )
    os.close(other)
    shown = ""
    for word in ("solving|preconditioning", r"Stopped\."):
        while not re.search(word, shown):
            shown += os.read(main, 65_536).decode(errors="replace")
        process.send_signal(signal.SIGINT) if "Stopped" not in word else None
    assert process.wait(timeout=120) == 130
    assert "Traceback" not in shown
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]
    os.close(main)


WHILE_WRITING = """
import os, signal, time
original = os.replace
def replace(source, target):
    if os.path.basename(target) != "m":  # compiled loops are cached in the same way
        return original(source, target)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
os.replace = replace
from saccade.cli import main
main()
"""


@pytest.mark.parametrize("command", ["fit", "predict", "novelty"])
def test_while_the_file_is_written(command: str, tmp_path: Path, model: Path, data: Any) -> None:
    np.savez(tmp_path / "a.npz", X=data.X, y=data.y)
    arguments = {
        "fit": ["fit", "a.npz", "m"],
        "predict": ["predict", model.name, "a.npz", "--out", "m"],
        "novelty": ["novelty", "a.npz", "a.npz", "--out", "m"],
    }[command]
    run = subprocess.run(
        [sys.executable, "-c", WHILE_WRITING, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        preexec_fn=can_be_interrupted,
    )
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "Stopped.\n")
    assert {p.name for p in tmp_path.iterdir()} == {"a.npz", model.name}
