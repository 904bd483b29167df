"""Pages that need nothing else: no server, no network, no other file."""

from __future__ import annotations

import base64
import io
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

SIDE = 176  # pixels of a thumbnail


def render(template: str, values: dict[str, Any]) -> str:
    """The template of that name, in the style that all pages share."""
    files = resources.files("saccade.cli")
    style, text = (files.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", template))
    return Template(text).substitute(values, style=style)


def write(path: Path, page: str) -> None:
    from saccade._core.atomic import replacing

    with replacing(path) as file:
        file.write(page.encode("utf-8", "backslashreplace"))


def card(picture: str, alternative: str, caption: str, kind: str = "") -> str:
    """A picture, given as a link, above its caption."""
    start = f'<figure class="{kind}">' if kind else "<figure>"
    return f'{start}<img src="{picture}" alt="{alternative}" loading="lazy"><figcaption>{caption}</figcaption></figure>'


def bar(share: float, text: str) -> str:
    """A share of the width, and what it stands for."""
    return f'<div class="bar"><i style="width:{share:.1%}"></i><span>{text}</span></div>'


def thumbnail(picture: Any) -> str:
    """A small JPEG inside a link."""
    from PIL import Image

    from saccade.features.pixels import limited, resize

    height, width = picture.shape[:2]
    out = io.BytesIO()
    Image.fromarray(resize(picture, limited((width, height), SIDE))).save(out, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()


def safe(text: str) -> str:
    """Text for a page; bytes that are no UTF-8 show as such.

    >>> safe("a<b")
    'a&lt;b'
    """
    return escape(text.encode("utf-8", "backslashreplace").decode())
