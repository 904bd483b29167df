"""Pictures with what was predicted of them on one page, to be ranked by doubt or by novelty."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade._core import limits
from saccade._core.progress import report
from saccade.cli import console
from saccade.cli.reports import html_page

if TYPE_CHECKING:
    from saccade._core.arrays import Array
    from saccade.cli.commands.predict import Answers
    from saccade.features import Pictures


def write_sheet(path: Path, source: Path, pictures: Pictures, answers: Answers) -> None:
    """One page that needs nothing else; doubt is one minus the probability of the answer."""
    import numpy as np

    shown, links = _first(answers, limits.SHEET_PICTURES), html_page.links(path, pictures)
    cards = []
    for done, i in enumerate(shown.tolist(), 1):
        cards.append({**_card(pictures, i, answers), "link": links[i]})
        report("drawing", done / len(shown))
    most = "most doubtful" if answers.novelty is None else "most doubtful or most novel"
    page = html_page.render(
        "contact_sheet.html",
        source=source.name or str(source),
        shown="all" if len(shown) == len(pictures) else f"the {len(shown):,} {most} of the",
        count=console.count(len(pictures), "picture"),
        classes=console.count(len(np.unique(answers.label)), "class", "classes"),
        labels=[str(label) for label in np.unique(answers.label[shown])],
        novelty=answers.novelty is not None,
        cards=cards,
    )
    html_page.write(path, page)


def _first(answers: Answers, most: int) -> Array:
    """The pictures that are shown, the most doubtful first: where not all are, half are those that are most novel."""
    import numpy as np

    assert answers.probability is not None
    order = np.argsort(answers.probability, kind="stable")
    if answers.novelty is None or len(order) <= most:
        return order[:most]
    novel = np.argsort(-answers.novelty, kind="stable")[: most // 2]
    chosen = np.zeros(len(order), bool)
    chosen[novel] = True
    doubtful = order[~chosen[order]][: most - novel.size]
    chosen[doubtful] = True
    return np.asarray(order[chosen[order]])


def _card(pictures: Pictures, i: int, answers: Answers) -> dict[str, Any]:
    assert answers.probability is not None
    return {
        "picture": html_page.thumbnail(pictures[i]),
        "name": pictures.names[i],
        "label": str(answers.label[i]),
        "probability": float(answers.probability[i]),
        "doubt": f"{1.0 - answers.probability[i]:.6g}",
        "novelty": None if answers.novelty is None else float(answers.novelty[i]),
    }
