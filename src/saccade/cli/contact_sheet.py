"""Pictures with what was predicted of them on one page, the most doubtful first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from saccade._core.progress import report
from saccade.cli import console, html_page

if TYPE_CHECKING:
    from saccade.cli.predict import Answers
    from saccade.features import Pictures

MOST = 600  # pictures on a page that a browser still scrolls with ease


def write_sheet(path: Path, source: Path, pictures: Pictures, answers: Answers) -> None:
    """One page that needs nothing else; doubt is one minus the probability of the answer."""
    import numpy as np

    assert answers.probability is not None
    order = np.argsort(answers.probability, kind="stable")[:MOST]
    cards = []
    for done, i in enumerate(order, 1):
        cards.append(_card(pictures, int(i), answers))
        report("drawing", done / len(order))
    values = {
        "source": html_page.safe(source.name or str(source)),
        "shown": "all" if len(order) == len(pictures) else f"the {len(order):,} most doubtful of the",
        "count": console.count(len(pictures), "picture"),
        "classes": console.count(len(np.unique(answers.label)), "class", "classes"),
        "cards": "\n".join(cards),
    }
    html_page.write(path, html_page.render("contact_sheet.html", values))


def _card(pictures: Pictures, i: int, answers: Answers) -> str:
    assert answers.probability is not None
    name, p = html_page.safe(pictures.names[i]), answers.probability[i]
    new = (
        ""
        if answers.novelty is None
        else f'<span title="novelty: 0 like many, 1 like none">new {answers.novelty[i]:.2f}</span>'
    )
    label = html_page.safe(str(answers.label[i]))
    caption = f"<b>{label}</b>{html_page.bar(p, f'{p:.0%}')}<small>{name}</small>{new}"
    return html_page.card(html_page.thumbnail(pictures[i]), name, caption)
