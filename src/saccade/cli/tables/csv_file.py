"""CSV files, parsed by pandas: with or without a header, with commas, semicolons or tabs, or gzipped.

What is ours: which line is the header, what separates columns, and errors that name the line and the remedy.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TextIO

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.declared import check_unpacked
from saccade._core.errors import InvalidInput, SaccadeError
from saccade._core.progress import report
from saccade.cli.tables.columns import LABEL_NAMES, NOT_A_FEATURE, TableReading
from saccade.cli.tables.csv_out import plain

MISSING = ["", "?", "-", "na", "NA", "n/a", "N/A", "none", "None", "NONE", "null", "Null", "NULL"]
MISSING += ["nan", "Nan", "NaN", "NAN"]
TRUTH = {"true": "1", "false": "0"}
CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
NUMBERED_FROM = 4  # columns named 0, 1, 2, 3 are a header that pandas wrote


class Layout(NamedTuple):
    """What the first lines of a CSV file say."""

    path: Path
    names: list[str]  # numbers from 1 where the file has no header
    named: bool
    delimiter: str
    before: int  # lines before the first row of data; one in quotes that spans several counts once

    @property
    def width(self) -> int:
        return len(self.names)


def is_csv(path: Path) -> bool:
    return path.name.lower().endswith(CSV)


def layout_of(path: Path, how: TableReading) -> Layout:
    """Names and delimiter of the columns."""
    delimiter, rows = _first_rows(path)
    if not rows:
        raise InvalidInput(f"{path} is empty.")
    (place, first), second = rows[0], rows[1][1] if len(rows) > 1 else None
    named = how.header if how.header is not None else _is_header(first, second, how=how)
    names = [plain(name.strip()) for name in first] if named else [str(k + 1) for k in range(len(first))]
    return Layout(path, names, named, delimiter, place + named)


def column_names(path: Path) -> tuple[list[str], str]:
    """The first line, whatever it is, and what separates its columns."""
    delimiter, rows = _first_rows(path)
    return [plain(name.strip()) for _, row in rows[:1] for name in row], delimiter


def _first_rows(path: Path) -> tuple[str, list[tuple[int, list[str]]]]:
    """What separates columns, and the first two rows that are not empty with the number of lines before them."""
    with _text(path, "surrogateescape") as file:
        lines_of_text = iter(lambda: file.readline(limits.CSV_LINE), "")
        delimiter = _delimiter(next((line for line in lines_of_text if line.strip()), ""))
        file.seek(0)
        lines = enumerate(csv.reader(file, delimiter=delimiter))
        return delimiter, list(islice(((k, row) for k, row in lines if row), 2))


def read_frame(layout: Layout, numbers: Sequence[int] = (), errors: str = "strict") -> Any:
    """The rows as a data frame: columns `numbers` as numbers where they are such, all others as text."""
    import pandas as pd

    exact: dict[str, Any] = {"float_precision": "round_trip"} if pd.__version__.startswith("2.") else {}
    texts = dict.fromkeys(set(range(layout.width)) - set(numbers), object)
    try:
        with _text(layout.path, errors) as file:
            frame = pd.read_csv(
                file, sep=layout.delimiter, header=None, skiprows=layout.before, dtype=texts, low_memory=False,
                keep_default_na=False, na_values=dict.fromkeys(numbers, MISSING), encoding_errors=errors, **exact,
            )  # fmt: skip
    except pd.errors.EmptyDataError:
        frame = pd.DataFrame(columns=range(layout.width))
    except (SaccadeError, UnicodeError):
        raise
    except ValueError as error:
        _check_widths(layout)
        raise InvalidInput(f"{layout.path} is not a CSV file ({error}). Save it again as CSV.") from None
    last = layout.width - 1
    if frame.shape[1] != layout.width or (last not in numbers and (frame[last] == "").any()):
        _check_widths(layout)
    return frame


def numbers_of(layout: Layout, frame: Any, columns: Sequence[int]) -> Annotated[Array, "n, d"]:
    """Columns as numbers; True and False, however they are written, are 1 and 0."""
    import pandas as pd

    bad: dict[int, int] = {}  # the first row that is not a number, by column
    for k in columns:
        column = frame[k]
        if column.dtype.kind not in "biuf":
            text = column.astype(str).str.strip().str.casefold().replace(TRUTH)
            column = frame[k] = pd.to_numeric(text, errors="coerce").astype(np.float64)
        if column.dtype.kind == "f" and column.hasnans:
            bad[k] = int(np.flatnonzero(np.isnan(column.to_numpy()))[0])
    if bad:
        k = min(bad, key=lambda k: (bad[k], columns.index(k)))
        raise InvalidInput(_not_a_number(layout, bad[k], k))
    return np.ascontiguousarray(frame[list(columns)].to_numpy(np.float64))


def texts_of(frame: Any, column: int) -> list[str]:
    """A column as text, without spaces around it and without the quote that guards against formulas."""
    texts: list[str] = frame[column].tolist()
    shown = {text: plain(text.strip()) for text in set(texts)}
    return [shown[text] for text in texts]


def check_utf8(path: Path, texts: Iterable[str]) -> None:
    """Complain of text that came from bytes which are no UTF-8."""
    for text in texts:
        if not text.isascii() and not text.isprintable():
            with _refusing(path):
                text.encode()


def line_of(layout: Layout, row: int) -> tuple[int, list[str]]:
    """Line number in the file, and the cells, of a row of data; for messages."""
    with _text(layout.path, "surrogateescape") as file:
        lines = csv.reader(file, delimiter=layout.delimiter)
        next(islice(lines, layout.before, layout.before), None)
        rows = (cells for cells in lines if cells)
        cells = next(islice(rows, row, None), [])
        return lines.line_num, cells


def _check_widths(layout: Layout) -> None:
    """Complain of the first row with more or fewer values than the first line."""
    with _text(layout.path, "surrogateescape") as file:
        lines = csv.reader(file, delimiter=layout.delimiter)
        for cells in lines:
            if cells and len(cells) != layout.width:
                where = f"{layout.path}, line {lines.line_num:,}"
                raise InvalidInput(
                    f"{where}: {len(cells)} values, but the first line has {layout.width}. Correct that line."
                )


def _not_a_number(layout: Layout, row: int, column: int) -> str:
    _check_widths(layout)
    line, cells = line_of(layout, row)
    value = cells[column].strip()
    where = f"{layout.path}, line {line:,}: column {layout.names[column]!r}"
    if value in MISSING:
        return f"{where} is {f'missing ({value})' if value else 'empty'}. Fill the gap or leave the row out."
    return f"{where} holds {value!r}, which is not a number. {NOT_A_FEATURE}"


@contextmanager
def _text(path: Path, errors: str) -> Iterator[TextIO]:
    with _refusing(path), path.open("rb") as binary:
        yield io.TextIOWrapper(io.BufferedReader(_Watched(path, binary)), "utf-8-sig", errors, newline="")


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """What is wrong with a file as a whole is said in one sentence."""
    try:
        yield
    except UnicodeError:
        raise InvalidInput(f"{path} is not a text file in UTF-8. Save it again as CSV in UTF-8.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InvalidInput(f"{path} is damaged or was not made by gzip. Write it again.") from None
    except csv.Error as error:
        raise InvalidInput(f"{path} is not a CSV file ({error}). Save it again as CSV.") from None


class _Watched(io.RawIOBase):
    """A file that reports how much of it was read, unpacked until it is far more than what is packed."""

    def __init__(self, path: Path, binary: Any) -> None:
        self._path, self._binary, self._size = path, binary, max(path.stat().st_size, 1)
        self._packed = path.suffix.lower() == ".gz"
        self._stream = gzip.GzipFile(fileobj=binary) if self._packed else binary

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        return int(self._stream.seek(place, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def readinto(self, buffer: Any) -> int:
        count = int(self._stream.readinto(buffer))
        if self._packed:
            check_unpacked(self._path, self._stream.tell())
        report("reading", self._binary.tell() / self._size)
        return count


def _delimiter(line: str) -> str:
    """
    >>> _delimiter('"a,b,c";d')
    ';'
    """
    bare = re.sub(r'"[^"]*"', "", line)
    return max(",;\t", key=bare.count)


def _is_header(first: list[str], second: list[str] | None = None, *, how: TableReading) -> bool:
    """Whether the first row names the columns.

    It does when it holds no number, or one of the names we look for, or a name above a number, or 0, 1, 2, … as pandas
    writes. A first row of numbers and text above the same is an example.
    """
    known = {*LABEL_NAMES, "id", *map(str.casefold, filter(None, (how.label, how.id, *how.drop)))}
    texts = [k for k, value in enumerate(first) if not _is_number(value)]
    if not texts:
        return len(first) >= NUMBERED_FROM and list(map(str.strip, first)) == list(map(str, range(len(first))))
    named = any(first[k].strip().casefold() in known for k in texts)
    above_number = any(map(_is_number, [value for k, value in enumerate(second or ()) if k in texts]))
    return named or above_number or len(texts) == len(first) > 1


def _is_number(value: str) -> bool:
    try:
        float(TRUTH.get(value.strip().casefold(), value))
    except ValueError:
        return False
    return True
