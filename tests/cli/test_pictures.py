"""`saccade fit` and `saccade predict` on folders of pictures."""

import csv
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saccade.cli.reports.html_page import percent
from saccade.features import load_features, read_pictures
from tests.cli.conftest import refused
from tests.features.textures import write_folder

pytestmark = pytest.mark.filterwarnings("ignore:.*found.*words")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "known")
    write_folder(tmp_path / "new", each=2, seed=1)
    return tmp_path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        return list(csv.DictReader(file))


def test_from_a_folder_to_answers_and_a_sheet(folder: Path, saccade: Any) -> None:
    done = saccade("fit", "known", "m.saccade", "--test-share", "0.25", "--cache", "kept")
    assert done.exit_code == 0, done.stderr
    assert "held-out accuracy" in done.stdout
    assert (folder / "kept").is_dir()
    (folder / "new" / "broken.jpg").write_bytes(b"no picture")
    odd = os.fsencode(str(folder / "new" / "brick")) + b'/na\xefve,"<b>.png'
    os.rename(next((folder / "new" / "brick").iterdir()), odd)
    done = saccade("predict", "m.saccade", "new", "--out", "a.csv", "--sheet", "s.html")
    assert done.exit_code == 0, done.stderr
    assert "Skipped 1 file" in done.stderr
    answers = rows(folder / "a.csv")
    assert list(answers[0]) == ["file", "label", "probability", "variance", "novelty"]
    assert len(answers) == 6
    assert sum(row["file"].split("/")[0] == row["label"] for row in answers) >= 5
    assert all(0 <= float(row["novelty"]) <= 1 and float(row["variance"]) >= 0 for row in answers)
    assert os.fsdecode(odd).rpartition("/")[2] in {row["file"].rpartition("/")[2] for row in answers}
    page = (folder / "s.html").read_text(encoding="utf-8")
    cards = re.findall(
        r'<figure data-doubt="([^"]+)" data-novelty="([^"]+)" data-answer="(\w+)" data-name="([^"]*)">', page
    )
    assert len(cards) == 6
    assert [float(card[0]) for card in cards] == sorted((float(card[0]) for card in cards), reverse=True)
    assert sorted(round(float(card[1]), 4) for card in cards) == sorted(
        round(float(row["novelty"]), 4) for row in answers
    )
    assert page.count('<a href="new/') == 6
    assert '<option value="novelty">' in page
    assert "&lt;b&gt;.png" in page
    assert "<b>.png" not in page
    shown = re.findall(r"<span>([^<]+%)</span>", page)
    assert shown == [percent(p) for p in sorted(float(row["probability"]) for row in answers)]


def test_a_model_of_pictures_says_that_it_wants_pictures(folder: Path, saccade: Any) -> None:
    assert saccade("fit", "known", "m.saccade").exit_code == 0
    assert saccade("novelty", "known", "new", "--save", "n.saccade").exit_code == 0
    for content in ("a,b,label\n1,2,x\n3,4,y\n", "file,label\na.png,x\n"):
        (folder / "t.csv").write_text(content, encoding="utf-8")
        for command in ("predict", "novelty"):
            model = "m.saccade" if command == "predict" else "n.saccade"
            refused(saccade(command, model, "t.csv"), "trained on pictures, and t.csv is a table", "folder of pictures")
    refused(saccade("predict", "m.saccade", "none.csv"), "There is no file none.csv")


def test_the_vectors_of_pictures_are_a_table_too(folder: Path, saccade: Any) -> None:
    assert saccade("fit", "known", "m.saccade").exit_code == 0
    vectors = load_features("m.saccade").transform(read_pictures("new"))
    np.save("v.npy", vectors.toarray() if hasattr(vectors, "toarray") else vectors)
    for source, out in (("new", "a.csv"), ("v.npy", "b.csv")):
        assert saccade("predict", "m.saccade", source, "--out", out).exit_code == 0
    assert [row["label"] for row in rows(folder / "a.csv")] == [row["label"] for row in rows(folder / "b.csv")]


def test_the_kernel_of_pictures_is_chosen(folder: Path, saccade: Any) -> None:
    done = saccade("fit", "known", "m.saccade", "--kernel", "auto", "--test-share", "0.25")
    assert done.exit_code == 0, done.stderr
    assert re.search(r"^kernel +(exp\(-|HIK)", done.stdout, re.MULTILINE)
    assert saccade("predict", "m.saccade", "new", "--out", "a.csv").exit_code == 0
    assert sum(row["file"].split("/")[0] == row["label"] for row in rows(folder / "a.csv")) >= 4


