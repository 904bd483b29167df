"""The lines of the guide on huge pictures run as they are printed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saccade._core.arrays import Array

tifffile = pytest.importorskip("tifffile", reason="tifffile comes with saccade[slides] and with scikit-image")


def judge(crops: list[Array]) -> list[float]:
    return [float((crop[..., 0] > 200).any()) for crop in crops]


def test_the_guide_on_huge_pictures_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guide.md").read_text("utf-8")
    section = guide.split("## All of them: huge pictures")[1].split("\n## ")[0]
    picture = np.full((1000, 1200, 3), 90, np.uint8)
    picture[300:420, 500:700, 0] = 250
    tifffile.imwrite(tmp_path / "slide.tif", picture, tile=(128, 128), photometric="rgb")
    monkeypatch.chdir(tmp_path)
    code = section.split("```python\n")[1].split("```")[0].replace("tile=1024", "tile=100").replace("=150", "=30")
    names: dict[str, Any] = {"judge": judge}
    exec(compile(code, "guide.md", "exec"), names)
    search = names["search"]
    assert np.nansum(search.hits) == 4  # all tiles that the red box touches
    assert search.probability_map().shape == (10, 12)
    again = type(search).from_state(json.loads(json.dumps(search.to_state())))
    assert again.left() == search.left()
