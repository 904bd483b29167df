"""`saccade find`: boxes in files that others read, and a page of the search."""

from __future__ import annotations

import base64
import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saccade.localize import SituationModel, iou
from tests.cli.conftest import refused
from tests.localize.objects import HEIGHT, WIDTH, class_model, crops_and_overlaps, overlap_model, scene

SEEDS = (101, 102)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of overlap, and one of two classes."""
    folder = tmp_path_factory.mktemp("models")
    for name, (model, features) in (("overlap", overlap_model()), ("rings", class_model())):
        model.save(folder / f"{name}.saccade", features=features)
    return folder


@pytest.fixture
def folder(models: Path, tmp_path: Path) -> Path:
    """The models, and two pictures that they have not seen."""
    for path in models.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "photos").mkdir()
    for seed in SEEDS:
        Image.fromarray(scene(seed)[0]).save(tmp_path / "photos" / f"{seed}.png")
    return tmp_path


def found(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def test_coco(folder: Path, saccade: Any) -> None:
    done = saccade("find", "overlap.saccade", "photos", "--out", "b.json", "--label", "rings", "--looks", "40")
    assert done.exit_code == 0, done.stderr
    assert "2 boxes in b.json" in done.stderr
    coco = found(folder / "b.json")
    assert coco["categories"] == [{"id": 1, "name": "rings", "supercategory": ""}]
    assert [image["id"] for image in coco["images"]] == [1, 2]
    for image, annotation, seed in zip(coco["images"], coco["annotations"], SEEDS, strict=True):
        assert image == {"id": image["id"], "file_name": f"photos/{seed}.png", "width": WIDTH, "height": HEIGHT}
        assert annotation["image_id"] == image["id"]
        assert annotation["category_id"] == 1
        x, y, width, height = annotation["bbox"]
        assert annotation["area"] == pytest.approx(width * height, abs=0.01)
        assert annotation["iscrowd"] == 0
        (ring,) = annotation["segmentation"]  # a polygon: annToMask of pycocotools fills it
        corners = {(x, y), (x + width, y), (x + width, y + height), (x, y + height)}
        assert {(round(a, 1), round(b, 1)) for a, b in zip(ring[::2], ring[1::2], strict=True)} == {
            (round(a, 1), round(b, 1)) for a, b in corners
        }
        a, b = np.array(ring).reshape(-1, 2).T
        area = 0.5 * abs(a @ np.roll(b, 1) - b @ np.roll(a, 1))
        assert area == pytest.approx(annotation["area"], abs=1.0)
        assert 0 <= annotation["score"] <= 1
        assert annotation["attributes"]["looks"] <= 40
        assert float(iou(np.array([x, y, x + width, y + height]), scene(seed)[1])) >= 0.5


def test_all_boxes_are_named_or_counted(folder: Path, saccade: Any) -> None:
    def lines(times: int) -> list[str]:
        done = saccade("find", "rings.saccade", *["photos"] * times, "--out", "b.json", "--force", "--looks", "1")
        assert done.exit_code == 0, done.stderr
        said: list[str] = done.stderr.strip().splitlines()
        return said

    *named, last = lines(4)
    assert len([line for line in named if line.startswith("photos/")]) == 8
    assert last == "8 boxes in b.json."
    *named, last = lines(12)
    assert len([line for line in named if line.startswith("photos/")]) == 20
    assert last == "4 more are not shown here. 24 boxes in b.json."


def test_geojson(folder: Path, saccade: Any) -> None:
    done = saccade("find", "overlap.saccade", "photos/102.png", "--out", "b.geojson", "--looks", "40")
    assert done.exit_code == 0, done.stderr
    collection = found(folder / "b.geojson")
    assert collection["type"] == "FeatureCollection"
    (feature,) = collection["features"]
    (ring,) = feature["geometry"]["coordinates"]
    assert feature["geometry"]["type"] == "Polygon"
    assert len(ring) == 5
    assert ring[0] == ring[-1]
    x, y = np.array(ring).T
    assert (x[:-1] * y[1:] - x[1:] * y[:-1]).sum() > 0  # anticlockwise, as RFC 7946 wants outer rings
    assert float(iou(np.array([x.min(), y.min(), x.max(), y.max()]), scene(102)[1])) >= 0.5
    assert feature["properties"]["classification"] == {"name": "object"}
    assert feature["properties"]["file"] == "photos/102.png"


def test_one_geojson_per_picture(folder: Path, saccade: Any) -> None:
    (folder / "more").mkdir()
    shutil.copy(folder / "photos" / "102.png", folder / "more" / "101.png")
    (folder / "photos" / "103.png").write_bytes(b"no picture")
    asked = ("find", "rings.saccade", "photos", "more", "--out", "b.geojson", "--looks", "1")
    done = saccade(*asked)
    assert done.exit_code == 0, done.stderr
    assert "3 boxes in b-101.geojson, b-102.geojson, b-101-2.geojson." in " ".join(done.stderr.split())
    for name, picture in (("101", "photos/101.png"), ("102", "photos/102.png"), ("101-2", "more/101.png")):
        (feature,) = found(folder / f"b-{name}.geojson")["features"]
        assert feature["properties"]["file"] == picture
    assert not (folder / "b.geojson").exists()
    (folder / "b-101.geojson").unlink()
    done = saccade(*asked)
    assert done.exit_code == 2
    assert "b-102.geojson exists already" in done.stderr
    assert not (folder / "b-101.geojson").exists()


def test_csv_without_formulas(folder: Path, saccade: Any) -> None:
    (folder / "photos" / "102.png").rename(folder / "=1+2.png")
    done = saccade("find", "rings.saccade", "=1+2.png", "--out", "b.csv", "--looks", "10", "--sure", "1")
    assert done.exit_code == 0, done.stderr
    with (folder / "b.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["file"] == "./=1+2.png"
    assert (folder / row["file"]).exists()
    assert row["label"] == "rings"
    assert row["looks"] == "10"
    x0, y0, x1, y1 = (float(row[name]) for name in ("x0", "y0", "x1", "y1"))
    assert 0 <= x0 < x1 <= WIDTH
    assert 0 <= y0 < y1 <= HEIGHT
    assert not any(value.startswith(("=", "+", "-", "@")) for name, value in row.items() if name != "score")


def test_the_same_again_and_another_seed(folder: Path, saccade: Any) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert (
            saccade("find", "rings.saccade", "photos", "-o", f"{name}.csv", "--seed", seed, "--looks", 20).exit_code
            == 0
        )
    a, b, c = ((folder / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c


def test_a_known_size_and_a_situation(folder: Path, saccade: Any) -> None:
    boxes = np.array([scene(seed)[1] for seed in range(30)])
    SituationModel().fit({"rings": boxes}, (WIDTH, HEIGHT)).save(folder / "where.saccade")
    common = ("find", "rings.saccade", "photos/102.png", "--looks", "30")
    for name, more in (("size", ("--size", "52x48")), ("place", ("--situation", "where.saccade"))):
        done = saccade(*common, "--out", f"{name}.json", *more)
        assert done.exit_code == 0, done.stderr
    x, y, width, height = found(folder / "size.json")["annotations"][0]["bbox"]
    assert x == 0 or x + width >= WIDTH - 0.02 or width == pytest.approx(52)  # cut where it would leave the picture
    assert y == 0 or y + height >= HEIGHT - 0.02 or height == pytest.approx(48)
    sides = [np.sqrt(a["area"]) for a in found(folder / "place.json")["annotations"]]
    assert 25 < sides[0] < 90


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(folder: Path, saccade: Any) -> None:
    (folder / "photos" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n but no more")
    (folder / "photos" / "notes.txt").write_text("no picture")
    done = saccade("find", "rings.saccade", "photos", "gone.jpg", "--out", "b.json", "--looks", "10")
    assert done.exit_code == 0, done.stderr
    for words in ("Skipped photos/broken.png", "Skipped photos/notes.txt", "Skipped gone.jpg"):
        assert words in " ".join(done.stderr.split())
    assert [image["file_name"] for image in found(folder / "b.json")["images"]] == [f"photos/{s}.png" for s in SEEDS]
    refused_lines = saccade("find", "rings.saccade", "gone.jpg", "--out", "c.json")
    assert refused_lines.exit_code == 2
    assert "None of the pictures" in refused_lines.stderr
    assert not (folder / "c.json").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["photos", "--out", "b.txt"], "must end in .json, .csv or .geojson"),
        (["photos", "--label", "cat"], "does not know the class 'cat'. It knows background, rings"),
        (["photos", "--size", "90"], "--size must be WIDTHxHEIGHT"),
        (["photos", "--size", "0x5"], "--size must be WIDTHxHEIGHT"),
        (["photos", "--out", "old.json"], "--force"),
        (["photos", "--report", "boxes.json"], "both boxes.json"),
        (["photos", "--situation", "rings.saccade"], "SituationModel"),
    ],
)
def test_refusals(folder: Path, saccade: Any, arguments: list[str], words: str) -> None:
    (folder / "old.json").write_text("mine")
    refused(saccade("find", "rings.saccade", *arguments), words)
    assert (folder / "old.json").read_text() == "mine"
    assert not (folder / "boxes.json").exists()


def test_models_that_do_not_judge_pictures(folder: Path, saccade: Any, model: Path) -> None:
    refused(saccade("find", model, "photos"), "trained on a table")
    from saccade import GPClassifier, OneClassGP

    crops, overlaps = crops_and_overlaps()
    features = class_model()[1]
    X = features.transform(crops)
    OneClassGP().fit(X).save(folder / "one.saccade", features=features)
    refused(saccade("find", "one.saccade", "photos"), "what is normal")
    GPClassifier().fit(X, np.digitize(overlaps, [0.2, 0.5])).save(folder / "three.saccade", features=features)
    refused(saccade("find", "three.saccade", "photos"), "3 classes", "--label", "0, 1, 2")


def test_report(folder: Path, saccade: Any) -> None:
    (folder / "photos" / "102.png").rename(folder / "photos" / "a<b>&.png")
    done = saccade("find", "rings.saccade", "photos", "--report", "f.html", "--looks", "25", "--sure", "1")
    assert done.exit_code == 0, done.stderr
    page = (folder / "f.html").read_text(encoding="utf-8")
    assert "a&lt;b&gt;&amp;.png" in page
    assert "a<b>" not in page
    doubts = [float(text) for text in re.findall(r"<figure data-doubt=\"([\d.e-]+)\"", page)]
    coco = found(folder / "boxes.json")["annotations"]
    assert doubts == pytest.approx([1 - each["score"] for each in coco], abs=1e-5)
    boxes = [each["bbox"] for each in coco]
    drawn = re.findall(r'class="box" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', page)
    assert np.array(drawn, float) == pytest.approx(np.array(boxes), abs=0.11)
    assert re.findall(r'href="(#search-\d)"', page) == ["#search-1", "#search-2"]
    assert page.count('<g class="looks">') == 2
    assert not re.findall(r"https?://|@import|<link|<img src=\"(?!data:)", page)
    parts = re.findall(r'<script type="application/json" class="data">(.*?)</script>', page)
    assert len(parts) == 2
    data = json.loads(parts[0])
    assert data["size"] == [WIDTH, HEIGHT]
    assert [step["looks"] for step in data["steps"]] == [10, 20, 25]
    assert len(data["boxes"]) == len(data["told"]) == 25
    rows, columns = data["map"]
    assert (rows, columns) == (30, 40)
    for step in data["steps"]:
        maps = [np.frombuffer(base64.b64decode(text), np.uint8) for text in step["maps"]]
        assert all(each.size == rows * columns for each in maps)
        assert maps[2].max() == 255  # the largest improvement of the step
    means = [np.frombuffer(base64.b64decode(step["maps"][0]), np.uint8) for step in data["steps"]]
    assert max(m.max() for m in means) == 255
    assert min(m.min() for m in means) == 0
    assert len(page) < 200_000
