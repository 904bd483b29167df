"""Where results go: a file that is whole or not there, or the terminal."""

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

from saccade.cli.terminal import spell_out

# What a spreadsheet would run as a formula, unless it is a number; with quotes in front, so that `plain` can undo it.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def cell(text: str) -> str:
    """Text as a cell of a CSV file that no spreadsheet takes for a formula: with a quote in front, as Excel has it.

    >>> cell("=1+1"), cell("-0.5"), cell("cat"), plain(cell("=1+1"))
    ("'=1+1", '-0.5', 'cat', '=1+1')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def path_cell(name: str) -> str:
    """The name of a file as such a cell; it stays the name of that file.

    >>> path_cell("=1+1.png"), path_cell("cat.png"), plain_name("./=1+1.png", "file")
    ('./=1+1.png', 'cat.png', '=1+1.png')
    """
    return name if cell(name) == name else f"./{name}"


def name_cell(name: str, column: Annotated[str, "'file' for names of files"]) -> str:
    return path_cell(name) if column == "file" else cell(name)


def plain(text: str) -> str:
    """The text in a cell, without the quote that keeps a spreadsheet from running it."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def plain_name(text: str, column: str) -> str:
    """What `name_cell` made a cell of. A path that no spreadsheet would run stays as it is written."""
    if column != "file":
        return plain(text)
    return text[2:] if text.startswith("./") and cell(text[2:]) != text[2:] else text


@contextmanager
def writing(out: str) -> Iterator[TextIO]:
    """The file of that name as text, or standard output for "-". Names of files are bytes, and go through as such."""
    if out == "-":
        yield spell_out(sys.stdout)
        return
    from saccade._core.atomic import replacing

    with replacing(Path(out)) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", errors="surrogateescape")
        yield text
        text.flush()
        text.detach()
