"""Labels that name their example, by file name, row number or id: a list of one's own, or answered questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from saccade._core.errors import InvalidInput
from saccade.cli.tables.columns import TableReading, choose_columns, listed
from saccade.cli.tables.csv_file import Layout, check_utf8, is_csv, layout_of, line_of, read_frame, texts_of
from saccade.cli.tables.csv_out import plain_name
from saccade.cli.tables.labels import label_texts, typed

if TYPE_CHECKING:
    from saccade._core.arrays import Array
    from saccade.cli.tables.read import Examples

QUESTION = "question"  # the column with the numbers of questions
CANNOT_TELL = "?"  # the answer of a person who cannot tell: no label, and not asked again


class Names(NamedTuple):
    """What the examples are called."""

    source: Path  # where they come from, for messages
    column: str  # "file", "row" or the id column
    rows: dict[str, int]  # row number by name


class Line(NamedTuple):
    """One label of a file; an empty one is not there yet."""

    row: int | None  # None: no such example
    name: str
    label: str
    place: int  # row of the file, from 0
    file: Layout | Path  # the file; a Layout where rows name their examples
    question: str = ""  # its number, if it was asked for

    @property
    def where(self) -> str:
        if isinstance(self.file, Path):
            return f"{self.file}, label {self.place + 1:,}"
        return f"{self.file.path}, line {line_of(self.file, self.place)[0]:,}"


def names_of(source: Path, examples: Examples) -> Names:
    """The names of the examples; an error where two have the same one."""
    every = [str(row + 1) for row in range(examples.X.shape[0])] if examples.ids is None else examples.ids
    rows = {name.strip(): row for row, name in enumerate(every)}
    if len(rows) < len(every):
        twice = next(name for name, count in Counter(map(str.strip, every)).items() if count > 1)
        raise InvalidInput(
            f"{source} has two examples with the {examples.id_name} {twice!r}, so a label could be for either. "
            "Give each a name of its own, or leave the column out with --drop."
        )
    return Names(source, examples.id_name, rows)


def names_examples(paths: Sequence[Path], how: TableReading, column: str) -> bool:
    """Whether these files name the examples; several must, where a single one may have one label per row."""
    return len(paths) > 1 or (is_csv(paths[0]) and _naming(layout_of(paths[0], how), column) is not None)


def _naming(layout: Layout, column: str) -> int | None:
    found = [k for k, name in enumerate(layout.names) if layout.named and name.casefold() == column.casefold()]
    return found[0] if found else None


def _named_lines(layout: Layout, how: TableReading, names: Names, naming: int) -> list[Line]:
    """Rows that have a name or a label. Names of files are bytes, and come through as such."""
    known = TableReading(how.label if how.label in layout.names else None)
    label = choose_columns(layout.path, layout.names, known, named=True).label
    if label is None:
        raise InvalidInput(f"{layout.path} has no column `label`; it has {listed(layout.names)}. Name it with --label.")
    frame = read_frame(layout, errors="surrogateescape")
    called = [plain_name(text.strip(), names.column) for text in frame[naming]]
    asked = layout.names.index(QUESTION) if QUESTION in layout.names else None
    questions = [""] * len(called) if asked is None else frame[asked].str.strip().tolist()
    said = texts_of(frame, label)
    check_utf8(layout.path, said)
    every = zip(called, said, range(len(called)), questions, strict=True)
    return [Line(names.rows.get(name), name, text, k, layout, q) for name, text, k, q in every if name or text]


def read_lines(path: Path, how: TableReading, names: Names) -> list[Line]:
    """The labels of one file: by name where it has the column that names the examples, else one per row in order."""
    if is_csv(path):
        layout = layout_of(path, how)
        naming = _naming(layout, names.column)
        if naming is not None:
            return _named_lines(layout, how, names, naming)
    texts = label_texts(path, how)
    while len(texts) > len(names.rows) and not texts[-1]:
        texts.pop()  # blank lines at the end
    if len(texts) != len(names.rows):
        raise InvalidInput(
            f"{path} has {len(texts):,} labels for the {len(names.rows):,} examples of {names.source}. For labels of "
            f"some examples write a .csv file with the columns {names.column} and label."
        )
    return [Line(row, name, label, row, path) for (name, row), label in zip(names.rows.items(), texts, strict=True)]


def merged(lines: Iterable[Line], names: Names) -> dict[int, str]:
    """Label by row, without the empty ones; an error for an unknown example and for two labels of one."""
    found: dict[int, Line] = {}
    for line in lines:
        if not line.label:
            continue
        if line.row is None:
            raise InvalidInput(
                f"{line.where}: {names.source} has no {_kind(names)} {line.name!r}. Correct the name, or leave the "
                "line out."
            )
        first = found.setdefault(line.row, line)
        if first.label != line.label:
            raise InvalidInput(
                f"{line.where}: the label of {_kind(names)} {line.name!r} is {line.label!r}, and {first.label!r} in "
                f"{first.where}. Keep one of them."
            )
    return {row: line.label for row, line in sorted(found.items())}


def labelled(labels: dict[int, str], source: str) -> tuple[Array, Array]:  # (l,), (l,)
    """Rows with a label, ascending, and their labels as numbers or text."""
    known = {row: label for row, label in labels.items() if label != CANNOT_TELL}
    y = typed(list(known.values()), source) if known else np.zeros(0, "U1")
    return np.fromiter(known, np.int64, len(known)), y


def read_labelled(paths: Sequence[Path], how: TableReading, names: Names) -> tuple[Array, Array]:  # (l,), (l,)
    every = [line for path in paths for line in read_lines(path, how, names)]
    rows, y = labelled(merged(every, names), ", ".join(map(str, paths)))
    if not rows.size:
        raise InvalidInput(f"There is no label in {', '.join(map(str, paths))} yet. Fill in its column `label`.")
    return rows, y


def _kind(names: Names) -> str:
    return {"file": "picture", "row": "row"}.get(names.column, f"example with the {names.column}")
