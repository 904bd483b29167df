"""`saccade ask`: questions to fill in with a spreadsheet, and `saccade fit` on the answers."""

import csv
import os
import re
import shlex
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

from saccade import GPClassifier, load
from saccade._core.arrays import Array
from saccade.active import query
from saccade.active.strategies import STRATEGIES
from saccade.cli.commands.ask import ask
from saccade.cli.commands.fit import fit
from tests.cli.conftest import Data, Saccade, refused
from tests.features.textures import write_folder

CLASSES = np.array(["ant", "bee", "cow"])
Rows = list[dict[str, str]]


@pytest.fixture
def table(data: Data, saccade: Saccade) -> str:
    np.save("a.npy", data.X)
    return "a.npy"


def rows_of(path: str, delimiter: str = ",") -> Rows:
    with Path(path).open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def save(path: str, rows: Rows, delimiter: str = ",", end: str = "\n", encoding: str = "utf-8") -> None:
    """As a spreadsheet would."""
    with Path(path).open("w", encoding=encoding, errors="surrogateescape", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter, lineterminator=end)
        writer.writeheader()
        writer.writerows(rows)


def fill_in(path: str, answer: Callable[[dict[str, str]], str]) -> None:
    """The answer to every question that has none."""
    rows = rows_of(path)
    save(path, [row | {"label": row["label"] or answer(row)} for row in rows])


def truth(data: Data) -> Callable[[dict[str, str]], str]:
    return lambda row: str(CLASSES[data.y[int(row["row"]) - 1]])


def asked(path: str = "questions.csv") -> list[int]:
    return [int(row["row"]) - 1 for row in rows_of(path)]


def test_the_whole_loop(data: Data, table: str, saccade: Saccade) -> None:
    known = np.full(len(data.y), None, object)
    for number in range(1, 5):
        done = saccade("ask", table, "--batch", 10)
        assert done.exit_code == 0, done.stderr
        assert done.stdout == ""
        assert f"{10 * (number - 1)} of 120 examples labelled" in done.stderr
        assert "10 new questions in questions.csv." in done.stderr
        assert ("saccade fit a.npy model.saccade --labels questions.csv" in done.stderr) == (number > 1)
        assert Path("questions.csv").read_bytes().startswith(b"\xef\xbb\xbfrow,label" if number == 1 else b"row,label")
        new = asked()[-10:]
        assert new == query(data.X, known, GPClassifier(), batch_size=10).tolist()  # type: ignore[union-attr]
        fill_in("questions.csv", truth(data))
        known[new] = CLASSES[data.y[new]]
    every = rows_of("questions.csv")
    assert list(every[0]) == ["row", "label", "score", "question"]
    assert [row["question"] for row in every] == [str(k) for k in range(1, 41)]
    assert len(set(asked())) == 40
    before = [row["label"] for row in every[:30]]
    counts = ", ".join(f"{name} {before.count(name)}" for name in CLASSES)
    assert f"30 of 120 examples labelled of 3 classes: {counts}." in done.stderr

    done = saccade("fit", table, "m.saccade", "--labels", "questions.csv")
    assert done.exit_code == 0, done.stderr
    rows = np.sort(asked())
    expected = GPClassifier(random_state=0).fit(data.X[rows], CLASSES[data.y[rows]])
    np.testing.assert_array_equal(load("m.saccade").predict_proba(data.new), expected.predict_proba(data.new))
    assert (load("m.saccade").predict(data.new) == CLASSES[data.truth]).mean() > 0.8


