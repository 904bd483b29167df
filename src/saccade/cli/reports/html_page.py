"""Pages that need nothing else: no server, no network, no other file."""

import base64
import io
import os
from pathlib import Path, PurePath
from typing import Annotated, Any
from urllib.parse import quote

from saccade._core.atomic import replacing

SIDE = 176  # pixels of a thumbnail


def render(
    template: Annotated[str | Path, "name of a file in templates/, or the path of one elsewhere"], **values: Any
) -> Any:  # Markup
    """The template with the values in it. Text is escaped; only Markup, which we make ourselves, is not."""
    from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined
    from markupsafe import Markup

    elsewhere = [FileSystemLoader(template.parent)] if isinstance(template, Path) else []
    pages = Environment(
        loader=ChoiceLoader([*elsewhere, PackageLoader("saccade.cli.reports")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters["percent"] = percent
    return Markup(pages.get_template(Path(template).name).render(values))


def percent(share: float) -> str:
    """A share as every page and table writes it; what is not certain never looks so.

    >>> percent(0.9744), percent(0.99999), percent(0.0001), percent(1.0)
    ('97.4 %', '>99.9 %', '<0.1 %', '100.0 %')
    """
    if 0.0 < share < 0.0005:
        return "<0.1 %"
    return ">99.9 %" if 0.9995 <= share < 1.0 else f"{100 * share:.1f} %"


def links(page: Path, pictures: Any) -> list[str]:
    """Addresses of the files of pictures, seen from the page; empty where a picture has no file."""
    paths = getattr(pictures, "paths", None)
    if paths is None:
        return [""] * len(pictures)
    folder = page.resolve().parent
    return [address(path.resolve(), folder) for path in paths]


def address(path: PurePath, folder: PurePath) -> str:
    try:
        return quote(os.fsencode(os.path.relpath(path, folder)).replace(b"\\", b"/"))
    except ValueError:  # another drive of Windows
        return path.as_uri()


def short(source: Path) -> str:
    """The name of a file or folder, without the folders above it."""
    return source.resolve().name or str(source)


def write(path: Path, page: str) -> None:
    """As UTF-8; bytes of file names that are not UTF-8 show as backslash escapes."""
    with replacing(path) as file:
        file.write(page.encode("utf-8", "backslashreplace"))


def write_page(path: Path, template: str, **values: Any) -> None:
    write(path, render(template, **values))


def card(pictures: Any, i: int, link: str = "", side: int = SIDE) -> dict[str, Any]:
    """What the macro `card` shows of a picture."""
    return {"picture": thumbnail(pictures[i], side), "name": pictures.names[i], "link": link}


def thumbnail(picture: Any, side: int = SIDE) -> str:
    """A small JPEG inside a link."""
    from PIL import Image

    from saccade.features.pixels import limited, resize

    height, width = picture.shape[:2]
    return data_link(Image.fromarray(resize(picture, limited((width, height), side))), "JPEG", quality=80)


def data_link(image: Any, kind: str, **options: Any) -> str:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return f"data:image/{kind.lower()};base64," + base64.b64encode(out.getvalue()).decode()
