"""Boxes of Caltech-101 in the layout that a user has on disk."""

from pathlib import Path

import pytest

from saccade._core.errors import InvalidInput
from saccade.datasets.on_disk import caltech101_boxes
from tests.tolerances import assert_close

TABLE = "class,image,xmin,ymin,xmax,ymax\nFaces,b.jpg,1,2,3.5,4\nFaces,a.jpg,5,5,9,5\nbonsai,b.jpg,1,1,2,2\n"


def test_boxes_of_one_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "caltech101").mkdir()
    (tmp_path / "caltech101" / "boxes.csv").write_text(TABLE)
    monkeypatch.setenv("SACCADE_DATA", str(tmp_path))
    paths, boxes = caltech101_boxes("Faces")
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == ["caltech101/101_ObjectCategories/Faces/b.jpg"]
    assert_close(boxes, [[1.0, 2.0, 3.5, 4.0]])
    with pytest.raises(InvalidInput, match="'dog'"):
        caltech101_boxes("dog")


def test_boxes_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InvalidInput, match=r"nowhere.caltech101 has no boxes.csv.*SACCADE_DATA"):
        caltech101_boxes("Faces")
