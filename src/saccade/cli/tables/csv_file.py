"""CSV files, read row by row into floats: with or without a header, with commas, semicolons or tabs, or gzipped."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.declared import check_unpacked
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.cli.tables.columns import LABEL_NAMES, NOT_A_FEATURE, Columns, Reading, choose_columns, listed
from saccade.cli.tables.csv_out import plain, plain_name

MISSING = ("", "na", "n/a", "none", "null", "?", "-")
TRUTH = {"true": 1.0, "false": 0.0}
CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
NUMBERED_FROM = 4  # columns named 0, 1, 2, 3 are a header that pandas wrote


@dataclass(frozen=True)
class Table:
    """A CSV file in floats and text."""

    X: Array  # (n, d)
    names: tuple[str, ...]  # of the features; empty without a header
    labels: list[str] | None
    ids: list[str] | None
    id_name: str
    ignored: tuple[str, ...]


def is_csv(path: Path) -> bool:
    return path.name.lower().endswith(CSV)


def read_table(path: Path, how: Reading, wanted: tuple[str, ...] = ()) -> Table:
    """Every row as numbers, with the label and the id as text."""
    with _open(path, how) as (names, named, rows, share):
        columns = choose_columns(path, names, how, named=named, wanted=wanted)
        if not columns.features:
            raise InvalidInput(f"{path} has no column of features, only {names}.")
        values, labels, ids = _collect(path, names, columns, rows, share)
    X = np.frombuffer(values, np.float64).reshape(-1, len(columns.features))
    return Table(
        X,
        tuple(names[k] for k in columns.features) if named else (),
        labels if columns.label is not None else None,
        ids if columns.id is not None else None,
        (names[columns.id].strip() or "id") if columns.id is not None else "",
        columns.ignored,
    )


def read_column(path: Path, how: Reading) -> list[str]:
    """The label column, or the only one."""
    with _open(path, how) as (names, named, rows, _):
        place = 0 if len(names) == 1 else choose_columns(path, names, Reading(how.label), named=named).label
        if place is None:
            raise InvalidInput(f"{path} has {len(names)} columns: name the one with the labels with --label.")
        return [plain(_whole(path, line, names, row)[place].strip()) for line, row in rows]


def column_names(path: Path) -> tuple[list[str], str]:
    """The first line, whatever it is, and what separates its columns."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        delimiter = _delimiter(file.readline(limits.CSV_LINE))
        file.seek(0)
        return [plain(name.strip()) for name in next(csv.reader(file, delimiter=delimiter), [])], delimiter


def read_named(path: Path, how: Reading, column: str, more: str = "") -> list[tuple[int, str, str, str]] | None:
    """Line number, name, label and the text of one column more of every row that has a name or a label.

    None without a column of that name. Names of files are bytes, and come through as such.
    """
    with _open(path, how, "surrogateescape") as (names, named, rows, _):
        name = [k for k, text in enumerate(names) if text.casefold() == column.casefold()]
        if not named or not name:
            return None
        known = Reading(how.label if how.label in names else None)
        label, other = (
            choose_columns(path, names, known, named=True).label,
            names.index(more) if more in names else None,
        )
        if label is None:
            raise InvalidInput(f"{path} has no column `label`; it has {listed(names)}. Name it with --label.")
        found = []
        for line, row in rows:
            text = [value.strip() for value in _whole(path, line, names, row)]
            text[label].encode()  # UnicodeEncodeError where the bytes are no UTF-8
            called, said = plain_name(text[name[0]], column), plain(text[label])
            found.append((line, called, said, text[other] if other is not None else ""))
    return [line for line in found if line[1] or line[2]]


def _collect(
    path: Path,
    names: list[str],
    columns: Columns,
    rows: Iterator[tuple[int, list[str]]],
    share: Callable[[], float],
) -> tuple[array[float], list[str], list[str]]:
    values, labels, ids = array("d"), [], []
    pick = _picker(columns.features)
    same: dict[str, str] = {}  # one string for each class, not one for each row
    for count, (line, row) in enumerate(rows):
        _whole(path, line, names, row)
        try:
            values.extend([float(text) for text in pick(row)])
        except ValueError:
            try:
                values.extend([_number(text) for text in pick(row)])
            except ValueError:
                raise InvalidInput(_not_a_number(path, line, names, columns, row)) from None
        if columns.label is not None:
            label = plain(row[columns.label].strip())
            labels.append(same.setdefault(label, label))
        if columns.id is not None:
            ids.append(plain_name(row[columns.id], names[columns.id]))
        if count % limits.TABLE_ROWS_AT_ONCE == 0:
            report("reading", share())
    return values, labels, ids


