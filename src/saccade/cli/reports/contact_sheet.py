"""The page of `saccade predict --sheet`: pictures with their answers, to be ranked by doubt or by novelty."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.progress import report
from saccade.cli import console
from saccade.cli.reports import html_page


class Answers(NamedTuple):
    """What was predicted: one entry per example."""

    label: Array
    probability: Array | None  # of that label
    novelty: Array | None


def write_sheet(path: Path, source: Path, pictures: Any, answers: Answers) -> None:
    """One page that needs nothing else; doubt is one minus the probability of the answer."""
    assert answers.probability is not None
    shown, links, cards = _first(answers, limits.SHEET_PICTURES), html_page.links(path, pictures), []
    for done, i in enumerate(shown.tolist(), 1):
        probability, novelty = float(answers.probability[i]), answers.novelty
        said = {"label": str(answers.label[i]), "probability": probability, "doubt": f"{1.0 - probability:.6g}"}
        said["novelty"] = None if novelty is None else float(novelty[i])
        cards.append({**html_page.card(pictures, i, links[i]), **said})
        report("drawing", done / len(shown))
    most = "most doubtful" if answers.novelty is None else "most doubtful or most novel"
    html_page.write_page(
        path,
        "contact_sheet.html",
        source=html_page.short(source),
        shown="all" if len(shown) == len(pictures) else f"the {len(shown):,} {most} of the",
        count=console.count(len(pictures), "picture"),
        classes=console.count(len(np.unique(answers.label)), "class", "classes"),
        labels=[str(label) for label in np.unique(answers.label[shown])],
        novelty=answers.novelty is not None,
        cards=cards,
    )


def _first(answers: Answers, most: int) -> Array:
    """The pictures that are shown, the most doubtful first: where not all are, half are those that are most novel."""
    assert answers.probability is not None
    order = np.argsort(answers.probability, kind="stable")
    if answers.novelty is None or len(order) <= most:
        return order[:most]
    novel = np.argsort(-answers.novelty, kind="stable")[: most // 2]
    chosen = np.zeros(len(order), bool)
    chosen[novel] = True
    chosen[order[~chosen[order]][: most - novel.size]] = True
    return np.asarray(order[chosen[order]])
