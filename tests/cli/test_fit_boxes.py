"""`saccade fit --boxes` and `saccade find` with its model: one command each, and "not found" everywhere it is said."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saccade.localize import Finder, iou
from tests.cli.conftest import refused
from tests.localize.objects import HEIGHT, WIDTH, hog, scene

PICTURES = 12
HEAD = "image,label,xmin,ymin,xmax,ymax"


def noise(seed: int) -> Any:
    grey = np.random.default_rng(seed).integers(90, 130, (HEIGHT, WIDTH, 1)).astype(np.uint8)
    return np.repeat(grey, 3, axis=2)


def line(name: str, label: str, box: Any) -> str:
    return ",".join([name, label, *(f"{v:g}" for v in box)])


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures with boxes, one without, two new ones, and a trained model."""
    folder = tmp_path_factory.mktemp("drawn")
    for name in ("photos", "new"):
        (folder / name).mkdir()
    scenes = [scene(seed) for seed in range(PICTURES)]
    for k, (picture, _) in enumerate(scenes):
        Image.fromarray(picture).save(folder / "photos" / f"{k}.png")
    Image.fromarray(noise(1)).save(folder / "photos" / "none.png")
    lines = [line(f"{k}.png", "rings", box) for k, (_, box) in enumerate(scenes)]
    (folder / "boxes.csv").write_text("\n".join([HEAD, *lines]))
    Image.fromarray(scene(101)[0]).save(folder / "new" / "there.png")
    Image.fromarray(noise(2)).save(folder / "new" / "absent.png")
    finder = Finder(hog(), looks=20, folds=2, label="rings")
    finder.fit([each for each, _ in scenes], [box[None] for _, box in scenes]).save(folder / "rings.saccade")
    return folder


