"""Where results go: a file that is whole or not there, or the terminal."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from saccade.cli.terminal import spell_out


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
