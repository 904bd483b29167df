"""Terminals and pipes that cannot show a character: it is spelled out, and no command ends in a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Data


def run(folder: Path, *arguments: str, encoding: str = "ascii") -> subprocess.CompletedProcess[bytes]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUTF8"} | {"PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "saccade", *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=False)


@pytest.mark.parametrize(
    "arguments", [["--help"], *([name, "--help"] for name in ("fit", "predict", "novelty", "find"))]
)
def test_help(tmp_path: Path, arguments: list[str]) -> None:
    shown = run(tmp_path, *arguments)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.isascii()
    assert b"Usage" in shown.stdout
    assert b"\\u" not in shown.stdout  # every character of ours has a spelling
    assert not shown.stderr


def test_results_errors_and_names(data: Data, tmp_path: Path) -> None:
    names = np.array(["Bär", "bee", "→"])[data.y]
    np.savez(tmp_path / "a.npz", X=data.X, y=names)
    trained = run(tmp_path, "fit", "a.npz", "grün.saccade")
    assert trained.returncode == 0, trained.stderr
    assert rb"gr\xfcn.saccade" in trained.stdout
    known = run(tmp_path, "info", "grün.saccade", encoding="latin-1")
    assert "Bär" in known.stdout.decode("latin-1")
    assert b"->" in known.stdout
    answers = run(tmp_path, "predict", "grün.saccade", "a.npz", "--out", "-")
    assert answers.returncode == 0, answers.stderr
    assert answers.stdout.isascii()
    assert rb"B\xe4r" in answers.stdout
    refused = run(tmp_path, "info", "rötlich.saccade")
    assert refused.returncode == 2
    assert rb"r\xf6tlich" in refused.stderr
    assert b"Traceback" not in refused.stderr


def test_bytes_of_a_file_name_stay_bytes(data: Data, tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.saccade")
    np.savez(tmp_path / "a.npz", X=data.X, y=data.y)
    assert b"\xff.saccade" in run(tmp_path, "fit", "a.npz", name).stdout
