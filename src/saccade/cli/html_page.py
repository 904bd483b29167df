"""Pages that need nothing else: no server, no network, no other file."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markupsafe import Markup

SIDE = 176  # pixels of a thumbnail


def render(
    template: str,  # a file of templates/
    **values: Any,
) -> Markup:
    """The template with the values in it. Text is escaped; only Markup, which we make ourselves, is not."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    pages = Environment(
        loader=PackageLoader("saccade.cli"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return Markup(pages.get_template(template).render(values))


def write(path: Path, page: str) -> None:
    """As UTF-8; bytes of file names that are not UTF-8 show as backslash escapes."""
    from saccade._core.atomic import replacing

    with replacing(path) as file:
        file.write(page.encode("utf-8", "backslashreplace"))


def thumbnail(picture: Any, side: int = SIDE) -> str:
    """A small JPEG inside a link."""
    from PIL import Image

    from saccade.features.pixels import limited, resize

    height, width = picture.shape[:2]
    out = io.BytesIO()
    Image.fromarray(resize(picture, limited((width, height), side))).save(out, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()