def test_the_loop_with_pictures(tmp_path: Path, saccade: Saccade) -> None:
    write_folder(tmp_path / "known", each=4)
    for number, path in enumerate(sorted((tmp_path / "known").rglob("*.*"))):
        path.rename(tmp_path / "known" / f"{path.parent.name[-1]}{number}{path.suffix}")  # names that tell us alone
    odd = os.fsencode(str(tmp_path / "known")) + b'/kna\xefve,"<b>.png'
    os.rename(tmp_path / "known" / "k0.png", odd)
    (tmp_path / "known" / "broken.jpg").write_bytes(b"no picture")
    kinds = {"k": "brick", "s": "grass"}
    for batch in (7, 5):
        done = saccade("ask", "known", "--batch", batch, "--cache", "kept", "--guess")
        assert done.exit_code == 0, done.stderr
        assert "Skipped 1 file" in done.stderr
        assert f"{batch} new questions in questions.csv. Pictures in questions.html." in done.stderr
        page = Path("questions.html").read_text("utf-8")
        new = rows_of("questions.csv")[-batch:]
        assert page.count("<figure>") == batch
        assert all(f"<b>{row['question']}</b>" in page for row in new)
        assert "<b>.png" not in page
        assert page.count('class="bar"') == sum(bool(row["guess"]) for row in new)
        fill_in("questions.csv", lambda row: kinds.get(row["file"][0], "gravel"))
    assert "Labels so far: brick, grass, gravel." in page
    every = rows_of("questions.csv")
    assert len({row["file"] for row in every}) == 12
    assert os.fsdecode(odd).rpartition("/")[2] in {row["file"] for row in every}
    assert all(0 < float(row["probability"]) <= 1 for row in every[-5:])
    done = saccade("ask", "known", "--cache", "kept", "--guess")
    assert done.exit_code == 0, done.stderr
    assert "All 12 examples of known were asked. There is nothing left to ask." in done.stderr
    assert "Next, train: saccade fit known model.saccade --cache kept --labels questions.csv" in done.stderr
    assert "Error" not in done.output
    save("questions.csv", every[:10] + [row | {"label": "?"} for row in every[10:]])
    fill_in("questions.csv", lambda row: kinds.get(row["file"][0], "gravel"))
    done = saccade("fit", "known", "m.saccade", "--labels", "questions.csv", "--cache", "kept")
    assert done.exit_code == 0, done.stderr
    assert "examples                 10" in done.stdout
    assert saccade("predict", "m.saccade", "known", "--out", "answers.csv").exit_code == 0
    right = [kinds.get(row["file"][0], "gravel") == row["label"] for row in rows_of("answers.csv")]
    assert np.mean(right) > 0.8


@pytest.mark.parametrize("label", ["ant", "?"])
def test_a_campaign_that_is_finished_is_a_success(label: str, table: str, saccade: Saccade) -> None:
    _questions(*(f"{i},{label},1,{i}" for i in range(1, 121)))
    before = Path("questions.csv").read_bytes()
    done = saccade("ask", table)
    assert done.exit_code == 0, done.output
    assert "All 120 examples of a.npy were asked. There is nothing left to ask." in done.stderr
    assert ("A classifier needs two" in done.stderr) == (label == "ant")
    assert "saccade fit" not in done.stderr
    assert "new question" not in done.stderr
    assert Path("questions.csv").read_bytes() == before
    assert saccade("ask", table, "--out", "-", "--labels", "questions.csv").exit_code == 0


def test_the_next_command_has_every_option_that_fit_has_too(data: Data, saccade: Saccade) -> None:
    """Followed as it is printed, it trains the model that the questions came from."""
    table = [",".join(["name", "odd", *"abcdef"])]
    table += [",".join(map(str, [f"n{i}", "x", *row])) for i, row in enumerate(data.X.tolist())]
    Path("my table.csv").write_text("\n".join(table))
    given = ["--noise", 0.2, "--power", 0.5, "--exponential", 0.5, "--levels", 16, "--seed", 3, "--id", "name"]
    given += ["--drop", "odd", "--header", "--batch", 30]
    for _ in range(2):
        done = saccade("ask", "my table.csv", *given)
        assert done.exit_code == 0, done.output
        rows = rows_of("questions.csv")
        save("questions.csv", [row | {"label": str(CLASSES[data.y[int(row["name"][1:])]])} for row in rows])
    (line,) = re.findall(r"To train with what is labelled: saccade (.*)", done.stderr)
    words = shlex.split(line)
    assert words[:3] == ["fit", "my table.csv", "model.saccade"]
    assert saccade(*words).exit_code == 0
    model = load("model.saccade")
    assert (model.noise, model.levels) == (0.2, 16)
    assert "Power" in repr(model.kernel)
    assert "Exponential" in repr(model.kernel)
    shared = set(signature(ask).parameters) & set(signature(fit).parameters) - {"data", "labels"}
    assert {"features", "cache", "max_pixels", "label", "x", "zero_based"} <= shared  # these travel by the same line


