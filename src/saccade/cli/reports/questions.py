"""The page of `saccade ask`: the pictures to label, numbered as in the file of questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from saccade._core import limits
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.cli import console
from saccade.cli.reports import html_page
from saccade.cli.tables.questions import Question

if TYPE_CHECKING:
    from saccade.features import Pictures

OURS = b'<meta name="generator" content="saccade ask">'
SIDE = 320  # pixels of a picture that a person must recognise


def check_replaceable(path: Path) -> None:
    """An error for a page that this command did not make: each round replaces the page of the last one."""
    if path.exists() and OURS not in path.read_bytes()[:1000]:
        raise InvalidInput(
            f"{path} is there already and is no page of `saccade ask`. Choose another name with --sheet."
        )


def write_sheet(
    path: Path,
    source: Path,
    answers: str,  # the name of the file to fill in
    pictures: Pictures,
    questions: Sequence[Question],
    classes: Sequence[str],  # labels so far
) -> None:
    """One page that needs nothing else."""
    shown, cards = questions[: limits.SHEET_PICTURES], []
    for done, q in enumerate(shown, 1):
        cards.append({"picture": html_page.thumbnail(pictures[q.row], SIDE), "question": q})
        report("drawing", done / len(shown))
    page = html_page.render(
        "questions.html",
        source=source.resolve().name or str(source),
        answers=answers,
        count=console.count(len(questions), "picture"),
        hidden=len(questions) - len(shown),
        classes=classes[: limits.SHEET_PICTURES],
        cards=cards,
    )
    html_page.write(path, page)
