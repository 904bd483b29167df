"""The lines of the guide about asking run as they stand."""

import re
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_digits

from saccade import GPClassifier
from saccade._core.errors import InvalidInput
from saccade.active import ActiveLearner


def test_the_example_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text("utf-8")
    part = guide.split("## Asking\n")[1].split("\n## ")[0]
    code = "\n".join(re.findall(r"```python\n(.*?)```", part, re.S))
    monkeypatch.chdir(tmp_path)
    X, y = load_digits(return_X_y=True)
    names: dict[str, Any] = {"X": X, "y": y}
    exec(compile(code, "guide.md", "exec"), names)
    assert names["scores"].shape == (20, len(X))
    learner, model = names["learner"], names["model"]
    assert names["reached"].low >= 0.7
    mine, theirs = (set(names[name].tolist()) for name in ("rows", "others"))
    assert mine.isdisjoint(theirs)
    assert mine | theirs <= set(names["both"].labels)
    assert len(names["both"].labels) == len(learner.labels) + len(theirs)
    with pytest.raises(InvalidInput, match="somebody else"):
        learner.save("campaign.saccade")
    assert ActiveLearner.load("campaign.saccade", X).labels == names["both"].labels
    assert isinstance(model, GPClassifier)
    assert model.score(X, y) > 0.85
