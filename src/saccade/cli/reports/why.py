"""The page of `saccade predict --why`: what spoke for each answer, in pictures or in columns of a table."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade._core.errors import InvalidInput
from saccade._core.progress import report
from saccade.cli import console
from saccade.cli.reports import html_page
from saccade.cli.tables.read import Examples

SIDE = 360  # pixels of a picture
FEATURES = 12  # of an example of a table that are listed
FOR, AGAINST = (217, 72, 15), (25, 113, 194)  # orange and blue, told apart also by those who see red like green
FULL = 0.99  # quantile of the strengths in a picture that gets the full colour
OPAQUE = 0.75
BLUR = 0.02  # of the longer side, for the eye: descriptors lie on a grid, and a feature map has large cells


def check_explains(estimator: Any, X: Any) -> None:
    """Complain of features whose places are not known, before the work begins."""
    if hasattr(X, "chain"):
        from saccade.localize.painting import check_places

        check_places(X.chain)
    if getattr(estimator, "tables_", None) is None:
        raise InvalidInput("--why takes a model with tables, and this one keeps its training rows instead.")
    if not hasattr(estimator, "explain"):
        raise InvalidInput(f"--why takes a model with shares of features, and {type(estimator).__name__} has none.")


def write_why(path: Path, source: Path, estimator: Any, examples: Examples) -> None:
    of_pictures = hasattr(examples.X, "pictures")
    n = min(examples.X.shape[0], limits.SHEET_PICTURES)
    cards = []
    for row in range(n):
        cards.append({"name": examples.name(row), **_explained(estimator, examples, row)})
        report("explaining", (row + 1) / n)
    html_page.write_page(
        path,
        "why.html",
        source=html_page.short(source),
        place="place" if of_pictures else "feature",
        count=console.count(examples.X.shape[0], "picture" if of_pictures else "example"),
        hidden=examples.X.shape[0] - n,
        numbers=not hasattr(estimator, "classes_"),
        targets=estimator.tables_.T.shape[1],
        cards=cards,
    )


def _explained(estimator: Any, examples: Examples, row: int) -> dict[str, Any]:
    """The answer about one example with its picture and the map of shares, or with its largest features."""
    x = examples.X[row : row + 1]
    answer, shares = _answer(estimator, x)
    if not hasattr(examples.X, "pictures"):
        return {**answer, "features": list(_largest(shares, x, examples.names))}
    from saccade.localize.painting import paint

    picture = examples.X.pictures[row]
    heat = paint(examples.X.chain, picture, shares)
    return {**answer, "picture": html_page.thumbnail(picture, SIDE), "heat": overlay(heat, SIDE)}


def _answer(estimator: Any, X: Any) -> tuple[dict[str, Any], Any]:
    """The answer about one example, and the shares behind it: of a class, those against the class that comes second."""
    found = estimator.explain(X)
    if not hasattr(estimator, "classes_"):
        value, offset = float(found.decision()[0, 0]), float(found.offset[0])
        return {"label": f"{value:.6g}", "second": None, "total": value - offset, "offset": offset}, found.of(0)
    p = estimator.predict_proba(X)[0]
    best, second = np.argsort(-p, kind="stable")[:2]
    shares = found.of(0, int(best), against=int(second))
    answer = {"label": estimator.classes_[best], "probability": p[best], "second": estimator.classes_[second]}
    return {**answer, "total": float(shares.sum()), "offset": None}, shares


def _largest(shares: Any, X: Any, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The features with the largest shares, and what all others add up to."""
    order = np.argsort(-np.abs(shares.data), kind="stable")
    largest = float(np.abs(shares.data).max(initial=0.0)) or 1.0
    for k in order[:FEATURES]:
        column = int(shares.indices[k])
        name = names[column] if names else f"column {column + 1}"
        yield _line(f"{name} = {X[0, column]:.4g}", float(shares.data[k]), largest)
    rest = order[FEATURES:]
    if rest.size:
        yield _line(f"{len(rest):,} others", float(shares.data[rest].sum()), largest)


def _line(name: str, share: float, largest: float) -> dict[str, Any]:
    return {"name": name, "share": share, "width": min(abs(share) / largest, 1.0)}


def overlay(heat: Annotated[Array, "h, w"], side: int) -> str:
    """The map as a PNG with alpha inside a link: orange speaks for the answer, blue against it, nothing is clear."""
    from PIL import Image
    from scipy.ndimage import gaussian_filter

    from saccade.features.pixels import limited

    heat = gaussian_filter(heat, BLUR * max(heat.shape), mode="nearest")
    strength = np.abs(heat)
    full = float(np.quantile(strength, FULL)) or float(strength.max()) or 1.0
    colours = np.where((heat > 0)[..., None], np.array(FOR, np.uint8), np.array(AGAINST, np.uint8))
    alpha = np.rint(255.0 * OPAQUE * np.minimum(strength / full, 1.0)).astype(np.uint8)
    image = Image.fromarray(np.dstack([colours, alpha]))
    height, width = heat.shape
    small = image.resize(limited((width, height), side), Image.Resampling.BILINEAR)
    return html_page.data_link(small, "PNG")
