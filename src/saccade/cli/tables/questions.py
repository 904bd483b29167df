"""The file of questions: what `saccade ask` writes, and a person fills in with a spreadsheet.

It grows at its end alone. What is in it, answers and columns of one's own, stays as it is to the byte. It begins with a
byte order mark, because Excel takes names and labels for UTF-8 only then.
"""

import codecs
import csv
import io
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from saccade._core.atomic import replacing
from saccade._core.errors import InvalidInput
from saccade.cli.tables.csv_file import column_names
from saccade.cli.tables.csv_out import cell, name_cell
from saccade.cli.tables.named_labels import QUESTION, Line, Names

GUESSES = ("guess", "probability")


class Question(NamedTuple):
    """One example that a person should label."""

    row: int
    name: str
    number: str  # as in the file
    score: float | None = None  # by which it was chosen; None where that was earlier
    guess: tuple[Any, float] | None = None  # what the model says, and its probability


def header(name: str, guesses: bool) -> list[str]:
    """The last column is never empty: some spreadsheets drop empty cells at the end of a line."""
    return [name, "label", *(GUESSES if guesses else ()), "score", QUESTION]


def header_line(columns: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(map(cell, columns))
    return text.getvalue()


def check_layout(path: Path, names: Names, guesses: bool) -> None:
    """An error where the file there is not one of questions about these examples."""
    found, _ = column_names(path)
    missing = [column for column in header(names.column, guesses) if column not in found and column != "score"]
    if not missing:
        return
    if missing == list(GUESSES):
        raise InvalidInput(
            f"{path} has no columns for guesses. Leave --guess out, or choose another --out and give {path} as "
            "--labels."
        )
    raise InvalidInput(
        f"{path} is not a file of questions about {names.source}: it has no column {missing[0]!r}. Choose another "
        "--out; if it holds labels, give it as --labels."
    )


def open_questions(lines: Iterable[Line], answered: Container[int]) -> list[Question]:
    """Questions of the file whose example has no label anywhere."""
    return [
        Question(line.row, line.name, line.question)
        for line in lines
        if line.row is not None and line.row not in answered
    ]


def next_number(lines: Iterable[Line]) -> int:
    return max((int(line.question) for line in lines if line.question.isdecimal()), default=0) + 1


def as_csv(questions: Iterable[Question], columns: list[str], name: str, delimiter: str, end: str) -> str:
    """Lines of the file; columns that are not ours stay empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", delimiter=delimiter, lineterminator=end)
    for q in questions:
        guess = {} if q.guess is None else {"guess": cell(str(q.guess[0])), "probability": f"{q.guess[1]:.3f}"}
        score = {} if q.score is None else {"score": f"{q.score:.6g}"}
        writer.writerow({name: name_cell(q.name, name), QUESTION: q.number, **score, **guess})
    return text.getvalue()


def append(path: Path, questions: Iterable[Question], name: str, guesses: bool) -> None:
    """Write the questions at the end of the file, in its manner; the file is whole at every moment."""
    if not path.exists():
        columns = header(name, guesses)
        old, new = codecs.BOM_UTF8, header_line(columns) + as_csv(questions, columns, name, ",", "\n")
    else:
        old = path.read_bytes()
        columns, delimiter = column_names(path)
        end = "\r\n" if b"\r\n" in old else "\n"
        new = ("" if old.endswith((b"\n", b"\r")) else end) + as_csv(questions, columns, name, delimiter, end)
    with replacing(path) as file:
        file.write(old + new.encode("utf-8", "surrogateescape"))
