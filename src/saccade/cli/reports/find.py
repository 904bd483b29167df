"""The page of `saccade find`: all answers, the least sure first, and each search as a player of its steps (S §12)."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saccade._core import limits
from saccade._core.arrays import Array
from saccade.cli import console
from saccade.cli.find_search import ObjectSearch, Step
from saccade.cli.reports import html_page
from saccade.localize import Found
from saccade.localize.search.asking import units


def write_report(path: Path, searches: Sequence[ObjectSearch], label: str) -> None:
    """One page that needs nothing else."""
    shown = searches[: limits.SHEET_PICTURES]
    played = [number for number, each in enumerate(shown, 1) if each.steps]
    html_page.write_page(
        path,
        "find.html",
        label=label,
        count=console.count(len(searches), "picture"),
        hidden=len(searches) - len(shown),
        answers=[answer(each, number if number in played else 0) for number, each in enumerate(shown, 1)],
        players=[(number, player(shown[number - 1], label)) for number in played],
    )


def answer(search: ObjectSearch, number: int) -> dict[str, Any]:
    """What the overview shows of one search: the picture, the box in it, and how sure it is."""
    found, (low, high) = search.found, _scores(search)
    share = np.clip((search.localizer.told - low) / (high - low), 0.0, 1.0).round(2)
    return {
        "name": search.name,
        "picture": html_page.thumbnail(_small(search), limits.REPORT_SIDE),
        "size": search.picture.shape[1::-1],
        "box": _rectangle(found.box),
        "looks": list(zip(map(_rectangle, search.localizer.boxes), share.tolist(), strict=True)),
        "found": found.found,
        "sure": found.probability if found.found else 1.0 - found.present,
        "text": answer_text(found),
        "count": console.count(found.looks, "look"),
        "player": f"#search-{number}" if number else "",
    }


def _scores(search: ObjectSearch) -> tuple[float, float]:
    """About what the judge says of background and of the object."""
    low, unit = units(search.localizer)
    return low, low + unit


def _rectangle(box: Array) -> dict[str, float]:
    """The attributes of an SVG <rect>."""
    x0, y0, x1, y1 = (round(float(v), 1) for v in box)
    return {"x": x0, "y": y0, "width": round(x1 - x0, 1), "height": round(y1 - y0, 1)}


def _small(search: ObjectSearch) -> Array:
    height, width = search.picture.shape[:2]
    return search.picture.read((0, 0, width, height), min(1.0, limits.REPORT_SIDE / max(width, height)))


def player(search: ObjectSearch, label: str) -> dict[str, Any]:
    """What `player.html` needs to show one search."""
    from markupsafe import Markup

    found = search.found
    return {
        "name": search.name,
        "picture": html_page.thumbnail(_small(search), limits.REPORT_SIDE),
        "alternative": f"{search.name}, with the boxes that were looked at",
        "steps": len(search.steps),
        "lead": f"{label}: {answer_text(found)} after {console.count(found.looks, 'look')}, "
        f"{console.duration(search.seconds)}",
        "data": Markup(json.dumps(_data(search), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")),
    }


def answer_text(found: Found) -> str:
    """How probable the box is, or that there is none."""
    return sure_text(found.probability) if found.found else f"not found (present: {sure_text(found.present)})"


def sure_text(probability: float) -> str:
    """Never certain: the looks are judged by a model, which may be wrong.

    >>> sure_text(0.9999), sure_text(0.874)
    ('> 99 %', '87 %')
    """
    return "> 99 %" if probability > 0.99 else f"{100 * probability:.0f} %"


def _data(search: ObjectSearch) -> dict[str, Any]:
    height, width = search.picture.shape[:2]
    means, variances = ([getattr(step.maps, name) for step in search.steps] for name in ("mean", "variance"))
    low, high = (float(value) for value in (np.min(means), np.max(means)))
    most = float(np.max(variances))
    return {
        "size": [width, height],
        "map": list(search.steps[0].maps.mean.shape),
        "mean": [low, high],
        "deviation": [0.0, float(np.sqrt(most))],
        "scores": list(_scores(search)),
        "boxes": np.round(search.localizer.boxes, 1).tolist(),
        "told": [float(f"{value:.4g}") for value in search.localizer.told],
        "steps": [_step(step, low, high, most) for step in search.steps],
    }


def _step(step: Step, low: float, high: float, most: float) -> dict[str, Any]:
    found, gain = step.found, float(step.maps.gain.max())
    return {
        "looks": step.looks,
        "box": np.round(found.box, 1).tolist(),
        "probability": round(found.probability, 4),
        "score": float(f"{found.score:.4g}"),
        "gain": float(f"{gain:.3g}"),
        "seconds": console.duration(step.seconds),
        "maps": [
            _bytes(step.maps.mean, low, high),
            _bytes(np.sqrt(np.maximum(step.maps.variance, 0.0)), 0.0, float(np.sqrt(most))),
            _bytes(step.maps.gain, 0.0, gain),
        ],
    }


def _bytes(values: Array, low: float, high: float) -> str:
    """A map in 256 steps, row by row, as base64: a kilobyte or two."""
    share = (values - low) / max(high - low, 1e-300)
    return base64.b64encode(np.rint(255.0 * np.clip(share, 0.0, 1.0)).astype(np.uint8).tobytes()).decode()