def test_the_next_command_names_the_features(tmp_path: Path, saccade: Saccade) -> None:
    write_folder(tmp_path / "known", each=2)
    names = sorted(str(p.relative_to(tmp_path / "known")) for p in (tmp_path / "known").rglob("*.*"))
    kinds = {name: name.split("/")[0] for name in names}
    Path("y.csv").write_text("file,label\n" + "".join(f"{name},{kinds[name]}\n" for name in names[::2]))
    options = ["--features", "pyramid", "--labels", "y.csv", "--max-pixels", 9_000_000]
    done = saccade("ask", "known", *options, "--batch", 2)
    assert done.exit_code == 0, done.output
    expected = "saccade fit known model.saccade --max-pixels 9000000 --features pyramid --labels y.csv"
    assert f"{expected} --labels questions.csv" in done.stderr


def test_what_a_person_wrote_stays(data: Data, table: str, saccade: Saccade) -> None:
    """A German spreadsheet: semicolons, a byte order mark, other line ends, a column and an order of one's own."""
    saccade("ask", table, "--batch", 6)
    rows = rows_of("questions.csv")[::-1]
    mine = [{"note": "größer", **row, "label": truth(data)(row)} for row in rows]
    mine[2]["label"], mine[4]["label"] = "", "?"
    save("questions.csv", mine, ";", "\r\n", "utf-8-sig")
    before = Path("questions.csv").read_bytes()[:-2]  # the last line without an end
    Path("questions.csv").write_bytes(before)
    done = saccade("ask", table, "--batch", 6)
    assert done.exit_code == 0, done.stderr
    assert "4 of 120 examples labelled" in done.stderr
    assert "1 answered with ?." in done.stderr
    assert "1 earlier question without an answer and 5 new questions" in done.stderr
    after = Path("questions.csv").read_bytes()
    assert after.startswith(before + b"\r\n;")
    every = rows_of("questions.csv", ";")
    assert [row["question"] for row in every] == ["6", "5", "4", "3", "2", "1", "7", "8", "9", "10", "11"]
    assert len({row["row"] for row in every}) == 11
    again = saccade("ask", table, "--batch", 6)
    assert "6 earlier questions without an answer and 0 new questions" in again.stderr
    assert Path("questions.csv").read_bytes() == after


def test_guesses_are_shown_on_demand(data: Data, table: str, saccade: Saccade) -> None:
    saccade("ask", table, "--batch", 30)
    fill_in("questions.csv", truth(data))
    known = asked()
    assert "guess" not in rows_of("questions.csv")[0]
    line = refused(saccade("ask", table, "--guess"), "no columns for guesses", "--labels")
    assert "questions.csv" in line
    done = saccade("ask", table, "--guess", "--labels", "questions.csv", "--out", "more.csv", "--batch", 5)
    assert done.exit_code == 0, done.stderr
    assert "--labels questions.csv --labels more.csv" in done.stderr
    model = GPClassifier(random_state=0).fit(data.X[known], CLASSES[data.y[known]])
    new = asked("more.csv")
    p = model.predict_proba(data.X[new])
    assert [row["guess"] for row in rows_of("more.csv")] == model.classes_[p.argmax(axis=1)].tolist()
    assert [row["probability"] for row in rows_of("more.csv")] == [f"{q:.3f}" for q in p.max(axis=1)]
    assert not set(new) & set(known)


def _named(path: str, y: Array, some: Array) -> None:
    Path(path).write_text(
        "row,label\n" + "".join(f"{i + 1},{CLASSES[y[i]] if i in some else ''}\n" for i in range(120))
    )