@pytest.fixture
def folder(drawn: Path, tmp_path: Path) -> Path:
    shutil.copytree(drawn, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_fit_trains_and_says_how_good_it_is(folder: Path, saccade: Any) -> None:
    done = saccade("fit", "photos", "--boxes", "boxes.csv", "m.saccade", "--features", "classic", "--looks", 4)
    assert done.exit_code == 0, done.stderr
    assert "12 pictures with 12 boxes of rings, 1 without" in done.stdout
    for words in ("held-out searches", "answer right", "not found", "probability said/true"):
        assert words in done.stdout
    assert "does not name 1 picture of DATA: taken to be without rings" in " ".join(done.stderr.split())
    done = saccade("find", "m.saccade", "new", "--out", "b.json")
    assert done.exit_code == 0, done.stderr
    assert json.loads((folder / "b.json").read_text())["categories"][0]["name"] == "rings"
    assert "after 4 looks" in done.stderr


def test_not_found_in_the_text_the_files_and_the_page(folder: Path, saccade: Any) -> None:
    done = saccade("find", "rings.saccade", "new", "--out", "b.json", "--report", "b.html")
    assert done.exit_code == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert "new/absent.png: rings not found, present with" in said
    assert "1 box in b.json. Not found in 1 picture." in said
    coco = json.loads((folder / "b.json").read_text())
    absent, there = coco["images"]
    assert absent["found"] is False
    assert 0 <= absent["present"] < 0.5
    assert "found" not in there
    (note,) = coco["annotations"]
    assert (note["id"], note["image_id"]) == (1, there["id"])
    x, y, width, height = note["bbox"]
    assert iou(np.array([x, y, x + width, y + height]), scene(101)[1]) >= 0.5
    assert "not found (present:" in (folder / "b.html").read_text()
    for name in ("b.csv", "b.geojson"):
        assert saccade("find", "rings.saccade", "new", "--out", name).exit_code == 0
    with (folder / "b.csv").open(newline="") as file:
        none, one = csv.DictReader(file)
    assert (none["found"], none["x0"], none["probability"], one["found"]) == ("no", "", "", "yes")
    assert float(one["present"]) > 0.5 > float(none["present"])
    geo = [json.loads(path.read_text()) for path in sorted(folder.glob("b-*.geojson"))]
    assert [each.get("not_found") for each in geo] == [["new/absent.png"], None]
    assert [len(each["features"]) for each in geo] == [0, 1]


def test_info_says_what_it_finds(folder: Path, saccade: Any) -> None:
    assert "rings, trained on boxes" in saccade("info", "rings.saccade").stdout


def test_absent_says_how_many_pictures_may_lack_it(folder: Path, saccade: Any) -> None:
    present = []
    for share in ("0", "0.5", "0.9"):
        done = saccade("find", "rings.saccade", "new", "--out", "b.csv", "--force", "--absent", share)
        assert done.exit_code == 0, done.stderr
        with (folder / "b.csv").open(newline="") as file:
            present.append([float(row["present"]) for row in csv.DictReader(file)])
        assert ("Not found" in done.stderr) == (share != "0")
    assert present[0] == [1.0, 1.0]
    assert (np.diff(present, axis=0) < 0).all()


def test_other_looks_are_warned_of_and_learned_sizes_are_kept(folder: Path, saccade: Any) -> None:
    done = saccade("find", "rings.saccade", "new/there.png", "--out", "b.csv", "--looks", "10")
    assert "hold after 20 looks" in " ".join(done.stderr.split())
    refused(saccade("find", "rings.saccade", "new", "--size", "9x9", "-o", "c.csv"), "has learned size and place")


@pytest.mark.parametrize(
    ("lines", "more", "words"),
    [
        (["gone.png,rings,1,2,30,40"], [], "No picture of photos has a box of rings"),
        ([], [], "has no boxes"),
        (
            ["0.png,a,1,2,30,40", "1.png,b,1,2,30,40"],
            [],
            "several labels; say which to find with --label: a (1), b (1)",
        ),
        (["0.png,a,1,2,30,40"], ["--label", "z"], "no label 'z': a (1)"),
        (["0.png,a,1,2,30,40"], [], "at least 10"),
        (["0.png,a,1,2,30,40", "photos/0.png,a,1,2,30,40"], [], "names 0.png twice"),
        (["0.png,a,1,2,30,40"], ["--balanced"], "--balanced means nothing with --boxes"),
        (["0.png,a,1,2,30,40"], ["--test-share", "0.5"], "--test-share means nothing with --boxes"),
    ],
)
def test_refusals(folder: Path, saccade: Any, lines: list[str], more: list[str], words: str) -> None:
    (folder / "bad.csv").write_text("\n".join([HEAD, *lines]))
    done = saccade("fit", "photos", "--boxes", "bad.csv", "m.saccade", *more)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())
    assert not (folder / "m.saccade").exists()


def test_looks_are_for_boxes(folder: Path, saccade: Any) -> None:
    refused(saccade("fit", "photos", "m.saccade", "--looks", "9"), "--looks is for training on boxes")


def test_boxes_that_cannot_be_are_named_and_left_out(folder: Path) -> None:
    from saccade.cli.fit_boxes import _inside

    boxes = np.array([[-1, 5, 50, 60], [5, 5, 5, 9], [-40, 0, 9, 9], [3, 3, np.nan, 9], [7, 8, 20, 30]], float)
    good, faults = _inside(boxes, WIDTH, HEIGHT)
    assert good.tolist() == [[0, 5, 50, 60], [7, 8, 20, 30]]
    assert [each.split(" is ")[1].split()[0] for each in faults] == ["empty", "outside", "outside"]
    assert "-40, 0, 9, 9 is outside the picture of 160 × 120" in faults[1]


def test_two_pictures_of_one_name(folder: Path, saccade: Any) -> None:
    (folder / "photos" / "more").mkdir()
    shutil.copy(folder / "photos" / "0.png", folder / "photos" / "more")
    (folder / "some.csv").write_text("\n".join([HEAD, "x/0.png,rings,1,2,30,40"]))
    refused(saccade("fit", "photos", "--boxes", "some.csv", "m.saccade"), "2 pictures have that name")
