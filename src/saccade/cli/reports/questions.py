"""The page of `saccade ask`: the pictures to label, numbered as in the file of questions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saccade._core import limits
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.cli import console
from saccade.cli.reports import html_page
from saccade.cli.tables.questions import Question

OURS = b'<meta name="generator" content="saccade ask">'
SIDE = 320  # pixels of a picture that a person must recognise


def check_replaceable(path: Path) -> None:
    """An error for a page that this command did not make: each round replaces the page of the last one."""
    if path.exists() and OURS not in path.read_bytes()[:1000]:
        raise InvalidInput(
            f"{path} exists already and `saccade ask` did not make it. Choose another name with --sheet."
        )


def write_sheet(
    path: Path,
    source: Path,
    answers: str,  # the name of the file to fill in
    pictures: Any,
    questions: Sequence[Question],
    classes: Sequence[str],  # labels so far
) -> None:
    shown, cards = questions[: limits.SHEET_PICTURES], []
    for done, q in enumerate(shown, 1):
        cards.append({**html_page.card(pictures, q.row, side=SIDE), "question": q})
        report("drawing", done / len(shown))
    html_page.write_page(
        path,
        "questions.html",
        source=html_page.short(source),
        answers=answers,
        count=console.count(len(questions), "picture"),
        hidden=len(questions) - len(shown),
        classes=classes[: limits.SHEET_PICTURES],
        cards=cards,
    )
