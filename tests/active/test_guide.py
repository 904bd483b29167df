"""The lines of the guide about asking run as they stand."""

import re
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_digits

from saccade import GPClassifier


def test_the_example_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text("utf-8")
    (code,) = re.findall(r"## Asking\n.*?```python\n(.*?)```", guide, re.S)
    monkeypatch.chdir(tmp_path)
    X, y = load_digits(return_X_y=True)
    names: dict[str, Any] = {"X": X, "y": y}
    exec(compile(code, "guide.md", "exec"), names)
    assert names["scores"].shape == (20, len(X))
    learner, again, model = (names[name] for name in ("learner", "again", "model"))
    assert names["reached"].low >= 0.7
    assert again.ask(5).tolist() == learner.ask(5).tolist()
    assert isinstance(model, GPClassifier)
    assert model.score(X, y) > 0.85
