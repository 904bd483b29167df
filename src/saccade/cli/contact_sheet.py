"""Pictures with what was predicted of them on one page, the most doubtful first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade._core import limits
from saccade._core.progress import report
from saccade.cli import console, html_page

if TYPE_CHECKING:
    from saccade.cli.predict import Answers
    from saccade.features import Pictures


def write_sheet(path: Path, source: Path, pictures: Pictures, answers: Answers) -> None:
    """One page that needs nothing else; doubt is one minus the probability of the answer."""
    import numpy as np

    assert answers.probability is not None
    order = np.argsort(answers.probability, kind="stable")[: limits.SHEET_PICTURES]
    cards = []
    for done, i in enumerate(order.tolist(), 1):
        cards.append(_card(pictures, i, answers))
        report("drawing", done / len(order))
    page = html_page.render(
        "contact_sheet.html",
        source=source.name or str(source),
        shown="all" if len(order) == len(pictures) else f"the {len(order):,} most doubtful of the",
        count=console.count(len(pictures), "picture"),
        classes=console.count(len(np.unique(answers.label)), "class", "classes"),
        cards=cards,
    )
    html_page.write(path, page)


def _card(pictures: Pictures, i: int, answers: Answers) -> dict[str, Any]:
    assert answers.probability is not None
    return {
        "picture": html_page.thumbnail(pictures[i]),
        "name": pictures.names[i],
        "label": answers.label[i],
        "probability": answers.probability[i],
        "novelty": None if answers.novelty is None else answers.novelty[i],
    }
