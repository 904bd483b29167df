"""A small data set, and the command run in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

from saccade._core.arrays import Array
from saccade.cli import app


class Data(NamedTuple):
    """Small counts, so that every file format holds them exactly."""

    X: Array
    y: Array
    new: Array
    truth: Array


@pytest.fixture(scope="session")
def data() -> Data:
    rng = np.random.default_rng(7)
    y = rng.integers(0, 3, 160)
    X = rng.poisson(1.0 + 3.0 * (np.arange(6) % 3 == y[:, None])).astype(np.float64) / 4
    return Data(X[:120], y[:120], X[120:], y[120:])


Saccade = Callable[..., Any]


@pytest.fixture
def saccade(tmp_path: Path, monkeypatch: Any) -> Saccade:
    """Run the command in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, [str(a) for a in arguments])


@pytest.fixture
def model(data: Data, tmp_path: Path) -> Path:
    """A model of `data` with text labels."""
    from saccade import GPClassifier

    path = tmp_path / "model.saccade"
    GPClassifier(random_state=0).fit(data.X, np.array(["ant", "bee", "cow"])[data.y]).save(path)
    return path


def refused(result: Any, *words: str) -> str:
    """It ended with status 2 and one line on standard error; returns the line."""
    lines = result.stderr.strip().splitlines()
    assert result.exit_code == 2, result.output
    assert len(lines) == 1, lines
    assert lines[0].startswith("Error: ")
    assert lines[0].endswith((".", ")"))
    assert "Traceback" not in result.output
    for word in words:
        assert word in lines[0], lines[0]
    return lines[0]
