"""No text that we write into a CSV file is a formula to a spreadsheet, and reading it gives the text back."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from saccade.cli.tables.csv_out import cell, name_cell, plain, plain_name
from tests.cli.conftest import Data, Saccade
from tests.features.textures import write_folder

BEGINS = ("=", "+", "-", "@", "\t", "\r", "\n")
TEXTS = st.text(st.sampled_from("=+-@\t\r\n'./1e a"), max_size=5)


@given(TEXTS, st.sampled_from(["file", "id"]))
@example("-0.5", "id")
@example("''=1", "id")
@example("./=1", "file")
def test_cells(text: str, column: str) -> None:
    for written, read in ((cell(text), plain), (name_cell(text, column), lambda t: plain_name(t, column))):
        if written.startswith(BEGINS):
            assert float(written) == float(text)  # a number stays one
        if not text.startswith("./"):  # the same file as without
            assert read(written) == text


@pytest.mark.parametrize("number", ["-0.5", "+3", "-1e-06", "-.5", "-2."])
def test_numbers_stay_numbers(number: str) -> None:
    assert cell(number) == name_cell(number, "file") == number


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_labels_and_ids_of_a_table(data: Data, saccade: Saccade) -> None:
    """What `predict` wrote trains again: labels and ids come back as they were."""
    classes = np.array(["=HYPERLINK(1)", "-x", "@y"])[data.y]
    with Path("a.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *"abcdef", "label"])
        writer.writerows([f"+{k}a", *row, label] for k, (row, label) in enumerate(zip(data.X, classes, strict=True)))
    assert saccade("fit", "a.csv", "m.saccade").exit_code == 0
    assert saccade("predict", "m.saccade", "a.csv", "--out", "p.csv").exit_code == 0
    rows = rows_of("p.csv")
    assert {row["label"] for row in rows} == {"'=HYPERLINK(1)", "'-x", "'@y"}
    assert [row["id"] for row in rows[:2]] == ["'+0a", "'+1a"]
    done = saccade("fit", "a.csv", "n.saccade", "--labels", "p.csv")
    assert done.exit_code == 0, done.stderr
    done = saccade("predict", "n.saccade", "a.csv", "--score")
    assert done.exit_code == 0, done.stderr
    assert "accuracy" in done.stderr
    done = saccade("novelty", "a.csv", "a.csv", "--out", "n.csv")
    assert {row["id"][:2] for row in rows_of("n.csv")} == {"'+"}


def test_a_campaign(tmp_path: Path, saccade: Saccade) -> None:
    """Names of questions are safe, and answers to them reach their pictures."""
    write_folder(tmp_path / "known", each=4)
    pictures = sorted((tmp_path / "known").rglob("*.*"))
    kinds = {}
    (tmp_path / "pool").mkdir()
    for k, path in enumerate(pictures):
        kinds[f"=n{k}{path.suffix}"] = f"={path.parent.name}"
        path.rename(tmp_path / "pool" / f"=n{k}{path.suffix}")
    for _ in range(2):
        done = saccade("ask", "pool", "--batch", "4", "--guess")
        assert done.exit_code == 0, done.stderr
        rows = rows_of("questions.csv")
        assert all(row["file"].startswith("./=") for row in rows)
        assert not any(row["guess"].startswith(BEGINS) for row in rows)
        filled = [row | {"label": cell(kinds[row["file"][2:]])} for row in rows]
        with Path("questions.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(filled[0]))
            writer.writeheader()
            writer.writerows(filled)
    assert len({row["file"] for row in rows}) == 8
    done = saccade("fit", "pool", "m.saccade", "--labels", "questions.csv")
    assert done.exit_code == 0, done.stderr
    done = saccade("predict", "m.saccade", "pool", "--out", "p.csv")
    assert all(row["file"].startswith("./=") and row["label"].startswith("'=") for row in rows_of("p.csv"))
