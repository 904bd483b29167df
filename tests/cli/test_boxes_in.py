"""Boxes as other programs write them: each format gives the same boxes, and what is wrong is said in one sentence."""

import json
from pathlib import Path

import pytest

from saccade._core.errors import InvalidInput
from saccade.cli.tables.boxes_in import DrawnBoxes, read_boxes

BOXES = {"a": [("dog", (10.0, 20.0, 50.0, 60.0)), ("cat", (0.0, 0.0, 9.0, 8.0))], "b": []}


def said(found: DrawnBoxes) -> dict[str, list[tuple[str, tuple[float, ...]]]]:
    sides = (100.0, 80.0, 100.0, 80.0) if found.shares else (1.0,) * 4
    return {
        name.removesuffix(".jpg"): [
            (each.label, tuple(round(v * s, 6) for v, s in zip(each.box, sides, strict=True))) for each in boxes
        ]
        for name, boxes in found.pictures.items()
    }


def coco(folder: Path) -> Path:
    images = [{"id": k, "file_name": f"{name}.jpg", "width": 100, "height": 80} for k, name in enumerate(BOXES, 5)]
    notes = [
        {"image_id": 5, "category_id": len(label), "bbox": [x0, y0, x1 - x0, y1 - y0], "iscrowd": 0}
        for label, (x0, y0, x1, y1) in BOXES["a"]
    ]
    for note, number in zip(notes, (1, 2), strict=True):
        note["category_id"] = number
    notes.append({"image_id": 6, "category_id": 1, "bbox": [0, 0, 5, 5], "iscrowd": 1})
    whole = {"images": images, "annotations": notes, "categories": [{"id": 1, "name": "dog"}, {"id": 2, "name": "cat"}]}
    (folder / "c.json").write_text(json.dumps(whole))
    return folder / "c.json"


def table(folder: Path) -> Path:
    lines = ["Image,label,xmin,ymin,xmax,ymax", "a.jpg,dog,10,20,50,60", "a.jpg,cat,0,0,9,8", "b.jpg,dog,,,,"]
    (folder / "c.csv").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    return folder / "c.csv"


def voc(folder: Path) -> Path:
    (folder / "voc").mkdir()
    for name, boxes in BOXES.items():
        objects = "".join(
            f"<object><name>{label}</name><part><name>paw</name></part><bndbox><xmin>{b[0]}</xmin><ymin>{b[1]}</ymin>"
            f"<xmax>{b[2]}</xmax><ymax>{b[3]}</ymax></bndbox></object>"
            for label, b in boxes
        )
        text = f"<annotation><filename>other.png</filename>{objects}</annotation>"
        (folder / "voc" / f"{name}.xml").write_text(text)
    return folder / "voc"


def yolo(folder: Path) -> Path:
    (folder / "yolo").mkdir()
    (folder / "yolo" / "classes.txt").write_text("cat\ndog\n")
    (folder / "yolo" / "a.txt").write_text("1 0.3 0.5 0.4 0.5\n0 0.045 0.05 0.09 0.1\n\n")
    (folder / "yolo" / "b.txt").write_text("")
    return folder / "yolo"


@pytest.mark.parametrize("write", [coco, table, voc, yolo])
def test_formats_say_the_same(write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    found = read_boxes(write(tmp_path))
    assert said(found) == BOXES
    assert found.labels() == {"cat": 1, "dog": 1}
    assert found.stems == (write in (voc, yolo))


BAD = {
    "a.json": ("{", "no COCO file"),
    "b.json": ("[1]", "no COCO file"),
    "c.json": ('{"images": [{"id": 1, "file_name": "a"}, {"id": 2, "file_name": "a"}], "annotations": [], '
               '"categories": []}', "one name twice"),
    "d.csv": ("file,x\na,1", "needs the columns image, xmin"),
    "e.csv": ("image,xmin,ymin,xmax,ymax\na,1,2,3,four", "line 2: a box needs four numbers, got '1, 2, 3, four'"),
    "f.txt": ("1", "Boxes are read from .json"),
    "g/a.xml": ('<!DOCTYPE a [<!ENTITY b "cccc">]><annotation>&b;</annotation>', "declares a document type"),
    "h/a.xml": ("<annotation><object>", "no Pascal VOC file"),
    "i/a.xml": ("<annotation><object><name>x</name></object></annotation>", "a box needs four numbers"),
    "j/a.txt": ("0 0.5 0.5", "line 1: a box needs four numbers"),
    "k/a.md": ("", "neither .xml"),
    "gone.csv": (None, "There is no file or folder"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_one_sentence(name: str, tmp_path: Path) -> None:
    text, words = BAD[name]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidInput, match=words) as caught:
        read_boxes(path.parent if "/" in name else path)
    assert str(caught.value).endswith((".", ")."))


def test_a_document_type_does_not_hide_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes('<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a><a/>'.encode("utf-16"))
    with pytest.raises(InvalidInput, match="Save it again as UTF-8"):
        read_boxes(tmp_path)


def test_what_find_writes_can_be_read(tmp_path: Path) -> None:
    from saccade.cli.tables.boxes_out import Result, write_boxes

    results = [
        Result("a.jpg", 100, 80, (10, 20, 50, 60), 0.9, 0.8, 60),
        Result("b.jpg", 9, 9, (0, 0, 9, 9), 0, 0, 60, 0.1, False),
    ]
    for name in ("o.json", "o.csv"):
        write_boxes(tmp_path / name, results, "dog")
        assert said(read_boxes(tmp_path / name)) == {"a": BOXES["a"][:1], "b": []}