def _in_order(path: str, y: Array, some: Array) -> None:
    Path(path).write_text("label\n" + "".join(f"{CLASSES[y[i]] if i in some else ''}\n" for i in range(120)) + "\n")


def _array(path: str, y: Array, some: Array) -> None:
    np.save(path, np.where(np.isin(np.arange(120), some), y.astype(float), np.nan))


@pytest.mark.parametrize(
    ("name", "write"), [("y.csv", _named), ("y.txt", _in_order), ("y.npy", _array)], ids=["named", "text", "array"]
)
def test_labels_that_one_has(
    name: str, write: Callable[[str, Array, Array], None], data: Data, table: str, saccade: Saccade
) -> None:
    some = np.arange(0, 120, 5)
    write(name, data.y, some)
    before = Path(name).read_bytes()
    done = saccade("ask", table, "--labels", name, "--batch", 7)
    assert done.exit_code == 0, done.stderr
    assert "24 of 120 examples labelled of 3 classes" in done.stderr
    known = np.full(120, None, object)
    known[some] = CLASSES[data.y[some]]
    assert asked() == query(data.X, known, batch_size=7).tolist()  # type: ignore[union-attr]
    assert Path(name).read_bytes() == before


def test_labels_in_the_data_itself(data: Data, saccade: Saccade) -> None:
    """A table with names and some labels, given twice; the answers then train together with them."""
    lines = [
        ",".join([f"x{i}", *map(str, row), str(CLASSES[data.y[i]]) if i < 20 else ""])
        for i, row in enumerate(data.X.tolist())
    ]
    Path("a.csv").write_text("\n".join(["id,a,b,c,d,e,f,label", *lines]))
    done = saccade("ask", "a.csv", "--labels", "a.csv", "--batch", 5)
    assert "20 of 120 examples labelled" in done.stderr, done.output
    rows = rows_of("questions.csv")
    assert list(rows[0]) == ["id", "label", "score", "question"]
    fill_in("questions.csv", lambda row: str(CLASSES[data.y[int(row["id"][1:])]]))
    done = saccade("fit", "a.csv", "m.saccade", "--labels", "a.csv", "--labels", "questions.csv")
    assert done.exit_code == 0, done.stderr
    assert "examples                 25" in done.stdout
    line = refused(saccade("predict", "m.saccade", "a.csv", "--score", "--labels", "questions.csv"), "no label for id")
    assert "Fill it in" in line


def test_no_file_of_labels_yet(table: str, saccade: Saccade) -> None:
    done = saccade("ask", table, "--labels", "labels.csv", "--batch", 3)
    assert done.exit_code == 0
    assert "The file labels.csv does not exist yet." in done.stderr
    assert "0 of 120 examples labelled." in done.stderr
    assert not Path("labels.csv").exists()
    assert len(asked()) == 3


def test_one_class_so_far(table: str, saccade: Saccade) -> None:
    saccade("ask", table, "--batch", 3)
    fill_in("questions.csv", lambda row: "ant")
    done = saccade("ask", table, "--batch", 3, "--guess", "--out", "-", "--labels", "questions.csv")
    assert done.exit_code == 0, done.stderr
    assert "All labels so far are of one class." in done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "row,label,guess,probability,score,question"
    assert len(lines) == 4
    assert all(line.split(",")[1:4] == ["", "", ""] for line in lines[1:])
    refused(saccade("fit", table, "m.saccade", "--labels", "questions.csv"), "at least two classes")


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_every_strategy(strategy: str, data: Data, table: str, saccade: Saccade) -> None:
    Path("y.csv").write_text("row,label\n" + "".join(f"{i + 1},{int(data.y[i] == 1)}\n" for i in range(0, 120, 3)))
    done = saccade("ask", table, "--labels", "y.csv", "--strategy", strategy, "--batch", 4, "--noise", 0.2)
    assert done.exit_code == 0, done.stderr
    assert len(set(asked())) == 4
    assert all(i % 3 for i in asked())


def test_the_help_names_every_strategy() -> None:
    text = get_type_hints(ask, include_extras=True)["strategy"].__metadata__[0].help
    assert set(STRATEGIES) <= set(re.findall(r"[a-z-]+", text))


