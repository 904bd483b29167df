"""Pictures with what was predicted of them on one page, the most doubtful first."""

from __future__ import annotations

import base64
import io
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from saccade._core.atomic import replacing
from saccade._core.progress import report
from saccade.cli import say

if TYPE_CHECKING:
    from saccade.cli.predict import Answers
    from saccade.features import Pictures

MOST = 600  # pictures on a page that a browser still scrolls with ease
SIDE = 176  # pixels of a thumbnail


def write_sheet(path: Path, source: Path, pictures: Pictures, answers: Answers) -> None:
    """One page that needs nothing else; doubt is one minus the probability of the answer."""
    import numpy as np

    assert answers.probability is not None
    order = np.argsort(answers.probability, kind="stable")[:MOST]
    cards = []
    for done, i in enumerate(order, 1):
        cards.append(_card(pictures, int(i), answers))
        report("drawing", done / len(order))
    files = resources.files("saccade.cli")
    values = {
        "style": files.joinpath("report.css").read_text(encoding="utf-8"),
        "source": _safe(source.name or str(source)),
        "shown": "all" if len(order) == len(pictures) else f"the {len(order):,} most doubtful of the",
        "count": say.count(len(pictures), "picture"),
        "classes": say.count(len(np.unique(answers.label)), "class", "classes"),
        "cards": "\n".join(cards),
    }
    page = Template(files.joinpath("contact_sheet.html").read_text(encoding="utf-8")).substitute(values)
    with replacing(path) as file:
        file.write(page.encode("utf-8", "backslashreplace"))


def _card(pictures: Pictures, i: int, answers: Answers) -> str:
    assert answers.probability is not None
    name, p = _safe(pictures.names[i]), answers.probability[i]
    new = (
        ""
        if answers.novelty is None
        else f'<span title="novelty: 0 like many, 1 like none">new {answers.novelty[i]:.2f}</span>'
    )
    return (
        f'<figure><img src="{_thumbnail(pictures[i])}" alt="{name}" loading="lazy"><figcaption>'
        f'<b>{_safe(str(answers.label[i]))}</b><div class="bar"><i style="width:{p:.1%}"></i><span>{p:.0%}</span></div>'
        f"<small>{name}</small>{new}</figcaption></figure>"
    )


def _thumbnail(picture: Any) -> str:
    """A small JPEG inside a link."""
    from PIL import Image

    from saccade.features.pixels import limited, resize

    height, width = picture.shape[:2]
    out = io.BytesIO()
    Image.fromarray(resize(picture, limited((width, height), SIDE))).save(out, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()


def _safe(text: str) -> str:
    """Text for a page; bytes that are no UTF-8 show as such."""
    return escape(text.encode("utf-8", "backslashreplace").decode())
