"""`saccade fit` and `saccade predict` on folders of pictures."""

import csv
import os
import re
from pathlib import Path
from typing import Any

import pytest

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
    assert page.count("<figure>") == 6
    assert "&lt;b&gt;.png" in page
    assert "<b>.png" not in page
    shown = [int(p) for p in re.findall(r"<span>(\d+)%</span>", page)]
    assert shown == sorted(round(100 * float(row["probability"])) for row in answers)


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
