"""The lines of the guide about finding run as they stand."""

import re
from pathlib import Path
from typing import Any

from saccade.localize import iou


def test_the_examples_of_the_guide_run() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text("utf-8")
    section = guide[guide.index("## Finding\n") :]
    blocks = re.findall(r"```python\n(.*?)```", section[: section.index("\n## ")], re.S)
    names: dict[str, Any] = {}
    exec(compile("\n".join(blocks), "guide.md", "exec"), names)
    assert iou(names["found"].box, names["dog"]) > 0.5
    assert names["mean"].shape == (200, 200)
    assert names["both"].open == []