def _whole(path: Path, line: int, names: list[str], row: list[str]) -> list[str]:
    if len(row) != len(names):
        raise InvalidInput(f"{path}, line {line:,}: {len(row)} values where the first line has {len(names)}.")
    return row


def _picker(features: tuple[int, ...]) -> Callable[[list[str]], Any]:
    if len(features) == 1:
        return lambda row: (row[features[0]],)
    return itemgetter(*features)


def _not_a_number(path: Path, line: int, names: list[str], columns: Columns, row: list[str]) -> str:
    bad = next(k for k in columns.features if not _is_number(row[k]))
    name, value = names[bad], row[bad].strip()
    where = f"{path}, line {line:,}: column {name!r}"
    if value.casefold() in MISSING:
        return f"{where} is {f'missing ({value})' if value else 'empty'}. Fill the gap or leave the row out."
    return f"{where} holds {value!r}, which is not a number. {NOT_A_FEATURE}"


@contextmanager
def _open(
    path: Path, how: Reading, errors: str = "strict"
) -> Iterator[tuple[list[str], bool, Iterator[tuple[int, list[str]]], Callable[[], float]]]:
    """The column names, whether they stand in the file, the rows with their line numbers, and the share read so far."""
    size = max(path.stat().st_size, 1)
    try:
        with path.open("rb") as binary, _text(path, binary, errors) as file:
            reader = csv.reader(file, delimiter=_delimiter(file.readline(limits.CSV_LINE)))
            file.seek(0)
            rows = ((reader.line_num, row) for row in reader if row)
            first = list(islice(rows, 2))
            if not first:
                raise InvalidInput(f"{path} is empty.")
            names = [plain(name.strip()) for name in first[0][1]]
            named = how.header if how.header is not None else _is_header(*(row for _, row in first), how=how)
            if not named:
                names = [str(k + 1) for k in range(len(names))]
            yield names, named, chain(first[1:] if named else first, rows), lambda: binary.tell() / size
    except UnicodeError:
        raise InvalidInput(f"{path} is not a text file in UTF-8. Save it again as CSV in UTF-8.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InvalidInput(f"{path} is damaged or was not made by gzip. Write it again.") from None
    except csv.Error as error:
        raise InvalidInput(f"{path} is not a CSV file ({error}).") from None


def _text(path: Path, binary: Any, errors: str) -> TextIO:
    """The file as text; `binary` tells how much of it was read."""
    stream = io.BufferedReader(_Unpacked(path, binary)) if path.suffix.lower() == ".gz" else binary
    return io.TextIOWrapper(stream, encoding="utf-8-sig", errors=errors, newline="")


class _Unpacked(io.RawIOBase):
    """A gzipped file as it is unpacked, until it is far more than what is packed."""

    def __init__(self, path: Path, binary: Any) -> None:
        self._path, self._stream = path, gzip.GzipFile(fileobj=binary)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(place, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: Any) -> int:
        count = self._stream.readinto(buffer)
        check_unpacked(self._path, self._stream.tell())
        return count


def _delimiter(line: str) -> str:
    """
    >>> _delimiter('"a,b,c";d')
    ';'
    """
    bare = re.sub(r'"[^"]*"', "", line)
    return max(",;\t", key=bare.count)


def _is_header(first: list[str], second: list[str] | None = None, *, how: Reading) -> bool:
    """Whether the first row names the columns.

    It does when it holds no number, or one of the names we look for, or a name above a number, or 0, 1, 2, … as pandas
    writes. A first row of numbers and text above the same is an example.
    """
    known = {*LABEL_NAMES, "id", *(name.casefold() for name in (how.label, how.id, *how.drop) if name is not None)}
    texts = [k for k, value in enumerate(first) if not _is_number(value)]
    if any(first[k].strip().casefold() in known for k in texts):
        return True
    if not texts:
        return len(first) >= NUMBERED_FROM and [value.strip() for value in first] == [str(k) for k in range(len(first))]
    above_number = any(k < len(second) and _is_number(second[k]) for k in texts) if second is not None else False
    return above_number or len(texts) == len(first) > 1


def _number(value: str) -> float:
    """True and False, however they are written, are 1 and 0."""
    truth = TRUTH.get(value.strip().casefold())
    return float(value) if truth is None else truth


def _is_number(value: str) -> bool:
    try:
        _number(value)
    except ValueError:
        return False
    return True