def _questions(*lines: str) -> None:
    Path("questions.csv").write_text("\n".join(["row,label,score,question", *lines]))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["121,ant,1,1"], ["line 2", "no row '121'"]),
        (["1,ant,1,1", "one,ant,1,2"], ["line 3", "no row 'one'"]),
        (["1,ant,1,1", "2,ant,1,2", "1,bee,1,3"], ["line 4", "'1' is 'bee'", "'ant' in questions.csv, line 2"]),
        (["1,ant,1"], ["line 2", "3 values"]),
    ],
)
def test_labels_that_cannot_be(lines: list[str], words: list[str], table: str, saccade: Saccade) -> None:
    _questions(*lines)
    before = Path("questions.csv").read_bytes()
    refused(saccade("ask", table), *words)
    assert Path("questions.csv").read_bytes() == before


def test_a_batch_beyond_the_pool(table: str, saccade: Saccade) -> None:
    _questions(*(f"{i},{CLASSES[i % 3] if i < 110 else '?'},1,{i}" for i in range(1, 118)), "200,,1,118")
    done = saccade("ask", table)
    assert "109 of 120 examples labelled" in done.stderr, done.output
    assert "3 new questions" in done.stderr, done.output
    assert sorted(asked()[-3:]) == [117, 118, 119]


def test_files_of_another_kind_are_never_overwritten(data: Data, table: str, saccade: Saccade) -> None:
    Path("mine.csv").write_text("row,label\n1,ant\n")
    Path("latin.csv").write_bytes("row,label,question\n1,größer,1\n".encode("latin-1"))
    Path("empty.csv").write_text("")
    Path("short.txt").write_text("ant\nbee\n")
    cases: list[tuple[list[Any], list[str]]] = [
        (["--out", "mine.csv"], ["mine.csv is not a file of questions", "'question'", "--labels"]),
        (["--out", "mine.csv", "--labels", "mine.csv"], ["mine.csv is not a file of questions"]),
        (["--out", "latin.csv"], ["latin.csv is not a text file in UTF-8"]),
        (["--out", "empty.csv"], ["empty.csv is not a file of questions"]),
        (["--out", "a.npy"], ["This command reads"]),
        (["--out", "a.txt"], ["must be a .csv"]),
        (["--out", "no/where.csv"], ["no folder no"]),
        (["--labels", "short.txt"], ["2 labels for the 120 examples", "columns row and label"]),
        (["--sheet", "a.html"], ["--sheet shows pictures"]),
        (["--strategy", "best"], ["--strategy", "'best'"]),
        (["--strategy", "novel", "--guess"], ["one class"]),
        (["--noise", "-1"], ["--noise"]),
    ]
    before = {path: path.read_bytes() for path in Path().iterdir()}
    for options, words in cases:
        refused(saccade("ask", table, *options), *words)
    refused(saccade("ask", "none.npy"), "no file none.npy")
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_ids_must_differ(saccade: Saccade) -> None:
    Path("a.csv").write_text("id,a,b\nx,1,0\ny,0,1\nx,1,1\n")
    refused(saccade("ask", "a.csv"), "two examples with the id 'x'", "--drop")


def test_a_folder_without_pictures_and_a_page_of_another(tmp_path: Path, saccade: Saccade) -> None:
    (tmp_path / "empty").mkdir()
    refused(saccade("ask", "empty"), "no picture")
    Path("questions.html").write_text("<p>mine</p>")
    refused(saccade("ask", "empty"), "questions.html exists already", "--sheet")
    assert Path("questions.html").read_text() == "<p>mine</p>"


def test_labels_of_one_file_in_order_still_need_all(data: Data, table: str, saccade: Saccade) -> None:
    _in_order("y.txt", data.y, np.arange(1, 120))
    refused(saccade("fit", table, "m.saccade", "--labels", "y.txt"), "no label for example 1")
    Path("y.csv").write_text("row,label\n1,\n2,?\n")
    refused(saccade("fit", table, "m.saccade", "--labels", "y.csv"), "no label in y.csv yet")