def test_the_features_are_said_when_nobody_chose_them(folder: Path, saccade: Any) -> None:
    said = "described by classic features, the default"
    assert said in saccade("fit", "known", "m.saccade").stderr
    assert said in saccade("novelty", "known", "known", "--out", "n.csv").stderr
    assert said not in saccade("fit", "known", "n.saccade", "--features", "classic").stderr


def test_a_report_of_what_was_learned(folder: Path, saccade: Any) -> None:
    """Counts and pictures of every cell; a copy of a picture is named, on the page too."""
    first = next((folder / "known" / "brick").iterdir())
    copy = folder / "known" / "grass" / "copy.jpg"
    Image.open(first).convert("RGB").resize((50, 50)).save(copy, quality=80)
    done = saccade("fit", "known", "m.saccade", "--test-share", "0.5", "--report", "r.html")
    assert done.exit_code == 0, done.stderr
    assert "1 pair of pictures is nearly the same" in done.stderr
    assert f"brick/{first.name} and grass/copy.jpg" in done.stderr
    page = (folder / "r.html").read_text(encoding="utf-8")
    matrix = page[page.index('class="table matrix"') :]
    counts = [int(n) for n in re.findall(r'<a href="#cell-\d+-\d+">(\d+)</a>', matrix)]
    held = int(re.search(r"held-out examples\s+(\d+)", done.stdout)[1])  # type: ignore[index]
    assert sum(counts) == held
    cells = re.findall(r'<details id="cell-(\d)-(\d)"( open)?>(.*?)</details>', page, re.DOTALL)
    assert sum(cell[3].count("<figure>") for cell in cells) == held
    assert all((i != j) == bool(shown) for i, j, shown, _ in cells)
    assert all(f'href="#cell-{i}-{j}"' in matrix for i, j, *_ in cells)
    assert "copy.jpg" in page[page.index("nearly the same") :]
    refused(saccade("fit", "a.csv", "n.saccade", "--report", "x.html"), "--report shows pictures")


def test_scores_against_the_folders(folder: Path, saccade: Any) -> None:
    assert saccade("fit", "known", "m.saccade").exit_code == 0
    done = saccade("predict", "m.saccade", "new", "--score")
    assert "accuracy" in done.stderr
    one = next((folder / "new" / "grass").iterdir())
    alone = saccade("predict", "m.saccade", str(one))
    assert alone.exit_code == 0, alone.stderr
    assert len(alone.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "flat", "m.saccade"], "have no labels"),
        (["fit", "one", "m.saccade"], "at least two classes"),
        (["fit", "known", "m.saccade", "--regression"], "are classes"),
        (["fit", "known", "m.saccade", "--features", "modern"], "'modern'"),
        (["predict", "table.saccade", "known"], "trained on a table"),
        (["predict", "table.saccade", "known", "--labels", "table.csv"], "--labels is for tables"),
        (["predict", "table.saccade", "table.csv", "--sheet", "s.html"], "--sheet shows pictures"),
    ],
)
def test_bad_folders(folder: Path, saccade: Any, arguments: list[str], words: str) -> None:
    (folder / "table.csv").write_text("a,b,label\n1,0,x\n0,1,y\n1,0.1,x\n")
    assert saccade("fit", "table.csv", "table.saccade").exit_code == 0
    write_folder(folder / "one" / "all")
    (folder / "flat").mkdir()
    for path in (folder / "known" / "brick").iterdir():
        path.rename(folder / "flat" / path.name)
    for number, path in enumerate((folder / "one").rglob("*.*")):
        path.rename(path.parent.parent / f"{number}{path.suffix}")
    done = saccade(*arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert not (folder / "m.saccade").exists()


def test_targets_must_differ(folder: Path, saccade: Any) -> None:
    assert saccade("fit", "known", "m.saccade").exit_code == 0
    done = saccade("predict", "m.saccade", "new", "--out", "a.html", "--sheet", "a.html")
    assert done.exit_code == 2
    assert "different names" in done.stderr


def test_what_was_skipped_is_said_also_when_training_fails(folder: Path, saccade: Any) -> None:
    write_folder(folder / "two", each=2)
    for path in (folder / "two").rglob("*.*"):
        if path.parent.name != "brick":
            path.write_bytes(b"")
    done = saccade("fit", "two", "m.saccade")
    assert done.exit_code == 2
    assert "Skipped 4 files" in done.stderr
    assert "one class, brick" in done.stderr


def test_a_limit_on_pixels(folder: Path, saccade: Any) -> None:
    done = saccade("fit", "known", "m.saccade", "--max-pixels", "100")
    assert done.exit_code == 2
    assert "over the limit of 100" in done.stderr
