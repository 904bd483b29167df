"""Tables read and questions appended, function by function."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from saccade._core.errors import InvalidInput
from saccade.cli.tables.columns import TableReading, choose_columns, find
from saccade.cli.tables.csv_file import layout_of
from saccade.cli.tables.questions import Question, append, header
from saccade.cli.tables.read import read

QUESTIONS = [Question(0, "a", "1", 0.5), Question(3, "d", "2", None, ("cat", 0.75))]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_questions_are_appended_in_the_manner_of_the_file(end: str, last: bool, delimiter: str, tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    old = [delimiter.join(header("id", True)), delimiter.join(["x", "dog", "", "", "", "0"])]
    path.write_bytes((end.join(old) + (end if last else "")).encode())
    append(path, QUESTIONS, "id", guesses=True)
    new = [["a", "", "", "", "0.5", "1"], ["d", "", "cat", "0.750", "", "2"]]
    assert path.read_bytes().decode() == end.join([*old, *map(delimiter.join, new), ""])


def test_a_new_file_of_questions_has_a_header(tmp_path: Path) -> None:
    append(tmp_path / "new.csv", QUESTIONS[:1], "id", guesses=False)
    assert (tmp_path / "new.csv").read_text("utf-8-sig").split("\n") == ["id,label,score,question", "a,,0.5,1", ""]


def test_examples_without_a_label(tmp_path: Path) -> None:
    """An error that names the first; or they are left out, where that is wanted."""
    (tmp_path / "data.csv").write_text("id,x,y\na,1,2\nb,3,4\nc,5,6\n")
    (tmp_path / "labels.csv").write_text("id,label\nc,dog\na,cat\n")
    how = TableReading(labels=(tmp_path / "labels.csv",))
    with pytest.raises(InvalidInput, match=r"There is no label for id b of .*data\.csv in .*labels\.csv\. Fill it in"):
        read(tmp_path / "data.csv", how)
    found = read(tmp_path / "data.csv", how, partly=True)
    assert found.ids == ["a", "c"]
    assert found.y is not None
    assert found.y.tolist() == ["cat", "dog"]
    np.testing.assert_array_equal(found.X, [[1.0, 2.0], [5.0, 6.0]])
    (tmp_path / "labels.csv").write_text("id,label\nc,dog\na,cat\nb,cow\n")
    every = read(tmp_path / "data.csv", how)
    assert every.y is not None
    assert every.y.tolist() == ["cat", "cow", "dog"]
    assert every.ids == ["a", "b", "c"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_of_a_model_are_found_by_name(ending: str, tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"b": [1.0, 2.0], "more": [0.0, 0.0], "a": [3.0, 4.0], "label": ["u", "v"], "id": ["p", "q"]})
    path = tmp_path / f"data.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    found = read(path, TableReading(), wanted=("a", "b"))
    np.testing.assert_array_equal(found.X, [[3.0, 1.0], [4.0, 2.0]])
    assert (found.names, found.ids, found.id_name, found.ignored) == (("a", "b"), ["p", "q"], "id", ("more",))
    assert found.y is not None
    assert found.y.tolist() == ["u", "v"]
    assert read(path, TableReading(), need_labels=False).y is None
    with pytest.raises(InvalidInput, match="has no column 'c', which the model was trained with"):
        read(path, TableReading(), wanted=("a", "c"))


def test_columns_by_number() -> None:
    names = ["x", "y", "2", "z"]
    where = {"1": 0, "2": 2, "3": 2, "4": 3, "-1": 3, "-4": 0, "y": 1}  # a name goes before a number
    for column, place in where.items():
        assert find(Path("t.csv"), names, column) == place, column
    for column in ("0", "5", "-5", "w", "-0", "--1"):
        with pytest.raises(InvalidInput, match=r"t\.csv has no column"):
            find(Path("t.csv"), names, column)


def test_columns_that_need_not_be_there() -> None:
    names, how = ["x", "label", "y"], TableReading(label="kind", drop=("y",), lenient=True)
    found = choose_columns(Path("t.csv"), names, how, named=True)
    assert (found.label, found.id, found.features) == (None, None, (0, 1))
    with pytest.raises(InvalidInput, match="has no column 'kind'"):
        choose_columns(Path("t.csv"), names, TableReading(label="kind"), named=True)
    with pytest.raises(InvalidInput, match="has no column '9'"):  # a number is always meant
        choose_columns(Path("t.csv"), names, TableReading(label="9", lenient=True), named=True)
    with pytest.raises(InvalidInput, match=r"has the columns 'label' and 'class'\. Say with --label which one"):
        choose_columns(Path("t.csv"), ["label", "class"], TableReading(), named=True)
    nameless = choose_columns(Path("t.csv"), ["", "x", "Class"], TableReading(), named=True)
    assert (nameless.label, nameless.id, nameless.features) == (2, 0, (1,))


@pytest.mark.parametrize(
    ("text", "named", "width", "delimiter", "before"),
    [
        ("a,b\n1,2\n", True, 2, ",", 1),
        ("a;b;c,d\n1;2;3\n", True, 3, ";", 1),
        ("1,2\n3,4\n", False, 2, ",", 0),
        ("\n\na,b\n1,2\n", True, 2, ",", 3),
        ("0,1,2,3\n5,6,7,8\n", True, 4, ",", 1),  # as pandas numbers columns
        ("0,1,2\n5,6,7\n", False, 3, ",", 0),
        ("1,2,3,4\n5,6,7,8\n", False, 4, ",", 0),
        ("1,cat\n2,dog\n", False, 2, ",", 0),
        ("1,label\n2,dog\n", True, 2, ",", 1),
        ("1,size\n2,3\n", True, 2, ",", 1),
        ("name\nx\n", False, 1, ",", 0),
        ("true\tfalse\n1\t0\n", False, 2, "\t", 0),
    ],
)
def test_which_line_is_the_header(
    text: str, named: bool, width: int, delimiter: str, before: int, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(text)
    found = layout_of(tmp_path / "t.csv", TableReading())
    assert (found.named, found.width, found.delimiter, found.before) == (named, width, delimiter, before)
    if not named:
        assert found.names == [str(k + 1) for k in range(width)]
    for header_given in (True, False):
        assert layout_of(tmp_path / "t.csv", TableReading(header=header_given)).named is header_given


@pytest.mark.parametrize("delimiter", [";", "\t", ","])
def test_a_file_may_begin_with_empty_lines(delimiter: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"\n\na{delimiter}b\n1{delimiter}2\n3{delimiter}4\n")
    assert layout_of(path, TableReading()).names == ["a", "b"]
    np.testing.assert_array_equal(read(path, TableReading(), need_labels=False).X, [[1, 2], [3, 4]])
